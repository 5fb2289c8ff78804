#pragma once
// strata/train/impl/evaluation_curves.ipp - lines and what is said under them.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include <strata/train/evaluation_curves.hpp>
#include <strata/train/impl/loss_curve.ipp>

namespace strata::train {
namespace detail {

inline constexpr std::array<std::string_view, 6> evaluation_colours{"#c03a2b", "#2b6cb0", "#2f855a",
                                                                    "#8a5a00", "#6b46c1", "#444444"};

/// The scale of all that is finite; none of it: no picture.
inline bool fits_all(CurveFrame& frame, std::pair<double, double>& losses, std::span<const EvaluationCurve> curves) {
    std::vector<CurvePoint> points;
    for (const EvaluationCurve& curve : curves)
        for (const auto& [step, loss] : curve.losses)
            if (std::isfinite(loss)) points.push_back({step, std::clamp(loss, -1e100, 1e100), 0, 0});
    if (points.empty()) return false;
    const auto [first, last] = std::minmax_element(
        points.begin(), points.end(), [](const CurvePoint& a, const CurvePoint& b) { return a.step < b.step; });
    frame.first = first->step;
    frame.last = last->step;
    losses = shown_losses(points);
    return true;
}

inline std::string evaluation_line_of(const CurveFrame& frame, const EvaluationCurve& curve, std::string_view colour) {
    std::vector<CurvePoint> points;
    std::size_t part = 0;
    for (const auto& [step, loss] : curve.losses) {
        if (std::isfinite(loss))
            points.push_back({step, std::clamp(loss, -1e100, 1e100), 0, part});
        else
            ++part;
    }
    std::string svg =
        curve_line(frame, points, "evaluation", colour, "1.6", [](const CurvePoint& p) { return p.loss; });
    for (const CurvePoint& point : points)
        svg += "<circle r=\"2.4\" fill=\"" + std::string{colour} + "\" cx=\"" + pixels(frame.x(point.step)) +
               "\" cy=\"" + pixels(frame.y(point.loss)) + "\"/>";
    return svg + "\n";
}

inline std::string evaluation_words(const EvaluationCurve& curve, std::string_view colour) {
    std::pair<std::int64_t, double> lowest{0, std::numeric_limits<double>::infinity()};
    std::size_t not_finite = 0;
    for (const auto& [step, loss] : curve.losses) {
        if (!std::isfinite(loss))
            ++not_finite;
        else if (loss < lowest.second)
            lowest = {step, loss};
    }
    std::string text = "<p class=\"under\"><b style=\"color:" + std::string{colour} + "\">" + curve.name + "</b>: ";
    if (not_finite == curve.losses.size()) return text + "no loss is finite</p>\n";
    text += "lowest " + number_text(lowest.second) + " after step " + step_text(lowest.first);
    if (const auto& [step, loss] = curve.losses.back(); step != lowest.first)
        text += ", " + (std::isfinite(loss) ? number_text(loss) : std::string{"not finite"}) + " after step " +
                step_text(step);
    if (not_finite > 0) text += "; " + std::to_string(not_finite) + " not finite";
    return text + "</p>\n";
}

}  // namespace detail

STRATA_INLINE std::string evaluation_curves(std::span<const EvaluationCurve> curves) {
    detail::CurveFrame frame;
    std::pair<double, double> losses;
    std::string html;
    const auto colour = [](std::size_t i) { return detail::evaluation_colours[i % detail::evaluation_colours.size()]; };
    if (detail::fits_all(frame, losses, curves)) {
        html += "<svg viewBox=\"0 0 " + std::to_string(static_cast<int>(detail::CurveFrame::width)) + " " +
                std::to_string(static_cast<int>(detail::CurveFrame::height)) +
                "\" role=\"img\" aria-label=\"loss of evaluated sets over steps\">\n" +
                detail::axis_ticks(frame, losses.first, losses.second);
        for (std::size_t i = 0; i < curves.size(); ++i) html += detail::evaluation_line_of(frame, curves[i], colour(i));
        html += "</svg>\n";
    }
    for (std::size_t i = 0; i < curves.size(); ++i)
        if (!curves[i].losses.empty()) html += detail::evaluation_words(curves[i], colour(i));
    return html;
}

}  // namespace strata::train
