#pragma once
// strata/pictures/bmp.hpp - BMP pictures to pixels, safe against hostile files.

#include <cstddef>
#include <span>
#include <string_view>

#include <strata/pictures/header_fields.hpp>
#include <strata/pictures/picture.hpp>

namespace strata::pictures {

/// Decodes BMP files of Windows and OS/2 (1 to 32 bits, palettes, RLE4 and RLE8, masks) to RGB, or RGBA where a mask of
/// alpha is stated. Five and six bits become eight by round(v * 255 / 31) and round(v * 255 / 63). Colours that a
/// palette does not have are black; pixels that RLE leaves out have the palette's first colour.
///
///   header  image_header() of the same file, within the limits of size
///   source  named in messages: the file's path
///
/// Throws Errc::bad_picture when the file ends early. Memory: three or four bytes a pixel.
[[nodiscard]] Picture decode_bmp(std::span<const std::byte> file, const ImageHeader& header,
                                 std::string_view source = "a picture");

}  // namespace strata::pictures

#ifndef STRATA_COMPILED
#include <strata/pictures/impl/bmp.ipp>
#endif
