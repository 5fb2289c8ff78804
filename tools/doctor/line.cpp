#include "line.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <limits>
#include <string_view>

#include <strata/core/amounts.hpp>
#include <strata/core/printable.hpp>

#include "../wrapped_text.hpp"

namespace strata::tools::doctor {

namespace {

constexpr std::array<std::string_view, 3> names{"ok", "warning", "problem"};

std::string_view name_of(State state) { return names.at(static_cast<std::size_t>(state)); }

std::size_t count_of(const std::vector<Line>& lines, State state) {
    return static_cast<std::size_t>(
        std::count_if(lines.begin(), lines.end(), [&](const Line& line) { return line.state == state; }));
}

std::string padded(std::string text, std::size_t width) {
    text.resize(std::max(text.size(), width), ' ');
    return text;
}

std::string subject_of(const Line& line) {
    return core::printable(line.host.empty() ? line.subject : line.host + ": " + line.subject);
}

}  // namespace

std::string text_of(const std::vector<Line>& lines) {
    std::size_t width = 0;
    for (const Line& line : lines) width = std::max(width, subject_of(line).size());
    width = std::min<std::size_t>(width, 40);
    const std::size_t columns = terminal_columns().value_or(std::numeric_limits<std::size_t>::max() / 2);
    const std::string below(9 + width + 2, ' ');
    std::string text;
    for (const Line& line : lines) {
        const std::string first = padded(std::string{name_of(line.state)}, 9) + padded(subject_of(line), width) + "  ";
        text += wrapped(core::printable(line.found), first, below, columns);
        if (!line.fix.empty()) text += wrapped(core::printable(line.fix), below + "Fix: ", below, columns);
    }
    return text + std::to_string(count_of(lines, State::ok)) + " ok, " +
           std::to_string(count_of(lines, State::warning)) + " warnings, " +
           std::to_string(count_of(lines, State::problem)) + " problems\n";
}

nlohmann::json json_of(const Line& line) {
    return {{"state", name_of(line.state)}, {"subject", line.subject}, {"host", line.host},
            {"found", line.found},          {"fix", line.fix},         {"values", line.values}};
}

Line line_of(const nlohmann::json& json) {
    const auto state = std::find(names.begin(), names.end(), json.value("state", "warning"));
    return {state == names.end() ? State::warning : static_cast<State>(state - names.begin()),
            json.value("subject", ""),
            json.value("found", ""),
            json.value("fix", ""),
            json.value("values", nlohmann::json::object()),
            json.value("host", "")};
}

nlohmann::json json_of(const std::vector<Line>& lines) {
    nlohmann::json all = nlohmann::json::array();
    for (const Line& line : lines) all.push_back(json_of(line));
    return {{"lines", std::move(all)},
            {"ok", count_of(lines, State::ok)},
            {"warnings", count_of(lines, State::warning)},
            {"problems", count_of(lines, State::problem)}};
}

std::string speed_text(double bytes_per_second) {
    std::array<char, 48> text{};
    if (bytes_per_second >= 1e9)
        std::snprintf(text.data(), text.size(), "%.1f GB/s", bytes_per_second / 1e9);
    else
        std::snprintf(text.data(), text.size(), bytes_per_second >= 1e7 ? "%.0f MB/s" : "%.1f MB/s",
                      bytes_per_second / 1e6);
    return text.data();
}

}  // namespace strata::tools::doctor
