#pragma once
// strata/pictures/image_header.hpp - what a picture file says of itself before its pixels: format, size, which way up.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <strata/pictures/orientation.hpp>
#include <strata/pictures/picture.hpp>

namespace strata::pictures {

/// The formats that are decoded.
enum class ImageFormat : std::uint8_t { png, jpeg, webp };

/// "PNG", "JPEG", "WebP".
[[nodiscard]] std::string_view name_of(ImageFormat format) noexcept;

/// The format by a file's first bytes, whatever its name is; 12 bytes are enough.
[[nodiscard]] std::optional<ImageFormat> format_of(std::span<const std::byte> head) noexcept;

/// What stands in a file before its pixels.
struct ImageHeader {
    ImageFormat format = ImageFormat::png;
    PictureSize stored;  ///< as the pixels lie in the file; each edge >= 1
    int channels = 3;    ///< 1 grey, 2 grey and alpha, 3 colours (also a palette's), 4 colours and alpha, or CMYK
    Orientation orientation = Orientation::upright;

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
/// PNG has none, XMP. An animated WebP has the size of its canvas.
///
///   source  named in messages: the file's path
///
/// Throws Errc::unsupported_picture for other formats, and for kinds of JPEG that are not decoded (12 bits, lossless,
/// hierarchical); Errc::bad_picture when the header is damaged or cut short; what `read` throws.
[[nodiscard]] ImageHeader read_image_header(const ReadRange& read, std::string_view source = "a picture");

/// The same of a file in memory, or of its beginning when that holds the header.
[[nodiscard]] ImageHeader image_header(std::span<const std::byte> file, std::string_view source = "a picture");

}  // namespace strata::pictures

#ifndef STRATA_COMPILED
#include <strata/pictures/impl/image_header.ipp>
#endif
