#pragma once
// strata/zero/parts/state_carry.hpp - StateCarry: masters, states and average of what stays trained, from one assembly to the next.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include <strata/core/elements.hpp>
#include <strata/offload/window_pipeline.hpp>
#include <strata/policy/place.hpp>
#include <strata/zero/detail/buffer_pool.hpp>
#include <strata/zero/detail/preparation.hpp>
#include <strata/zero/layout.hpp>
#include <strata/zero/parts/buckets.hpp>
#include <strata/zero/parts/shard_store.hpp>
#include <strata/zero/parts/staging.hpp>
#include <strata/zero/parts/state_pass.hpp>
#include <strata/zero/parts/staying_parameters.hpp>
#include <strata/zero/parts/tier_folder.hpp>
#include <strata/zero/tiers/cpu.hpp>
#include <strata/zero/tiers/nvme.hpp>

namespace strata::zero {

/// Holds what this rank is going to have of them, bit for bit: on the disk where the tier keeps files, else in host memory.
///
/// A bucket of which some parameters leave or others join is cut anew, and its elements change ranks: the shares of all ranks
/// are gathered, one array of one bucket at a time, and each rank keeps what will be its own. Other buckets are copied.
///
///   Parts  an Assembly
template <class Parts>
class StateCarry {
public:
    /// Takes it out of `parts`, which keeps all of it. Collective. Throws not_enough_memory and no_space on all ranks before
    /// anything is read, and what a disk meets.
    ///
    ///   after  Parts::next_buckets()
    StateCarry(Parts& parts, const Buckets& after) : pool_{parts.pool}, folder_{parts.folder}, room_{*parts.pool} {
        const StayingParameters staying{parts.buckets, after};
        make_room(parts, staying);
        if constexpr (most_arrays > 0) take_state(parts, staying);
        if (parts.average) take_average(parts, staying);
        parts.failure.tell(parts.exchange);
    }
    StateCarry(const StateCarry&) = delete;
    StateCarry& operator=(const StateCarry&) = delete;

    /// Puts it over the initial state of `parts`, which has the table `after`. Collective; once.
    ///
    ///   before  the table it was taken from
    void put_into(Parts& parts, const Buckets& before) {
        const StayingParameters staying{before, parts.buckets};
        if constexpr (most_arrays > 0) put_state(parts, staying);
        if (parts.average) put_average(parts, staying);
        parts.failure.tell(parts.exchange);
    }

private:
    using Pass = typename Parts::Pass;
    using State = typename Parts::State;
    using Formats = typename Parts::Formats;
    /// What values are held in: as they are, or where formats differ in fp32, which has all of them exactly.
    using Carried = std::conditional_t<Parts::has_exceptions, float, typename Parts::Numerics::kept>;
    using Room = std::conditional_t<State::wants_folder, Nvme::shards<Carried>, Cpu::shards<Carried>>;
    static constexpr std::size_t most_arrays = Parts::states + (Pass::has_masters ? 1 : 0);  // of a run

    [[nodiscard]] static std::size_t arrays_of(const Buckets& buckets, std::size_t bucket) {
        return Parts::states + (Formats::has_master(buckets.excepted(bucket)) ? 1 : 0);
    }
    template <class Part>
    [[nodiscard]] static auto array_of(const Part& run, std::size_t array) {
        constexpr std::size_t masters = Part::has_master ? 1 : 0;
        return array < masters ? run.weight : run.state[array - masters];
    }
    template <class From, class To>
    static void copy(std::span<From> from, std::span<To> to) {
        if constexpr (std::same_as<std::remove_const_t<From>, To>)
            std::copy(from.begin(), from.end(), to.begin());
        else
            std::transform(from.begin(), from.end(), to.begin(),
                           [](From value) { return to_element<To>(to_float(value)); });
    }
    [[nodiscard]] static std::size_t numel_of(const std::vector<ElementRun>& runs) {
        std::int64_t sum = 0;
        for (const ElementRun& run : runs) sum += run.numel;
        return static_cast<std::size_t>(sum);
    }
    /// Elements of `all` that runs name, one after the other.
    template <class Value>
    static void pick(std::span<const Value> all, const std::vector<ElementRun>& runs, std::int64_t first,
                     std::span<Value> to) {
        for (const ElementRun& run : runs) {
            const auto from =
                all.subspan(static_cast<std::size_t>(run.begin - first), static_cast<std::size_t>(run.numel));
            std::copy(from.begin(), from.end(), to.begin());
            to = to.subspan(from.size());
        }
    }

