#pragma once
// strata/core/ranges.hpp - what the numbers of a run may be: one list for configuration files and for C++.

#include <limits>

namespace strata {

/// The smallest and the largest value a number may have, both included.
struct Range {
    double least = -std::numeric_limits<double>::infinity();
    double most = std::numeric_limits<double>::infinity();

    /// False for NaN.
    [[nodiscard]] constexpr bool holds(double number) const noexcept { return number >= least && number <= most; }
};

/// Read by the schema of a configuration and by the checks of options: a number has one range, however it arrives.
namespace ranges {

inline constexpr Range positive{1, 1e12};  ///< what is counted, and must be there: intervals, limits
inline constexpr Range count{0, 1e12};     ///< what is counted, and may be none: a warm-up's steps

inline constexpr Range learning_rate{0, 10};
inline constexpr Range cycles{1, 1e6};
inline constexpr Range power{0.01, 100};

inline constexpr Range beta1{0, 0.999999};
inline constexpr Range beta2{0, 0.9999999};
/// Not 0, which divides a gradient of 0 by 0; and still above it as fp32.
inline constexpr Range epsilon{1e-30, 1};
inline constexpr Range weight_decay{0, 100};
inline constexpr Range momentum{0, 0.999999};

inline constexpr Range accumulation_steps{1, 65536};
inline constexpr Range gradient_limit{0, 1e12};  ///< 0 does not clip
inline constexpr Range average_decay{0, 0.9999999};

inline constexpr Range bytes_ahead{-1, 1e15};  ///< -1: of the largest unit
inline constexpr Range size{0, 1e15};          ///< bytes or elements; 0: no bound, or what strata chooses
inline constexpr Range timeout_s{1, 1e9};

}  // namespace ranges
}  // namespace strata
