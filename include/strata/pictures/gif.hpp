#pragma once
// strata/pictures/gif.hpp - GIF pictures to pixels with giflib, safe against hostile files. With STRATA_WITH_GIF.

#include <cstddef>
#include <span>
#include <string_view>

#include <strata/pictures/header_fields.hpp>
#include <strata/pictures/picture.hpp>

namespace strata::pictures {

/// Decodes the first frame of a GIF on its canvas: RGBA where the frame has a transparent colour, else RGB. What the
/// frame does not cover is transparent then, and of the background colour otherwise.
///
///   header  image_header() of the same file, within the limits of size
///   source  named in messages: the file's path
///
/// Throws Errc::bad_picture when the file is damaged or ends early, picture_undecided when there is not enough memory.
/// Memory: three or four bytes a pixel of the canvas.
[[nodiscard]] Picture decode_gif(std::span<const std::byte> file, const ImageHeader& header,
                                 std::string_view source = "a picture");

}  // namespace strata::pictures

#ifndef STRATA_COMPILED
#include <strata/pictures/impl/gif.ipp>
#endif
