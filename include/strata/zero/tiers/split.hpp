#pragma once
// strata/zero/tiers/split.hpp - what the tier Split brings: state and shards that are in part on one tier, in part on
// another.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include <strata/offload/window_pipeline.hpp>
#include <strata/policy/place.hpp>
#include <strata/policy/split.hpp>
#include <strata/zero/tier.hpp>
#include <strata/zero/tier_bytes.hpp>
#include <strata/zero/tiers/in_memory.hpp>

namespace strata {

namespace zero::detail {

/// Where a rank's elements are cut in two, each part as sizes of buckets.
struct StateCut {
    std::vector<std::int64_t> first, second;
    std::size_t second_bucket = 0;  ///< that the second part begins with
    std::int64_t second_begin = 0;  ///< its first element in it; above 0 when both parts have elements of that bucket
};

/// A bucket is cut at a multiple of this, so that both parts are whole cache lines of every type.
inline constexpr std::int64_t cut_grain = 1024;

inline StateCut cut_state(std::span<const std::int64_t> numels, int percent) {
    StateCut cut;
    std::int64_t left = sum_of(numels) / 100 * percent + sum_of(numels) % 100 * percent / 100;
    std::size_t i = 0;
    for (; i < numels.size() && numels[i] <= left; left -= numels[i++]) cut.first.push_back(numels[i]);
    cut.second_bucket = i;
    if (i == numels.size()) return cut;
    cut.second_begin = left / cut_grain * cut_grain;
    if (cut.second_begin > 0) cut.first.push_back(cut.second_begin);
    cut.second.push_back(numels[i] - cut.second_begin);
    cut.second.insert(cut.second.end(), numels.begin() + static_cast<std::ptrdiff_t>(i) + 1, numels.end());
    return cut;
}

/// Which shards are in the first part: as many as its percentage allows, spread over all.
inline std::vector<bool> spread_shards(std::span<const std::int64_t> numels, int percent) {
    std::vector<bool> is_first;
    double all = 0.0;
    double first = 0.0;
    for (const std::int64_t numel : numels) {
        all += static_cast<double>(numel);
        is_first.push_back((first + static_cast<double>(numel)) * 100.0 <= all * percent);
        if (is_first.back()) first += static_cast<double>(numel);
    }
    return is_first;
}
inline std::vector<std::int64_t> part_of(std::span<const std::int64_t> numels, const std::vector<bool>& is_first,
                                         bool first) {
    std::vector<std::int64_t> part;
    for (std::size_t i = 0; i < numels.size(); ++i) {
        if (is_first[i] == first) part.push_back(numels[i]);
    }
    return part;
}

}  // namespace zero::detail

/// Runs of the first part, then those of the second: that is the order of elements. A part that is empty is never
/// called.
template <class First, class Second, int Percent>
template <class Kept, std::size_t states, bool has_master>
class Split<First, Second, Percent>::state {
    using One = zero::detail::state_on_t<first, Kept, states, has_master>;
    using Other = zero::detail::state_on_t<second, Kept, states, has_master>;
    static constexpr bool by_bucket =
        zero::TierStateByBucket<One, Kept, states> && zero::TierStateByBucket<Other, Kept, states>;
    static constexpr std::size_t sharers = One::wants_folder && Other::wants_folder ? 2 : 1;

public:
    static constexpr Place memory = One::memory == Place::device ? Place::device : Other::memory;
    static constexpr bool fails_alone = One::fails_alone || Other::fails_alone;
    static constexpr bool wants_folder = One::wants_folder || Other::wants_folder;
    static PlaceBytes bytes(std::span<const std::int64_t> numels) {
        const zero::detail::StateCut cut = zero::detail::cut_state(numels, percent);
        return One::bytes(cut.first) + Other::bytes(cut.second);
    }
    static zero::TierBytes takes(std::span<const std::int64_t> numels, const zero::TierRoom& room) {
        const zero::detail::StateCut cut = zero::detail::cut_state(numels, percent);
        return zero::taken_by<One>(cut.first, room.part(sharers)) +
               zero::taken_by<Other>(cut.second, room.part(sharers));
    }

