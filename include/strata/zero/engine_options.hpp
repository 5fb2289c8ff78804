#pragma once
// strata/zero/engine_options.hpp - what an Engine can be told, and what a step reports.

#include <cstdint>

#include <strata/optim/update_rule.hpp>

namespace strata::zero {

/// Settings of an Engine whose update rule is Rule.
template <optim::UpdateRule Rule>
struct EngineOptions {
    std::int64_t bucket_numel = 25'000'000;  ///< elements that a bucket outside of units holds at most
    int gradient_accumulation_steps = 1;     ///< backward() calls for one step()
    double max_grad_norm = 0.0;              ///< clips the global gradient norm; 0 does not clip
    typename Rule::Options update{};         ///< betas, weight decay, ...
};

/// What an optimizer step reports; the same on every rank.
struct StepResult {
    double grad_norm = 0.0;  ///< global 2-norm of the mean gradient, before clipping
    std::int64_t step = 0;   ///< steps done, this one included
};

}  // namespace strata::zero
