#pragma once
// tools/doctor/line.hpp - Line: what `strata doctor` says of one thing, and how all of them are printed.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace strata::tools::doctor {

enum class State : std::uint8_t {
    ok,
    warning,  ///< a run starts, and is slower or less safe than it could be
    problem,  ///< a run does not start, or loses something
};

/// One thing that was looked at.
struct Line {
    State state = State::ok;
    std::string subject;                               ///< "processor", "output folder"
    std::string found;                                 ///< without a full stop
    std::string fix{};                                 ///< what to do; empty where all is well
    nlohmann::json values = nlohmann::json::object();  ///< what was read and measured, for programs; sizes in bytes
    std::string host{};                                ///< empty: the one that the command runs on
};

[[nodiscard]] inline Line ok(std::string subject, std::string found) {
    return {State::ok, std::move(subject), std::move(found)};
}
[[nodiscard]] inline Line warning(std::string subject, std::string found, std::string fix) {
    return {State::warning, std::move(subject), std::move(found), std::move(fix)};
}
[[nodiscard]] inline Line problem(std::string subject, std::string found, std::string fix) {
    return {State::problem, std::move(subject), std::move(found), std::move(fix)};
}

/// Aligned lines, each with its fix below it, and "3 ok, 1 warnings, 0 problems". Long ones are broken where the terminal ends.
[[nodiscard]] std::string text_of(const std::vector<Line>& lines);

/// The same for programs: {"lines": [{"state", "subject", "host", "found", "fix", "values"}], "ok", "warnings", "problems"}.
[[nodiscard]] nlohmann::json json_of(const std::vector<Line>& lines);

/// One of them, and back; of what is no line, nothing is lost but the line: its words become a warning.
[[nodiscard]] nlohmann::json json_of(const Line& line);
[[nodiscard]] Line line_of(const nlohmann::json& json);

/// "1.3 GB/s".
[[nodiscard]] std::string speed_text(double bytes_per_second);

}  // namespace strata::tools::doctor
