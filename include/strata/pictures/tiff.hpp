#pragma once
// strata/pictures/tiff.hpp - TIFF pictures to pixels with libtiff, safe against hostile files. With STRATA_WITH_TIFF.

#include <cstddef>
#include <span>
#include <string_view>

#include <strata/pictures/colour_profile.hpp>
#include <strata/pictures/header_fields.hpp>
#include <strata/pictures/picture.hpp>

namespace strata::pictures {

/// Decodes the first page of a TIFF or BigTIFF file to RGB, or RGBA where an extra sample is said to be alpha, not
/// turned upright. Grey, RGB, palettes, inks and JPEG's YCbCr of 1 to 16 bits, in strips or tiles, in whatever way
/// libtiff unpacks: of 16 bits the high byte, alpha no longer multiplied into the colours. What else libtiff knows (other
/// YCbCr, CIE Lab, LogLuv) as it shows it, without alpha.
///
///   header   image_header() of the same file, within the limits of size
///   to_srgb  what inks become RGB by; other colours are left as they are
///   source   named in messages: the file's path
///
/// Throws Errc::bad_picture when the file is damaged or ends early, unsupported_picture, picture_too_large for a tile
/// beyond the limits, picture_undecided. Memory: three or four bytes a pixel, and two or three tiles; of strips a row,
/// where each sample has a plane of its own or libtiff shows it, two or three strips.
[[nodiscard]] Picture decode_tiff(std::span<const std::byte> file, const ImageHeader& header, const ToSrgb& to_srgb,
                                  std::string_view source = "a picture");

}  // namespace strata::pictures

#ifndef STRATA_COMPILED
#include <strata/pictures/impl/tiff.ipp>
#endif
