#pragma once
// strata/pictures/formats.hpp - the formats of picture files: one table of names, endings, first bytes and libraries.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace strata::pictures {

enum class ImageFormat : std::uint8_t { png, jpeg, webp, bmp, tiff, gif, avif, heic };

/// What this program knows of a format.
struct FormatFacts {
    ImageFormat format;
    std::string_view name;                    ///< "PNG"
    std::array<std::string_view, 4> endings;  ///< of file names, in lower case: ".jpg"
    std::string_view package;                 ///< of Debian, with its library; empty: always built in
    std::string_view option;                  ///< of CMake, that builds it in
    bool built_in;                            ///< false: its files are known and measured, and not decoded
};

#ifdef STRATA_WITH_TIFF
inline constexpr bool with_tiff = true;
#else
inline constexpr bool with_tiff = false;
#endif
#ifdef STRATA_WITH_GIF
inline constexpr bool with_gif = true;
#else
inline constexpr bool with_gif = false;
#endif
#ifdef STRATA_WITH_AVIF
inline constexpr bool with_avif = true;
#else
inline constexpr bool with_avif = false;
#endif
#ifdef STRATA_WITH_HEIC
inline constexpr bool with_heic = true;
#else
inline constexpr bool with_heic = false;
#endif

/// The table, in the order of ImageFormat.
inline constexpr std::array<FormatFacts, 8> formats{{
    {ImageFormat::png, "PNG", {".png"}, "", "", true},
    {ImageFormat::jpeg, "JPEG", {".jpg", ".jpeg"}, "", "", true},
    {ImageFormat::webp, "WebP", {".webp"}, "", "", true},
    {ImageFormat::bmp, "BMP", {".bmp"}, "", "", true},
    {ImageFormat::tiff, "TIFF", {".tif", ".tiff"}, "libtiff-dev", "STRATA_WITH_TIFF", with_tiff},
    {ImageFormat::gif, "GIF", {".gif"}, "libgif-dev", "STRATA_WITH_GIF", with_gif},
    {ImageFormat::avif, "AVIF", {".avif"}, "libavif-dev", "STRATA_WITH_AVIF", with_avif},
    {ImageFormat::heic, "HEIC", {".heic", ".heif", ".hif"}, "libheif-dev", "STRATA_WITH_HEIC", with_heic},
}};

/// Endings of pictures that are not decoded: such files are found, named and skipped.
inline constexpr std::array<std::string_view, 1> other_picture_endings{".jxl"};

[[nodiscard]] constexpr const FormatFacts& facts_of(ImageFormat format) noexcept {
    return formats[static_cast<std::size_t>(format)];
}
static_assert([] {
    for (std::size_t i = 0; i < formats.size(); ++i)
        if (formats[i].format != static_cast<ImageFormat>(i)) return false;
    return true;
}());

/// "PNG", "JPEG", "WebP", ...
[[nodiscard]] constexpr std::string_view name_of(ImageFormat format) noexcept { return facts_of(format).name; }

/// The format that a name ends with, in any case, with something before the ending. The file need not be of it.
[[nodiscard]] std::optional<ImageFormat> format_of_name(std::string_view name) noexcept;
/// True for a name that ends as pictures do, in any case, with something before the ending.
[[nodiscard]] bool is_picture_name(std::string_view name) noexcept;

/// The format by a file's first bytes, whatever its name is; 64 bytes are enough.
[[nodiscard]] std::optional<ImageFormat> format_of(std::span<const std::byte> head) noexcept;

/// What a file of another format is: "a JPEG XL file", "a file of an unknown format".
[[nodiscard]] std::string other_format(std::span<const std::byte> head);

/// "PNG, JPEG, WebP and BMP": what this program decodes.
[[nodiscard]] std::string decoded_formats();

/// Throws Errc::no_picture_library, with the package and the option, for a format that this program was built without.
void require_decoder(ImageFormat format, std::string_view source);

}  // namespace strata::pictures

#ifndef STRATA_COMPILED
#include <strata/pictures/impl/formats.ipp>
#endif
