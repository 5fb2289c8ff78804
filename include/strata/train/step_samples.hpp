#pragma once
// strata/train/step_samples.hpp - StepSamples: which samples a step saw, for the message that its numbers are not finite.

#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <strata/core/inline.hpp>

namespace strata::train {

/// A batch that says which samples it is made of: a member `samples`, names a person can look for, as
/// models::FluxBatch has them.
template <class Batch>
concept NamesItsSamples = requires(const Batch& batch) {
    { batch.samples } -> std::convertible_to<const std::vector<std::string>&>;
};

/// The names of one rank's samples in one optimizer step. Local.
class StepSamples {
public:
    /// One micro-batch.
    ///
    ///   finite  whether its loss is
    void add(std::vector<std::string> names, bool finite);

    /// Those of micro-batches whose loss is not finite; where all are, all of them. At most `most`, and then how many there
    /// are beside: "a.png, b.png and 6 more". Empty where there are none, or where only other ranks' losses are not finite.
    ///
    ///   loss_is_finite  that of the step, on which all ranks agree
    [[nodiscard]] std::string text(bool loss_is_finite, std::size_t most = 8) const;

private:
    struct MicroBatch {
        std::vector<std::string> names;
        bool finite;
    };
    std::vector<MicroBatch> micro_batches_;
};

/// What a message goes on with: "", "; its samples: a.png, b.png", "; its samples on rank 1: a.png, on rank 2: b.png and 3 more".
///
///   by_rank  text() of every rank
[[nodiscard]] std::string naming_samples(std::span<const std::string> by_rank);

}  // namespace strata::train

#ifndef STRATA_COMPILED
#include <strata/train/impl/step_samples.ipp>
#endif
