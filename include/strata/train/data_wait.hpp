#pragma once
// strata/train/data_wait.hpp - DataWait: when the time that steps wait for their batches becomes worth a line.

#include <optional>
#include <string>
#include <string_view>

#include <strata/core/inline.hpp>
#include <strata/train/debiased_mean.hpp>

namespace strata::train {

/// Of one run's steps.
class DataWait {
public:
    static constexpr double worth_a_line =
        0.2;  ///< of the time; said once, and again only after it was below half of that
    static constexpr int least_steps =
        10;  ///< before which nothing is said: batches are made ahead only from the first on

    /// A step took so many seconds and waited so many of them for its batches. The share of the time that recent steps waited, when
    /// it has just become worth a line.
    [[nodiscard]] std::optional<double> add(double waited, double seconds) noexcept;

private:
    DebiasedMean waited_{0.95};
    DebiasedMean seconds_{0.95};
    int steps_ = 0;
    bool is_said_ = false;
};

/// "training waits for its batches 31 % of the time: decoding takes most of making them".
///
///   bottleneck  what the source calls it; empty: it does not know
[[nodiscard]] std::string waiting_text(double share, std::string_view bottleneck);

}  // namespace strata::train

#ifndef STRATA_COMPILED
#include <strata/train/impl/data_wait.ipp>
#endif
