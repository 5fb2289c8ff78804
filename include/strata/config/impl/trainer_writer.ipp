#pragma once
// strata/config/impl/trainer_writer.ipp - keys of a trainer's configuration for what an intent says.

#include <algorithm>
#include <cctype>
#include <string_view>
#include <utility>
#include <variant>

#include <nlohmann/json.hpp>

#include <strata/config/deepspeed.hpp>
#include <strata/config/impl/deepspeed_writer.ipp>
#include <strata/config/trainer_config.hpp>
#include <strata/config/trainer_writer.hpp>

namespace strata::config {

namespace detail {

/// The key of an option by its path; empty: a trainer's configuration has none.
inline std::string key_of_option(std::string_view path) {
    constexpr std::string_view update = "engine.update.";
    if (path.starts_with(update)) return "optimizer_" + std::string{path.substr(update.size())};
    if (path == "max_steps") return "max_train_steps";
    for (const KeyInfo& info : trainer_schema().keys())
        if (info.path == path) return info.key;
    return {};
}

inline void write_composition(const Composition& composition, OrderedJson& to) {
    if (composition.rule) {
        std::string rule = type_name(*composition.rule);
        std::transform(rule.begin(), rule.end(), rule.begin(),
                       [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
        to["optimizer"] = rule;
    }
    if (composition.precision) {
        const FormatName format = *composition.precision;
        to["mixed_precision"] = format == FormatName::fp32 ? "no" : format == FormatName::fp16 ? "fp16" : "bf16";
        if (format == FormatName::pure_bf16) to["pure_bf16"] = true;
    }
    if (composition.recompute) {
        to["gradient_checkpointing"] = *composition.recompute > 0;
        if (*composition.recompute > 1) to["gradient_checkpointing_interval"] = *composition.recompute;
    }
    if (composition.average) {
        to["use_ema"] = *composition.average != AverageName::none;
        if (*composition.average != AverageName::none)
            to["ema_device"] = *composition.average == AverageName::cpu ? "cpu" : "accelerator";
    }
    if (composition.adapter) to["model_type"] = *composition.adapter == AdapterName::none ? "full" : "lora";
    // Which arguments it has says a file that no intent holds.
    if (composition.adapter == AdapterName::lokr) to["lora_type"] = "lycoris";
    if (composition.frozen)
        to["base_model_precision"] = *composition.frozen == FrozenName::int8  ? "int8-quanto"
                                     : *composition.frozen == FrozenName::nf4 ? "nf4-bnb"
                                                                              : "no_change";
    if (composition.moment) to["optimizer_release_gradients"] = *composition.moment == MomentName::in_backward;
    if (composition.gradients)
        to["optimizer_offload_gradients"] = *composition.gradients == KeptOn::all_on(TierName::cpu);
}

}  // namespace detail

STRATA_INLINE std::string write_trainer_config(const Intent& intent) {
    detail::OrderedJson to = detail::OrderedJson::object();
    detail::write_composition(intent.composition, to);
    if (intent.batch.micro) to["train_batch_size"] = *intent.batch.micro;
    const LaunchIntent& launch = intent.launch;
    for (const auto& [key, number] :
         {std::pair{"num_processes", launch.ranks}, std::pair{"num_machines", launch.machines},
          std::pair{"machine_rank", launch.machine_rank}, std::pair{"main_process_port", launch.main_port}})
        if (number) to[key] = *number;
    if (!launch.main_address.empty()) to["main_process_ip"] = launch.main_address;
    for (const OptionValue& option : intent.options) {
        if (option.path == "engine.max_grad_value") {
            const double* const limit = std::get_if<double>(&option.value);
            if (limit != nullptr && *limit == 0.0) continue;
            to["max_grad_norm"] = detail::json_of(option.value);
            to["grad_clip_method"] = "value";
            continue;
        }
        if (option.path == "engine.max_grad_norm" && intent.number("engine.max_grad_value").value_or(0) > 0) continue;
        if (const std::string key = detail::key_of_option(option.path); !key.empty())
            to[key] = detail::json_of(option.value);
    }
    Intent sharded;  // what only DeepSpeed's configuration has words for
    sharded.composition.stage = intent.composition.stage;
    sharded.composition.state = intent.composition.state;
    sharded.composition.parameters = intent.composition.parameters;
    sharded.rate = intent.rate;
    sharded.rate_follows_lr = intent.rate_follows_lr;
    if (intent.composition.stage) sharded.batch.global = intent.batch.global;
    if (const OptionValue* const path = intent.find("engine.tiers.nvme_path"))
        sharded.set(path->path, path->value, path->place);
    if (sharded != Intent{}) {
        const detail::OrderedJson written = detail::OrderedJson::parse(write_deepspeed(sharded));
        if (!written.empty()) to["deepspeed_config"] = written;
    }
    return to.dump(2) + "\n";
}

}  // namespace strata::config
