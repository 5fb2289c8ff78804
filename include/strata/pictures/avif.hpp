#pragma once
// strata/pictures/avif.hpp - AVIF pictures to pixels with libavif, safe against hostile files. With STRATA_WITH_AVIF.

#include <cstddef>
#include <span>
#include <string_view>

#include <strata/pictures/header_fields.hpp>
#include <strata/pictures/picture.hpp>

namespace strata::pictures {

/// Decodes an AVIF of 8, 10 or 12 bits (of a sequence the first picture) to RGB, or RGBA where it has alpha, cut to its
/// clean aperture, not turned upright. Colours that are stored at half the size are enlarged bilinearly.
///
///   header  image_header() of the same file, within the limits of size
///   source  named in messages: the file's path
///
/// Throws Errc::bad_picture when the file is damaged or ends early, picture_too_large when it is beyond `limits`,
/// unsupported_picture, picture_undecided. Memory: see decode_bytes().
[[nodiscard]] Picture decode_avif(std::span<const std::byte> file, const ImageHeader& header,
                                  std::string_view source = "a picture", const DecodeLimits& limits = {});

}  // namespace strata::pictures

#ifndef STRATA_COMPILED
#include <strata/pictures/impl/avif.ipp>
#endif
