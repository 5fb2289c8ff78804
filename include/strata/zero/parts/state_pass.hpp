#pragma once
// strata/zero/parts/state_pass.hpp - StatePass: a walk over all of a rank's state, with the parameters beside it.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include <strata/core/function_ref.hpp>
#include <strata/offload/window_pipeline.hpp>
#include <strata/policy/place.hpp>
#include <strata/zero/compute_device.hpp>
#include <strata/zero/detail/buffer_pool.hpp>
#include <strata/zero/detail/preparation.hpp>
#include <strata/zero/parts/buckets.hpp>
#include <strata/zero/parts/local_failure.hpp>
#include <strata/zero/parts/run_order.hpp>
#include <strata/zero/parts/shard_store.hpp>
#include <strata/zero/parts/staging.hpp>
#include <strata/zero/tier.hpp>

namespace strata::zero {

/// What a pass does with the parameters of a run.
enum class ParameterUse : std::uint8_t { none, read, write, update };

/// A run of state and the parameters that it is about, in the memory where a pass works.
///
///   works  Place::host, or Place::device for device addresses
template <class Element, class Kept, std::size_t states, Place works>
struct RunPart : StateRun<Kept, states> {
    static constexpr Place memory = works;
    std::span<Element> parameters;
};

/// Walks the runs of a tier's state in order, opens the shards beside them, and brings both to one memory.
///
///   Numerics  a Precision
///   State     the class `state` of a tier, for `states` states
template <class Numerics, std::size_t states, class State, ComputeDevice Compute>
class StatePass {
public:
    using Element = typename Numerics::element;
    using Kept = typename Numerics::kept;
    using Run = StateRun<Kept, states>;
    using Device = Compute;
    template <Place works>
    using Part = RunPart<Element, Kept, states, works>;
    using HostPart = Part<Place::host>;
    static constexpr bool has_master = Numerics::has_master;
    static constexpr Place device_memory = memory_of<Compute>(Place::device);
    using OnHost = core::FunctionRef<void(const HostPart&)>;
    using Done = core::FunctionRef<void(const Run&)>;

    /// All of it outlives the pass.
    StatePass(State& state, ShardStore& shards, const Buckets& buckets, detail::BufferPool& pool, LocalFailure& failure)
        : state_{state}, shards_{shards}, buckets_{buckets}, pool_{pool}, failure_{failure} {}

    /// Calls `call` with every run, as Part<host> or Part<device>: in the memory where the tier has it. What fails on this
    /// rank only ends the pass on it, and is with the LocalFailure.
    ///
    ///   access  of masters and states
    ///   done    called with a run whose values are back where they live
    template <class Call>
    void beside_state(offload::Access access, ParameterUse use, Call&& call, Done done = nothing) {
        if constexpr (Compute::is_host) {
            walk(access, use, OnHost{call}, done);
        } else {
            walk(access, use, OnEither{OnHost{call}, OnDevice{call}}, done);
        }
    }
    /// The same for a `call` that takes HostParts only.
    void on_host(offload::Access access, ParameterUse use, OnHost call, Done done = nothing) {
        walk(access, use, call, done);
    }

    /// The part of a run's values that is in this rank's share: all of it unless every rank has all of the state.
    template <class Value>
    [[nodiscard]] std::span<Value> own_part(const Run& run, std::span<Value> values) const {
        if (!buckets_.replicates_state()) return values;
        const auto share = static_cast<std::size_t>(buckets_.share_of(run.bucket));
        return values.subspan(share * static_cast<std::size_t>(buckets_.rank()), share);
    }
    /// Where that part begins in the rank's share.
    [[nodiscard]] std::size_t own_begin(const Run& run) const noexcept {
        return buckets_.replicates_state() ? 0 : static_cast<std::size_t>(run.begin);
    }

private:
    static constexpr auto nothing = [](const Run&) {};
    using OnDevice = core::FunctionRef<void(const Part<Place::device>&)>;
    struct OnEither : OnHost, OnDevice {
        using OnHost::operator();
        using OnDevice::operator();
    };

    /// Made once for all that is called on the host, and once for what is called on either: what is called is no template
    /// argument.
    template <class Call>
    void walk(offload::Access access, ParameterUse use, const Call& call, const Done& done) {
        constexpr bool only_host = std::same_as<Call, OnHost>;
        const auto parameter_access = use == ParameterUse::read    ? offload::Access::read
                                      : use == ParameterUse::write ? offload::Access::write
                                                                   : offload::Access::update;
        RunOrder order{buckets_.replicates_state()};
        const auto visit = [&]<class Kind>(const Kind& run) {
            constexpr Place run_memory = memory_of<Compute>(Kind::memory);
            order.next(run, buckets_.part_of(run.bucket));
            const TrainedBucket& b = buckets_[run.bucket];
            const bool opens = b.sharded && use != ParameterUse::none;
            if (opens && run.begin == 0) open(b.shard, parameter_access);
            const std::span<Element> parameters = use == ParameterUse::none ? std::span<Element>{} : parameters_of(run);
            const Place there = b.sharded ? memory_of<Compute>(shards_.memory_of(b.shard)) : device_memory;
            work<only_host ? Place::host : run_memory>(run, run_memory, access, parameters, there, parameter_access,
                                                       call);
            if (opens && run.last) shards_.close(b.shard, parameter_access);
            done(run);
        };
        failure_.keep([&] {
            state_.run(access, visit);
            order.end(buckets_.size());
        });
    }

    /// Calls `call` with a run and its parameters where it works, and puts back what it has changed.
    template <Place works, class Call>
    void work(const Run& run, Place run_is, offload::Access access, std::span<Element> parameters, Place parameters_are,
              offload::Access parameter_access, const Call& call) {
        Staging staging{pool_};
        const auto here = [&](auto values, Place is, offload::Access how) {
            return staging.take(values, is, works, how != offload::Access::write, how != offload::Access::read);
        };
        Part<works> part{run, here(parameters, parameters_are, parameter_access)};
        part.weight = here(run.weight, run_is, access);
        if constexpr (!has_master) part.weight = part.parameters;
        for (std::size_t k = 0; k < states; ++k) part.state[k] = here(run.state[k], run_is, access);
        call(std::as_const(part));
        staging.put_back();
    }

    void open(std::size_t shard, offload::Access access) {
        open_shard_ = detail::elements<Element>(shards_.open(shard, access));
        if (shard + 1 < shards_.count()) shards_.read_ahead(shard + 1, access);
    }
    /// The parameters that a run is about; of a sharded bucket between the opening and the closing of its shard.
    [[nodiscard]] std::span<Element> parameters_of(const Run& run) const {
        const TrainedBucket& b = buckets_[run.bucket];
        const auto all = b.sharded ? open_shard_ : detail::elements<Element>(b.weight_B);
        const std::int64_t begin = b.sharded ? run.begin : buckets_.place_in_bucket(run.bucket, run.begin);
        return all.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(run.numel));
    }

    State& state_;
    ShardStore& shards_;
    const Buckets& buckets_;
    detail::BufferPool& pool_;
    LocalFailure& failure_;
    std::span<Element> open_shard_;
};

}  // namespace strata::zero
