#pragma once
// strata/config/impl/trainer_findings.ipp - what became of each key of a trainer's configuration, in the order of the file.

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>

#include <strata/config/impl/findings.ipp>
#include <strata/config/impl/given_options.ipp>
#include <strata/config/impl/trainer_gradients.ipp>
#include <strata/config/impl/trainer_overruled.ipp>
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
    finding.value = is_secret(finding.key) ? "(not shown)" : node->second->shown();
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

/// A key of model_schema() that the configured family does nothing with; false where the family is not known yet.
inline bool is_of_another_model(const ModelSettings& model, std::string_view key) {
    const auto& keys = model_schema().keys();
    if (std::none_of(keys.begin(), keys.end(), [&](const KeyInfo& one) { return one.key == key; })) return false;
    const std::vector<ModelFamily> users = families_with(key);
    return model.kind() && std::find(users.begin(), users.end(), *model.kind()) == users.end();
}

/// Findings for what the schema read, in the order of the file; and what a trainer's configuration has of other files.
inline void finish_reading(const Document& document, const TrainerTranslation& translation, const FlagKeys& flags,
                           const Problems& problems, TrainerReading& reading, TrainerConfig& config) {
    const Source source = source_of(document, translation);
    for (const Error& problem : problems.all()) reading.findings.add(finding_of(problem, source, translation));
    const auto& keys = trainer_schema().keys();
    for (const auto& [key, node] : translation.nodes()) {
        if (reading.findings.of(node->pointer()) != nullptr) continue;
        const auto info = std::find_if(keys.begin(), keys.end(),
                                       [&key = key](const KeyInfo& one) { return one.key == key || one.alias == key; });
        if (info != keys.end() && is_of_another_model(config.model, info->key)) {
            const std::string words = std::string{name_of(*config.model.kind())} + " is trained without it";
            // What leaves out what there is not asks for nothing.
            const bool is_off = node->flag() == false || node->number() == 0.0;
            is_off ? reading.findings.no_effect(*node, words) : reading.findings.warn_no_effect(*node, words);
            continue;
        }
        reading.findings.acts(*node, info == keys.end() ? "Optimizer<>" : info->path.empty() ? info->key : info->path);
    }
    warn_of_defaults(document, translation, reading);
    add_options(translation, config, reading.intent);
    const std::vector<const Node*> overruled = take_deepspeed(document, translation, flags, reading, config);
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
