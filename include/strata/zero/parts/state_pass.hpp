#pragma once
// strata/zero/parts/state_pass.hpp - StatePass: a walk over all of a rank's state, with the parameters beside it.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

#include <strata/core/function_ref.hpp>
#include <strata/offload/window_pipeline.hpp>
#include <strata/policy/place.hpp>
#include <strata/policy/precision.hpp>
#include <strata/zero/compute_device.hpp>
#include <strata/zero/detail/buffer_pool.hpp>
#include <strata/zero/detail/preparation.hpp>
#include <strata/zero/parts/buckets.hpp>
#include <strata/zero/parts/local_failure.hpp>
#include <strata/zero/parts/run_order.hpp>
#include <strata/zero/parts/shard_store.hpp>
#include <strata/zero/parts/staging.hpp>
#include <strata/zero/parts/state_in_formats.hpp>
#include <strata/zero/tier.hpp>

namespace strata::zero {

/// What a pass does with the parameters of a run.
enum class ParameterUse : std::uint8_t { none, read, write, update };

/// What a pass does with the parameters beside masters, and with those that are the weights themselves.
struct ParameterUses {
    ParameterUse with_master;
    ParameterUse without_master;
    constexpr ParameterUses(ParameterUse both) : with_master{both}, without_master{both} {}
    constexpr ParameterUses(ParameterUse with, ParameterUse without) : with_master{with}, without_master{without} {}
};

/// A run of state and the parameters that it is about, in the memory where a pass works.
///
///   Format  of numbers: a Precision, or what it says of its exceptions
///   works   Place::host, or Place::device for device addresses
template <class Format, std::size_t states, Place works>
struct RunPart : StateRun<typename Format::kept, states> {
    using Element = typename Format::element;
    using Kept = typename Format::kept;
    static constexpr bool has_master = Format::has_master;
    static constexpr Place memory = works;
    std::span<Element> parameters;
};

template <class Format, std::size_t states, Place works>
using RunCall = core::FunctionRef<void(const RunPart<Format, states, works>&)>;

/// Refers to what is called with runs in one memory, whose numbers have a precision's own format or that of its exceptions.
template <class Own, class Excepted, std::size_t states, Place works>
struct RunCalls : RunCall<Own, states, works>, RunCall<Excepted, states, works> {
    template <class Call>
    explicit RunCalls(Call& call) : RunCall<Own, states, works>{call}, RunCall<Excepted, states, works>{call} {}
    using RunCall<Own, states, works>::operator();
    using RunCall<Excepted, states, works>::operator();
};
template <class Own, std::size_t states, Place works>
struct RunCalls<Own, void, states, works> : RunCall<Own, states, works> {
    template <class Call>
    explicit RunCalls(Call& call) : RunCall<Own, states, works>{call} {}
};

/// Walks the runs of a tier's state in order, opens the shards beside them, and brings both to one memory.
///
///   Numerics  a Precision
///   State     the class `state` of a tier, for `states` states
template <class Numerics, std::size_t states, class State, ComputeDevice Compute>
class StatePass {
public:
    using Device = Compute;
    using HostPart = RunPart<Numerics, states, Place::host>;  ///< of a precision without exceptions
    /// Some weights have a master beside them.
    static constexpr bool has_masters = detail::has_masters_v<Numerics>;
    static constexpr Place device_memory = memory_of<Compute>(Place::device);
    using Done = core::FunctionRef<void(std::size_t bucket)>;

    /// All of it outlives the pass.
    StatePass(State& state, ShardStore& shards, const Buckets& buckets, detail::BufferPool& pool, LocalFailure& failure)
        : state_{state}, shards_{shards}, buckets_{buckets}, pool_{pool}, failure_{failure} {}

    /// Calls `call` with every run, as a RunPart in the memory where the tier has it. What fails on this rank only ends the pass
    /// on it, and is with the LocalFailure.
    ///
    ///   access  of masters and states
    ///   done    called with a bucket whose values are all back where they live
    template <class Call>
    void beside_state(offload::Access access, const ParameterUses& uses, Call&& call, Done done = nothing) {
        walk(access, uses, BesideState{call}, done);
    }
    /// The same, with all runs in host memory.
    template <class Call>
    void on_host(offload::Access access, const ParameterUses& uses, Call&& call, Done done = nothing) {
        walk(access, uses, OnHost{call}, done);
    }

    /// beside_state() for the runs of one bucket. The tier's class is a TierStateByBucket.
    template <class Call>
    void beside_state_of(std::size_t bucket, offload::Access access, const ParameterUses& uses, Call&& call) {
        RunOrder order{buckets_.replicates_state(), bucket};
        failure_.keep([&] {
            state_.run_bucket(bucket, access, visitor(order, access, uses, BesideState{call}, nothing, false));
            order.end(bucket + 1);
        });
    }

