#pragma once
// strata/pictures/decode_image.hpp - a picture file of any format that is known to upright pixels.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <strata/pictures/image_header.hpp>
#include <strata/pictures/picture.hpp>

namespace strata::pictures {

/// Decodes PNG, JPEG and WebP, told by their first bytes, to 8-bit RGB, or RGBA where the file has alpha, turned
/// upright as EXIF or XMP says (image_header.hpp). Alpha is kept, not composed: cover_and_crop() lays it on white.
/// Colour profiles and gamma are left alone, samples of 16 bits keep their high byte, of an animation the first frame
/// counts.
///
///   target  what the picture will be resized and cropped to, upright; a JPEG may then come smaller, but in no edge
///           smaller than `target`. {0, 0}: at its full size
///   source  named in messages: the file's path
///
/// Throws Errc::unsupported_picture for other formats, Errc::bad_picture when the file is damaged, ends early or is
/// beyond `limits`; the limits are looked at before memory is taken. Memory: at most decode_bytes().
[[nodiscard]] Picture decode_image(std::span<const std::byte> file, const PictureSize& target = {},
                                   std::string_view source = "a picture", const DecodeLimits& limits = {});

/// Bytes of memory that decode_image() takes at most for such a picture, without the file itself.
[[nodiscard]] std::int64_t decode_bytes(const ImageHeader& header, const PictureSize& target = {});

}  // namespace strata::pictures

#ifndef STRATA_COMPILED
#include <strata/pictures/impl/decode_image.ipp>
#endif
