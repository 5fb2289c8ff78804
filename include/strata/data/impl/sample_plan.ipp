#pragma once
// strata/data/impl/sample_plan.ipp - seeded permutations that are the same on every machine.

#include <cstddef>
#include <initializer_list>
#include <limits>
#include <numeric>
#include <utility>

#include <strata/core/inline.hpp>
#include <strata/core/mix.hpp>
#include <strata/data/sample_plan.hpp>

namespace strata::data {

namespace detail {

/// One number from several: the state of a generator for exactly this purpose.
constexpr std::uint64_t combine(std::initializer_list<std::uint64_t> parts) noexcept {
    std::uint64_t state = core::golden_step;
    for (const std::uint64_t part : parts) state = core::mix(state + core::golden_step + core::mix(part));
    return state;
}

/// SplitMix64. std::shuffle and the standard's distributions differ between libraries; this does not.
class Random {
public:
    explicit constexpr Random(std::uint64_t state) noexcept : state_{state} {}
    constexpr std::uint64_t next() noexcept { return core::mix(state_ += core::golden_step); }
    /// Uniform in [0, bound): numbers beyond the largest multiple of bound are drawn again.
    constexpr std::uint64_t below(std::uint64_t bound) noexcept {
        const std::uint64_t rest = (std::numeric_limits<std::uint64_t>::max() % bound + 1) % bound;
        std::uint64_t number = next();
        while (number > std::numeric_limits<std::uint64_t>::max() - rest) number = next();
        return number % bound;
    }

private:
    std::uint64_t state_;
};

template <class Iterator>
void shuffle(Iterator begin, Iterator end, Random random) {
    for (auto left = static_cast<std::uint64_t>(end - begin); left > 1; --left)
        std::swap(begin[static_cast<std::ptrdiff_t>(left - 1)], begin[static_cast<std::ptrdiff_t>(random.below(left))]);
}

/// What a seeded generator is for, so that no two purposes share numbers.
enum Purpose : std::uint64_t { order_of_bucket = 1, order_of_batches = 2, visit = 3 };

}  // namespace detail

STRATA_INLINE SamplePlan::SamplePlan(std::vector<PlanBucket> buckets, std::uint64_t seed, std::int64_t global_batch)
    : buckets_{std::move(buckets)}, seed_{seed}, global_batch_{global_batch} {
    for (const PlanBucket& bucket : buckets_)
        per_epoch_ += (bucket.count * bucket.visits + global_batch_ - 1) / global_batch_;
}

STRATA_INLINE SamplePlan::Epoch SamplePlan::epoch(std::int64_t epoch) const {
    const auto number = static_cast<std::uint64_t>(epoch);
    Epoch plan;
    plan.seed_ = detail::combine({seed_, detail::visit, number});
    plan.global_batch_ = global_batch_;
    for (std::size_t b = 0; b < buckets_.size(); ++b) {
        const PlanBucket& bucket = buckets_[b];
        const auto count = static_cast<std::size_t>(bucket.count);
        std::vector<std::int64_t> order(count * static_cast<std::size_t>(bucket.visits));
        for (std::size_t pass = 0; pass < static_cast<std::size_t>(bucket.visits); ++pass) {
            const auto begin = order.begin() + static_cast<std::ptrdiff_t>(pass * count);
            const auto end = begin + static_cast<std::ptrdiff_t>(count);
            std::iota(begin, end, std::int64_t{0});
            detail::shuffle(begin, end, detail::Random{detail::combine({seed_, detail::order_of_bucket, number, b, pass})});
        }
        const auto turns = static_cast<std::int64_t>(order.size());
        for (std::int64_t turn = 0; turn < turns; turn += global_batch_)
            plan.places_.push_back({static_cast<std::int64_t>(b), turn});
        plan.orders_.push_back(std::move(order));
    }
    detail::shuffle(plan.places_.begin(), plan.places_.end(),
                    detail::Random{detail::combine({seed_, detail::order_of_batches, number})});
    return plan;
}

STRATA_INLINE GlobalBatch SamplePlan::Epoch::batch(std::int64_t index) const {
    const Place& place = places_.at(static_cast<std::size_t>(index));
    const std::vector<std::int64_t>& order = orders_[static_cast<std::size_t>(place.bucket)];
    GlobalBatch batch{place.bucket, {}};
    for (std::int64_t i = 0; i < global_batch_; ++i) {
        const auto turn = static_cast<std::size_t>(place.begin + i) % order.size();  // the remainder rule
        batch.visits.push_back({order[turn], detail::combine({seed_, static_cast<std::uint64_t>(index),
                                                              static_cast<std::uint64_t>(i)})});
    }
    return batch;
}

}  // namespace strata::data
