#pragma once
// strata/config/impl/trainer_translation_adapter.ipp - keys about adapters of a configuration that trains none.

#include <string>

#include <strata/config/adapter_settings.hpp>
#include <strata/config/impl/trainer_translation.ipp>

namespace strata::config::detail {

/// What the command line says, else the file, else what is so without a word.
inline ModelType model_type_of(const TrainerTranslation& translation, const Overrides& overrides, ModelType unsaid) {
    for (const Override& flag : overrides)
        if (flag.name == "model_type" && !flag.values.empty() && flag.values.front() != "null")
            return flag.values.front() == "lora" ? ModelType::lora : ModelType::full;
    const auto said = translation.own().find("model_type");
    if (said == translation.own().end()) return unsaid;
    // Another word is refused where it is read, and says nothing of the rest.
    return *said == "full" ? ModelType::full : ModelType::lora;
}

inline void TrainerTranslation::leave_out_adapter(ModelType type) {
    if (type == ModelType::lora) return;
    for (const KeyInfo& info : adapter_schema().keys()) {
        if (info.key == "model_type" || info.key == "base_model_precision") continue;
        const auto given = nodes_.find(info.key);
        if (given == nodes_.end()) continue;
        const Node& node = *given->second;
        const std::string words = "every weight is trained: only `model_type` lora has an adapter";
        const bool asks_for_nothing = node.flag() == false || (node.is(NodeKind::text) && node.scalar().empty()) ||
                                      (node.is(NodeKind::list) && node.elements().empty());
        asks_for_nothing ? reading_.findings.no_effect(node, words) : reading_.findings.warn_no_effect(node, words);
        own_.erase(info.key);
        nodes_.erase(given);
    }
    const auto precision = nodes_.find("base_model_precision");
    if (precision == nodes_.end()) return;
    const Node& node = *precision->second;
    if (node.scalar() == "no_change" || node.scalar().empty())
        reading_.findings.no_effect(node, "weights are kept as `mixed_precision` says");
    else
        refuse(
            node, Errc::unsupported_key,
            "is " + node.shown() + ", and every weight is trained: what is kept quantised cannot learn",
            "write \"model_type\": \"lora\" to train an adapter over it, or \"base_model_precision\": \"no_change\"");
    own_.erase("base_model_precision");
    nodes_.erase(precision);
}

}  // namespace strata::config::detail
