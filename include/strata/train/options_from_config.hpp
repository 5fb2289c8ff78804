#pragma once
// strata/train/options_from_config.hpp - the numbers of a configuration file as a trainer's options.

#include <cstdint>
#include <string>

#include <strata/config/trainer_config.hpp>
#include <strata/core/error.hpp>
#include <strata/train/options.hpp>

namespace strata::train {

namespace detail {

constexpr optim::ScheduleShape shape_of(config::LrScheduler scheduler) noexcept {
    switch (scheduler) {
        case config::LrScheduler::constant: return optim::ScheduleShape::constant;
        case config::LrScheduler::constant_with_warmup: return optim::ScheduleShape::constant_with_warmup;
        case config::LrScheduler::linear: return optim::ScheduleShape::linear;
        case config::LrScheduler::cosine: return optim::ScheduleShape::cosine;
        case config::LrScheduler::cosine_with_restarts: return optim::ScheduleShape::cosine_with_restarts;
        case config::LrScheduler::polynomial: return optim::ScheduleShape::polynomial;
        case config::LrScheduler::sine: return optim::ScheduleShape::sine;
    }
    return optim::ScheduleShape::constant;
}

/// Optimizer steps of the whole run. Throws Errc::bad_value when epochs make more of them than can be counted, and for
/// a warm-up that is longer.
inline std::int64_t steps_of(const config::TrainerConfig& config, std::int64_t micro_batches_per_epoch) {
    std::int64_t steps = config.max_train_steps;
    std::string given = "'max_train_steps'";
    if (steps <= 0) {
        const std::string epochs = "'num_train_epochs' is " + std::to_string(config.num_train_epochs);
        std::int64_t micro_batches = 0;
        if (__builtin_mul_overflow(config.num_train_epochs, micro_batches_per_epoch, &micro_batches))
            throw Error{Errc::bad_value,
                        epochs + ", and with " + std::to_string(micro_batches_per_epoch) +
                            " micro-batches an epoch that is more than can be counted",
                        "use fewer epochs, or give 'max_train_steps'"};
        const std::int64_t accumulation = config.gradient_accumulation_steps;
        steps = micro_batches / accumulation + (micro_batches % accumulation != 0 ? 1 : 0);
        given = "the " + std::to_string(steps) + " steps of 'num_train_epochs'";
    }
    if (config.lr_warmup_steps > steps)
        throw Error{Errc::bad_value, "'lr_warmup_steps' is " + std::to_string(config.lr_warmup_steps) + ", above " + given,
                    "use a shorter warm-up, or train longer"};
    return steps;
}

}  // namespace detail

/// Options for Trainer<..., Optimizer<Rule>>. Numbers of the rule that the file leaves out keep Rule's defaults; one that
/// Rule does not have (Lion's epsilon, Sgd's betas) is not used.
///
///   micro_batches_per_epoch  of the data source; turns num_train_epochs into steps, rounded up
/// Local. Throws Errc::bad_value when epochs make more steps than can be counted or fewer than the warm-up takes.
template <class Rule>
[[nodiscard]] TrainOptions<Rule> options_from(const config::TrainerConfig& config, std::int64_t micro_batches_per_epoch) {
    TrainOptions<Rule> options;
    options.max_steps = detail::steps_of(config, micro_batches_per_epoch);
    options.seed = static_cast<std::uint64_t>(config.seed);
    options.schedule = {.shape = detail::shape_of(config.lr_scheduler),
                        .lr = config.learning_rate,
                        .end_lr = config.lr_end,
                        .warmup_steps = config.lr_warmup_steps,
                        .total_steps = options.max_steps,
                        .cycles = config.lr_num_cycles,
                        .power = config.lr_power};
    if constexpr (requires { options.update.beta1; })
        options.update.beta1 = config.optimizer_beta1.value_or(options.update.beta1);
    if constexpr (requires { options.update.beta2; })
        options.update.beta2 = config.optimizer_beta2.value_or(options.update.beta2);
    if constexpr (requires { options.update.epsilon; })
        options.update.epsilon = config.optimizer_epsilon.value_or(options.update.epsilon);
    options.update.weight_decay = config.optimizer_weight_decay.value_or(options.update.weight_decay);
    options.gradient_accumulation_steps = static_cast<int>(config.gradient_accumulation_steps);
    options.max_grad_norm = config.max_grad_norm;
    options.checkpoint_every = config.checkpoint_step_interval;
    options.checkpoints_kept = config.checkpoints_total_limit;
    return options;
}

}  // namespace strata::train
