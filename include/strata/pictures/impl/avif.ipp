#pragma once
// strata/pictures/impl/avif.ipp - libavif, one thread.

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include <avif/avif.h>

#include <strata/core/inline.hpp>
#include <strata/pictures/avif.hpp>
#include <strata/pictures/picture_fault.hpp>

namespace strata::pictures {

namespace detail {

[[noreturn]] inline void throw_avif_fault(::avifResult result, std::string_view source) {
    const std::string why = ::avifResultToString(result);
    switch (result) {
        case AVIF_RESULT_INVALID_FTYP:
        case AVIF_RESULT_NO_CONTENT:
        case AVIF_RESULT_BMFF_PARSE_FAILED:
        case AVIF_RESULT_NO_AV1_ITEMS_FOUND:
        case AVIF_RESULT_DECODE_COLOR_FAILED:
        case AVIF_RESULT_DECODE_ALPHA_FAILED:
        case AVIF_RESULT_COLOR_ALPHA_SIZE_MISMATCH:
        case AVIF_RESULT_ISPE_SIZE_MISMATCH:
        case AVIF_RESULT_INVALID_IMAGE_GRID:
            throw_bad_picture(source, why);
        case AVIF_RESULT_TRUNCATED_DATA:
        case AVIF_RESULT_NO_IMAGES_REMAINING:
        case AVIF_RESULT_IO_ERROR:  // of bytes in memory: beyond their end
            throw_bad_picture(source, "the file ends too early");
        case AVIF_RESULT_UNSUPPORTED_DEPTH:
        case AVIF_RESULT_NOT_IMPLEMENTED:
            throw_fault(Errc::unsupported_picture, source, why);
        default:
            throw_fault(Errc::picture_undecided, source, why);
    }
}

}  // namespace detail

STRATA_INLINE Picture decode_avif(std::span<const std::byte> file, const ImageHeader& header, std::string_view source,
                                  const DecodeLimits& limits) {
    const auto check = [&](::avifResult result) {
        if (result != AVIF_RESULT_OK) detail::throw_avif_fault(result, source);
    };
    const auto& layout = std::get<HeifLayout>(header.layout);
    const std::unique_ptr<::avifDecoder, decltype(&::avifDecoderDestroy)> decoder{::avifDecoderCreate(),
                                                                                  &::avifDecoderDestroy};
    if (!decoder) throw std::bad_alloc{};
    decoder->maxThreads = 1;  // pictures are decoded side by side
    decoder->ignoreExif = AVIF_TRUE;
    decoder->ignoreXMP = AVIF_TRUE;
    decoder->imageSizeLimit = static_cast<std::uint32_t>(
        std::min<std::int64_t>(limits.pixels, static_cast<std::int64_t>(AVIF_DEFAULT_IMAGE_SIZE_LIMIT)));
    decoder->strictFlags = AVIF_STRICT_DISABLED;  // what other programs show is not refused
    check(::avifDecoderSetIOMemory(decoder.get(), reinterpret_cast<const std::uint8_t*>(file.data()), file.size()));
    check(::avifDecoderParse(decoder.get()));
    check(::avifDecoderNextImage(decoder.get()));
    const ::avifImage& image = *decoder->image;
    if (layout.coded != PictureSize{image.width, image.height})
        detail::throw_fault(Errc::picture_undecided, source, "its header says two things of its size");

    Picture picture{layout.coded.width, layout.coded.height, decoder->alphaPresent != AVIF_FALSE ? 4 : 3, {}};
    picture.pixels.resize(static_cast<std::size_t>(picture.width * picture.height * picture.channels));
    ::avifRGBImage rgb;
    ::avifRGBImageSetDefaults(&rgb, &image);
    rgb.depth = 8;
    if (image.depth > 8) rgb.avoidLibYUV = AVIF_TRUE;  // it cuts deeper samples off where libavif itself rounds
    rgb.format = picture.channels == 4 ? AVIF_RGB_FORMAT_RGBA : AVIF_RGB_FORMAT_RGB;
    rgb.pixels = picture.pixels.data();
    rgb.rowBytes = static_cast<std::uint32_t>(picture.width * picture.channels);
    check(::avifImageYUVToRGB(&image, &rgb));
    if (header.stored == layout.coded) return picture;

    // The clean aperture: its rows move to the beginning.
    const auto row = static_cast<std::size_t>(header.stored.width * picture.channels);
    for (std::int64_t y = 0; y < header.stored.height; ++y)
        std::memmove(picture.pixels.data() + static_cast<std::size_t>(y) * row,
                     picture.pixels.data() +
                         static_cast<std::size_t>(((y + layout.top) * picture.width + layout.left) * picture.channels),
                     row);
    picture.width = header.stored.width;
    picture.height = header.stored.height;
    picture.pixels.resize(row * static_cast<std::size_t>(picture.height));
    return picture;
}

}  // namespace strata::pictures
