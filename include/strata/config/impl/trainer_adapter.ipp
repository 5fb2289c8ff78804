#pragma once
// strata/config/impl/trainer_adapter.ipp - the adapter of a trainer's configuration: the file that it names, its policies, and what became of its keys.

#include <filesystem>
#include <initializer_list>
#include <optional>
#include <string>
#include <system_error>

#include <strata/config/adapter_settings.hpp>
#include <strata/config/impl/trainer_translation.ipp>
#include <strata/config/trainer_config.hpp>

namespace strata::config::detail {

/// The node of a key as the file has it; nullptr where it has none.
inline const Node* node_of(const TrainerTranslation& translation, const std::string& key) {
    const auto found = translation.nodes().find(key);
    return found == translation.nodes().end() ? nullptr : found->second;
}

/// "Adapter<Lora>", "NoAdapter".
inline std::string policy_of(AdapterName kind) {
    return kind == AdapterName::none ? type_name(kind) : "Adapter<" + type_name(kind) + ">";
}

/// "factor 16, rank 10000; FeedForward: factor 8, rank 10000".
inline std::string words_of(const LycorisConfig& lycoris) {
    const auto numbers = [](const LycorisConfig& one) {
        const std::string rank = "rank " + std::to_string(one.rank);
        if (one.algo == LycorisAlgo::locon) return rank + (one.weight_decompose ? ", DoRA" : "");
        return "factor " + std::to_string(one.factor) + ", " + (one.full_matrix ? "second factor whole" : rank);
    };
    std::string words = numbers(lycoris);
    for (const LycorisExceptions& own : lycoris.exceptions)
        if (const std::string its = numbers(lycoris.with(own)); its != numbers(lycoris))
            words += "; " + own.of + ": " + its;
    return words;
}

/// Reads what `lycoris_config` names, below the working directory or beside the file.
inline void load_lycoris_of(const Document& document, const TrainerTranslation& translation, TrainerReading& reading,
                            AdapterSettings& settings) {
    const Node* node = node_of(translation, "lycoris_config");
    if (node == nullptr) node = node_of(translation, "lora_type");
    const auto refuse = [&](Errc code, std::string what, std::string fix) {
        if (node != nullptr) return reading.findings.refuse(*node, code, std::move(what), std::move(fix));
        Finding finding;
        finding.effect = Effect::refused;
        finding.code = code;
        finding.key = "lycoris_config";
        finding.words = std::move(what);
        finding.fix = std::move(fix);
        reading.findings.add(std::move(finding));
    };
    const std::filesystem::path name = settings.lycoris_file;
    const std::filesystem::path folder = std::filesystem::path{document.source}.parent_path();
    std::error_code none;
    std::filesystem::path file;
    for (const std::filesystem::path& one : {name, folder / name, folder / name.filename()})
        if (file.empty() && std::filesystem::is_regular_file(one, none)) file = one;
    if (file.empty()) {
        reading.intent.missing_files.push_back(name.string());
        if (node != nullptr)
            reading.findings.warn_no_effect(
                *node, "the LyCORIS configuration " + name.string() + " is not there: what it says is missing here",
                "correct the path, or run in the folder that it is relative to");
        return;
    }
    try {
        Problems problems;
        const Document arguments = load_document(file);
        settings.lycoris = read_lycoris(arguments, problems);
        settings.lycoris_file = file;
        problems.finish();
    } catch (const Error& problem) {
        return refuse(problem.code(), "names a file that cannot be taken: " + problem.problem(), problem.fix());
    }
    if (const Node* const named = node_of(translation, "lycoris_config"))
        reading.findings.acts(*named, policy_of(settings.kind()), words_of(settings.lycoris));
}

/// Policies of the adapter, and findings of its keys where there is more to tell than that they act.
inline void finish_adapter(const Document& document, const TrainerTranslation& translation, TrainerReading& reading,
                           TrainerConfig& config) {
    AdapterSettings& settings = config.adapter;
    if (!settings.model_type) return;
    const bool is_lycoris = settings.library == AdapterLibrary::lycoris;
    if (settings.is_on() && is_lycoris) load_lycoris_of(document, translation, reading, settings);
    Composition& composed = reading.intent.composition;
    composed.adapter = settings.kind();
    if (const Node* const node = node_of(translation, "model_type"))
        reading.findings.acts(*node, policy_of(settings.kind()));
    if (!settings.is_on()) return;
    composed.frozen = settings.base;
    const auto no_effect = [&](std::initializer_list<const char*> keys, const std::string& words) {
        for (const char* const key : keys)
            if (const Node* const node = node_of(translation, key)) reading.findings.no_effect(*node, words);
    };
    if (is_lycoris) {
        if (const Node* const node = node_of(translation, "lora_type");
            node != nullptr && reading.findings.of(node->pointer()) == nullptr)
            reading.findings.acts(*node, policy_of(settings.kind()));
        no_effect({"lora_rank", "lora_alpha", "lora_dropout", "lora_init_type", "use_dora", "peft_lora_target_modules",
                   "lora_rank_pattern", "lora_alpha_pattern", "flux_lora_target"},
                  "`lycoris_config` says it");
    } else {
        no_effect({"lycoris_config"}, "only `lora_type` lycoris reads it");
        const std::optional<ModelFamily> family = config.model.kind();
        if (family && *family != ModelFamily::flux && *family != ModelFamily::small)
            no_effect({"flux_lora_target"}, std::string{name_of(*family)} + " has layers of other names");
        else if (!settings.targets.empty())
            no_effect({"flux_lora_target"}, "`peft_lora_target_modules` says it");
    }
    const Node* const precision = node_of(translation, "base_model_precision");
    if (precision == nullptr || !settings.base) return;
    const std::string to = *settings.base == FrozenName::as_computed
                               ? "FrozenAsComputed"
                               : "FrozenWeights<" + type_name(*settings.base) + ">";
    const std::string remark{frozen_remark(precision->scalar())};
    remark.empty() ? reading.findings.acts(*precision, to) : reading.findings.warn_mapped(*precision, to, remark);
}

}  // namespace strata::config::detail
