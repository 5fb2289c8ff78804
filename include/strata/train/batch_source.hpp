#pragma once
// strata/train/batch_source.hpp - where batches come from: the concept, and a source made of a function.

#include <concepts>
#include <cstdint>
#include <utility>

namespace strata {

/// An endless, seekable stream of this rank's micro-batches.
///
/// Semantic requirements (not checked by the compiler):
///   * what next() returns is a pure function of the position, so a run can resume at any of them;
///   * all ranks have the same micro_batches_per_epoch() and samples_per_micro_batch(), and are sought to the same position;
///   * micro-batches are of that size: each counts the same in the mean of a step. Where sizes vary, a step's mean is that of the
///     samples only if all micro-batches of the step, on all ranks, are of one size.
/// A source that has prepare(), collective, is prepared by fit() before anything else is asked of it, if the program has not:
/// a second call does nothing.
/// A source that has samples_in(micro_batch), the samples of this rank that count in it, is believed: rates count them,
/// and an evaluation weighs batches by them. A source that has remember(comm), collective, is asked with every
/// checkpoint to keep what it found out for later runs. A source that has closing_lines(comm), collective, has a say at
/// the end of a run: lines that rank 0 shows. One that has identity(), a checkpoint::Facts that is the same on all
/// ranks, is compared with that of the checkpoint when a run resumes: what is another there is said. A batch that has a
/// member `samples`, names of what it is made of, has them named where its loss is not finite. One that has
/// bottleneck(), a text, is asked when training waits for batches what takes most of making them: "decoding"; empty
/// where it does not know.
template <class S, class Batch>
concept BatchSource = requires(S& source, std::int64_t micro_batch) {
    { source.next() } -> std::convertible_to<Batch>;                            // at the position, then moves on by one
    source.seek(micro_batch);                                                   // counted from the start of epoch 0
    { source.micro_batches_per_epoch() } -> std::convertible_to<std::int64_t>;  // >= 1
    { source.samples_per_micro_batch() } -> std::convertible_to<std::int64_t>;  // of one rank
};

/// A source that calls `make(micro_batch)`: for data that is small, synthetic or already in memory.
template <std::invocable<std::int64_t> Make>
class FunctionSource {
public:
    ///   make                     std::int64_t micro_batch -> Batch; a pure function of its argument
    ///   micro_batches_per_epoch  >= 1
    ///   samples_per_micro_batch  samples of one rank, for the rate that is shown
    FunctionSource(Make make, std::int64_t micro_batches_per_epoch, std::int64_t samples_per_micro_batch)
        : make_{std::move(make)}, per_epoch_{micro_batches_per_epoch}, samples_{samples_per_micro_batch} {}

    auto next() { return make_(position_++); }
    void seek(std::int64_t micro_batch) { position_ = micro_batch; }
    [[nodiscard]] std::int64_t micro_batches_per_epoch() const { return per_epoch_; }
    [[nodiscard]] std::int64_t samples_per_micro_batch() const { return samples_; }

private:
    Make make_;
    std::int64_t per_epoch_;
    std::int64_t samples_;
    std::int64_t position_ = 0;
};

}  // namespace strata