    void make(const zero::TierContext& context, const std::vector<std::int64_t>& numels) {
        cut_ = zero::detail::cut_state(numels, percent);
        if (!cut_.first.empty()) one_.make(context.part("first", sharers), cut_.first);
        if (!cut_.second.empty()) other_.make(context.part("second", sharers), cut_.second);
    }
    template <class WeightOf>
    void fill(const std::array<float, states>& initial, WeightOf&& weight_of) {
        at::Tensor of_both;  // the bucket that is cut
        if (!cut_.first.empty()) {
            one_.fill(initial, [&](std::size_t i) {
                const at::Tensor weight = weight_of(i);
                if (!is_cut(i)) return reachable<One>(weight);
                of_both = weight;
                return reachable<One>(weight.narrow(0, 0, cut_.second_begin));
            });
        }
        if (!cut_.second.empty()) {
            other_.fill(initial, [&](std::size_t i) {
                if (i > 0 || cut_.second_begin == 0) return reachable<Other>(weight_of(cut_.second_bucket + i));
                const at::Tensor weight = std::exchange(of_both, at::Tensor{});
                return reachable<Other>(weight.narrow(0, cut_.second_begin, weight.numel() - cut_.second_begin));
            });
        }
    }
    template <class Call>
    void run(offload::Access access, Call&& call) {
        if (!cut_.first.empty()) one_.run(access, [&](const auto& run) { call(of_first(run)); });
        if (!cut_.second.empty()) other_.run(access, [&](const auto& run) { call(of_second(run)); });
    }
    void prefetch() {
        if (!cut_.first.empty()) one_.prefetch();
        if (!cut_.second.empty()) other_.prefetch();
    }
    template <class Call>
    requires(by_bucket) void run_bucket(std::size_t bucket, offload::Access access, Call&& call) {
        if (bucket < cut_.first.size()) one_.run_bucket(bucket, access, [&](const auto& run) { call(of_first(run)); });
        if (bucket >= cut_.second_bucket)
            other_.run_bucket(bucket - cut_.second_bucket, access, [&](const auto& run) { call(of_second(run)); });
    }
    void prefetch_bucket(std::size_t bucket) requires(by_bucket) {
        if (bucket < cut_.first.size()) one_.prefetch_bucket(bucket);
        if (bucket >= cut_.second_bucket) other_.prefetch_bucket(bucket - cut_.second_bucket);
    }

private:
    [[nodiscard]] bool is_cut(std::size_t bucket) const noexcept {
        return bucket == cut_.second_bucket && cut_.second_begin > 0;
    }
    /// A run of a part, as a run of the whole.
    template <class Run>
    [[nodiscard]] Run of_first(Run run) const {
        run.last = run.last && !is_cut(run.bucket);
        return run;
    }
    template <class Run>
    [[nodiscard]] Run of_second(Run run) const {
        if (run.bucket == 0) run.begin += cut_.second_begin;
        run.bucket += cut_.second_bucket;
        return run;
    }
    template <class Part>
    [[nodiscard]] static at::Tensor reachable(const at::Tensor& values) {
        return Part::memory == Place::host ? values.cpu() : values;
    }

    zero::detail::StateCut cut_;
    One one_;
    Other other_;
};

/// A shard is on one of the tiers as a whole. In turns, so that units in memory give the disk time for those it has.
template <class First, class Second, int Percent>
template <class Element>
class Split<First, Second, Percent>::shards {
    using One = zero::detail::shards_on_t<first, Element>;
    using Other = zero::detail::shards_on_t<second, Element>;
    static constexpr std::size_t sharers = One::wants_folder && Other::wants_folder ? 2 : 1;

public:
    static constexpr bool fails_alone = One::fails_alone || Other::fails_alone;
    static constexpr bool wants_folder = One::wants_folder || Other::wants_folder;
    static constexpr bool gathers_alone = One::gathers_alone || Other::gathers_alone;
    static PlaceBytes bytes(std::span<const std::int64_t> numels) {
        const std::vector<bool> is_first = zero::detail::spread_shards(numels, percent);
        return One::bytes(zero::detail::part_of(numels, is_first, true)) +
               Other::bytes(zero::detail::part_of(numels, is_first, false));
    }
    static zero::TierBytes takes(std::span<const std::int64_t> numels, const zero::TierRoom& room) {
        const std::vector<bool> is_first = zero::detail::spread_shards(numels, percent);
        return zero::taken_by<One>(zero::detail::part_of(numels, is_first, true), room.part(sharers)) +
               zero::taken_by<Other>(zero::detail::part_of(numels, is_first, false), room.part(sharers));
    }

    void make(const zero::TierContext& context, std::span<const std::int64_t> numels) {
        const std::vector<bool> is_first = zero::detail::spread_shards(numels, percent);
        one_.make(context.part("first", sharers), zero::detail::part_of(numels, is_first, true));
        other_.make(context.part("second", sharers), zero::detail::part_of(numels, is_first, false));
        std::size_t next[2] = {0, 0};
        for (const bool first_part : is_first) homes_.push_back({first_part, next[first_part ? 0 : 1]++});
    }
    [[nodiscard]] std::span<Element> open(std::size_t shard, offload::Access access) {
        return at_home(shard, [&](auto& part, std::size_t index) { return part.open(index, access); });
    }
    void close(std::size_t shard, offload::Access access) {
        at_home(shard, [&](auto& part, std::size_t index) { part.close(index, access); });
    }
    void read_ahead(std::size_t shard, offload::Access access) {
        at_home(shard, [&](auto& part, std::size_t index) { part.read_ahead(index, access); });
    }
    [[nodiscard]] std::size_t count() const noexcept { return homes_.size(); }
    /// As many that a part hears of as many as it wants to hear of.
    [[nodiscard]] std::size_t reads_ahead() const noexcept { return std::max(scaled(one_), scaled(other_)); }
    [[nodiscard]] Place memory_of(std::size_t shard) const noexcept {
        const Home& home = homes_[shard];
        return home.first ? one_.memory_of(home.index) : other_.memory_of(home.index);
    }

private:
    struct Home {
        bool first;
        std::size_t index;  // in its part
    };
    template <class Call>
    decltype(auto) at_home(std::size_t shard, Call&& call) {
        const Home& home = homes_[shard];
        return home.first ? call(one_, home.index) : call(other_, home.index);
    }
    template <class Part>
    [[nodiscard]] std::size_t scaled(const Part& part) const noexcept {
        const std::size_t own = part.count();
        return own == 0 ? 0 : (part.reads_ahead() * count() + own - 1) / own;
    }

    One one_;
    Other other_;
    std::vector<Home> homes_;
};

}  // namespace strata
