#pragma once
// strata/options/on_non_finite.hpp - OnNonFinite: what becomes of a step whose loss or gradients are not finite.

#include <array>
#include <cstdint>

#include <strata/core/option_description.hpp>

namespace strata::zero {

enum class OnNonFinite : std::uint8_t {
    stop,  ///< the run ends: Errc::non_finite
    skip,  ///< the step's samples are used up, weights and state stay as they are
};

/// Each once, by the name that configuration files have.
inline constexpr std::array<NamedValue<OnNonFinite>, 2> on_non_finite_names{{
    {"stop", OnNonFinite::stop},
    {"skip", OnNonFinite::skip},
}};

}  // namespace strata::zero