    // ---- out of the one ----------------------------------------------------------------------------------------------

    void make_room(Parts& parts, const StayingParameters& staying) {
        std::vector<std::int64_t> numels;
        std::size_t of_average = 0;
        std::int64_t largest = 0;
        for (std::size_t i = 0; i < parts.buckets.size(); ++i) {
            counts_.push_back(numel_of(staying.kept_of(i, parts.buckets.replicates_state())));
            numels.push_back(
                static_cast<std::int64_t>(std::max<std::size_t>(1, counts_[i] * arrays_of(parts.buckets, i))));
            if (parts.average) of_average += numel_of(staying.kept_of(i, false));
            largest = std::max(largest, parts.buckets.padded_of(i));
        }
        const std::int64_t exchanged = largest * static_cast<std::int64_t>(std::max((1 + most_arrays) * sizeof(Carried),
                                                                                    parts.average ? sizeof(float) : 0));
        const std::int64_t bytes = (most_arrays > 0 ? Room::bytes(numels).in_memory() : 0) + exchanged +
                                   static_cast<std::int64_t>(of_average * sizeof(float));
        detail::require_node_memory(
            parts.exchange.all_gather_texts(detail::memory_need(static_cast<std::uint64_t>(bytes))),
            "choose what is trained when the trainer is made, use more ranks, or keep state on disk with OffloadTarget<Nvme>");
        parts.exchange.agree([&] {
            offload::PipelineOptions windows = parts.options.tiers.state;
            windows.budget_bytes = 0;  // a window here is a bucket
            if constexpr (most_arrays > 0)
                room_.make(parts.tier_context("carried", MemoryKind::state, std::move(windows)), numels);
            average_.reserve(of_average);
            if constexpr (most_arrays > 0) {
                mine_.reserve(static_cast<std::size_t>(largest) * most_arrays);
                all_.reserve(static_cast<std::size_t>(largest));
            }
        });
    }

    void take_state(Parts& parts, const StayingParameters& staying) {
        const Buckets& buckets = parts.buckets;
        const auto part = [&](std::size_t bucket) { return static_cast<std::size_t>(buckets.part_of(bucket)); };
        const auto exchanges = [&](std::size_t bucket) {
            return !buckets.replicates_state() && staying.any_of(bucket) && !staying.keeps_shares(bucket);
        };
        /// One array of a bucket, of all ranks where that is wanted, and the bucket's element that it begins with.
        const auto whole = [&](std::size_t bucket,
                               std::size_t array) -> std::pair<std::span<const Carried>, std::int64_t> {
            const auto own = std::span<const Carried>{mine_}.subspan(array * part(bucket), part(bucket));
            if (!exchanges(bucket)) return {own, buckets.place_in_bucket(bucket, 0)};
            all_.resize(static_cast<std::size_t>(buckets.padded_of(bucket)));
            parts.exchange.all_gather_bytes(std::as_bytes(own), std::as_writable_bytes(std::span{all_}));
            return {all_, 0};
        };
        std::size_t passed = 0;  // buckets
        const auto take = [&](const auto& run) {
            const std::size_t arrays = arrays_of(buckets, run.bucket);
            mine_.resize(arrays * part(run.bucket));
            for (std::size_t array = 0; array < arrays; ++array) {
                const auto first = array * part(run.bucket) + static_cast<std::size_t>(run.begin);
                const auto values = array_of(run, array);
                copy(values, std::span{mine_}.subspan(first, values.size()));
            }
        };
        const auto pass_on = [&](std::size_t bucket) {
            const std::vector<ElementRun> kept = staying.kept_of(bucket, buckets.replicates_state());
            std::span<Carried> place;
            if (counts_[bucket] > 0) place = detail::elements<Carried>(room_.open(bucket, offload::Access::write));
            for (std::size_t array = 0; array < arrays_of(buckets, bucket); ++array) {
                const auto [values, first] = whole(bucket, array);
                if (counts_[bucket] > 0) pick(values, kept, first, place.subspan(array * counts_[bucket]));
            }
            ++passed;
            if (counts_[bucket] > 0) room_.close(bucket, offload::Access::write);
        };
        parts.pass.on_host(offload::Access::read, ParameterUse::none, take, pass_on);
        for (; passed < buckets.size(); ++passed) {  // after a failure: the other ranks wait for these
            const std::size_t arrays = arrays_of(buckets, passed);
            mine_.resize(arrays * part(passed));
            for (std::size_t array = 0; array < arrays; ++array) static_cast<void>(whole(passed, array));
        }
        mine_ = {};
        all_ = {};
    }

