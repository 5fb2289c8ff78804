#pragma once
// tools/config_output.hpp - what `strata config` prints: text for a person, one JSON object for a script.

#include <span>
#include <string>

#include <strata/config/any_config.hpp>

namespace strata::tools {

/// "config.json:4:16: /report_to: metrics go to metrics.jsonl".
[[nodiscard]] std::string warned(const config::Finding& one);

/// Problems and warnings, a line each, under a line a file.
[[nodiscard]] std::string checked_text(std::span<const config::AnyConfig> files);

/// Every key with what becomes of it, and what is asked for at the end.
[[nodiscard]] std::string explained_text(std::span<const config::AnyConfig> files);

/// One table of keys of several files: value, place with the file's name, what becomes of it.
[[nodiscard]] std::string understood_text(std::span<const config::Finding> findings);

/// {"files": [{"file", "format", "policies", "findings": [...]}, ...], "problems", "warnings"}.
[[nodiscard]] std::string configs_json(std::span<const config::AnyConfig> files);

/// The tables of the page of docs/config/ about a format.
[[nodiscard]] std::string reference_page(config::ConfigFormat format);

/// Its JSON Schema, for editors.
[[nodiscard]] std::string schema_text(config::ConfigFormat format);

/// Lines with their ends, to standard output. Throws Errc::io_failed.
void print(const std::string& text);

}  // namespace strata::tools
