#pragma once
// strata/config/impl/trainer_findings.ipp - what became of each key of a trainer's configuration, in the order of the file.

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>

#include <strata/config/impl/given_options.ipp>
#include <strata/config/impl/trainer_gradients.ipp>
#include <strata/config/impl/trainer_translation.ipp>
#include <strata/config/intent_options.hpp>
#include <strata/config/problems.hpp>
#include <strata/config/trainer_config.hpp>
#include <strata/core/ranges.hpp>

namespace strata::config::detail {

/// The places of a file by the keys that the schema has for what stands there.
inline Source source_of(const Document& document, const TrainerTranslation& translation) {
    std::map<std::string, std::string, std::less<>> names;
    for (const auto& [key, node] : translation.nodes()) names.emplace(translation.written(key), key);
    return Source{document}.renamed(names);
}

/// A refusal in words of Value, "a.json:3:5: key 'x' is ...", as a finding.
inline Finding finding_of(const Error& problem, const Source& source, const TrainerTranslation& translation) {
    Finding finding;
    finding.effect = Effect::refused;
    finding.code = problem.code();
    finding.fix = problem.fix();
    finding.words = problem.problem();
    constexpr std::string_view mark = ": key '";
    const std::size_t key_begin = finding.words.find(mark);
    const std::size_t key_end =
        key_begin == std::string::npos ? key_begin : finding.words.find("' ", key_begin + mark.size());
    if (!finding.words.starts_with(source.name())) return finding;  // of a flag
    if (key_end == std::string::npos) {
        const std::size_t end = finding.words.find(": ", source.name().size());
        if (end == std::string::npos) return finding;
        finding.place = finding.words.substr(0, end);
        finding.words.erase(0, end + 2);
        return finding;
    }
    const std::string path = finding.words.substr(key_begin + mark.size(), key_end - key_begin - mark.size());
    const std::string key = path.substr(0, path.find_first_of(".["));
    finding.place = finding.words.substr(0, key_begin);
    finding.words.erase(0, key_end + 2);
    finding.key = translation.written(key) + path.substr(key.size());
    const auto node = translation.nodes().find(key);
    if (node == translation.nodes().end()) return finding;
    finding.pointer = node->second->pointer();
    finding.value = node->second->shown();
    return finding;
}

/// A value of the schema's as an option's.
inline OptionScalar scalar_of(const Node& node) {
    if (const auto whole = node.whole()) return *whole;
    if (const auto number = node.number()) return *number;
    if (const auto flag = node.flag()) return *flag;
    return node.scalar();
}

/// The numbers of the file, by the paths of the options that they are.
inline void add_options(const TrainerTranslation& translation, const TrainerConfig& config, Intent& intent) {
    for (const auto& [key, node] : translation.nodes()) {
        const auto& keys = trainer_schema().keys();
        const auto info = std::find_if(keys.begin(), keys.end(),
                                       [&key = key](const KeyInfo& one) { return one.key == key || one.alias == key; });
        if (info != keys.end() && !info->path.empty()) intent.set(info->path, scalar_of(*node), node->place());
    }
    for (const GivenOptions::Given& one : config.optimizer.all()) {
        const nlohmann::json json = nlohmann::json::parse(one.json);
        const std::string_view name = name_of(one);
        const std::string_view own = name.substr(std::min(name.find('_') + 1, name.size()));
        OptionScalar value;
        if (json.is_number())
            value = json.get<double>();
        else if (json.is_boolean())
            value = json.get<bool>();
        else if (!json.is_string())
            continue;
        else if (const auto number = number_in<double>(json.get_ref<const std::string&>()))
            value = *number;
        else if (const auto flag = flag_of(json.get_ref<const std::string&>()))
            value = *flag;
        else
            continue;
        intent.set("engine.update." + std::string{own}, std::move(value),
                   one.file.empty() ? one.key : one.file.at(one.key));
    }
    if (config.grad_clip_method == GradClipMethod::value)
        if (const OptionValue* const norm = intent.find("engine.max_grad_norm")) {
            const OptionValue value = *norm;
            intent.set("engine.max_grad_norm", 0.0, value.place);
            intent.set("engine.max_grad_value", value.value, value.place);
        }
    if (translation.nodes().contains("train_batch_size")) intent.batch.micro = config.train_batch_size;
    if (config.max_train_steps > 0) intent.set("max_steps", config.max_train_steps);
    if (config.use_ema)
        intent.composition.average = !*config.use_ema                              ? AverageName::none
                                     : config.ema_device == EmaDevice::accelerator ? AverageName::device
                                                                                   : AverageName::cpu;
}

/// Settings that a SimpleTuner file leaves out, and that SimpleTuner gives another value than strata does.
inline void warn_of_defaults(const Document& document, const TrainerTranslation& translation, TrainerReading& reading) {
    const auto has = [&](const char* key) {
        return document.root.find(key) != nullptr || document.root.find(std::string{"--"} + key) != nullptr;
    };
    if (!has("model_family") && !has("model_type")) return;
    const auto warn = [&](const char* key, const char* words, const char* fix) {
        if (translation.nodes().contains(key)) return;
        Finding finding;
        finding.warns = true;
        finding.key = key;
        finding.place = document.source;
        finding.words = words;
        finding.fix = fix;
        reading.findings.add(std::move(finding));
    };
    warn("learning_rate", "is left out: 1e-4 here, 4e-7 in SimpleTuner", "write the one you mean");
    warn("grad_clip_method", "is left out: the norm of all gradients is clipped here, every element in SimpleTuner",
         "write \"grad_clip_method\": \"value\" for SimpleTuner's way");
    warn("caption_strategy", "is left out: captions are text files here, file names in SimpleTuner",
         "say it in the dataset list or here");
    const Composition asked = translation.deepspeed() ? translation.deepspeed()->composition : Composition{};
    const bool has_precision = reading.intent.composition.precision || asked.precision;
    if (!has_precision && !has("mixed_precision"))
        warn("mixed_precision", "is left out: the program's own here, bf16 in SimpleTuner",
             "write \"mixed_precision\": \"bf16\" for SimpleTuner's way");
    if (!has("optimizer") && !asked.rule)
        warn("optimizer", "is left out: the program's own rule here, adamw_bf16 in SimpleTuner",
             "write the one you mean");
    const auto shape = translation.own().find("lr_scheduler");
    const bool may_fall = shape == translation.own().end() || !shape->is_string() ||
                          !shape->get_ref<const std::string&>().starts_with("constant");
    if (may_fall && shape != translation.own().end())
        warn("lr_end", "is left out: the rate falls to 0 here, to 4e-7 in SimpleTuner", "write the one you mean");
    if (shape == translation.own().end() || !shape->is_string()) return;
    const auto& name = shape->get_ref<const std::string&>();
    const Node* const node = translation.nodes().at("lr_scheduler");
    if (name == "cosine" || name == "sine")
        reading.findings.warn_mapped(
            *node, "schedule.shape",
            "one fall over the whole run behind the warm-up, where SimpleTuner's rises and falls anew "
            "every `lr_warmup_steps`");
}

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

/// What `deepspeed_config` and `accelerate_config` ask for, over what the other keys do, as SimpleTuner has it.
///
///   returns  values of the file that are overruled by it
inline std::vector<const Node*> take_deepspeed(const Document& document, const TrainerTranslation& translation,
                                               TrainerReading& reading, TrainerConfig& config) {
    if (!translation.deepspeed()) return {};
    Intent asked = *translation.deepspeed();
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

/// Findings for what the schema read, in the order of the file; and what a trainer's configuration has of other files.
inline void finish_reading(const Document& document, const TrainerTranslation& translation, const Problems& problems,
                           TrainerReading& reading, TrainerConfig& config) {
    const Source source = source_of(document, translation);
    for (const Error& problem : problems.all()) reading.findings.add(finding_of(problem, source, translation));
    const auto& keys = trainer_schema().keys();
    for (const auto& [key, node] : translation.nodes()) {
        if (reading.findings.of(node->pointer()) != nullptr) continue;
        const auto info = std::find_if(keys.begin(), keys.end(),
                                       [&key = key](const KeyInfo& one) { return one.key == key || one.alias == key; });
        reading.findings.acts(*node, info == keys.end() ? "Optimizer<>" : info->path.empty() ? info->key : info->path);
    }
    warn_of_defaults(document, translation, reading);
    add_options(translation, config, reading.intent);
    const std::vector<const Node*> overruled = take_deepspeed(document, translation, reading, config);
    follow_batch(translation, reading, config);
    take_gradients(translation, config, reading);
    std::map<std::string, std::size_t> order;
    for (const Node::Member& member : document.root.members()) order.emplace(member.value.pointer(), order.size());
    const auto place_of_key = [&](const Finding& one) {
        const std::string_view top = std::string_view{one.pointer}.substr(0, one.pointer.find('/', 1));
        const auto found = order.find(std::string{top});
        return found == order.end() ? order.size() : found->second;
    };
    std::vector<Finding> all = reading.findings.all();
    std::stable_sort(all.begin(), all.end(),
                     [&](const Finding& a, const Finding& b) { return place_of_key(a) < place_of_key(b); });
    reading.findings = {};
    for (Finding& one : all) {
        const bool is_overruled = std::any_of(overruled.begin(), overruled.end(),
                                              [&](const Node* node) { return node->pointer() == one.pointer; });
        if (is_overruled && one.effect != Effect::refused) {
            one.effect = Effect::none;
            one.warns = true;
            one.to.clear();
            one.words = "`" + translation.deepspeed_node()->path() + "` says it";
            one.fix = "say it in one place";
        }
        reading.findings.add(std::move(one));
    }
}

}  // namespace strata::config::detail
