#pragma once
// strata/train/impl/line_apart.ipp - lines of metrics.jsonl that have a step and one thing besides, and no metrics.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace strata::train::detail {

/// As one line, whatever bytes are in its texts.
inline std::string as_line(const nlohmann::ordered_json& json) {
    return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// The step of a line about `subject` and nothing else; nullopt of any other.
inline std::optional<std::int64_t> step_of_line_about(std::string_view subject, std::string_view line) {
    const std::string key{subject};
    if (line.find('"' + key + '"') == std::string_view::npos) return std::nullopt;
    const auto json = nlohmann::json::parse(line.begin(), line.end(), nullptr, false);
    if (!json.is_object() || json.contains("loss")) return std::nullopt;
    const auto step = json.find("step");
    const auto about = json.find(key);
    if (about == json.end() || !about->is_object() || step == json.end() || !step->is_number_integer())
        return std::nullopt;
    return step->get<std::int64_t>();
}

}  // namespace strata::train::detail
