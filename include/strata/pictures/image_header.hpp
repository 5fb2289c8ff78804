#pragma once
// strata/pictures/image_header.hpp - what a picture file says of itself before its pixels: format, size, which way up.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include <strata/pictures/header_fields.hpp>

namespace strata::pictures {

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
