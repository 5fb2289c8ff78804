#pragma once
// strata/data/sample_plan.hpp - which samples a batch holds: a pure function of (seed, epoch, batch index).

#include <cstdint>
#include <vector>

namespace strata::data {

/// A bucket as the plan sees it.
struct PlanBucket {
    std::int64_t count = 0;   ///< samples in it, >= 1
    std::int64_t visits = 1;  ///< how often an epoch shows each of them: repeats + 1
};

/// One sample's turn.
struct Visit {
    std::int64_t sample = 0;    ///< index in its bucket
    std::uint64_t random = 0;   ///< of this visit alone; for choices such as caption dropout
};

/// What all ranks together compute in one micro-batch.
struct GlobalBatch {
    std::int64_t bucket = 0;
    std::vector<Visit> visits;  ///< global_batch of them; rank r takes the r-th equal part
};

/// The order of all samples for all time, without state.
///
/// An epoch of a bucket is `visits` passes, each a permutation of its own. It is cut into batches of global_batch; the
/// last one is filled up from the start of the same order (the remainder rule), so every sample has its `visits`
/// turns, and fewer than global_batch turns an epoch and bucket come on top. The batches of all buckets are
/// shuffled together. All of it follows from (seed, epoch) and the table of buckets; the number of ranks enters only
/// through global_batch, so equal global batches give equal sequences on any number of ranks.
class SamplePlan {
public:
    ///   buckets       at least one, none empty
    ///   global_batch  train_batch_size * ranks, >= 1
    SamplePlan(std::vector<PlanBucket> buckets, std::uint64_t seed, std::int64_t global_batch);

    [[nodiscard]] std::int64_t batches_per_epoch() const noexcept { return per_epoch_; }
    [[nodiscard]] std::int64_t global_batch() const noexcept { return global_batch_; }

    /// One epoch laid out: O(turns) to make, then any of its batches in O(global_batch).
    class Epoch {
    public:
        /// index in [0, batches_per_epoch())
        [[nodiscard]] GlobalBatch batch(std::int64_t index) const;

    private:
        friend class SamplePlan;
        struct Place {
            std::int64_t bucket;
            std::int64_t begin;  // first turn in the bucket's order
        };
        std::uint64_t seed_ = 0;
        std::int64_t global_batch_ = 0;
        std::vector<std::vector<std::int64_t>> orders_;  // per bucket: samples in the order of their turns
        std::vector<Place> places_;                      // per batch
    };
    [[nodiscard]] Epoch epoch(std::int64_t epoch) const;

private:
    std::vector<PlanBucket> buckets_;
    std::uint64_t seed_;
    std::int64_t global_batch_;
    std::int64_t per_epoch_ = 0;
};

/// A number in [0, 1) from random bits.
constexpr double unit_interval(std::uint64_t random) noexcept {
    return static_cast<double>(random >> 11) * 0x1p-53;
}
static_assert(unit_interval(0) == 0 && unit_interval(~std::uint64_t{0}) < 1);

}  // namespace strata::data

#ifndef STRATA_COMPILED
#include <strata/data/impl/sample_plan.ipp>
#endif
