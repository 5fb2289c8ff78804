#pragma once
// strata/config/impl/any_config.ipp - which format a file has, and what each of them says of its keys.

#include <algorithm>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <strata/config/any_config.hpp>
#include <strata/config/disagreements.hpp>
#include <strata/config/impl/dataset_findings.ipp>
#include <strata/config/impl/simpletuner.ipp>
#include <strata/config/impl/text_checks.ipp>
#include <strata/config/launch_script.hpp>

namespace strata::config {

namespace detail {

/// Whether a file of that name can be a script.
inline bool may_launch(const std::filesystem::path& file) {
    for (const char* extension : {".json", ".yaml", ".yml", ".toml", ".env"})
        if (file.extension() == extension) return false;
    return true;
}

///   known     the file's text, once it has been read: a pipe has it but once
///   settings  becomes true where nobody but SimpleTuner writes such files
inline Document load_any(const std::filesystem::path& file, const std::optional<std::string>& known, bool& settings) {
    const std::string extension = file.extension().string();
    if (extension == ".yaml" || extension == ".yml") return load_document(file);
    settings = extension == ".toml" || extension == ".env" || extension == ".sh";
    if (settings) return load_trainer_document(file);
    const std::string text = known ? *known : read_text(file);
    settings = looks_like_env(text);
    const std::size_t first = text.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
    const bool is_json = first != std::string::npos && (text[first] == '{' || text[first] == '[' || text[first] == '/');
    if (settings) return parse_env(text, file.string());
    return is_json || extension == ".json" ? parse_json(text, file.string(), JsonDialect::relaxed)
                                           : parse_yaml(text, file.string());
}

inline void read_any(AnyConfig& config, const Document& document, const ImageDataset& defaults) {
    switch (config.format) {
        case ConfigFormat::trainer:
            config.trainer = look_at_trainer_config(document);
            config.findings = config.trainer->reading.findings;
            config.intent = config.trainer->reading.intent;
            return;
        case ConfigFormat::deepspeed:
            config.findings.take(document);
            config.intent = read_deepspeed(document.root, config.findings);
            return;
        case ConfigFormat::accelerate:
            config.findings.take(document);
            config.intent = read_accelerate(document.root, config.findings, {config.file.parent_path(), false});
            return;
        case ConfigFormat::datasets:
            config.datasets = look_at_datasets(document, defaults, config.findings);
            return;
        case ConfigFormat::launch:
            return;  // no document: see look_at_config()
    }
}

/// A refusal of a whole file.
inline Finding finding_of_file(const std::filesystem::path& file, const Error& problem) {
    Finding finding;
    finding.effect = Effect::refused;
    finding.code = problem.code();
    finding.words = problem.problem();
    finding.fix = problem.fix();
    const std::size_t end = finding.words.find(": ", file.string().size());
    if (finding.words.starts_with(file.string()) && end != std::string::npos) {
        finding.place = finding.words.substr(0, end);
        finding.words.erase(0, end + 2);
    }
    return finding;
}

/// Files of one folder go before each other in their order: a trainer's configuration, Accelerate's, DeepSpeed's. Where the
/// first names one of a kind itself, what else there is of that kind does not count.
inline void compare_files(std::vector<AnyConfig>& files) {
    const auto is_named = [&](ConfigFormat format) { return names_file(files.front(), format); };
    for (std::size_t i = 0; i < files.size(); ++i)
        for (std::size_t j = i + 1; j < files.size(); ++j) {
            if (is_named(files[j].format) || (i > 0 && is_named(files[i].format))) continue;
            const auto against = disagreements(files[i].intent, files[j].intent);
            if (against.empty()) continue;
            Finding finding;
            finding.warns = true;
            finding.place = files[i].file.string();
            finding.words =
                "`" + files[j].file.filename().string() + "` beside it goes before it: " + sentence(against);
            finding.fix = "say it in one of the two";
            files[i].findings.add(std::move(finding));
        }
}

}  // namespace detail

STRATA_INLINE bool names_file(const AnyConfig& trainer, ConfigFormat format) {
    const std::string key = format == ConfigFormat::deepspeed ? "deepspeed_config" : "accelerate_config";
    const auto& all = trainer.findings.all();
    return std::any_of(all.begin(), all.end(),
                       [&](const Finding& one) { return one.key == key || one.key == "--" + key; });
}

STRATA_INLINE AnyConfig look_at_config(const std::filesystem::path& file, const ImageDataset& defaults,
                                       std::optional<ConfigFormat> format) {
    AnyConfig config;
    config.file = file;
    config.format = format.value_or(ConfigFormat::trainer);
    try {
        std::optional<std::string> text;
        if (detail::may_launch(file) || format == ConfigFormat::launch) text = detail::read_text(file);
        if (format == ConfigFormat::launch || (!format && text && has_launch_line(*text))) {
            config.format = ConfigFormat::launch;
            config.intent = read_launch_script(detail::checked_text(*text, file.string()), file.string(),
                                               config.findings, {.folder = file.parent_path()});
            return config;
        }
        bool settings = false;
        const Document document = detail::load_any(file, text, settings);
        config.format = format     ? *format
                        : settings ? ConfigFormat::trainer
                                   : format_of(document.root).value_or(ConfigFormat::trainer);
        detail::read_any(config, document, defaults);
    } catch (const Error& problem) {
        config.findings.add(detail::finding_of_file(file, problem));
    }
    return config;
}

STRATA_INLINE std::vector<AnyConfig> look_at_configs(const std::filesystem::path& file_or_folder) {
    namespace fs = std::filesystem;
    std::error_code error;
    std::vector<AnyConfig> all;
    if (!fs::is_directory(file_or_folder, error)) {
        all.push_back(look_at_config(file_or_folder));
    } else {
        for (const char* name : {"config.json", "config.toml", "config.env"})
            if (all.empty() && fs::is_regular_file(file_or_folder / name, error))
                all.push_back(look_at_config(file_or_folder / name, {}, ConfigFormat::trainer));
        for (const char* name :
             {"default_config.yaml", "accelerate_config.yaml", "ds_config.json", "deepspeed_config.json"})
            if (fs::is_regular_file(file_or_folder / name, error)) all.push_back(look_at_config(file_or_folder / name));
        if (all.empty())
            throw Error{Errc::unreadable_config,
                        "'" + file_or_folder.string() + "' has no config.json, config.toml or config.env",
                        "name the file, or a folder of SimpleTuner's"};
    }
    detail::compare_files(all);
    const AnyConfig& first = all.front();
    if (first.format != ConfigFormat::trainer || !first.trainer) return all;
    const Finding* named = nullptr;
    for (const Finding& one : first.findings.all())
        if (one.key == "data_backend_config" || one.key == "--data_backend_config") named = &one;
    const fs::path list = found_from(first.trainer->data_backend_config, first.file);
    const ImageDataset defaults = first.trainer->image_defaults();
    if (!list.empty() && (named != nullptr || fs::is_directory(file_or_folder, error)))
        all.push_back(look_at_config(list, defaults, ConfigFormat::datasets));
    return all;
}

}  // namespace strata::config
