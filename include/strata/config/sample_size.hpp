#pragma once
// strata/config/sample_size.hpp - SampleSize: the sizes that pictures are drawn in, as configurations write them.

#include <cstdint>
#include <vector>

#include <strata/config/value.hpp>
#include <strata/core/inline.hpp>

namespace strata::config {

/// Pixels.
struct SampleSize {
    std::int64_t width = 0;
    std::int64_t height = 0;
    friend bool operator==(const SampleSize&, const SampleSize&) = default;
};

/// Sizes that a value names: 1024 (a square), "1024x768" (width and height), megapixels up to 20 (1.0 is the square of
/// 1024 pixels an edge), several of these in one text with commas between, or a list of all that. At least one.
/// Throws Errc::bad_value for anything else, and for an edge outside of 8 to 16384.
[[nodiscard]] std::vector<SampleSize> sample_sizes_of(const Value& value);

}  // namespace strata::config

#ifndef STRATA_COMPILED
#include <strata/config/impl/sample_size.ipp>
#endif
