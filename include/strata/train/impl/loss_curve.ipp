#pragma once
// strata/train/impl/loss_curve.ipp - scale, ticks and lines of the curve.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string_view>
#include <utility>
#include <vector>

#include <strata/core/amounts.hpp>
#include <strata/train/debiased_mean.hpp>
#include <strata/train/loss_curve.hpp>

namespace strata::train {
namespace detail {

/// Multiples of 1, 2 or 5 times 10^exponent.
struct RoundTicks {
    int digit = 1, exponent = 0;

    /// The finest ones of which a length has `most` at most.
    static RoundTicks of(double length, int most) {
        RoundTicks ticks;
        const double least = length / most;
        ticks.exponent = static_cast<int>(std::floor(std::log10(least)));
        const double leading = least / std::pow(10.0, ticks.exponent);
        ticks.digit = leading <= 1 + 1e-9 ? 1 : leading <= 2 + 1e-9 ? 2 : leading <= 5 + 1e-9 ? 5 : 10;
        if (ticks.digit == 10) ticks = {1, ticks.exponent + 1};
        return ticks;
    }
    /// The n-th one from 0, rounded once.
    [[nodiscard]] double at(double n) const {
        return exponent < 0 ? n * digit / std::pow(10.0, -exponent) : n * digit * std::pow(10.0, exponent);
    }
    [[nodiscard]] double below(double value) const { return std::floor(value / at(1) + 1e-9); }
    [[nodiscard]] double above(double value) const { return std::ceil(value / at(1) - 1e-9); }

    /// As many decimals as the ticks need, the same on all of them.
    [[nodiscard]] std::string text(double value, double largest) const {
        std::array<char, 64> text{};
        if (value == 0) value = 0;  // not "-0"
        const int leading = largest > 0 ? static_cast<int>(std::floor(std::log10(largest) + 1e-9)) : 0;
        if (exponent < -6 || leading > 6)
            std::snprintf(text.data(), text.size(), "%.*e", std::max(0, leading - exponent), value);
        else
            std::snprintf(text.data(), text.size(), "%.*f", std::max(0, -exponent), value);
        return text.data();
    }
};

inline std::string number_text(double value) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.4g", value);
    return text.data();
}
inline std::string pixels(double value) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.1f", value);
    return text.data();
}
inline std::string step_text(std::int64_t step) { return core::with_commas(static_cast<std::uint64_t>(step)); }

/// A step with a finite loss. Steps of one part follow each other without a gap.
struct CurvePoint {
    std::int64_t step;
    double loss, mean;
    std::size_t part;
};

struct CurveData {
    std::vector<CurvePoint> points;
    std::int64_t first = 0, last = 0;  // steps, those without a finite loss included
    std::size_t not_finite = 0;
    double decay = 0;
    /// Of fewer than 18 steps no mean is drawn: it would be that of a step or two, beside the steps themselves.
    [[nodiscard]] bool has_mean() const { return decay > 0.1; }
};

inline CurveData curve_data(std::span<const StepMetrics> history) {
    CurveData data;
    data.first = history.front().step;
    data.last = history.back().step;
    data.not_finite = static_cast<std::size_t>(
        std::count_if(history.begin(), history.end(), [](const StepMetrics& m) { return !std::isfinite(m.loss); }));
    // Long enough to be calm, short enough to lie on a falling loss: a fortieth of a short run, and less of a long one.
    const auto steps = static_cast<double>(history.size() - data.not_finite);
    data.decay = std::exp(-1.0 / std::min(steps / 40.0, std::sqrt(steps)));
    std::size_t part = 0;
    for (const StepMetrics& m : history) {
        if (!std::isfinite(m.loss)) continue;
        const std::int64_t gap = data.points.empty() ? 1 : m.step - data.points.back().step;
        if (gap > 1) ++part;
        const double loss = std::clamp(m.loss, -1e100, 1e100);  // so that no difference overflows
        data.points.push_back({m.step, loss, loss, part});
    }
    return data;
}

