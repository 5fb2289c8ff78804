#pragma once
// strata/pictures/impl/formats.ipp - first bytes, names and endings.

#include <algorithm>
#include <cctype>

#include <strata/core/error.hpp>
#include <strata/core/inline.hpp>
#include <strata/pictures/detail/header_bytes.hpp>
#include <strata/pictures/formats.hpp>

namespace strata::pictures {

namespace detail {

struct Magic {
    std::size_t at;
    std::string_view bytes;
    ImageFormat format;
};
inline constexpr std::array<Magic, 9> magics{{
    {0, "\x89PNG\r\n\x1A\n", ImageFormat::png},
    {0, "\xFF\xD8\xFF", ImageFormat::jpeg},
    {0, "BM", ImageFormat::bmp},
    {0, {"II*\0", 4}, ImageFormat::tiff},
    {0, {"MM\0*", 4}, ImageFormat::tiff},
    {0, {"II+\0", 4}, ImageFormat::tiff},  // BigTIFF
    {0, {"MM\0+", 4}, ImageFormat::tiff},
    {0, "GIF87a", ImageFormat::gif},
    {0, "GIF89a", ImageFormat::gif},
}};

struct OtherMagic {
    std::size_t at;
    std::string_view bytes;
    std::string_view name;
};
inline constexpr std::array<OtherMagic, 5> other_magics{{
    {0, "\xFF\x0A", "JPEG XL"},
    {0, {"\0\0\0\x0CJXL ", 8}, "JPEG XL"},
    {0, {"\0\0\0\x0CjP  ", 8}, "JPEG 2000"},
    {0, "8BPS", "Photoshop"},
    {0, "%PDF", "PDF"},
}};

/// In any case, with something before the ending.
inline bool ends_as(std::string_view name, std::string_view ending) noexcept {
    if (ending.empty() || name.size() <= ending.size()) return false;
    const std::string_view end = name.substr(name.size() - ending.size());
    return std::equal(end.begin(), end.end(), ending.begin(),
                      [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; });
}

/// AVIF or HEIC by the brands of a file type box (ISO/IEC 14496-12, 4.3). The first brand counts if it tells; else one
/// of those that the file is compatible with.
inline std::optional<ImageFormat> format_of_brands(Bytes head) noexcept {
    if (!has(head, 4, "ftyp")) return std::nullopt;
    constexpr std::array<std::string_view, 2> avif{"avif", "avis"};
    constexpr std::array<std::string_view, 6> heic{"heic", "heix", "heim", "heis", "hevc", "hevx"};
    const std::size_t end = std::min<std::size_t>(head.size(), big_endian(head, 0, 4));
    for (std::size_t at = 8; at + 4 <= end; at += at == 8 ? 8 : 4) {
        const auto is = [&](std::string_view brand) { return has(head, at, brand); };
        if (std::any_of(avif.begin(), avif.end(), is)) return ImageFormat::avif;
        if (std::any_of(heic.begin(), heic.end(), is)) return ImageFormat::heic;
    }
    return std::nullopt;
}

}  // namespace detail

STRATA_INLINE std::optional<ImageFormat> format_of_name(std::string_view name) noexcept {
    for (const FormatFacts& one : formats)
        for (const std::string_view ending : one.endings)
            if (detail::ends_as(name, ending)) return one.format;
    return std::nullopt;
}

STRATA_INLINE bool is_picture_name(std::string_view name) noexcept {
    return format_of_name(name) || std::any_of(other_picture_endings.begin(), other_picture_endings.end(),
                                               [&](std::string_view ending) { return detail::ends_as(name, ending); });
}

STRATA_INLINE std::optional<ImageFormat> format_of(std::span<const std::byte> head) noexcept {
    for (const detail::Magic& magic : detail::magics)
        if (detail::has(head, magic.at, magic.bytes)) return magic.format;
    if (detail::has(head, 0, "RIFF") && detail::has(head, 8, "WEBP")) return ImageFormat::webp;
    return detail::format_of_brands(head);
}

STRATA_INLINE std::string other_format(std::span<const std::byte> head) {
    for (const detail::OtherMagic& magic : detail::other_magics)
        if (detail::has(head, magic.at, magic.bytes)) return "a " + std::string{magic.name} + " file";
    return "a file of an unknown format";
}

STRATA_INLINE std::string decoded_formats() {
    std::string text;
    std::string_view last;
    for (const FormatFacts& one : formats) {
        if (!one.built_in) continue;
        if (!last.empty()) text.append(text.empty() ? "" : ", ").append(last);
        last = one.name;
    }
    return text.append(" and ").append(last);
}

STRATA_INLINE void require_decoder(ImageFormat format, std::string_view source) {
    const FormatFacts& facts = facts_of(format);
    if (facts.built_in) return;
    const std::string library{facts.package.substr(0, facts.package.rfind('-'))};
    throw Error{Errc::no_picture_library,
                std::string{source} + " is in the format " + std::string{facts.name} +
                    ", and this program was built without " + library,
                "install " + std::string{facts.package} + " and configure with -D" + std::string{facts.option} +
                    "=ON, or convert the file to PNG, JPEG or WebP"};
}

}  // namespace strata::pictures
