#pragma once
// strata/zero/engine_options.hpp - what an Engine can be told, and what a step reports.

#include <cstddef>
#include <cstdint>
#include <filesystem>

#include <strata/offload/window_pipeline.hpp>
#include <strata/optim/loss_scale.hpp>
#include <strata/optim/update_rule.hpp>

namespace strata::zero {

/// Settings of an Engine whose update rule is Rule.
template <optim::UpdateRule Rule>
struct EngineOptions {
    std::int64_t bucket_numel = 25'000'000;  ///< elements that a bucket outside of units holds at most
    int gradient_accumulation_steps = 1;     ///< backward() calls for one step()
    double max_grad_norm = 0.0;              ///< clips the global gradient norm; 0 does not clip
    double max_grad_value = 0.0;             ///< then clamps every element of the mean gradient; 0 does not
    typename Rule::Options update{};         ///< betas, weight decay, ...

    bool overlap = true;        ///< stages 0 and 1 reduce buckets while backward goes on; stage 2 always does
    int buckets_in_flight = 4;  ///< reductions that wait or run at once; stage 2 holds that many whole buckets more

    optim::LossScaleOptions loss_scale{};  ///< Precision<Fp16>
    std::uint64_t rounding_seed = 42;      ///< Precision<PureBf16>: of its stochastic rounding; the same on all ranks

    std::filesystem::path nvme_path{};     ///< OffloadTarget<Nvme>: a folder on a local disk, which must exist
    offload::PipelineOptions nvme{};       ///< OffloadTarget<Nvme>: its memory, and how it reads and writes
};

/// What an optimizer step reports; the same on every rank.
struct StepResult {
    double grad_norm = 0.0;   ///< global 2-norm of the mean gradient, before clipping
    std::int64_t step = 0;    ///< steps done, this one included unless it was skipped
    bool skipped = false;     ///< Precision<Fp16>: gradients overflowed, nothing but the loss scale has changed
    double loss_scale = 1.0;  ///< that this step's gradients were made with
};

}  // namespace strata::zero