    void take_average(Parts& parts, const StayingParameters& staying) {
        const Buckets& buckets = parts.buckets;
        std::vector<float> all;
        for (std::size_t i = 0; i < buckets.size(); ++i) {
            if (!staying.any_of(i)) continue;
            Staging staging{*pool_};
            std::span<const float> values = staging.take(std::span<const float>{parts.average->values(i)},
                                                         memory_of_average(parts), Place::host, true);
            std::int64_t first = buckets.share_of(i) * buckets.rank();
            if (!staying.keeps_shares(i)) {
                all.resize(static_cast<std::size_t>(buckets.padded_of(i)));
                parts.exchange.all_gather_bytes(std::as_bytes(values), std::as_writable_bytes(std::span{all}));
                values = all;
                first = 0;
            }
            const std::vector<ElementRun> kept = staying.kept_of(i, false);
            const std::size_t at = average_.size();
            average_.resize(at + numel_of(kept));
            pick(values, kept, first, std::span{average_}.subspan(at));
        }
    }

    // ---- into the other ------------------------------------------------------------------------------------------------

    void put_state(Parts& parts, const StayingParameters& staying) {
        const auto put = [&](const auto& run) {
            const std::int64_t first = parts.buckets.place_in_bucket(run.bucket, run.begin);
            for (const ElementRun& place : staying.staying_in(run.bucket, first, run.numel)) {
                std::size_t to = static_cast<std::size_t>(place.begin);
                for (auto left = static_cast<std::size_t>(place.numel); left > 0;) {
                    open_next();
                    const std::size_t count = std::min(left, counts_[bucket_] - at_);
                    for (std::size_t array = 0; array < arrays_of(parts.buckets, run.bucket); ++array)
                        copy(open_.subspan(array * counts_[bucket_] + at_, count),
                             array_of(run, array).subspan(to, count));
                    at_ += count;
                    to += count;
                    left -= count;
                }
            }
        };
        parts.pass.on_host(offload::Access::update, ParameterUse::none, put);
        if (!open_.empty()) parts.failure.keep([&] { close(); });
    }
    /// Sees to it that open_ has elements after at_.
    void open_next() {
        if (!open_.empty() && at_ < counts_[bucket_]) return;
        if (!open_.empty()) {
            close();
            ++bucket_;
        }
        while (counts_[bucket_] == 0) ++bucket_;
        open_ = detail::elements<const Carried>(room_.open(bucket_, offload::Access::read));
        at_ = 0;
    }
    void close() {
        open_ = {};
        room_.close(bucket_, offload::Access::read);
    }

    void put_average(Parts& parts, const StayingParameters& staying) {
        std::span<const float> from = average_;
        for (std::size_t i = 0; i < parts.buckets.size(); ++i) {
            const std::int64_t share = parts.buckets.share_of(i);
            const auto places = staying.staying_in(i, share * parts.buckets.rank(), share);
            if (places.empty()) continue;
            Staging staging{*pool_};
            const std::span<float> values =
                staging.take(parts.average->values(i), memory_of_average(parts), Place::host, true, true);
            for (const ElementRun& place : places) {
                const auto count = static_cast<std::size_t>(place.numel);
                std::copy_n(from.begin(), count, values.begin() + place.begin);
                from = from.subspan(count);
            }
            staging.put_back();
        }
    }

    [[nodiscard]] static Place memory_of_average(const Parts& parts) {
        return memory_of<typename Pass::Device>(parts.average->memory());
    }

    std::shared_ptr<detail::BufferPool> pool_;
    std::shared_ptr<TierFolder> folder_;
    ShardsOf<Room, Carried> room_;     // by bucket that it was taken from: array by array
    std::vector<std::size_t> counts_;  // elements there, of each array
    std::vector<float> average_;
    std::vector<Carried> mine_, all_;  // of the bucket that is being taken: this rank's arrays, and one of all ranks
    std::span<const Carried> open_;    // of bucket_, from whose element at_ on it is still to be put
    std::size_t bucket_ = 0;
    std::size_t at_ = 0;
};

}  // namespace strata::zero
