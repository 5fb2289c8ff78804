#pragma once
// strata/models/impl/model_config.ipp - keys of a config.json, and the one error of all that is wrong with them.

#include <utility>

#include <strata/config/document.hpp>
#include <strata/core/error.hpp>
#include <strata/core/text.hpp>
#include <strata/models/model_config.hpp>

namespace strata::models {

STRATA_INLINE ModelConfig::ModelConfig(const std::filesystem::path& file, std::string model)
    : model_{std::move(model)}, document_{config::load_document(file, config::JsonDialect::strict)} {}

STRATA_INLINE ModelConfig::ModelConfig(std::string_view json, std::string source, std::string model)
    : model_{std::move(model)}, document_{config::parse_json(json, std::move(source), config::JsonDialect::strict)} {}

STRATA_INLINE void ModelConfig::refuse(std::string_view key, std::string_view what) {
    const config::Node* node = document_.root.find(key);
    problems_.push_back((node != nullptr ? node->place() : document_.source) + ": '" + std::string{key} + "' " +
                        std::string{what});
}

STRATA_INLINE bool ModelConfig::has(std::string_view key) const {
    const config::Node* node = document_.root.find(key);
    return node != nullptr && !node->is(config::NodeKind::null);
}

STRATA_INLINE const config::Node* ModelConfig::find(std::string_view key, bool is_required) {
    known_.emplace(key);
    if (has(key)) return document_.root.find(key);
    if (is_required) refuse(key, "is missing");
    return nullptr;
}

STRATA_INLINE void ModelConfig::is_class(std::string_view name) {
    const config::Node* node = find("_class_name", false);
    if (node != nullptr && node->scalar() != name)
        refuse("_class_name", "is " + node->shown() + ", and this is " + std::string{name});
}

STRATA_INLINE std::int64_t ModelConfig::whole(std::string_view key, std::int64_t lowest,
                                              std::optional<std::int64_t> otherwise) {
    const config::Node* node = find(key, !otherwise);
    if (node == nullptr) return otherwise.value_or(lowest);
    const std::optional<std::int64_t> value = node->whole();
    if (value && *value >= lowest) return *value;
    refuse(key, "is " + node->shown() + ", not a whole number of at least " + std::to_string(lowest));
    return otherwise.value_or(lowest);
}

STRATA_INLINE std::vector<std::int64_t> ModelConfig::wholes(std::string_view key, std::int64_t lowest,
                                                            std::optional<std::vector<std::int64_t>> otherwise) {
    const config::Node* node = find(key, !otherwise);
    std::vector<std::int64_t> values;
    if (node == nullptr) return otherwise.value_or(values);
    bool is_right = node->is(config::NodeKind::list) && !node->elements().empty();
    for (const config::Node& element : node->elements()) {
        const std::optional<std::int64_t> value = element.whole();
        is_right = is_right && value && *value >= lowest;
        values.push_back(value.value_or(lowest));
    }
    if (!is_right)
        refuse(key, "is " + node->shown() + ", not a list of whole numbers of at least " + std::to_string(lowest));
    return is_right ? values : otherwise.value_or(std::vector<std::int64_t>{});
}

STRATA_INLINE double ModelConfig::number(std::string_view key, std::optional<double> otherwise) {
    const config::Node* node = find(key, !otherwise);
    if (node == nullptr) return otherwise.value_or(0.0);
    const std::optional<double> value = node->number();
    if (!value) refuse(key, "is " + node->shown() + ", not a number");
    return value.value_or(otherwise.value_or(0.0));
}

STRATA_INLINE bool ModelConfig::flag(std::string_view key, std::optional<bool> otherwise) {
    const config::Node* node = find(key, !otherwise);
    if (node == nullptr) return otherwise.value_or(false);
    const std::optional<bool> value = node->flag();
    if (!value) refuse(key, "is " + node->shown() + ", not true or false");
    return value.value_or(otherwise.value_or(false));
}

STRATA_INLINE std::vector<std::string> ModelConfig::texts(std::string_view key,
                                                          std::optional<std::vector<std::string>> otherwise) {
    const config::Node* node = find(key, !otherwise);
    std::vector<std::string> values;
    if (node == nullptr) return otherwise.value_or(values);
    if (!node->is(config::NodeKind::list)) refuse(key, "is " + node->shown() + ", not a list");
    for (const config::Node& element : node->elements()) values.push_back(element.scalar());
    return values;
}

STRATA_INLINE std::string ModelConfig::text(std::string_view key, std::optional<std::string> otherwise) {
    const config::Node* node = find(key, !otherwise);
    if (node != nullptr && !node->is(config::NodeKind::text)) {
        refuse(key, "is " + node->shown() + ", not text");
        node = nullptr;
    }
    return node != nullptr ? node->scalar() : otherwise.value_or("");
}

STRATA_INLINE void ModelConfig::only(std::string_view key, std::string_view value) {
    const config::Node* node = find(key, false);
    if (node == nullptr || node->scalar() == value) return;
    const std::optional<double> number = node->number();
    if (number && core::shortest_text(*number) == value) return;
    refuse(key, "is " + node->shown() + ", and " + model_ + " implements " + std::string{value} + " alone");
}

STRATA_INLINE void ModelConfig::never_null(std::initializer_list<std::string_view> keys) {
    for (const std::string_view key : keys)
        if (document_.root.find(key) != nullptr && !has(key))
            refuse(key, "is null, which is not its default, and " + model_ + " does not implement it");
}

STRATA_INLINE void ModelConfig::pass_over(std::initializer_list<std::string_view> keys) {
    for (const std::string_view key : keys) known_.emplace(key);
}

STRATA_INLINE void ModelConfig::finish() {
    if (!document_.root.is(config::NodeKind::object)) {
        problems_ = {document_.source + " is no JSON object"};
    } else {
        for (const config::Node::Member& member : document_.root.members())
            if (!member.key.starts_with("_") && !known_.contains(member.key) &&
                !member.value.is(config::NodeKind::null))
                refuse(member.key, "is not known to " + model_);
    }
    if (problems_.empty()) return;
    std::string all;
    for (const std::string& problem : problems_) all += (all.empty() ? "" : "; ") + problem;
    throw Error{Errc::bad_model_config, all,
                "give the config.json of the folder that the weights of " + model_ + " lie in, as it was published"};
}

}  // namespace strata::models
