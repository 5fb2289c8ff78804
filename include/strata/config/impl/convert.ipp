#pragma once
// strata/config/impl/convert.ipp - formats by their keys, and intents in them.

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include <strata/config/convert.hpp>
#include <strata/config/impl/deepspeed_writer.ipp>
#include <strata/config/trainer_config.hpp>
#include <strata/core/error.hpp>

namespace strata::config {

STRATA_INLINE std::string_view name_of(ConfigFormat format) noexcept {
    switch (format) {
        case ConfigFormat::deepspeed:
            return "deepspeed";
        case ConfigFormat::accelerate:
            return "accelerate";
        case ConfigFormat::trainer:
            return "trainer";
        case ConfigFormat::datasets:
            break;
    }
    return "datasets";
}

STRATA_INLINE std::optional<ConfigFormat> format_named(std::string_view name) noexcept {
    for (const ConfigFormat one :
         {ConfigFormat::deepspeed, ConfigFormat::accelerate, ConfigFormat::trainer, ConfigFormat::datasets})
        if (name_of(one) == name) return one;
    return std::nullopt;
}

STRATA_INLINE std::optional<ConfigFormat> format_of(const Node& root) {
    if (root.is(NodeKind::list)) return ConfigFormat::datasets;
    if (!root.is(NodeKind::object)) return std::nullopt;
    if (root.find("distributed_type") != nullptr || root.find("compute_environment") != nullptr)
        return ConfigFormat::accelerate;
    std::size_t of_trainer = 0;
    std::size_t of_deepspeed = 0;
    for (const Node::Member& member : root.members()) {
        const std::string_view key = std::string_view{member.key}.starts_with("--")
                                         ? std::string_view{member.key}.substr(2)
                                         : std::string_view{member.key};
        const auto& keys = trainer_schema().keys();
        const auto& others = trainer_schema().unsupported();
        const auto& idle = trainer_schema().idle();
        const auto is_named = [&](const auto& one) { return one.key == key; };
        if (std::any_of(keys.begin(), keys.end(), is_named) || std::any_of(others.begin(), others.end(), is_named) ||
            std::any_of(idle.begin(), idle.end(), is_named))
            ++of_trainer;
        if (deepspeed_table().find(member.key) != nullptr) ++of_deepspeed;
    }
    if (of_deepspeed == 0 && of_trainer == 0) {
        const Node* const inner = root.find("deepspeed");
        if (inner != nullptr && inner->is(NodeKind::object)) return ConfigFormat::deepspeed;
        return std::nullopt;
    }
    // Some keys are in both, as gradient_accumulation_steps.
    return of_deepspeed >= of_trainer ? ConfigFormat::deepspeed : ConfigFormat::trainer;
}

STRATA_INLINE Intent load_intent(const std::filesystem::path& file, Findings& findings) {
    const Document document = load_document(file);
    const auto format = format_of(document.root);
    if (format == ConfigFormat::accelerate) return load_accelerate(file, findings);
    if (format == ConfigFormat::deepspeed) return load_deepspeed(file, findings);
    throw Error{Errc::bad_value,
                file.string() + (format ? " is a configuration of the format " + std::string{name_of(*format)}
                                        : " has no key of DeepSpeed's or Accelerate's"),
                "give a DeepSpeed JSON or an Accelerate YAML"};
}

STRATA_INLINE std::string convert(const Intent& intent, ConfigFormat to) {
    if (to == ConfigFormat::deepspeed) return write_deepspeed(intent);
    if (to == ConfigFormat::accelerate) return write_accelerate(intent);
    if (to == ConfigFormat::datasets)
        throw Error{Errc::bad_argument, "a list of data sets says nothing of a trainer",
                    "convert to deepspeed, accelerate or trainer"};
    detail::OrderedJson all = detail::OrderedJson::object();
    const auto& keys = trainer_schema().keys();
    for (const OptionValue& option : intent.options) {
        const auto found =
            std::find_if(keys.begin(), keys.end(), [&](const KeyInfo& key) { return key.path == option.path; });
        constexpr std::string_view rule = "engine.update.";
        if (found != keys.end())
            all[found->key] = detail::json_of(option.value);
        else if (option.path.starts_with(rule))
            all["optimizer_" + option.path.substr(rule.size())] = detail::json_of(option.value);
    }
    if (intent.batch.micro) all["train_batch_size"] = *intent.batch.micro;
    Intent rest;  // what config.json has no key for
    rest.composition = intent.composition;
    rest.rate = intent.rate;
    rest.rate_follows_lr = intent.rate_follows_lr;
    if (const OptionValue* const folder = intent.find("engine.tiers.nvme_path")) rest.options.push_back(*folder);
    if (detail::OrderedJson composition = detail::OrderedJson::parse(write_deepspeed(rest)); !composition.empty())
        all["deepspeed_config"] = std::move(composition);
    return all.dump(2) + "\n";
}

}  // namespace strata::config
