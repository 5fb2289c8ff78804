#pragma once
// strata/pictures/picture.hpp - pixels in memory, and how large a picture may claim to be.

#include <cstdint>
#include <string>
#include <vector>

namespace strata::pictures {

/// Width and height of a picture, in pixels.
struct PictureSize {
    std::int64_t width = 0;
    std::int64_t height = 0;
    friend bool operator==(const PictureSize&, const PictureSize&) = default;
};

/// Pixels in memory: packed rows from top to bottom, one byte a sample.
struct Picture {
    std::int64_t width = 0;
    std::int64_t height = 0;
    std::int64_t channels = 3;         ///< 3: red, green, blue; 4: and alpha, not premultiplied
    std::vector<std::uint8_t> pixels;  ///< width * height * channels
    std::string note =
        {};  ///< what was wrong with the file and did no harm: a colour profile that cannot be used; else empty
};

/// What a decoder accepts. A picture that claims more is refused before memory is taken for it.
struct DecodeLimits {
    std::int64_t edge = 32768;                ///< pixels of the longer edge
    std::int64_t pixels = 256 * 1024 * 1024;  ///< width * height
    std::int64_t file_bytes = std::int64_t{1} << 30;
};

}  // namespace strata::pictures