/// What lies beyond the scale counts as its edge: one loss of a thousand would lift the line for the length of the mean.
inline void add_means(CurveData& data, double low, double high) {
    DebiasedMean mean{data.decay};
    std::int64_t step_before = data.first - 1;
    for (CurvePoint& point : data.points) {
        mean.add(std::clamp(point.loss, low, high), static_cast<double>(point.step - step_before));
        point.mean = mean.value();
        step_before = point.step;
    }
}

/// What the scale has to hold: all, or all but a hundredth at an end that would take more than half of the height.
inline std::pair<double, double> shown_losses(const std::vector<CurvePoint>& points) {
    std::vector<double> sorted;
    for (const CurvePoint& point : points) sorted.push_back(point.loss);
    std::sort(sorted.begin(), sorted.end());
    double low = sorted.front(), high = sorted.back();
    if (sorted.size() >= 100) {
        const std::size_t hundredth = sorted.size() / 100;
        const double inner_low = sorted[hundredth], inner_high = sorted[sorted.size() - 1 - hundredth];
        const double inner = inner_high - inner_low;
        if (inner > 0 && high > inner_high + inner) high = inner_high + 0.1 * inner;
        if (inner > 0 && low < inner_low - inner) low = inner_low - 0.1 * inner;
    }
    const double size = std::max(std::abs(low), std::abs(high));
    if (high - low > 1e-6 * size) return {low, high};
    const double room = size > 0 ? 0.1 * size : 1;  // a constant: in the middle of a scale around it
    return {low - room, high + room};
}

/// Steps and losses as pixels.
struct CurveFrame {
    static constexpr double width = 900, height = 330, bottom = 46, top = 12, right = 28;
    double left = 0;
    std::int64_t first = 0, last = 0;
    double low = 0, high = 0;

    [[nodiscard]] double x(std::int64_t step) const {
        if (last == first) return (left + width - right) / 2;
        return left + (width - left - right) * static_cast<double>(step - first) / static_cast<double>(last - first);
    }
    [[nodiscard]] double y(double loss) const {
        const double at = height - bottom - (height - bottom - top) * (loss - low) / (high - low);
        return std::clamp(at, -height, 2 * height);  // far outside is as good as outside
    }
};

inline std::string axis_ticks(CurveFrame& frame, double low, double high) {
    const RoundTicks losses = RoundTicks::of(high - low, 6);
    const double from = losses.below(low), to = losses.above(high);
    frame.low = losses.at(from);
    frame.high = losses.at(to);
    const double largest = std::max(std::abs(frame.low), std::abs(frame.high));
    std::vector<std::pair<double, std::string>> labels;
    std::size_t longest = 0;
    for (double n = from; n <= to; ++n) {
        labels.emplace_back(losses.at(n), losses.text(losses.at(n), largest));
        longest = std::max(longest, labels.back().second.size());
    }
    frame.left = 26 + 6.8 * static_cast<double>(longest);
    std::string svg;
    for (const auto& [loss, text] : labels) {
        const std::string y = pixels(frame.y(loss));
        svg += "<line stroke=\"#e4e4e4\" x1=\"" + pixels(frame.left) + "\" x2=\"" +
               pixels(CurveFrame::width - CurveFrame::right) + "\" y1=\"" + y + "\" y2=\"" + y +
               "\"/><text class=\"loss\" text-anchor=\"end\" x=\"" + pixels(frame.left - 7) + "\" y=\"" +
               pixels(frame.y(loss) + 4) + "\">" + text + "</text>\n";
    }
    const double floor = CurveFrame::height - CurveFrame::bottom;
    svg += "<line stroke=\"#888\" x1=\"" + pixels(frame.left) + "\" x2=\"" +
           pixels(CurveFrame::width - CurveFrame::right) + "\" y1=\"" + pixels(floor) + "\" y2=\"" + pixels(floor) +
           "\"/>\n";
    const double steps = static_cast<double>(frame.last - frame.first);
    const auto every = std::max<std::int64_t>(1, steps == 0 ? 1 : std::llround(RoundTicks::of(steps, 10).at(1)));
    for (std::int64_t step = (frame.first + every - 1) / every * every; step <= frame.last; step += every) {
        const std::string x = pixels(frame.x(step));
        svg += "<line stroke=\"#888\" x1=\"" + x + "\" x2=\"" + x + "\" y1=\"" + pixels(floor) + "\" y2=\"" +
               pixels(floor + 5) + "\"/><text class=\"step\" text-anchor=\"middle\" x=\"" + x + "\" y=\"" +
               pixels(floor + 18) + "\">" + step_text(step) + "</text>\n";
    }
    svg += "<text text-anchor=\"middle\" x=\"" + pixels((frame.left + CurveFrame::width - CurveFrame::right) / 2) +
           "\" y=\"" + pixels(CurveFrame::height - 8) +
           "\">step</text>\n<text text-anchor=\"middle\" transform=\"translate(11 " +
           pixels((CurveFrame::top + floor) / 2) + ") rotate(-90)\">loss</text>\n";
    return svg;
}

