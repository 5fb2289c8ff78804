#pragma once
// strata/pictures/impl/decode_image.ipp - the right decoder, the right colours, then the right way up.

#include <algorithm>
#include <optional>
#include <utility>

#include <strata/core/inline.hpp>
#include <strata/pictures/bmp.hpp>
#include <strata/pictures/colour_profile.hpp>
#include <strata/pictures/decode_image.hpp>
#include <strata/pictures/image_header.hpp>
#include <strata/pictures/jpeg.hpp>
#include <strata/pictures/orientation.hpp>
#include <strata/pictures/png.hpp>
#include <strata/pictures/webp.hpp>
#ifdef STRATA_WITH_TIFF
#include <strata/pictures/tiff.hpp>
#endif
#ifdef STRATA_WITH_GIF
#include <strata/pictures/gif.hpp>
#endif
#ifdef STRATA_WITH_AVIF
#include <strata/pictures/avif.hpp>
#endif
#ifdef STRATA_WITH_HEIC
#include <strata/pictures/heic.hpp>
#endif

namespace strata::pictures {

namespace detail {

/// The stored picture, in its own colours; inks are RGB already.
inline Picture decode_stored(std::span<const std::byte> file, const ImageHeader& header, const PictureSize& enough,
                             const ToSrgb& to_srgb, std::string_view source, const DecodeLimits& limits) {
    switch (header.format) {
        case ImageFormat::png:
            return decode_png(file, header, source, limits);
        case ImageFormat::jpeg:
            return decode_jpeg(file, header, enough, to_srgb, source, limits);
        case ImageFormat::webp:
            return decode_webp(file, header, source, limits);
        case ImageFormat::bmp:
            return decode_bmp(file, header, source);
#ifdef STRATA_WITH_TIFF
        case ImageFormat::tiff:
            return decode_tiff(file, header, to_srgb, source);
#endif
#ifdef STRATA_WITH_GIF
        case ImageFormat::gif:
            return decode_gif(file, header, source);
#endif
#ifdef STRATA_WITH_AVIF
        case ImageFormat::avif:
            return decode_avif(file, header, source, limits);
#endif
#ifdef STRATA_WITH_HEIC
        case ImageFormat::heic:
            return decode_heic(file, header, source, limits);
#endif
        default:
            break;
    }
    require_decoder(header.format, source);
    return {};
}

}  // namespace detail

STRATA_INLINE Picture decode_image(std::span<const std::byte> file, const ImageHeader& header,
                                   const PictureSize& target, std::string_view source, const DecodeLimits& limits) {
    require_file_within(limits, file.size(), source);
    require_within(limits, header.stored, source);
    if (const auto* const heif = std::get_if<HeifLayout>(&header.layout)) require_within(limits, heif->coded, source);
    require_decoder(header.format, source);
    const ToSrgb to_srgb{file, header};
    Picture stored = detail::decode_stored(file, header, turned(target, header.orientation), to_srgb, source, limits);
    const SampleKind kind = sample_kind(header);
    if (kind == SampleKind::grey || kind == SampleKind::colours) to_srgb.apply(stored);
    Picture picture = turn_upright(std::move(stored), header.orientation);
    picture.note = to_srgb.note();
    return picture;
}

STRATA_INLINE Picture decode_image(std::span<const std::byte> file, const PictureSize& target, std::string_view source,
                                   const DecodeLimits& limits) {
    require_file_within(limits, file.size(), source);
    return decode_image(file, image_header(file, source), target, source, limits);
}

STRATA_INLINE std::int64_t decode_bytes(const ImageHeader& header, const PictureSize& target) {
    const std::int64_t pixels = header.stored.width * header.stored.height;
    // Rows, tables, and what a PNG's chunks may take; and the profile with its tables.
    const std::int64_t around = (8 << 20) + (header.profile.parts.empty() ? 0 : ToSrgb::profile_bytes);
    const std::int64_t copies = header.orientation == Orientation::upright ? 1 : 2;
    switch (header.format) {
        case ImageFormat::png:
        case ImageFormat::bmp:
        case ImageFormat::gif:
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
        case ImageFormat::tiff: {
            const auto& layout = std::get<TiffLayout>(header.layout);
            const std::int64_t width = layout.chunk_width > 0 ? layout.chunk_width : header.stored.width;
            // A tile or strip, and as much again for what libtiff keeps of it, with JPEG coefficients or RGBA.
            const std::int64_t sample_bytes = layout.samples * ((layout.bits + 7) / 8);
            const std::int64_t chunk =
                width * layout.chunk_height * (sample_bytes + std::max<std::int64_t>(sample_bytes * 2, 4));
            return around + pixels * 4 * copies + chunk;
        }
        case ImageFormat::avif:
        case ImageFormat::heic: {
            // Planes of colours and alpha, of the picture that is shown and of others that the decoder keeps.
            const auto& layout = std::get<HeifLayout>(header.layout);
            const std::int64_t coded = layout.coded.width * layout.coded.height;
            const std::int64_t sample_bytes = layout.bits > 8 ? 2 : 1;
            return around + (24 << 20) + coded * 4 * (1 + 3 * sample_bytes) + pixels * 4 * copies;
        }
    }
    return around + pixels * 4 * copies;
}

STRATA_INLINE std::int64_t decode_bytes_of(std::string_view name, const PictureSize& size) {
    // What decode_bytes() says at most, of pictures that have to be turned, with a profile.
    const auto a_pixel = [](ImageFormat format) -> std::int64_t {
        switch (format) {
            case ImageFormat::png:
            case ImageFormat::bmp:
            case ImageFormat::gif:
                return 4 * 2;
            case ImageFormat::jpeg:
                return 2 * 4 + 3 * 2;  // four inks
            case ImageFormat::webp:
                return 4 * 2 + 5;
            case ImageFormat::tiff:
                return 4 * 2 + 3 * 8;  // all of it one strip
            case ImageFormat::avif:
            case ImageFormat::heic:
                break;
        }
        return 4 * (1 + 3 * 2) + 4 * 2;
    };
    const std::optional<ImageFormat> known = format_of_name(name);
    constexpr std::int64_t edge = 64;  // blocks in which formats code are not cut at a picture's edges
    const std::int64_t pixels = (size.width + edge) * (size.height + edge);
    std::int64_t most = 0;
    for (const FormatFacts& one : formats) {
        if (known && *known != one.format) continue;
        const bool is_heif = one.format == ImageFormat::avif || one.format == ImageFormat::heic;
        most = std::max(most, (is_heif ? 24 << 20 : 0) + pixels * a_pixel(one.format));
    }
    return (8 << 20) + ToSrgb::profile_bytes + most;
}

}  // namespace strata::pictures
