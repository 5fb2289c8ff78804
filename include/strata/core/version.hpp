#pragma once
// strata/core/version.hpp - which strata this is.

#include <string_view>

namespace strata {

/// Of the CMake project; a test compares the two, so that a build without CMake knows it as well.
inline constexpr std::string_view version = "0.1.0";

}  // namespace strata
