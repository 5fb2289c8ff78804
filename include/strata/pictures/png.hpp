#pragma once
// strata/pictures/png.hpp - PNG pictures to pixels and back, safe against hostile files.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
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

/// What a PNG says of itself beside its pixels.
struct PngText {
    std::string key;   ///< 1 to 79 characters of ASCII, no space at its ends: "Software"
    std::string text;  ///< UTF-8 without the character of number 0; line ends are "\n"
};

/// Packed 8-bit RGB rows as a PNG file. Equal pixels and texts give equal bytes.
///
///   rgb    width * height * 3 bytes, from top to bottom
///   texts  in front of the pixels, so that they are found without unpacking these; ASCII as tEXt, which every reader knows, anything
///          else as iTXt
///
/// Throws Errc::bad_picture when a size is not positive or rgb has another number of bytes, or a text is none as above.
[[nodiscard]] std::vector<std::byte> encode_png(std::int64_t width, std::int64_t height,
                                                std::span<const std::uint8_t> rgb, std::span<const PngText> texts = {});

/// The texts in front of the pixels of a PNG file, in their order, tEXt and iTXt that are not packed; others are passed over, and so are
/// those behind the first damaged chunk. Nothing of what is no PNG.
[[nodiscard]] std::vector<PngText> png_texts(std::span<const std::byte> file);

}  // namespace strata::pictures

#ifndef STRATA_COMPILED
#include <strata/pictures/impl/png.ipp>
#endif
