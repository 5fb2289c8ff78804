#pragma once
// strata/pictures/png.hpp - PNG pictures to pixels and back, safe against hostile files.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <strata/pictures/header_fields.hpp>
#include <strata/pictures/picture.hpp>

namespace strata::pictures {

/// Decodes every kind of PNG (1 to 16 bits, grey, RGB, palette, alpha, tRNS, interlaced) to 8-bit RGB, or RGBA where it
/// has alpha or tRNS. Of 16-bit samples the high byte is kept; colour profiles, gamma and orientation are left alone.
///
///   header  image_header() of the same file
///   source  named in messages: the file's path
///
/// Throws Errc::bad_picture when the file is damaged or ends early, picture_too_large when it is beyond `limits`,
/// picture_undecided when there is not enough memory. Memory: three or four bytes a pixel, and at most 8 MB for
/// everything else in the file.
[[nodiscard]] Picture decode_png(std::span<const std::byte> file, const ImageHeader& header,
                                 std::string_view source = "a picture", const DecodeLimits& limits = {});

/// Packed 8-bit RGB rows as a PNG file. Equal pixels give equal bytes.
///
///   rgb  width * height * 3 bytes, from top to bottom
///
/// Throws Errc::bad_picture when a size is not positive or rgb has another number of bytes.
[[nodiscard]] std::vector<std::byte> encode_png(std::int64_t width, std::int64_t height,
                                                std::span<const std::uint8_t> rgb);

}  // namespace strata::pictures

#ifndef STRATA_COMPILED
#include <strata/pictures/impl/png.ipp>
#endif
