#pragma once
// strata/train/impl/data_wait.ipp - a share of recent time, and its sentence.

#include <cmath>

#include <strata/train/data_wait.hpp>

namespace strata::train {

STRATA_INLINE std::optional<double> DataWait::add(double waited, double seconds) noexcept {
    waited_.add(waited);
    seconds_.add(seconds);
    if (++steps_ < least_steps || !(seconds_.value() > 0)) return std::nullopt;
    const double share = waited_.value() / seconds_.value();
    if (share < worth_a_line / 2) is_said_ = false;
    if (share < worth_a_line || is_said_) return std::nullopt;
    is_said_ = true;
    return share;
}

STRATA_INLINE std::string waiting_text(double share, std::string_view bottleneck) {
    std::string text = "training waits for its batches " + std::to_string(std::lround(100 * share)) + " % of the time";
    if (!bottleneck.empty()) text += ": " + std::string{bottleneck} + " takes most of making them";
    return text;
}

}  // namespace strata::train
