#pragma once
// strata/pictures/image_header.hpp - what a picture file says of itself before its pixels: format, size, which way up.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
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

/// Reads `length` bytes of a file from `offset` on, fewer only where the file ends.
using ReadRange = std::function<std::vector<std::byte>(std::uint64_t offset, std::size_t length)>;

/// Reads a header by asking for more of the file until it is complete.
///
/// It asks for windows of 4 KiB, beginning with the first, and jumps over parts that are of no use (thumbnails, colour
/// profiles, maker notes): one window for most files, more where the size stands behind such parts. At most 256
/// windows and 1 MiB, whatever the file claims.
///
/// Orientation: EXIF in JPEG (APP1), PNG (eXIf, or a raw profile in a text chunk, before the pixels) and WebP; where
/// PNG has none, XMP; TIFF's own tag; in AVIF and HEIC the boxes irot and imir, and no EXIF. An animated WebP has the
/// size of its canvas, as every GIF has. Of a TIFF file the first page counts, of AVIF and HEIC the primary picture.
///
///   source  named in messages: the file's path
///
/// Formats that this program was built without are read as well. Throws Errc::unsupported_picture for other formats,
/// and for kinds that are not decoded (JPEG of 12 bits, lossless or hierarchical); Errc::bad_picture when the header is
/// damaged or cut short, picture_too_large beyond those 256 windows; what `read` throws.
[[nodiscard]] ImageHeader read_image_header(const ReadRange& read, std::string_view source = "a picture");

/// The same of a file in memory, or of its beginning when that holds the header.
[[nodiscard]] ImageHeader image_header(std::span<const std::byte> file, std::string_view source = "a picture");

}  // namespace strata::pictures

#ifndef STRATA_COMPILED
#include <strata/pictures/impl/image_header.ipp>
#endif
