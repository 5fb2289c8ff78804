#pragma once
// strata/config/impl/accelerate_sources.ipp - where Accelerate takes its settings from.

#include <algorithm>
#include <system_error>
#include <utility>

#include <strata/config/accelerate.hpp>
#include <strata/config/impl/accelerate_arguments.ipp>
#include <strata/config/impl/document.ipp>
#include <strata/config/impl/reading.ipp>
#include <strata/config/key.hpp>

namespace strata::config {

STRATA_INLINE std::optional<std::filesystem::path> find_accelerate_config(const Environment& environment) {
    const auto folder_in = [&](const char* name) -> std::optional<std::filesystem::path> {
        const auto value = environment(name);
        return value && !value->empty() ? std::optional<std::filesystem::path>{*value} : std::nullopt;
    };
    std::filesystem::path cache;
    if (const auto hub = folder_in("HF_HOME"))
        cache = *hub;
    else if (const auto general = folder_in("XDG_CACHE_HOME"))
        cache = *general / "huggingface";
    else if (const auto home = folder_in("HOME"))
        cache = *home / ".cache" / "huggingface";
    else
        return std::nullopt;
    if (const std::string text = cache.string(); text.starts_with("~/"))
        if (const auto home = folder_in("HOME")) cache = *home / text.substr(2);
    for (const char* name : {"default_config.yaml", "default_config.json"}) {
        std::error_code error;
        if (std::filesystem::is_regular_file(cache / "accelerate" / name, error)) return cache / "accelerate" / name;
    }
    return std::nullopt;
}

STRATA_INLINE Document accelerate_variables(const Environment& environment) {
    std::vector<GivenValue> values;
    const auto is_on = [&](const char* name) {
        const auto value = environment(name);
        return value && (detail::flag_of(*value).value_or(false) || *value == "1");
    };
    for (const auto& [name, type] :
         {std::pair{"ACCELERATE_USE_DEEPSPEED", "DEEPSPEED"}, std::pair{"ACCELERATE_USE_FSDP", "FSDP"},
          std::pair{"ACCELERATE_USE_MEGATRON_LM", "MEGATRON_LM"}})
        if (is_on(name)) values.push_back({"distributed_type", type, name});
    for (const KeyRow& row : accelerate_table().rows()) {
        if (row.variable.empty()) continue;
        if (const auto value = environment(row.variable); value && !value->empty())
            values.push_back({row.path, *value, row.variable});
    }
    return document_of(values, "environment");
}

STRATA_INLINE Intent load_accelerate(const std::vector<std::string>& words, const Environment& environment,
                                     Findings& findings, bool wants_all_files) {
    const AccelerateArguments arguments = accelerate_arguments(words, findings);
    const auto file = arguments.config_file ? arguments.config_file : find_accelerate_config(environment);
    AccelerateContext context{.folder = {}, .wants_all_files = wants_all_files};
    Node root = document_of({}, "nothing").root;
    if (file) {
        const Document document = load_document(*file);
        findings.take(document);
        root = document.root;
        context.folder = file->parent_path();
    }
    root = overlay(overlay(root, accelerate_variables(environment).root), arguments.document.root);
    if (!file) root = detail::with_type(root);
    return read_accelerate(root, findings, context);
}

STRATA_INLINE Intent load_accelerate(const std::filesystem::path& file, Findings& findings, bool wants_all_files) {
    const Document document = load_document(file);
    findings.take(document);
    return read_accelerate(document.root, findings, {.folder = file.parent_path(), .wants_all_files = wants_all_files});
}

}  // namespace strata::config
