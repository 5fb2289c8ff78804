#pragma once
// strata/pictures/decode_image.hpp - a picture file of any format that is known to upright pixels in sRGB.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <strata/pictures/image_header.hpp>
#include <strata/pictures/picture.hpp>
#include <strata/pictures/picture_fault.hpp>

namespace strata::pictures {

/// Decodes the formats of formats.hpp, told by their first bytes, to 8-bit RGB, or RGBA where the file has alpha,
/// turned upright as the file says (image_header.hpp). Alpha is kept, not composed: cover_and_crop() lays it on white.
///
/// An ICC profile of a JPEG, PNG, WebP, TIFF, AVIF or HEIC is applied: the pixels are sRGB (colour_profile.hpp). Other
/// statements about gamma and colours are left alone. Samples of 16 bits keep their high byte. Of an animation the
/// first frame counts, of several pages the first, of several pictures the primary one. Picture::note says what was
/// wrong and did no harm.
///
///   header  image_header() of the same file
///   target  what the picture will be resized and cropped to, upright; a JPEG may then come smaller, but in no edge
///           smaller than `target`. {0, 0}: at its full size
///   source  named in messages: the file's path
///
/// Throws what is_picture_fault() knows; the limits are looked at before memory is taken. Memory: at most
/// decode_bytes().
[[nodiscard]] Picture decode_image(std::span<const std::byte> file, const ImageHeader& header,
                                   const PictureSize& target = {}, std::string_view source = "a picture",
                                   const DecodeLimits& limits = {});

/// The same, and the header as well.
[[nodiscard]] Picture decode_image(std::span<const std::byte> file, const PictureSize& target = {},
                                   std::string_view source = "a picture", const DecodeLimits& limits = {});

/// Bytes of memory that decode_image() takes at most for such a picture, without the file itself.
[[nodiscard]] std::int64_t decode_bytes(const ImageHeader& header, const PictureSize& target = {});

/// The same of a picture whose header is not read yet: of the format that its name ends with, or of any format where it
/// ends with none. Only a TIFF of more than four samples of 16 bits a pixel may take more.
///
///   size  as it is meant to be seen
[[nodiscard]] std::int64_t decode_bytes_of(std::string_view name, const PictureSize& size);

}  // namespace strata::pictures

#ifndef STRATA_COMPILED
#include <strata/pictures/impl/decode_image.ipp>
#endif
