#pragma once
// strata/pictures/heic.hpp - HEIC pictures to pixels with libheif, safe against hostile files. With STRATA_WITH_HEIC.

#include <cstddef>
#include <span>
#include <string_view>

#include <strata/pictures/header_fields.hpp>
#include <strata/pictures/picture.hpp>

namespace strata::pictures {

/// Decodes the primary picture of an HEIC file, also one of tiles, of 8 to 12 bits, to RGB, or RGBA where it has alpha,
/// cut to its clean aperture, not turned upright. Colours that are stored at half the size are enlarged by the nearest
/// sample.
///
///   header  image_header() of the same file, within the limits of size
///   source  named in messages: the file's path
///
/// Throws Errc::bad_picture when the file is damaged or ends early, picture_too_large when it is beyond `limits`,
/// unsupported_picture, picture_undecided. Memory: see decode_bytes().
[[nodiscard]] Picture decode_heic(std::span<const std::byte> file, const ImageHeader& header,
                                  std::string_view source = "a picture", const DecodeLimits& limits = {});

}  // namespace strata::pictures

#ifndef STRATA_COMPILED
#include <strata/pictures/impl/heic.ipp>
#endif
