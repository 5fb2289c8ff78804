#pragma once
// strata/pictures/impl/image_header.ipp - which header a file has.

#include <algorithm>
#include <string>

#include <strata/core/inline.hpp>
#include <strata/pictures/detail/bmp_header.hpp>
#include <strata/pictures/detail/gif_header.hpp>
#include <strata/pictures/detail/header_bytes.hpp>
#include <strata/pictures/detail/heif_header.hpp>
#include <strata/pictures/detail/jpeg_header.hpp>
#include <strata/pictures/detail/png_header.hpp>
#include <strata/pictures/detail/tiff_header.hpp>
#include <strata/pictures/detail/webp_header.hpp>
#include <strata/pictures/image_header.hpp>

namespace strata::pictures {

STRATA_INLINE ImageHeader read_image_header(const ReadRange& read, std::string_view source) {
    detail::HeaderBytes bytes{read, source};
    const detail::Bytes head = bytes.at(0, 64);
    if (head.empty()) detail::throw_bad_picture(source, "the file is empty");
    const std::optional<ImageFormat> format = format_of(head);
    if (!format) detail::throw_unsupported(source, other_format(head));
    switch (*format) {
        case ImageFormat::png:
            return detail::read_png_header(bytes);
        case ImageFormat::jpeg:
            return detail::read_jpeg_header(bytes);
        case ImageFormat::webp:
            return detail::read_webp_header(bytes);
        case ImageFormat::bmp:
            return detail::read_bmp_header(bytes);
        case ImageFormat::tiff:
            return detail::read_tiff_header(bytes);
        case ImageFormat::gif:
            return detail::read_gif_header(bytes);
        case ImageFormat::avif:
        case ImageFormat::heic:
            break;
    }
    return detail::read_heif_header(bytes, *format);
}

STRATA_INLINE ImageHeader image_header(std::span<const std::byte> file, std::string_view source) {
    return read_image_header(
        [file](std::uint64_t offset, std::size_t length) {
            if (offset >= file.size()) return std::vector<std::byte>{};
            const auto part = file.subspan(static_cast<std::size_t>(offset));
            const auto bytes = part.first(std::min(length, part.size()));
            return std::vector<std::byte>(bytes.begin(), bytes.end());
        },
        source);
}

}  // namespace strata::pictures
