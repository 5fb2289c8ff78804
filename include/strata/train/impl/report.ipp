#pragma once
// strata/train/impl/report.ipp - HTML, an SVG curve and base64 pictures.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <sstream>
#include <string_view>
#include <system_error>

#include <strata/storage/atomic_file.hpp>
#include <strata/train/report.hpp>

namespace strata::train {
namespace detail {

inline std::string escape_html(std::string_view text) {
    std::string safe;
    for (const char c : text) {
        switch (c) {
            case '&': safe += "&amp;"; break;
            case '<': safe += "&lt;"; break;
            case '>': safe += "&gt;"; break;
            case '"': safe += "&quot;"; break;
            default: safe += c;
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
        for (std::size_t j = 0; j < 3; ++j) group = group << 8 | (j < given ? std::to_integer<std::uint32_t>(bytes[i + j]) : 0U);
        for (std::size_t j = 0; j < 4; ++j)
            text += j <= given ? alphabet[group >> (18 - 6 * j) & 63U] : '=';
    }
    return text;
}

inline std::string png_data_url(const std::filesystem::path& file) {
    return "data:image/png;base64," + base64(storage::read_file(file));
}

struct CurveFrame {
    static constexpr double width = 900, height = 300, left = 56, bottom = 30, top = 10, right = 24;
    double last_step, low, high;
    [[nodiscard]] double x(double step) const { return left + (width - left - right) * step / last_step; }
    [[nodiscard]] double y(double loss) const {
        return height - bottom - (height - bottom - top) * (std::clamp(loss, low, high) - low) / (high - low);
    }
};

inline void add_polyline(std::ostringstream& svg, std::span<const std::pair<double, double>> points, std::string_view style) {
    svg << "<polyline fill=\"none\" " << style << " points=\"";
    for (const auto& [x, y] : points) {
        char text[48];
        std::snprintf(text, sizeof text, "%.1f,%.1f ", x, y);
        svg << text;
    }
    svg << "\"/>\n";
}

/// Loss over steps: every value in grey (at most 1,000 of them), their running mean on top. The scale leaves
/// out the first and last hundredth, so that one spike does not flatten the curve.
inline std::string loss_curve(const std::vector<StepMetrics>& history) {
    if (history.size() < 2) return "<p>Too few steps for a curve.</p>\n";
    std::vector<double> sorted;
    for (const StepMetrics& m : history) sorted.push_back(m.loss);
    std::sort(sorted.begin(), sorted.end());
    const auto quantile = [&](double q) { return sorted[static_cast<std::size_t>(q * static_cast<double>(sorted.size() - 1))]; };
    CurveFrame frame{static_cast<double>(history.back().step), quantile(0.01), quantile(0.99)};
    if (frame.high <= frame.low) frame.high = frame.low + 1;

    std::vector<std::pair<double, double>> raw, mean;
    const std::size_t stride = (history.size() + 999) / 1000;
    double running = history.front().loss;
    for (std::size_t i = 0; i < history.size(); ++i) {
        running += (history[i].loss - running) * std::max(0.02, 1.0 / static_cast<double>(i + 1));
        if (i % stride != 0 && i + 1 != history.size()) continue;
        const double x = frame.x(static_cast<double>(history[i].step));
        raw.emplace_back(x, frame.y(history[i].loss));
        mean.emplace_back(x, frame.y(running));
    }
    std::ostringstream svg;
    svg << "<svg viewBox=\"0 0 " << CurveFrame::width << ' ' << CurveFrame::height << "\" role=\"img\" aria-label=\"loss over steps\">\n";
    for (int tick = 0; tick <= 4; ++tick) {
        const double loss = frame.low + (frame.high - frame.low) * tick / 4;
        const double step = frame.last_step * tick / 4;
        char text[400];
        std::snprintf(text, sizeof text,
                      "<line class=\"grid\" x1=\"%.0f\" x2=\"%.0f\" y1=\"%.1f\" y2=\"%.1f\"/>"
                      "<text x=\"%.0f\" y=\"%.1f\" text-anchor=\"end\">%.3g</text>"
                      "<text x=\"%.1f\" y=\"%.0f\" text-anchor=\"middle\">%.0f</text>\n",
                      CurveFrame::left, CurveFrame::width - CurveFrame::right, frame.y(loss), frame.y(loss),
                      CurveFrame::left - 6, frame.y(loss) + 4, loss, frame.x(step), CurveFrame::height - 8, step);
        svg << text;
    }
    add_polyline(svg, raw, "stroke=\"#9ab\" stroke-width=\"0.7\"");
    add_polyline(svg, mean, "stroke=\"#c30\" stroke-width=\"2\"");
    svg << "</svg>\n";
    return svg.str();
}

inline constexpr std::string_view report_style = R"(
body{font:15px/1.5 system-ui,sans-serif;max-width:960px;margin:2em auto;padding:0 1em;color:#222;background:#fff}
h1{font-size:1.5em}h2{font-size:1.15em;margin-top:2em}svg{width:100%;height:auto}svg text{font-size:11px;fill:#555}
.grid{stroke:#e4e4e4}table{border-collapse:collapse}td{padding:.15em 1.2em .15em 0;vertical-align:top}td:first-child{color:#666}
img{max-width:100%;border:1px solid #ddd}.newest{width:100%}.cells{display:grid;gap:.2em 1em;margin:.5em 0;color:#444}.past{display:flex;flex-wrap:wrap;gap:1em}
.past figure{margin:0;width:300px}figcaption{color:#666}
)";

}  // namespace detail

STRATA_INLINE std::vector<SampleGrid> find_sample_grids(const std::filesystem::path& folder) {
    std::vector<SampleGrid> grids;
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator{folder, none}) {
        const std::string name = entry.path().filename().string();
        if (!name.starts_with("step_") || entry.path().extension() != ".png") continue;
        std::int64_t step = 0;
        const char* const end = name.data() + name.size() - 4;
        if (std::from_chars(name.data() + 5, end, step).ptr == end) grids.push_back({step, entry.path()});
    }
    std::sort(grids.begin(), grids.end(), [](const SampleGrid& a, const SampleGrid& b) { return a.step < b.step; });
    return grids;
}

STRATA_INLINE void write_report(const std::filesystem::path& file, const ReportContent& content) {
    std::ostringstream html;
    html << "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<title>" << detail::escape_html(content.title)
         << "</title>\n<style>" << detail::report_style << "</style></head><body>\n<h1>" << detail::escape_html(content.title)
         << "</h1>\n<table>\n";
    for (const auto& [name, value] : content.facts)
        html << "<tr><td>" << detail::escape_html(name) << "</td><td>" << detail::escape_html(value) << "</td></tr>\n";
    html << "</table>\n<h2>Loss</h2>\n" << detail::loss_curve(content.history);
    if (!content.grids.empty()) {
        const SampleGrid& newest = content.grids.back();
        html << "<h2>Samples at step " << newest.step << "</h2>\n<img class=\"newest\" alt=\"samples at step " << newest.step << "\" src=\""
             << detail::png_data_url(newest.png) << "\">\n<div class=\"cells\" style=\"grid-template-columns:repeat("
             << content.columns << ",1fr)\">";
        for (const std::string& prompt : content.prompts) html << "<span>" << detail::escape_html(prompt) << "</span>";
        html << "</div>\n<h2>On the way</h2>\n<div class=\"past\">\n";
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
