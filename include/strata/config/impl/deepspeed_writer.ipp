#pragma once
// strata/config/impl/deepspeed_writer.ipp - an intent as DeepSpeed's JSON.

#include <algorithm>
#include <cmath>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include <nlohmann/json.hpp>

#include <strata/config/deepspeed.hpp>

namespace strata::config {

namespace detail {

using OrderedJson = nlohmann::ordered_json;

inline OrderedJson json_of(const OptionScalar& value) {
    return std::visit([](const auto& one) { return OrderedJson(one); }, value);
}

/// The part of a composition that DeepSpeed calls zero_optimization.
inline OrderedJson zero_json(const Intent& intent) {
    const Composition& composition = intent.composition;
    OrderedJson zero = OrderedJson::object();
    if (composition.stage) zero["stage"] = *composition.stage;
    const OptionValue* const folder = intent.find("engine.tiers.nvme_path");
    const auto offload = [&](const char* key, const std::optional<KeptOn>& kept) {
        if (!kept) return;
        OrderedJson block;
        const TierName tier = kept->percent == 100 ? kept->first : kept->second;
        block["device"] = tier == TierName::device ? "none" : tier == TierName::cpu ? "cpu" : "nvme";
        if (tier == TierName::nvme && folder != nullptr) block["nvme_path"] = json_of(folder->value);
        if (kept->percent != 100) block["ratio"] = (100 - kept->percent) / 100.0;
        zero[key] = block;
    };
    offload("offload_optimizer", composition.state);
    offload("offload_param", composition.parameters);
    const auto put = [&](const char* key, const char* path) {
        if (const OptionValue* const found = intent.find(path)) zero[key] = json_of(found->value);
    };
    put("reduce_bucket_size", "engine.bucket_numel");
    if (composition.stage.value_or(0) < 2) put("overlap_comm", "engine.overlap");
    if (composition.stage == 3) {
        put("stage3_max_live_parameters", "engine.max_live_parameters");
        if (const auto bytes = intent.number("engine.prefetch_bucket_bytes"); bytes && *bytes >= 0) {
            const bool is_fp32 = composition.precision.value_or(FormatName::fp32) == FormatName::fp32;
            zero["stage3_prefetch_bucket_size"] = static_cast<std::int64_t>(*bytes) / (is_fp32 ? 4 : 2);
        }
    }
    return zero;
}

inline OrderedJson optimizer_json(const Intent& intent) {
    const RuleName rule = *intent.composition.rule;
    OrderedJson params = OrderedJson::object();
    const auto put = [&](const char* key, const char* path) {
        if (const OptionValue* const found = intent.find(path)) params[key] = json_of(found->value);
    };
    put("lr", "schedule.lr");
    if (const OptionValue* const one = intent.find("engine.update.beta1"), *two = intent.find("engine.update.beta2");
        one != nullptr && two != nullptr)
        params["betas"] = {json_of(one->value), json_of(two->value)};
    put("eps", "engine.update.epsilon");
    for (const char* key : {"weight_decay", "momentum", "dampening", "nesterov", "lr_decay",
                            "initial_accumulator_value", "bias_correction"})
        put(key, (std::string{"engine.update."} + key).c_str());
    if (rule == RuleName::adam) params["adam_w_mode"] = false;
    return {{"type", rule == RuleName::sgd ? "SGD" : type_name(rule)}, {"params", params}};
}

inline OrderedJson scheduler_json(const Intent& intent) {
    OrderedJson params = OrderedJson::object();
    std::string type;
    const auto warmup = [&](const auto& rate) {
        params["warmup_num_steps"] = rate.warmup_steps;
        params["warmup_type"] = rate.curve == optim::WarmupCurve::log ? "log" : "linear";
        if constexpr (requires { rate.max_lr; }) {
            params["warmup_min_lr"] = rate.min_lr;
            if (!intent.rate_follows_lr)
                params["warmup_max_lr"] = rate.max_lr;
            else if constexpr (requires { rate.total_steps; })
                params["warmup_max_lr"] = "auto";  // left out it is 1e-3
        }
        if constexpr (requires { rate.total_steps; })
            if (rate.total_steps > 0) params["total_num_steps"] = rate.total_steps;
    };
    std::visit(
        [&](const auto& rate) {
            using Rate = std::remove_cvref_t<decltype(rate)>;
            if constexpr (std::is_same_v<Rate, optim::WarmupLr>) {
                type = "WarmupLR";
                warmup(rate);
            } else if constexpr (std::is_same_v<Rate, optim::WarmupDecayLr>) {
                type = "WarmupDecayLR";
                warmup(rate);
            } else if constexpr (std::is_same_v<Rate, optim::WarmupCosineLr>) {
                type = "WarmupCosineLR";
                warmup(rate);
                params["warmup_min_ratio"] = rate.warmup_min_ratio;
                params["cos_min_ratio"] = rate.cos_min_ratio;
            } else if constexpr (std::is_same_v<Rate, optim::OneCycle>) {
                type = "OneCycle";
                params = {{"cycle_min_lr", rate.min_lr},
                          {"cycle_max_lr", rate.max_lr},
                          {"decay_lr_rate", rate.decay_lr_rate},
                          {"cycle_first_step_size", rate.first_steps},
                          {"cycle_second_step_size", rate.second_steps},
                          {"cycle_first_stair_count", rate.first_stairs},
                          {"cycle_second_stair_count", rate.second_stairs},
                          {"decay_step_size", rate.decay_steps},
                          {"cycle_momentum", false}};
            } else if constexpr (std::is_same_v<Rate, optim::LrRangeTest>) {
                type = "LRRangeTest";
                params = {{"lr_range_test_min_lr", rate.min_lr},
                          {"lr_range_test_step_size", rate.step_size},
                          {"lr_range_test_step_rate", rate.step_rate},
                          {"lr_range_test_staircase", rate.staircase}};
            }
        },
        intent.rate);
    if (const OptionValue* const shape = intent.find("schedule.shape"); type.empty() && shape != nullptr) {
        const std::string name = std::get<std::string>(shape->value);
        const OptionValue* const warmup_steps = intent.find("schedule.warmup_steps");
        const bool is_annealing = name == "cosine" && warmup_steps == nullptr;
        type = is_annealing ? "CosineAnnealingLR" : name;  // DeepSpeed itself has no others; strata reads them
        if (const OptionValue* const total = intent.find("schedule.total_steps"))
            params[is_annealing ? "T_max" : "total_num_steps"] = json_of(total->value);
        if (warmup_steps != nullptr) params["warmup_num_steps"] = json_of(warmup_steps->value);
        if (const OptionValue* const end = intent.find("schedule.end_lr")) params["eta_min"] = json_of(end->value);
    }
    if (type.empty()) return nullptr;
    return {{"type", type}, {"params", params}};
}

inline void put_loss_scale(OrderedJson& all, const Intent& intent) {
    const OptionValue* const dynamic = intent.find("engine.loss_scale.dynamic");
    const auto initial = intent.number("engine.loss_scale.initial");
    const bool moves = dynamic == nullptr || std::get<bool>(dynamic->value);
    if (dynamic != nullptr) all["fp16"]["loss_scale"] = moves ? 0.0 : initial.value_or(65536.0);
    if (moves && initial)  // the nearest power that DeepSpeed takes
        all["fp16"]["initial_scale_power"] = std::clamp(std::lround(std::log2(*initial)), 0L, 99L);
    for (const auto& [key, path] : {std::pair{"loss_scale_window", "engine.loss_scale.window"},
                                    std::pair{"hysteresis", "engine.loss_scale.hysteresis"},
                                    std::pair{"consecutive_hysteresis", "engine.loss_scale.consecutive_hysteresis"},
                                    std::pair{"min_loss_scale", "engine.loss_scale.minimum"}})
        if (const OptionValue* const found = intent.find(path)) all["fp16"][key] = json_of(found->value);
}

inline void put_precision(OrderedJson& all, const Intent& intent) {
    if (const auto format = intent.composition.precision) {
        const bool pure = *format == FormatName::pure_bf16;
        if (*format == FormatName::fp32 || *format == FormatName::fp16)
            all["fp16"]["enabled"] = *format == FormatName::fp16;
        if (*format != FormatName::fp16) all["bf16"]["enabled"] = *format != FormatName::fp32;
        if (pure)
            for (const char* key : {"bf16_master_weights_and_grads", "bf16_optimizer_states"}) all["bf16"][key] = true;
        const OptionValue* const skips = intent.find("engine.on_non_finite");
        if (skips != nullptr && (pure || *format == FormatName::bf16))
            all["bf16"]["check_grad_overflow"] = std::get<std::string>(skips->value) == "skip";
    }
    put_loss_scale(all, intent);
}

/// Whether a key that said "auto" has been decided since, by another file or a command line over its own.
inline bool is_decided(const Automatic& one, const Intent& intent, const OrderedJson& written,
                       const OrderedJson::json_pointer& pointer) {
    if (one.key == "fp16.enabled" || one.key == "bf16.enabled") return intent.composition.precision.has_value();
    // A schedule is written whole, with the defaults of numbers that are left open.
    if (one.key.starts_with("scheduler.params.")) return intent.find(one.to) != nullptr;
    return intent.find(one.to) != nullptr || written.contains(pointer);
}

}  // namespace detail

STRATA_INLINE std::string write_deepspeed(const Intent& intent) {
    detail::OrderedJson all = detail::OrderedJson::object();
    const auto put_number = [&](const char* key, const std::optional<std::int64_t>& value) {
        if (value) all[key] = *value;
    };
    const auto put_option = [&](const char* key, const char* path) {
        if (const OptionValue* const found = intent.find(path)) all[key] = detail::json_of(found->value);
    };
    put_number("train_batch_size", intent.batch.global);
    put_number("train_micro_batch_size_per_gpu", intent.batch.micro);
    put_option("gradient_accumulation_steps", "engine.gradient_accumulation_steps");
    put_option("gradient_clipping", "engine.max_grad_norm");
    detail::put_precision(all, intent);
    if (detail::OrderedJson zero = detail::zero_json(intent); !zero.empty()) all["zero_optimization"] = std::move(zero);
    for (const char* part : {"engine.tiers.state.io.", "engine.tiers.units.io."})
        for (const auto& [key, option] :
             {std::pair{"block_size", "block_bytes"}, std::pair{"queue_depth", "queue_depth"},
              std::pair{"intra_op_parallelism", "threads"}})
            if (const OptionValue* const found = intent.find(std::string{part} + option))
                all["aio"][key] = detail::json_of(found->value);
    if (intent.composition.rule) all["optimizer"] = detail::optimizer_json(intent);
    if (detail::OrderedJson scheduler = detail::scheduler_json(intent); !scheduler.is_null())
        all["scheduler"] = std::move(scheduler);
    for (const Automatic& one : intent.automatic) {
        if (deepspeed_table().find(one.key) == nullptr) continue;
        std::string pointer = "/" + one.key;
        std::replace(pointer.begin(), pointer.end(), '.', '/');
        const detail::OrderedJson::json_pointer place{pointer};
        if (!detail::is_decided(one, intent, all, place)) all[place] = "auto";
    }
    return all.dump(2) + "\n";
}

}  // namespace strata::config