    /// The part of a run's values that is in this rank's share: all of it unless every rank has all of the state.
    template <class Run, class Value>
    [[nodiscard]] std::span<Value> own_part(const Run& run, std::span<Value> values) const {
        if (!buckets_.replicates_state()) return values;
        const auto share = static_cast<std::size_t>(buckets_.share_of(run.bucket));
        return values.subspan(share * static_cast<std::size_t>(buckets_.rank()), share);
    }
    /// Where that part begins in the rank's share.
    template <class Run>
    [[nodiscard]] std::size_t own_begin(const Run& run) const noexcept {
        return buckets_.replicates_state() ? 0 : static_cast<std::size_t>(run.begin);
    }

private:
    static constexpr auto nothing = [](std::size_t) {};
    template <Place works>
    using CallsIn = RunCalls<Numerics, strata::detail::excepted_of_t<Numerics>, states, works>;
    using OnHost = CallsIn<Place::host>;
    struct OnEither : OnHost, CallsIn<Place::device> {
        template <class Call>
        explicit OnEither(Call& call) : OnHost{call}, CallsIn<Place::device>{call} {}
        using OnHost::operator();
        using CallsIn<Place::device>::operator();
    };
    using BesideState = std::conditional_t<Compute::is_host, OnHost, OnEither>;

    static constexpr offload::Access access_of(ParameterUse use) noexcept {
        return use == ParameterUse::read    ? offload::Access::read
               : use == ParameterUse::write ? offload::Access::write
                                            : offload::Access::update;
    }

    /// Made once for all that is called on the host, and once for what is called on either: what is called is no template
    /// argument.
    template <class Calls>
    void walk(offload::Access access, const ParameterUses& uses, const Calls& call, const Done& done) {
        RunOrder order{buckets_.replicates_state()};
        failure_.keep([&] {
            state_.run(access, visitor(order, access, uses, call, done, true));
            order.end(buckets_.size());
        });
    }

    /// What a pass of the tier calls with its runs. Refers to what it is given.
    ///
    ///   ahead  shards are opened in their order
    template <class Calls>
    [[nodiscard]] auto visitor(RunOrder& order, offload::Access access, const ParameterUses& uses, const Calls& call,
                               const Done& done, bool ahead) {
        constexpr bool only_host = std::same_as<Calls, OnHost>;
        return [this, &order, access, &uses, &call, &done, ahead]<class Kind>(const Kind& run) {
            using Format = detail::format_of_t<Numerics, Kind>;
            using Element = typename Format::element;
            constexpr Place run_memory = memory_of<Compute>(Kind::memory);
            const ParameterUse use = Format::has_master ? uses.with_master : uses.without_master;
            const offload::Access parameter_access = access_of(use);
            order.next(run, buckets_.part_of(run.bucket));
            const TrainedBucket& b = buckets_[run.bucket];
            const bool opens = b.sharded && use != ParameterUse::none;
            if (opens && run.begin == 0) open(b.shard, parameter_access, ahead);
            const std::span<Element> parameters =
                use == ParameterUse::none ? std::span<Element>{} : parameters_of<Element>(run);
            const Place there = b.sharded ? memory_of<Compute>(shards_.memory_of(b.shard)) : device_memory;
            work<Format, only_host ? Place::host : run_memory>(run, run_memory, access, parameters, there,
                                                               parameter_access, call);
            if (opens && run.last) shards_.close(b.shard, parameter_access);
            if (run.last) done(run.bucket);
        };
    }

    /// Calls `call` with a run and its parameters where it works, and puts back what it has changed.
    template <class Format, Place works, class Calls>
    void work(const StateRun<typename Format::kept, states>& run, Place run_is, offload::Access access,
              std::span<typename Format::element> parameters, Place parameters_are, offload::Access parameter_access,
              const Calls& call) {
        Staging staging{pool_};
        const auto here = [&](auto values, Place is, offload::Access how) {
            return staging.take(values, is, works, how != offload::Access::write, how != offload::Access::read);
        };
        RunPart<Format, states, works> part{run, here(parameters, parameters_are, parameter_access)};
        part.weight = here(run.weight, run_is, access);
        if constexpr (!Format::has_master) part.weight = part.parameters;
        for (std::size_t k = 0; k < states; ++k) part.state[k] = here(run.state[k], run_is, access);
        call(std::as_const(part));
        staging.put_back();
    }

    void open(std::size_t shard, offload::Access access, bool ahead) {
        open_shard_ = shards_.open(shard, access);
        if (ahead && shard + 1 < shards_.count()) shards_.read_ahead(shard + 1, access);
    }
    /// The parameters that a run is about; of a sharded bucket between the opening and the closing of its shard.
    template <class Element, class Run>
    [[nodiscard]] std::span<Element> parameters_of(const Run& run) const {
        const TrainedBucket& b = buckets_[run.bucket];
        const auto all = detail::elements<Element>(b.sharded ? open_shard_ : b.weight_B);
        const std::int64_t begin = b.sharded ? run.begin : buckets_.place_in_bucket(run.bucket, run.begin);
        return all.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(run.numel));
    }

    State& state_;
    ShardStore& shards_;
    const Buckets& buckets_;
    detail::BufferPool& pool_;
    LocalFailure& failure_;
    at::Tensor open_shard_;
};

}  // namespace strata::zero
