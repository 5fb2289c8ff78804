#pragma once
// strata/pictures/jpeg.hpp - JPEG pictures to pixels, at a reduced scale where that is enough, safe against hostile files.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <strata/pictures/colour_profile.hpp>
#include <strata/pictures/header_fields.hpp>
#include <strata/pictures/picture.hpp>

namespace strata::pictures {

/// Decodes every 8-bit JPEG that libjpeg-turbo knows (baseline, extended, progressive, Huffman or arithmetic coding;
/// grey, RGB, YCbCr, CMYK, YCCK) to RGB, not turned upright. Inks are taken as inverted, as Adobe writes them and
/// Pillow reads them.
///
///   header   image_header() of the same file
///   to_srgb  what inks become RGB by; other colours are left as they are
///   enough   the picture may come at 1/2, 1/4 or 1/8 of its size as long as it is at least this large in both edges,
///            as the pixels lie in the file; {0, 0}: full size. A reduced edge is rounded up
///   source   named in messages: the file's path
///
/// Throws Errc::bad_picture when the file is damaged in its structure or ends early, picture_too_large when it is
/// beyond `limits` or has more than 200 scans, unsupported_picture and picture_undecided. Damaged
/// pixels within a whole structure decode to something, as everywhere. Memory: three bytes a decoded pixel, and for
/// progressive files two bytes a sample at full size (six to eight bytes a pixel).
[[nodiscard]] Picture decode_jpeg(std::span<const std::byte> file, const ImageHeader& header, const PictureSize& enough,
                                  const ToSrgb& to_srgb, std::string_view source, const DecodeLimits& limits = {});

/// The largest of 1, 2, 4 and 8 by which a picture of this size can be divided and still be at least `enough` in both
/// edges.
[[nodiscard]] unsigned jpeg_denominator(const PictureSize& size, const PictureSize& enough) noexcept;

}  // namespace strata::pictures

#ifndef STRATA_COMPILED
#include <strata/pictures/impl/jpeg.ipp>
#endif
