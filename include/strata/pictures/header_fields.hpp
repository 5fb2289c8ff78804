#pragma once
// strata/pictures/header_fields.hpp - ImageHeader: what stands in a picture file before its pixels.

#include <array>
#include <cstdint>
#include <variant>
#include <vector>

#include <strata/pictures/formats.hpp>
#include <strata/pictures/orientation.hpp>
#include <strata/pictures/picture.hpp>

namespace strata::pictures {

/// Where the colour profile (ICC) of a picture stands in its file. Nothing of it was read yet.
struct ProfilePlace {
    struct Part {
        std::uint64_t offset = 0;
        std::uint64_t bytes = 0;
    };
    std::vector<Part> parts;  ///< in their order; none: the picture has no profile
    bool complete = true;     ///< false: a JPEG lacks some of its parts
    bool packed = false;      ///< PNG: zlib around it
};

/// How the pixels of a BMP lie in its file.
struct BmpLayout {
    std::uint64_t pixels = 0;   ///< offset
    std::uint64_t palette = 0;  ///< offset
    int colours = 0;            ///< of the palette
    int colour_bytes = 4;       ///< 3 in files of OS/2 1
    int bits = 24;              ///< a pixel
    int packing = 0;            ///< 0 none, 1 RLE8, 2 RLE4, 3 masks
    bool top_down = false;
    std::array<std::uint32_t, 4> masks{};  ///< red, green, blue, alpha
};

/// How the pixels of a TIFF file's first page lie in it.
struct TiffLayout {
    std::int64_t chunk_width = 0;   ///< of a tile; 0: strips
    std::int64_t chunk_height = 0;  ///< of a tile, or rows of a strip
    int samples = 1;                ///< a pixel
    int bits = 1;                   ///< a sample
    bool planes = false;            ///< each sample in a plane of its own
    bool inks = false;              ///< the samples are inks
};

/// Which part of the coded picture of an AVIF or HEIC file is shown (its clean aperture).
struct HeifLayout {
    PictureSize coded;
    std::int64_t left = 0;
    std::int64_t top = 0;
    int bits = 8;  ///< a sample
};

/// What stands in a file before its pixels.
struct ImageHeader {
    ImageFormat format = ImageFormat::png;
    PictureSize stored;  ///< as the pixels lie in the file; each edge >= 1
    /// 1 grey, 2 grey and alpha, 3 colours (also a palette's, and of every GIF), 4 colours and alpha, or inks.
    int channels = 3;
    Orientation orientation = Orientation::upright;
    ProfilePlace profile;
    std::variant<std::monostate, BmpLayout, TiffLayout, HeifLayout> layout;

    /// The size as the picture is meant to be seen.
    [[nodiscard]] PictureSize size() const noexcept { return turned(stored, orientation); }
};

}  // namespace strata::pictures
