#pragma once
// strata/pictures/webp.hpp - WebP pictures to pixels, safe against hostile files.

#include <cstddef>
#include <span>
#include <string_view>

#include <strata/pictures/header_fields.hpp>
#include <strata/pictures/picture.hpp>

namespace strata::pictures {

/// Decodes every WebP (lossy, lossless, extended) to 8-bit RGB, or RGBA where it has alpha, not turned upright. Of an
/// animation it is the first frame on an empty canvas: transparent, or black where the file has no alpha.
///
///   header  image_header() of the same file
///   source  named in messages: the file's path
///
/// Throws Errc::bad_picture when the file is damaged or ends early, picture_too_large when it is beyond `limits`,
/// unsupported_picture, picture_undecided. Memory: three or four bytes a pixel, and up to five more while libwebp
/// works.
[[nodiscard]] Picture decode_webp(std::span<const std::byte> file, const ImageHeader& header,
                                  std::string_view source = "a picture", const DecodeLimits& limits = {});

}  // namespace strata::pictures

#ifndef STRATA_COMPILED
#include <strata/pictures/impl/webp.ipp>
#endif
