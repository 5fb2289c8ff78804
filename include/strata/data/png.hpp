#pragma once
// strata/data/png.hpp - PNG pictures to pixels and back, safe against hostile files.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace strata::data {

/// Pixels in memory: rows from top to bottom, four bytes a pixel: red, green, blue, alpha (not premultiplied).
struct Picture {
    std::int64_t width = 0;
    std::int64_t height = 0;
    std::vector<std::uint8_t> rgba;  ///< width * height * 4
};

/// Width and height of a picture, in pixels.
struct PictureSize {
    std::int64_t width = 0;
    std::int64_t height = 0;
    friend bool operator==(const PictureSize&, const PictureSize&) = default;
};

/// What a decoder accepts before it allocates anything.
struct DecodeLimits {
    std::int64_t edge = 32768;               ///< pixels of the longer edge
    std::int64_t pixels = 256 * 1024 * 1024;  ///< width * height; a pixel costs four bytes
};

/// How many bytes from the start of a file png_size needs.
inline constexpr std::size_t png_header_bytes = 33;

/// True when the bytes begin as a PNG file does.
[[nodiscard]] bool is_png(std::span<const std::byte> head) noexcept;

/// The size that a PNG's header states, or nullopt when the header is cut short or damaged.
///
///   head  the first png_header_bytes of the file, or more
[[nodiscard]] std::optional<PictureSize> png_size(std::span<const std::byte> head) noexcept;

/// Decodes every kind of PNG (1 to 16 bits, grey, RGB, palette, alpha, tRNS, interlaced) to 8-bit RGBA.
/// Of 16-bit samples the high byte is kept; colour profiles and gamma are left alone.
///
///   source  named in messages: the file's path
///
/// Throws Errc::bad_picture when the file is no PNG, is damaged, ends early or is beyond `limits`. Memory:
/// four bytes a pixel, and at most 8 MB for everything else in the file.
[[nodiscard]] Picture decode_png(std::span<const std::byte> file, std::string_view source = "a picture",
                                 const DecodeLimits& limits = {});

/// Packed 8-bit RGB rows as a PNG file. Equal pixels give equal bytes.
///
///   rgb  width * height * 3 bytes, from top to bottom
///
/// Throws Errc::bad_picture when a size is not positive or rgb has another number of bytes.
[[nodiscard]] std::vector<std::byte> encode_png(std::int64_t width, std::int64_t height,
                                                std::span<const std::uint8_t> rgb);

}  // namespace strata::data

#ifndef STRATA_COMPILED
#include <strata/data/impl/png.ipp>
#endif
