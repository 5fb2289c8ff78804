#pragma once
// strata/train/evaluation_curves.hpp - the losses of sets that are evaluated, as pictures for report.html.

#include <span>
#include <string>

#include <strata/core/inline.hpp>
#include <strata/train/named_loss.hpp>

namespace strata::train {

/// An SVG with a line a set, on one scale, and a paragraph a set under it: its lowest loss and after which step, and its last one.
/// Losses that are not finite interrupt a line and are counted.
[[nodiscard]] std::string evaluation_curves(std::span<const EvaluationCurve> curves);

}  // namespace strata::train

#ifndef STRATA_COMPILED
#include <strata/train/impl/evaluation_curves.ipp>
#endif
