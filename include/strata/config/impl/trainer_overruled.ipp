#pragma once
// strata/config/impl/trainer_overruled.ipp - what `deepspeed_config` and `accelerate_config` say over a trainer's other keys.

#include <algorithm>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>

#include <strata/config/impl/trainer_flags.ipp>
#include <strata/config/impl/trainer_translation.ipp>
#include <strata/config/intent_options.hpp>
#include <strata/config/trainer_config.hpp>
#include <strata/core/ranges.hpp>

namespace strata::config::detail {

/// Whether two intents give an option the same value; 1 and 1.0 are.
inline bool same_option(const Intent& a, const Intent& b, const std::string& path) {
    const auto one = a.number(path), other = b.number(path);
    return one && other ? *one == *other : a.find(path)->value == b.find(path)->value;
}

/// Keys of the file, without dashes, whose words `asked` overrules.
inline std::vector<std::string> overruled_keys(const Intent& mine, const Intent& asked) {
    std::vector<std::string> keys;
    const auto differ = [](const auto& own, const auto& other) { return own && other && *own != *other; };
    const Composition& composed = mine.composition;
    const Composition& wanted = asked.composition;
    if (differ(composed.precision, wanted.precision)) keys.insert(keys.end(), {"mixed_precision", "pure_bf16"});
    if (differ(composed.stage, wanted.stage)) keys.insert(keys.end(), {"fsdp_enable", "fsdp_reshard_after_forward"});
    if (differ(composed.state, wanted.state)) keys.emplace_back("fsdp_cpu_offload");
    if (differ(composed.recompute, wanted.recompute))
        keys.insert(keys.end(), {"gradient_checkpointing", "gradient_checkpointing_interval"});
    if (differ(composed.rule, wanted.rule)) keys.emplace_back("optimizer");
    if (differ(mine.batch.micro, asked.batch.micro)) keys.emplace_back("train_batch_size");
    if (differ(mine.launch.ranks, asked.launch.ranks)) keys.emplace_back("num_processes");
    const bool has_rate = asked.rate.index() != 0;
    for (const KeyInfo& info : trainer_schema().keys()) {
        const bool is_of_rate =
            info.path.starts_with("schedule.") && (info.path != "schedule.lr" || !asked.rate_follows_lr);
        const bool is_given = mine.find(info.path) != nullptr && asked.find(info.path) != nullptr;
        if ((has_rate && is_of_rate) || (is_given && !same_option(mine, asked, info.path)))
            keys.insert(keys.end(), {info.key, info.alias});
    }
    constexpr std::string_view update = "engine.update.";
    for (const OptionValue& option : asked.options)
        if (option.path.starts_with(update) && mine.find(option.path) != nullptr &&
            !same_option(mine, asked, option.path))
            for (const char* prefix : {"optimizer_", "adam_"})
                keys.push_back(prefix + option.path.substr(update.size()));
    return keys;
}

/// What `deepspeed_config` and `accelerate_config` ask for, over what the other keys do, as SimpleTuner has it; a command
/// line goes before both.
///
///   returns  values of the file that are overruled by it
inline std::vector<const Node*> take_deepspeed(const Document& document, const TrainerTranslation& translation,
                                               const FlagKeys& flags, TrainerReading& reading, TrainerConfig& config) {
    if (!translation.deepspeed()) return {};
    Intent asked = *translation.deepspeed();
    leave_to_flags(flags, asked);
    std::erase_if(asked.options, [&](const OptionValue& one) {  // a default that nobody wrote
        return one.place.empty() && reading.intent.find(one.path) != nullptr;
    });
    std::vector<std::string> keys = overruled_keys(reading.intent, asked);
    if (asked.find("engine.max_grad_norm") != nullptr && config.grad_clip_method == GradClipMethod::value) {
        config.grad_clip_method = GradClipMethod::norm;
        std::erase_if(reading.intent.options,
                      [](const OptionValue& one) { return one.path == "engine.max_grad_value"; });
        keys.emplace_back("grad_clip_method");
    }
    std::vector<const Node*> overruled;
    for (const std::string& key : keys) {
        if (key.empty()) continue;
        const Node* node = document.root.find(key);
        if (node == nullptr) node = document.root.find("--" + key);
        const auto other = translation.nodes().find(key);  // a number that `optimizer_config` or `optimizer` brought
        if (node != nullptr)
            overruled.push_back(node);
        else if (other != translation.nodes().end())
            reading.findings.warn_mapped(*translation.deepspeed_node(), "engine.update",
                                         "it goes before `" + other->second->path() + "` for " + key);
    }
    reading.intent = overlay(reading.intent, asked);
    if (asked.batch.micro) config.train_batch_size = *asked.batch.micro;
    constexpr std::string_view update = "engine.update.";
    for (const std::string& path : apply(asked, config.options))
        if (path.starts_with(update))
            config.optimizer.set(
                "optimizer_" + path.substr(update.size()),
                std::visit([](const auto& one) { return nlohmann::json(one).dump(); }, asked.find(path)->value));
    return overruled;
}

/// DeepSpeed's `train_batch_size`, which is of all ranks: what it makes of the other two numbers.
inline void follow_batch(const TrainerTranslation& translation, TrainerReading& reading, TrainerConfig& config) {
    Intent& intent = reading.intent;
    if (!intent.batch.global || translation.deepspeed_node() == nullptr) return;
    const Node& node = *translation.deepspeed_node();
    const std::string accumulation = "engine.gradient_accumulation_steps";
    const bool is_whole = intent.batch.micro && intent.find(accumulation) != nullptr;
    if (!intent.launch.ranks && is_whole) return;  // the ranks that it is for are whoever's who starts them
    if (!intent.launch.ranks)
        return reading.findings.warn_mapped(
            node, "docs/config/deepspeed.md", "train_batch_size is not followed: nothing says on how many ranks",
            "give train_micro_batch_size_per_gpu and gradient_accumulation_steps, or num_processes");
    try {
        const Batch batch = batch_on(intent, *intent.launch.ranks, config.train_batch_size);
        if (batch.micro > 65536 || !ranges::accumulation_steps.holds(static_cast<double>(batch.accumulation)))
            throw Error{Errc::bad_value,
                        "train_batch_size makes " + std::to_string(batch.accumulation) + " micro-batches of " +
                            std::to_string(batch.micro) + " samples on each rank",
                        "give a smaller one: both are at most 65536"};
        config.train_batch_size = batch.micro;
        config.options.engine.gradient_accumulation_steps = static_cast<int>(batch.accumulation);
        intent.batch.micro = batch.micro;
        if (intent.find(accumulation) == nullptr) intent.set(accumulation, batch.accumulation, node.place());
    } catch (const Error& problem) {
        reading.findings.refuse(node, problem.code(), "does not go with this file: " + problem.problem(),
                                problem.fix());
    }
}

}  // namespace strata::config::detail
