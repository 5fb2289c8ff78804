#pragma once
// strata/config/impl/convert.ipp - formats by their keys, and intents in them.

#include <utility>

#include <strata/config/convert.hpp>
#include <strata/config/impl/reading_values.ipp>
#include <strata/config/impl/simpletuner.ipp>
#include <strata/config/trainer_writer.hpp>
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
        case ConfigFormat::launch:
            return "launch";
        case ConfigFormat::datasets:
            break;
    }
    return "datasets";
}

STRATA_INLINE std::optional<ConfigFormat> format_named(std::string_view name) noexcept {
    for (const ConfigFormat one : {ConfigFormat::deepspeed, ConfigFormat::accelerate, ConfigFormat::trainer,
                                   ConfigFormat::datasets, ConfigFormat::launch})
        if (name_of(one) == name) return one;
    return std::nullopt;
}

STRATA_INLINE std::optional<ConfigFormat> format_of(const Node& root) {
    if (root.is(NodeKind::list)) return ConfigFormat::datasets;
    if (!root.is(NodeKind::object)) return std::nullopt;
    if (root.find("distributed_type") != nullptr || root.find("compute_environment") != nullptr)
        return ConfigFormat::accelerate;
    const bool is_entry =
        root.find("id") != nullptr && (root.find("type") != nullptr || root.find("dataset_type") != nullptr);
    if (is_entry) return ConfigFormat::datasets;
    std::size_t of_trainer = 0;
    std::size_t of_deepspeed = 0;
    std::size_t of_accelerate = 0;
    for (const Node::Member& member : root.members()) {
        if (member.key.starts_with("--") || detail::is_trainer_key(member.key)) ++of_trainer;
        if (deepspeed_table().find(member.key) != nullptr) ++of_deepspeed;
        if (accelerate_table().find(member.key) != nullptr) ++of_accelerate;
    }
    // A trainer's configuration has Accelerate's keys of ranks too, but is never a YAML.
    const bool is_yaml = root.source().ends_with(".yaml") || root.source().ends_with(".yml");
    if (of_accelerate > of_deepspeed && (of_accelerate > of_trainer || (of_accelerate == of_trainer && is_yaml)))
        return ConfigFormat::accelerate;
    if (of_deepspeed == 0 && of_trainer == 0) {
        const Node* const inner = root.find("deepspeed");
        if (inner != nullptr && inner->is(NodeKind::object)) return ConfigFormat::deepspeed;
        for (const auto& [table, format] : {std::pair{&deepspeed_table(), ConfigFormat::deepspeed},
                                            std::pair{&accelerate_table(), ConfigFormat::accelerate}})
            for (const Node::Member& member : root.members())  // a typing error in the one key that there is
                if (!detail::probably_meant(member.key, table->names_in("")).empty()) return format;
        return std::nullopt;
    }
    // Some keys are in both, as gradient_accumulation_steps.
    return of_deepspeed >= of_trainer ? ConfigFormat::deepspeed : ConfigFormat::trainer;
}

STRATA_INLINE Intent load_intent(const std::filesystem::path& file, Findings& findings) {
    const Document document = load_document(file);
    const auto format = format_of(document.root);
    if (format == ConfigFormat::accelerate) return load_accelerate(file, findings, true);
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
    if (to == ConfigFormat::launch)
        throw Error{Errc::bad_argument, "strata reads scripts that launch, and writes none",
                    "convert to deepspeed, accelerate or trainer"};
    return write_trainer_config(intent);
}

}  // namespace strata::config
