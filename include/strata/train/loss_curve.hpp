#pragma once
// strata/train/loss_curve.hpp - the loss over steps as a picture for report.html.

#include <span>
#include <string>

#include <strata/core/inline.hpp>
#include <strata/train/metrics.hpp>

namespace strata::train {

/// An SVG and a paragraph under it that says what is seen.
///
/// Grey: the loss of every step; where several fall into one column of pixels, the lowest and the highest of them. Red: a
/// DebiasedMean over a fortieth of the run, or the root of its steps where that is less; steps that are too few for a
/// mean are red themselves. Ticks are multiples of 1, 2 or 5 times a power of ten, those of steps integers.
///
/// The scale holds every loss, unless a hundredth of them at an end would make the rest flat: these are marked by
/// triangles at the edge, counted in the paragraph, and count as the edge in the mean. Steps that are missing interrupt the
/// lines, and losses that are not finite are counted.
///
///   history  in the order of steps
[[nodiscard]] std::string loss_curve(std::span<const StepMetrics> history);

}  // namespace strata::train

#ifndef STRATA_COMPILED
#include <strata/train/impl/loss_curve.ipp>
#endif
