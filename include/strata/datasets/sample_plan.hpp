#pragma once
// strata/datasets/sample_plan.hpp - which samples a batch holds: a pure function of (seed, batch index) and the buckets.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <strata/datasets/epoch_phases.hpp>

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
    std::int64_t batch = 0;        ///< samples of one of its steps; 0: as many as the plan's
    double weight = 0;             ///< how often it is drawn beside others while it lasts; 0: as many batches as it has
    std::int64_t last_step_of_epoch = 0;  ///< its weight falls evenly from an epoch's begin to 0 at this step; 0: never
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
    std::int64_t fresh =
        0;  ///< of them the first so many; others fill the batch up with turns that it, or one before it, had
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
/// batches a round, epochs 0 .. k-1 show ceil(k * b * probability) batches.) Without weights the batches of all data
/// sets are shuffled together, so data sets are drawn in proportion to probability * batches. With weights an epoch
/// shows the same batches in another order: data sets are drawn in proportion to their weights, and one that is used up
/// leaves the others to go on (epoch_phases()). With last_step_of_epoch an epoch shows as many batches of the data set
/// as its falling weight draws, one at least, and the next epoch goes on behind them.
///
/// A step is of one data set and has that data set's `batch`; epochs, steps and positions count steps, whatever their
/// sizes.
///
/// A data set takes part in epochs start_epoch .. end_epoch and steps start_step .. end_step; the batch at position p is
/// that of step p + 1. A batch whose turn would be outside of these steps is left out, and the next one of the epoch
/// takes its place; an epoch ends when its batches are used up. An epoch in which no data set takes
/// part has no batch. Where a step comes at which no data set takes part, the sequence ends, because no batch would
/// ever bring the next step.
///
/// All of it follows from the seed, the data sets and the position. train_batch_size, ranks and
/// gradient_accumulation_steps enter only through their products, so equal effective batches give equal sequences on any
/// number of ranks. Thread-safe.
class SamplePlan {
public:
    ///   datasets      with one bucket at least
    ///   global_batch  the effective batch of data sets without their own: train_batch_size * ranks *
    ///                 gradient_accumulation_steps, >= 1
    /// Cost: one pass over the epochs in which a data set begins or ends by its steps.
    SamplePlan(std::vector<PlanDataset> datasets, std::uint64_t seed, std::int64_t global_batch);

    /// The batch at a position of [0, size()). Cost: about 1 us, and 0.2 us a visit.
    /// Throws Errc::no_samples beyond the end of the sequence.
    [[nodiscard]] GlobalBatch batch(std::int64_t position) const { return part(position, 0, 1); }
    /// Of its visits only [first, first + count), which must lie within the batch.
    [[nodiscard]] GlobalBatch batch(std::int64_t position, std::int64_t first, std::int64_t count) const;
    /// Of its visits the part `index` of so many equal `parts`: of micro-batch m and rank r, m * ranks + r of
    /// gradient_accumulation_steps * ranks. `parts` must divide the effective batch of every data set.
    [[nodiscard]] GlobalBatch part(std::int64_t position, std::int64_t index, std::int64_t parts) const;

    /// Batches, which are steps, before an epoch, which is counted from 0: the position where it begins.
    [[nodiscard]] std::int64_t batches_before(std::int64_t epoch) const;
    [[nodiscard]] std::int64_t batches_in(std::int64_t epoch) const {
        return batches_before(epoch + 1) - batches_before(epoch);
    }

    /// Batches there are; nullopt: without end.
    [[nodiscard]] std::optional<std::int64_t> size() const noexcept { return size_; }
    /// Samples of a step of data sets without their own number, and of one data set.
    [[nodiscard]] std::int64_t global_batch() const noexcept { return global_batch_; }
    [[nodiscard]] std::int64_t global_batch(std::size_t dataset) const { return datasets_[dataset].plan.batch; }

private:
    struct Dataset {
        PlanDataset plan;                  // its batch is never 0
        std::vector<std::int64_t> begins;  // of the buckets in a round's batches, and behind the last
        [[nodiscard]] std::int64_t batches() const noexcept { return begins.back(); }
    };
    /// A data set in a stage. One with last_step_of_epoch shows the same number of batches in each of its epochs.
    struct Share {
        std::size_t dataset;
        std::int64_t before;     // batches that were shown before the stage; of such a one
        std::int64_t per_epoch;  // of such a one; -1: as its probability says
    };
    /// Epochs that show the same data sets.
    struct Stage {
        std::int64_t first_epoch;
        std::int64_t first_position;
        std::int64_t epochs;
        std::vector<Share> shares;
        std::vector<EpochPhase> phases;    // where a share has per_epoch; what others show besides is behind them
        bool is_cut;                       // one epoch, of which a data set takes part in some steps only
        std::vector<std::int64_t> places;  // then: the places of its batches that are not left out
    };
    /// A batch of an epoch: of which data set, and the how-manyeth since the data set's first epoch.
    struct Turn {
        std::size_t dataset;
        std::int64_t number;
    };
    /// Where a position is.
    struct Place {
        std::int64_t epoch;
        std::int64_t index;  // of the epoch's batches, those that are left out not counted
        Turn turn;
    };

    [[nodiscard]] std::int64_t shown(std::size_t dataset, std::int64_t epoch) const;  // in all epochs before
    [[nodiscard]] std::int64_t shown(const Stage& stage, const Share& share, std::int64_t epochs) const;
    [[nodiscard]] std::int64_t shown_by(const Stage& stage, std::int64_t epochs) const;
    [[nodiscard]] std::int64_t epochs_within(const Stage& stage, std::int64_t batches) const;
    [[nodiscard]] std::vector<EpochPhase> phases_of(const Stage& stage, std::int64_t epochs) const;
    [[nodiscard]] Turn turn_at(const Stage& stage, std::int64_t epoch, std::int64_t place) const;
    [[nodiscard]] Place place_of(std::int64_t position) const;
    [[nodiscard]] GlobalBatch visits_of(const Place& place, std::int64_t first, std::int64_t count) const;
    [[nodiscard]] bool is_on(std::size_t dataset, std::int64_t epoch, std::int64_t position) const;
    [[nodiscard]] bool is_in_steps(std::size_t dataset, std::int64_t position) const;
    [[nodiscard]] bool is_in_epochs(std::size_t dataset, std::int64_t epoch) const;
    void add_shares(Stage& stage, const std::vector<std::size_t>& datasets) const;
    void make_stages();

    std::vector<Dataset> datasets_;
    std::uint64_t seed_;
    std::int64_t global_batch_;
    bool has_weights_ = false;   // a data set has one
    std::vector<Stage> stages_;  // ascending
    std::optional<std::int64_t> size_;
};

}  // namespace strata::datasets

#ifndef STRATA_COMPILED
#include <strata/datasets/impl/sample_plan.ipp>
#endif
