#pragma once
// strata/datasets/sample_plan.hpp - which samples a batch holds: a pure function of (seed, batch index) and the buckets.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace strata::datasets {

/// A bucket as the plan sees it.
struct PlanBucket {
    std::int64_t count = 0;   ///< samples in it, >= 1
    std::int64_t visits = 1;  ///< how often a round shows each of them: repeats + 1
};

/// A data set as the plan sees it; the names are those of config::ImageDataset.
struct PlanDataset {
    std::vector<PlanBucket> buckets;
    double probability = 1;        ///< the share of a round that an epoch shows, above 0 and up to 1
    std::int64_t start_epoch = 1;  ///< from 1
    std::int64_t end_epoch = 0;    ///< 0: no end
    std::int64_t start_step = 0;   ///< optimizer steps, from 1; 0: from the start
    std::int64_t end_step = 0;     ///< 0: no end
};

/// One sample's turn.
struct Visit {
    std::int64_t sample = 0;   ///< index in its bucket
    std::uint64_t random = 0;  ///< of this visit alone; for choices such as caption dropout
};

/// What all ranks together compute in one optimizer step, in all of its micro-batches.
struct GlobalBatch {
    std::int64_t epoch = 0;  ///< from 0
    std::int64_t dataset = 0;
    std::int64_t bucket = 0;    ///< index in the data set
    std::uint64_t random = 0;   ///< of this batch alone; for choices that all of its samples share
    std::vector<Visit> visits;  ///< those asked for; micro-batches, and in them ranks, take equal parts in turn
};

/// The order of all samples for all time, without state: nothing is laid out, any batch can be asked for.
///
/// A data set goes round and round. In a round every sample has `visits` turns: a bucket's turns are `visits` passes,
/// each an order of its own, cut into batches of global_batch; the last batch is filled up from the start of the same
/// turns (the remainder rule), so that fewer than global_batch turns a round and bucket come on top. The batches of all
/// its buckets are shuffled together.
///
/// An epoch shows of each data set the next `probability` of a round, where the epoch before ended: with 1 exactly one
/// round, with 0.25 a quarter of the batches, so that a sample has its `visits` turns once in four epochs. (With b
/// batches a round, epochs 0 .. k-1 show ceil(k * b * probability) batches.) The batches of all data sets
/// are shuffled together, so data sets are drawn in proportion to probability * batches.
///
/// A data set takes part in epochs start_epoch .. end_epoch and steps start_step .. end_step; the batch at position p is
/// that of step p + 1. A batch whose turn would be outside of these steps is left out, and the next one of the epoch
/// takes its place; an epoch ends when its batches are used up. An epoch in which no data set takes
/// part has no batch. Where a step comes at which no data set takes part, the sequence ends, because no batch would
/// ever bring the next step.
///
/// All of it follows from the seed, the data sets and the position. train_batch_size, ranks and
/// gradient_accumulation_steps enter only through their product, so equal effective batches give equal sequences on any
/// number of ranks. Thread-safe.
class SamplePlan {
public:
    ///   datasets      with one bucket at least
    ///   global_batch  the effective batch: train_batch_size * ranks * gradient_accumulation_steps, >= 1
    /// Cost: one pass over the epochs in which a data set begins or ends by its steps.
    SamplePlan(std::vector<PlanDataset> datasets, std::uint64_t seed, std::int64_t global_batch);

    /// The batch at a position of [0, size()). Cost: about 1 us, and 0.2 us a visit.
    /// Throws Errc::no_samples beyond the end of the sequence.
    [[nodiscard]] GlobalBatch batch(std::int64_t position) const { return batch(position, 0, global_batch_); }
    /// Of its visits only [first, first + count), which must lie within the batch.
    [[nodiscard]] GlobalBatch batch(std::int64_t position, std::int64_t first, std::int64_t count) const;

    /// Batches, which are steps, before an epoch, which is counted from 0: the position where it begins.
    [[nodiscard]] std::int64_t batches_before(std::int64_t epoch) const;
    [[nodiscard]] std::int64_t batches_in(std::int64_t epoch) const {
        return batches_before(epoch + 1) - batches_before(epoch);
    }

    /// Batches there are; nullopt: without end.
    [[nodiscard]] std::optional<std::int64_t> size() const noexcept { return size_; }
    [[nodiscard]] std::int64_t global_batch() const noexcept { return global_batch_; }

private:
    struct Dataset {
        PlanDataset plan;
        std::vector<std::int64_t> begins;  // of the buckets in a round's batches, and behind the last
        [[nodiscard]] std::int64_t batches() const noexcept { return begins.back(); }
    };
    /// Epochs that show the same data sets.
    struct Stage {
        std::int64_t first_epoch;
        std::int64_t first_position;
        std::int64_t epochs;
        std::vector<std::size_t> datasets;
        bool is_cut;                       // one epoch, of which a data set takes part in some steps only
        std::vector<std::int64_t> places;  // then: the places of its batches that are not left out
    };
    /// A batch of an epoch: of which data set, and the how-manyeth since the data set's first epoch.
    struct Turn {
        std::size_t dataset;
        std::int64_t number;
    };

    [[nodiscard]] std::int64_t shown(std::size_t dataset, std::int64_t epoch) const;  // in all epochs before
    [[nodiscard]] std::int64_t shown_by(const Stage& stage, std::int64_t epochs) const;
    [[nodiscard]] std::int64_t epochs_within(const Stage& stage, std::int64_t batches) const;
    [[nodiscard]] Turn turn_at(const Stage& stage, std::int64_t epoch, std::int64_t place) const;
    [[nodiscard]] bool is_on(std::size_t dataset, std::int64_t epoch, std::int64_t position) const;
    [[nodiscard]] bool is_in_steps(std::size_t dataset, std::int64_t position) const;
    [[nodiscard]] bool is_in_epochs(std::size_t dataset, std::int64_t epoch) const;
    void make_stages();

    std::vector<Dataset> datasets_;
    std::uint64_t seed_;
    std::int64_t global_batch_;
    std::vector<Stage> stages_;  // ascending
    std::optional<std::int64_t> size_;
};

}  // namespace strata::datasets

#ifndef STRATA_COMPILED
#include <strata/datasets/impl/sample_plan.ipp>
#endif
