#pragma once
// strata/pictures/impl/decode_image.ipp - the right decoder, then the right way up.

#include <utility>

#include <strata/core/inline.hpp>
#include <strata/pictures/decode_image.hpp>
#include <strata/pictures/image_header.hpp>
#include <strata/pictures/jpeg.hpp>
#include <strata/pictures/orientation.hpp>
#include <strata/pictures/png.hpp>
#include <strata/pictures/webp.hpp>

namespace strata::pictures {

STRATA_INLINE Picture decode_image(std::span<const std::byte> file, const PictureSize& target, std::string_view source,
                                   const DecodeLimits& limits) {
    require_file_within(limits, file.size(), source);
    const ImageHeader header = image_header(file, source);
    detail::require_within(limits, header.stored, source);
    Picture stored;
    switch (header.format) {
        case ImageFormat::png:
            stored = decode_png(file, source, limits);
            break;
        case ImageFormat::jpeg:
            stored = decode_jpeg(file, turned(target, header.orientation), source, limits);
            break;
        case ImageFormat::webp:
            stored = decode_webp(file, source, limits);
            break;
    }
    return turn_upright(std::move(stored), header.orientation);
}

STRATA_INLINE std::int64_t decode_bytes(const ImageHeader& header, const PictureSize& target) {
    const std::int64_t pixels = header.stored.width * header.stored.height;
    constexpr std::int64_t around = 8 << 20;  // rows, tables, and what a PNG's chunks may take
    const std::int64_t copies = header.orientation == Orientation::upright ? 1 : 2;
    switch (header.format) {
        case ImageFormat::png:
            break;
        case ImageFormat::jpeg: {
            // A progressive file keeps its coefficients, two bytes each, at full size.
            const auto reduced =
                static_cast<std::int64_t>(jpeg_denominator(header.stored, turned(target, header.orientation)));
            const std::int64_t decoded = (header.stored.width / reduced + 1) * (header.stored.height / reduced + 1);
            return around + pixels * 2 * header.channels + decoded * 3 * copies;
        }
        case ImageFormat::webp:
            return around + pixels * (4 * copies + 5);
    }
    return around + pixels * 4 * copies;
}

}  // namespace strata::pictures