/// A line through what `value` is of the points; a part of one point only is a dot. Of points in one column of pixels the
/// lowest and the highest are drawn, in their order.
template <class Value>
std::string curve_line(const CurveFrame& frame, const std::vector<CurvePoint>& points, std::string_view name,
                       std::string_view colour, std::string_view width, Value value) {
    std::string svg;
    const auto place = [&](const CurvePoint& point) {
        return std::pair{pixels(frame.x(point.step)), pixels(frame.y(value(point)))};
    };
    for (std::size_t begin = 0; begin < points.size();) {
        std::size_t end = begin;
        std::vector<std::pair<std::string, std::string>> drawn;
        while (end < points.size() && points[end].part == points[begin].part) {
            const double column = std::floor(frame.x(points[end].step));
            std::size_t lowest = end, highest = end;
            for (; end < points.size() && points[end].part == points[begin].part &&
                   std::floor(frame.x(points[end].step)) == column;
                 ++end) {
                if (value(points[end]) < value(points[lowest])) lowest = end;
                if (value(points[end]) > value(points[highest])) highest = end;
            }
            drawn.push_back(place(points[std::min(lowest, highest)]));
            if (lowest != highest) drawn.push_back(place(points[std::max(lowest, highest)]));
        }
        if (drawn.size() == 1) {
            svg += "<circle class=\"" + std::string{name} + "\" r=\"2.5\" fill=\"" + std::string{colour} + "\" cx=\"" +
                   drawn[0].first + "\" cy=\"" + drawn[0].second + "\"/>\n";
        } else {
            svg += "<polyline class=\"" + std::string{name} + "\" fill=\"none\" stroke-linejoin=\"round\" stroke=\"" +
                   std::string{colour} + "\" stroke-width=\"" + std::string{width} + "\" points=\"";
            for (const auto& [x, y] : drawn) svg += x + "," + y + " ";
            svg.back() = '"';
            svg += "/>\n";
        }
        begin = end;
    }
    return svg;
}

/// Points above (or below) the scale.
struct Beyond {
    std::size_t count = 0;
    CurvePoint farthest{};
    std::string triangles{};
};

inline Beyond beyond(const CurveFrame& frame, const std::vector<CurvePoint>& points, bool above) {
    constexpr double half = 4, tall = 7;  // pixels; triangles that would overlap are one
    const double edge = above ? CurveFrame::top : CurveFrame::height - CurveFrame::bottom;
    const double foot = above ? edge + tall : edge - tall;
    Beyond found;
    double last = -CurveFrame::width;
    for (const CurvePoint& point : points) {
        if (above ? point.loss <= frame.high : point.loss >= frame.low) continue;
        if (found.count++ == 0 || (above ? point.loss > found.farthest.loss : point.loss < found.farthest.loss))
            found.farthest = point;
        const double x = frame.x(point.step);
        if (x - last < 2 * half) continue;
        last = x;
        found.triangles += "<path class=\"beyond\" fill=\"#567\" d=\"M" + pixels(x - half) + " " + pixels(foot) + "L" +
                           pixels(x) + " " + pixels(edge) + "L" + pixels(x + half) + " " + pixels(foot) + "Z\"/>\n";
    }
    return found;
}

