#pragma once
// strata/train/options_from_config.hpp - the numbers of a configuration file as a trainer's options.

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include <strata/config/trainer_config.hpp>
#include <strata/core/error.hpp>
#include <strata/core/option_check.hpp>
#include <strata/core/ranges.hpp>
#include <strata/options/run_length.hpp>
#include <strata/policy/setup.hpp>
#include <strata/train/options.hpp>
#include <strata/train/validate.hpp>

namespace strata::train {

namespace detail {

/// The Setup of a trainer; a Setup's is itself.
template <class Composition>
struct SetupOf {
    using type = Composition;
};
template <class Composition>
    requires requires { typename Composition::setup; }
struct SetupOf<Composition> {
    using type = typename Composition::setup;
};

/// Optimizer steps of the whole run, and what a message calls them. Throws Errc::bad_value when epochs make none, or more
/// than can be counted.
inline optim::RunLength run_length(const config::TrainerConfig& config, std::int64_t micro_batches_per_epoch) {
    const std::int64_t given = config.max_train_steps;
    if (given != 0 || config.num_train_epochs == 0) return {given, "'max_train_steps' = " + std::to_string(given)};
    OptionCheck check{OptionCheck::Names{{"micro_batches_per_epoch", "the data's number of micro-batches an epoch"}}};
    check.number("'num_train_epochs'", config.num_train_epochs, {1});
    check.number("micro_batches_per_epoch", micro_batches_per_epoch, {1});
    check.number("'gradient_accumulation_steps'", config.gradient_accumulation_steps, ranges::accumulation_steps);
    check.finish();
    std::int64_t micro_batches = 0;
    if (__builtin_mul_overflow(config.num_train_epochs, micro_batches_per_epoch, &micro_batches))
        throw Error{Errc::bad_value,
                    "'num_train_epochs' is " + std::to_string(config.num_train_epochs) + ", and with " +
                        std::to_string(micro_batches_per_epoch) +
                        " micro-batches an epoch that is more than can be counted",
                    "use fewer epochs, or give 'max_train_steps'"};
    const std::int64_t accumulation = config.gradient_accumulation_steps;
    const std::int64_t steps = micro_batches / accumulation + (micro_batches % accumulation != 0 ? 1 : 0);
    return {steps, "the " + std::to_string(steps) + " steps of 'num_train_epochs'"};
}

/// What the file calls the options that come from it.
inline OptionCheck::Names keys_of_options(const config::TrainerConfig& config) {
    const bool by_norm = config.grad_clip_method == config::GradClipMethod::norm;
    return {{"max_steps", "'max_train_steps'"},
            {"schedule.lr", "'learning_rate'"},
            {"schedule.end_lr", "'lr_end'"},
            {"schedule.warmup_steps", "'lr_warmup_steps'"},
            {"schedule.cycles", "'lr_num_cycles'"},
            {"schedule.power", "'lr_power'"},
            {"update.beta1", "'optimizer_beta1'"},
            {"update.beta2", "'optimizer_beta2'"},
            {"update.epsilon", "'optimizer_epsilon'"},
            {"update.weight_decay", "'optimizer_weight_decay'"},
            {"update.momentum", "'optimizer_momentum'"},
            {"gradient_accumulation_steps", "'gradient_accumulation_steps'"},
            {by_norm ? "max_grad_norm" : "max_grad_value", "'max_grad_norm'"},
            {"ema.decay", "'ema_decay'"},
            {"ema_interval", "'ema_update_interval'"},
            {"prefetch_bucket_bytes", "'prefetch_bucket_bytes'"},
            {"max_live_parameters", "'max_live_parameters'"},
            {"collective_timeout", "'collective_timeout'"},
            {"checkpoint_every", "'checkpoint_step_interval'"},
            {"checkpoints_kept", "'checkpoints_total_limit'"}};
}

/// Throws Errc::bad_value when the file expects another moving average than the program composes.
template <class Averaging>
void check_averaging(const config::TrainerConfig& config) {
    const auto refuse = [](const std::string& what, const std::string& fix) {
        throw Error{Errc::bad_value, what, fix + ", and build it again; or remove the key"};
    };
    if constexpr (!Averaging::enabled) {
        if (config.use_ema.value_or(false))
            refuse("'use_ema' is true, and this program's trainer keeps no moving average of the weights",
                   "add Ema<> to the policies of its Trainer");
    } else {
        if (!config.use_ema.value_or(true))
            refuse("'use_ema' is false, and this program's trainer keeps a moving average of the weights",
                   "remove Ema<> from the policies of its Trainer");
        if constexpr (requires { typename Averaging::tier; }) {
            constexpr bool on_cpu = std::same_as<typename Averaging::tier, Cpu>;
            if (config.ema_device && (*config.ema_device == config::EmaDevice::cpu) != on_cpu)
                refuse(std::string{"'ema_device' is '"} + (on_cpu ? "accelerator" : "cpu") +
                           "', and this program's trainer keeps the moving average with " +
                           (on_cpu ? "Ema<Cpu>" : "Ema<Device>"),
                       std::string{"compose its Trainer with "} + (on_cpu ? "Ema<Device>" : "Ema<Cpu>"));
        }
    }
}

/// As SimpleTuner has it: with a warm-up the average is the weights before that step, and has the whole decay from it
/// on.
inline optim::EmaSchedule ema_of(const config::TrainerConfig& config) noexcept {
    if (config.ema_warmup_steps == 0) return {.decay = config.ema_decay};
    return {.decay = config.ema_decay, .min_decay = config.ema_decay, .update_after_step = config.ema_warmup_steps - 2};
}

}  // namespace detail

/// Options for a trainer. Numbers of its update rule that the file leaves out keep the rule's defaults; one that the
/// rule does not have (Lion's epsilon, Sgd's betas, AdamW's momentum) is not used.
///
///   Composition              Trainer<...>, or its Setup<...>
///   micro_batches_per_epoch  of the data source; turns num_train_epochs into steps, rounded up
/// Local. Throws Errc::bad_value, naming keys, for what validate() refuses, for epochs that make more steps than can be
/// counted, and when `use_ema` or `ema_device` say something else than the composition.
template <class Composition, class Setup = typename detail::SetupOf<Composition>::type>
[[nodiscard]] TrainOptions<typename Setup::optimizer::rule> options_from(const config::TrainerConfig& config,
                                                                         std::int64_t micro_batches_per_epoch) {
    detail::check_averaging<typename Setup::averaging>(config);
    const optim::RunLength run = detail::run_length(config, micro_batches_per_epoch);
    TrainOptions<typename Setup::optimizer::rule> options;
    options.max_steps = run.steps;
    options.seed = static_cast<std::uint64_t>(config.seed);
    options.schedule = {.shape = config.lr_scheduler,
                        .lr = config.learning_rate,
                        .end_lr = config.lr_end,
                        .warmup_steps = config.lr_warmup_steps,
                        .cycles = config.lr_num_cycles,
                        .power = config.lr_power};
    if constexpr (requires { options.update.beta1; })
        options.update.beta1 = config.optimizer_beta1.value_or(options.update.beta1);
    if constexpr (requires { options.update.beta2; })
        options.update.beta2 = config.optimizer_beta2.value_or(options.update.beta2);
    if constexpr (requires { options.update.epsilon; })
        options.update.epsilon = config.optimizer_epsilon.value_or(options.update.epsilon);
    if constexpr (requires { options.update.weight_decay; })
        options.update.weight_decay = config.optimizer_weight_decay.value_or(options.update.weight_decay);
    if constexpr (requires { options.update.momentum; })
        options.update.momentum = config.optimizer_momentum.value_or(options.update.momentum);
    options.gradient_accumulation_steps = static_cast<int>(std::clamp<std::int64_t>(
        config.gradient_accumulation_steps, std::numeric_limits<int>::min(), std::numeric_limits<int>::max()));
    (config.grad_clip_method == config::GradClipMethod::norm ? options.max_grad_norm : options.max_grad_value) =
        config.max_grad_norm;
    options.ema = detail::ema_of(config);
    options.ema_interval = config.ema_update_interval;
    options.prefetch_bucket_bytes = config.prefetch_bucket_bytes;
    options.max_live_parameters = config.max_live_parameters;
    options.collective_timeout = std::chrono::seconds{config.collective_timeout};
    options.checkpoint_every = config.checkpoint_step_interval;
    options.checkpoints_kept = config.checkpoints_total_limit;
    return validate(std::move(options), detail::keys_of_options(config), run);
}

}  // namespace strata::train
