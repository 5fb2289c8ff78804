#pragma once
// strata/train/engine_options.hpp - engine_options(): the part of a trainer's options that its engine acts on.

#include <strata/train/options.hpp>
#include <strata/zero/engine_options.hpp>

namespace strata::train {

/// Local.
template <class Rule>
[[nodiscard]] zero::EngineOptions<Rule> engine_options(const TrainOptions<Rule>& options) {
    zero::EngineOptions<Rule> engine;
    if (options.bucket_numel > 0) engine.bucket_numel = options.bucket_numel;
    engine.gradient_accumulation_steps = options.gradient_accumulation_steps;
    engine.max_grad_norm = options.max_grad_norm;
    engine.max_grad_value = options.max_grad_value;
    engine.on_non_finite = options.on_non_finite;
    engine.non_finite_limit = options.non_finite_limit;
    engine.update = options.update;
    engine.groups = options.groups;
    engine.prefetch_bucket_bytes = options.prefetch_bucket_bytes;
    engine.max_live_parameters = options.max_live_parameters;
    engine.ema = options.ema;
    engine.ema_interval = options.ema_interval;
    engine.loss_scale = options.loss_scale;
    engine.rounding_seed = options.seed;
    engine.nvme_path = options.nvme_path;
    engine.nvme_lock_timeout = options.nvme_lock_timeout;
    engine.nvme.budget_bytes = options.nvme_buffer_bytes;
    return engine;
}

}  // namespace strata::train