inline std::string beyond_text(const Beyond& found, bool above) {
    if (found.count == 0) return {};
    return " " + step_text(static_cast<std::int64_t>(found.count)) +
           (found.count == 1 ? " point is " : " points are ") + (above ? "above" : "below") + " the scale (" +
           (above ? "&#9650;" : "&#9660;") + " at the edge)" + (found.count == 1 ? ": " : "; the farthest: ") +
           number_text(found.farthest.loss) + " at step " + step_text(found.farthest.step) + ".";
}

}  // namespace detail

STRATA_INLINE std::string loss_curve(std::span<const StepMetrics> history) {
    using namespace detail;
    if (history.empty()) return "<p class=\"under\">No step has been done yet.</p>\n";
    CurveData data = curve_data(history);
    const std::string not_finite = data.not_finite == 0
                                       ? ""
                                       : " " + step_text(static_cast<std::int64_t>(data.not_finite)) +
                                             (data.not_finite == 1 ? " step has" : " steps have") + " no finite loss.";
    if (data.points.empty()) return "<p class=\"under\">No curve:" + not_finite + "</p>\n";

    CurveFrame frame{.first = data.first, .last = data.last};
    const auto [low, high] = shown_losses(data.points);
    const std::string axes = axis_ticks(frame, low, high);
    add_means(data, frame.low, frame.high);
    const Beyond above = beyond(frame, data.points, true), below = beyond(frame, data.points, false);

    std::string svg =
        "<svg viewBox=\"0 0 900 330\" role=\"img\" aria-label=\"loss over steps\">\n<clipPath id=\"scale\"><rect x=\"" +
        pixels(frame.left - 3) + "\" y=\"" + pixels(CurveFrame::top - 2) + "\" width=\"" +
        pixels(CurveFrame::width - CurveFrame::right - frame.left + 6) + "\" height=\"" +
        pixels(CurveFrame::height - CurveFrame::top - CurveFrame::bottom + 4) + "\"/></clipPath>\n" + axes +
        "<g clip-path=\"url(#scale)\">\n";
    const std::string_view colour = data.has_mean() ? "#9ab" : "#c30";
    svg += curve_line(frame, data.points, "each", colour,
                      !data.has_mean()            ? "1.5"
                      : data.points.size() > 2000 ? "0.6"
                                                  : "0.9",
                      [](const CurvePoint& p) { return p.loss; });
    if (data.points.size() <= 100)
        for (const CurvePoint& point : data.points)
            svg += "<circle class=\"dot\" r=\"2.5\" fill=\"" + std::string{colour} + "\" cx=\"" +
                   pixels(frame.x(point.step)) + "\" cy=\"" + pixels(frame.y(point.loss)) + "\"/>\n";
    if (data.has_mean())
        svg += curve_line(frame, data.points, "mean", "#c30", "2", [](const CurvePoint& p) { return p.mean; });
    svg += "</g>\n" + above.triangles + below.triangles + "</svg>\n<p class=\"under\">";

    const CurvePoint& last = data.points.back();
    if (data.has_mean())
        svg += "Grey: the loss of every step. Red: its mean over about " +
               step_text(std::llround(1 / (1 - data.decay))) + " steps (exponential, corrected for its start" +
               (above.count + below.count > 0 ? "; points beyond the scale count as its edge" : "") + "). At step " +
               step_text(last.step) + ": " + number_text(last.loss) + ", mean " + number_text(last.mean) + ".";
    else
        svg += (data.points.size() == 1 ? "The loss of step " : "The loss of every step. At step ") +
               step_text(last.step) + ": " + number_text(last.loss) + ".";
    return svg + beyond_text(above, true) + beyond_text(below, false) + not_finite + "</p>\n";
}

}  // namespace strata::train
