#pragma once
// strata/pictures/webp.hpp - WebP pictures to pixels, safe against hostile files.

#include <cstddef>
#include <span>
#include <string_view>

#include <strata/pictures/picture.hpp>

namespace strata::pictures {

/// Decodes every WebP (lossy, lossless, extended) to 8-bit RGB, or RGBA where it has alpha, not turned upright. Of an
/// animation it is the first frame on an empty canvas: transparent, or black where the file has no alpha.
///
///   source  named in messages: the file's path
///
/// Throws Errc::bad_picture when the file is damaged, ends early or is beyond `limits`. Memory: three or four bytes a
/// pixel, and up to five more while libwebp works.
[[nodiscard]] Picture decode_webp(std::span<const std::byte> file, std::string_view source = "a picture",
                                  const DecodeLimits& limits = {});

}  // namespace strata::pictures

#ifndef STRATA_COMPILED
#include <strata/pictures/impl/webp.ipp>
#endif
