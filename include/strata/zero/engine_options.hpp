#pragma once
// strata/zero/engine_options.hpp - what an Engine can be told, and what a step reports.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string_view>
#include <vector>

#include <strata/core/option_check.hpp>
#include <strata/core/ranges.hpp>
#include <strata/offload/window_pipeline.hpp>
#include <strata/optim/ema.hpp>
#include <strata/optim/loss_scale.hpp>
#include <strata/optim/update_rule.hpp>
#include <strata/zero/non_finite.hpp>
#include <strata/zero/option_checks.hpp>

namespace strata::zero {

/// Parameters that are updated with settings of their own.
template <optim::UpdateRule Rule>
struct ParameterGroup {
    std::function<bool(std::string_view name)> takes{};  ///< by the name in the state dict; called once for each; not empty
    double lr_factor = 1.0;                              ///< times the learning rate of step()
    typename Rule::Options update{};                     ///< betas, weight decay, ...
};

/// Settings of an Engine whose update rule is Rule; the same on every rank, but for nvme_path.
template <optim::UpdateRule Rule>
struct EngineOptions {
    std::int64_t bucket_numel = 25'000'000;  ///< elements that a bucket outside of units holds at most
    int gradient_accumulation_steps = 1;     ///< backward() calls for one step()
    double max_grad_norm = 0.0;              ///< clips the global gradient norm; 0 does not clip
    double max_grad_value = 0.0;             ///< clamps every element of the mean gradient instead; 0 does not
    typename Rule::Options update{};         ///< betas, weight decay, ... of parameters that no group takes
    std::vector<ParameterGroup<Rule>> groups{};  ///< a parameter belongs to the first that takes it

    OnNonFinite on_non_finite = OnNonFinite::stop;  ///< a step whose loss or gradients are not finite; fp16 has loss_scale first
    std::int64_t non_finite_limit = 10;             ///< OnNonFinite::skip: steps in a row that are skipped at most
    bool computes_only = false;  ///< every parameter is frozen: no gradients, no state, no backward() and step()

    bool overlap = true;        ///< stages 0 and 1 reduce buckets while backward goes on; stage 2 always does
    int buckets_in_flight = 4;  ///< reductions that wait or run at once; stage 2 holds one whole bucket more than that

    optim::LossScaleOptions loss_scale{};  ///< Precision<Fp16>
    std::uint64_t rounding_seed = 42;      ///< Precision<PureBf16>: of its stochastic rounding; the same on all ranks

    /// ZeroStage<3>: bytes of units that are gathered before they are needed, at most; -1: the largest unit, 0: none.
    std::int64_t prefetch_bucket_bytes = -1;
    /// ZeroStage<3>: nothing is gathered ahead while that would make more elements of units whole; 0: no such bound.
    std::int64_t max_live_parameters = 0;

    optim::EmaSchedule ema{};       ///< Ema<...>: the decay
    std::int64_t ema_interval = 1;  ///< Ema<...>: steps from one update of the average to the next

    std::filesystem::path nvme_path{};      ///< OffloadTarget<Nvme>: a folder on a local disk, which must exist
    std::chrono::seconds nvme_lock_timeout{60};  ///< OffloadTarget<Nvme>: how long another run may keep that folder's lock
    offload::PipelineOptions nvme{};        ///< OffloadTarget<Nvme>: its memory, and how it reads and writes
    offload::PipelineOptions nvme_units{};  ///< OffloadTarget<Nvme, Parameters>: the same for units

    void check(OptionCheck& check) const {
        check.number("bucket_numel", bucket_numel, {1, ranges::size.most});
        check_shared_options(*this, check);
        check.number("buckets_in_flight", buckets_in_flight, {1, 1e6});
    }
};

/// What an optimizer step reports; the same on every rank.
struct StepResult {
    double grad_norm = 0.0;   ///< global 2-norm of the mean gradient, before clipping
    std::int64_t step = 0;    ///< steps done, this one included unless it was skipped
    bool skipped = false;     ///< weights and state are as before: fp16 gradients overflowed, or non_finite
    bool non_finite = false;  ///< skipped by OnNonFinite::skip; else nothing but the loss scale has changed
    double loss_scale = 1.0;  ///< that this step's gradients were made with
};

}  // namespace strata::zero
