#pragma once
// strata/train/impl/report.ipp - HTML and base64 pictures.

#include <algorithm>
#include <cmath>
#include <span>
#include <sstream>
#include <string_view>
#include <system_error>

#include <strata/core/step_name.hpp>
#include <strata/storage/atomic_file.hpp>
#include <strata/train/evaluation_curves.hpp>
#include <strata/train/loss_curve.hpp>
#include <strata/train/report.hpp>
#include <strata/train/terminal.hpp>

namespace strata::train {
namespace detail {

inline std::string escape_html(std::string_view text) {
    std::string safe;
    for (const char c : text) {
        switch (c) {
            case '&':
                safe += "&amp;";
                break;
            case '<':
                safe += "&lt;";
                break;
            case '>':
                safe += "&gt;";
                break;
            case '"':
                safe += "&quot;";
                break;
            default:
                safe += c;
        }
    }
    return safe;
}

/// RFC 4648, section 4.
inline std::string base64(std::span<const std::byte> bytes) {
    constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string text;
    text.reserve((bytes.size() + 2) / 3 * 4);
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        const std::size_t given = std::min<std::size_t>(3, bytes.size() - i);
        std::uint32_t group = 0;
        for (std::size_t j = 0; j < 3; ++j)
            group = group << 8 | (j < given ? std::to_integer<std::uint32_t>(bytes[i + j]) : 0U);
        for (std::size_t j = 0; j < 4; ++j) text += j <= given ? alphabet[group >> (18 - 6 * j) & 63U] : '=';
    }
    return text;
}

/// "12 % of the time (3:04)"; empty where no step tells.
inline std::string data_wait_text(std::span<const StepMetrics> history) {
    double waited = 0;
    double seconds = 0;
    double before = 0;
    for (const StepMetrics& m : history) {
        if (std::isfinite(m.data_wait)) {
            waited += m.data_wait;
            seconds += m.seconds - before;
        }
        before = m.seconds;
    }
    if (!(seconds > 0)) return {};
    return std::to_string(std::lround(100 * waited / seconds)) + " % of the time (" + clock_text(waited) + ")";
}

inline std::string png_data_url(const std::filesystem::path& file) {
    return "data:image/png;base64," + base64(storage::read_file(file));
}

inline constexpr std::string_view report_style = R"(
body{font:15px/1.5 system-ui,sans-serif;max-width:960px;margin:2em auto;padding:0 1em;color:#222;background:#fff}
h1{font-size:1.5em}h2{font-size:1.15em;margin-top:2em}svg{width:100%;height:auto}svg text{font-size:11px;fill:#555}
.under{color:#666;font-size:.9em;margin-top:.2em}table{border-collapse:collapse}td{padding:.15em 1.2em .15em 0;vertical-align:top}td:first-child{color:#666}
img{max-width:100%;border:1px solid #ddd}.newest{width:100%}.cells{display:grid;gap:.2em 1em;margin:.5em 0;color:#444}.past{display:flex;flex-wrap:wrap;gap:1em}
.past figure{margin:0;width:300px}figcaption{color:#666}
)";

}  // namespace detail

STRATA_INLINE std::vector<SampleGrid> find_sample_grids(const std::filesystem::path& folder) {
    std::vector<SampleGrid> grids;
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator{folder, none}) {
        if (entry.path().extension() != ".png") continue;
        if (const auto step = core::step_of(entry.path().stem().string())) grids.push_back({*step, entry.path()});
    }
    std::sort(grids.begin(), grids.end(), [](const SampleGrid& a, const SampleGrid& b) { return a.step < b.step; });
    return grids;
}

STRATA_INLINE void write_report(const std::filesystem::path& file, const ReportContent& content) {
    std::ostringstream html;
    html << "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<title>"
         << detail::escape_html(content.title) << "</title>\n<style>" << detail::report_style
         << "</style></head><body>\n<h1>" << detail::escape_html(content.title) << "</h1>\n<table>\n";
    for (const auto& [name, value] : content.facts)
        html << "<tr><td>" << detail::escape_html(name) << "</td><td>" << detail::escape_html(value) << "</td></tr>\n";
    if (const std::string wait = detail::data_wait_text(content.history); !wait.empty())
        html << "<tr><td>waited for data</td><td>" << wait << "</td></tr>\n";
    html << "</table>\n<h2>Loss</h2>\n" << loss_curve(content.history);
    if (!content.evaluations.empty()) html << "<h2>Evaluation</h2>\n" << evaluation_curves(content.evaluations);
    if (!content.grids.empty()) {
        const SampleGrid& newest = content.grids.back();
        html << "<h2>Samples at step " << newest.step << "</h2>\n<img class=\"newest\" alt=\"samples at step "
             << newest.step << "\" src=\"" << detail::png_data_url(newest.png)
             << "\">\n<div class=\"cells\" style=\"grid-template-columns:repeat(" << content.columns << ",1fr)\">";
        for (const std::string& prompt : content.prompts) html << "<span>" << detail::escape_html(prompt) << "</span>";
        html << "</div>\n";
        if (!content.sample_note.empty())
            html << "<p class=\"under\">" << detail::escape_html(content.sample_note) << "</p>\n";
        html << "<h2>On the way</h2>\n<div class=\"past\">\n";
        for (const SampleGrid& grid : content.grids)
            html << "<figure><img alt=\"samples at step " << grid.step << "\" src=\"" << detail::png_data_url(grid.png)
                 << "\"><figcaption>step " << grid.step << "</figcaption></figure>\n";
        html << "</div>\n";
    }
    html << "</body></html>\n";
    const std::string text = html.str();
    storage::write_file(file, text);
}

}  // namespace strata::train
