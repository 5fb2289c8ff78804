#pragma once
// tests/support/other_formats.hpp - BMP, GIF, AVIF and HEIC files, made with the libraries that are built in, so that a
// test needs no files from elsewhere; with made_tiff.hpp and colour_profiles.hpp.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <strata/pictures/formats.hpp>
#include <strata/pictures/picture.hpp>
#ifdef STRATA_WITH_GIF
#include <gif_lib.h>
#endif
#ifdef STRATA_WITH_AVIF
#include <avif/avif.h>
#endif
#ifdef STRATA_WITH_HEIC
#include <libheif/heif.h>
#endif

#include "colour_profiles.hpp"
#include "made_files.hpp"
#include "made_tiff.hpp"

namespace strata_test {

// ---- BMP ------------------------------------------------------------------------------------------------------------

/// The two headers of a BMP of Windows 3, before palette and masks.
inline Bytes bmp_header(std::int32_t width, std::int32_t height, int bits, int packing, std::uint32_t pixels_at,
                        std::uint32_t colours = 0) {
    return joined({bytes_of("BM"), little_endian_bytes(0, 8), little_endian_bytes(pixels_at, 4),
                   little_endian_bytes(40, 4), little_endian_bytes(static_cast<std::uint32_t>(width), 4),
                   little_endian_bytes(static_cast<std::uint32_t>(height), 4), little_endian_bytes(1, 2),
                   little_endian_bytes(static_cast<unsigned>(bits), 2),
                   little_endian_bytes(static_cast<unsigned>(packing), 4), little_endian_bytes(0, 12),
                   little_endian_bytes(colours, 4), little_endian_bytes(0, 4)});
}

/// A picture of 24 bits, from the bottom to the top, or of 32 bits with masks and alpha where it has alpha.
inline Bytes make_bmp(const strata::pictures::Picture& picture) {
    const bool alpha = picture.channels == 4;
    constexpr std::uint32_t headers = 54;
    constexpr std::uint32_t masks = 16;
    Bytes file = bmp_header(static_cast<std::int32_t>(picture.width), static_cast<std::int32_t>(picture.height),
                            alpha ? 32 : 24, alpha ? 6 : 0, headers + (alpha ? masks : 0));
    if (alpha)
        for (const std::uint32_t mask : {0x00FF0000U, 0x0000FF00U, 0x000000FFU, 0xFF000000U})
            append(file, little_endian_bytes(mask, 4));
    for (std::int64_t y = picture.height - 1; y >= 0; --y) {
        for (std::int64_t x = 0; x < picture.width; ++x) {
            const std::uint8_t* const pixel =
                &picture.pixels[static_cast<std::size_t>((y * picture.width + x) * picture.channels)];
            for (const int c : {2, 1, 0, 3})
                if (c < picture.channels) file.push_back(static_cast<std::byte>(pixel[c]));
        }
        if (!alpha) file.resize(file.size() + static_cast<std::size_t>(picture.width % 4));
    }
    return file;
}

// ---- GIF ------------------------------------------------------------------------------------------------------------

#ifdef STRATA_WITH_GIF
struct GifKind {
    std::int64_t left = 0;  ///< of the frame on its canvas
    std::int64_t top = 0;
    int transparent = -1;  ///< a colour's number
    bool interlaced = false;
};

/// A frame of 8 colours on a canvas: colour i is (30 i, 255 - 30 i, 7 i), colour 2 the background.
inline Bytes make_gif(const GifKind& kind, std::int64_t canvas_width, std::int64_t canvas_height, std::int64_t width,
                      std::int64_t height, const std::vector<std::uint8_t>& numbers) {
    Bytes file;
    int failure = 0;
    ::GifFileType* const gif = ::EGifOpen(
        &file,
        [](::GifFileType* to, const ::GifByteType* bytes, int count) {
            const auto* begin = reinterpret_cast<const std::byte*>(bytes);
            auto& out = *static_cast<Bytes*>(to->UserData);
            out.insert(out.end(), begin, begin + count);
            return count;
        },
        &failure);
    std::array<::GifColorType, 8> colours{};
    for (std::size_t i = 0; i < colours.size(); ++i)
        colours[i] = {static_cast<::GifByteType>(30 * i), static_cast<::GifByteType>(255 - 30 * i),
                      static_cast<::GifByteType>(7 * i)};
    ::ColorMapObject* const map = ::GifMakeMapObject(8, colours.data());
    ::EGifSetGifVersion(gif, true);
    ::EGifPutScreenDesc(gif, static_cast<int>(canvas_width), static_cast<int>(canvas_height), 3, 2, map);
    if (kind.transparent >= 0) {
        const ::GraphicsControlBlock control{DISPOSAL_UNSPECIFIED, false, 0, kind.transparent};
        std::array<::GifByteType, 4> bytes{};
        ::EGifGCBToExtension(&control, bytes.data());
        ::EGifPutExtension(gif, GRAPHICS_EXT_FUNC_CODE, static_cast<int>(bytes.size()), bytes.data());
    }
    ::EGifPutImageDesc(gif, static_cast<int>(kind.left), static_cast<int>(kind.top), static_cast<int>(width),
                       static_cast<int>(height), kind.interlaced, nullptr);
    const auto put = [&](std::int64_t y) {
        std::vector<::GifPixelType> line(numbers.begin() + static_cast<std::ptrdiff_t>(y * width),
                                         numbers.begin() + static_cast<std::ptrdiff_t>((y + 1) * width));
        ::EGifPutLine(gif, line.data(), static_cast<int>(width));
    };
    if (kind.interlaced)
        for (const auto& [first, step] : {std::pair{0, 8}, std::pair{4, 8}, std::pair{2, 4}, std::pair{1, 2}})
            for (std::int64_t y = first; y < height; y += step) put(y);
    else
        for (std::int64_t y = 0; y < height; ++y) put(y);
    ::EGifCloseFile(gif, &failure);
    ::GifFreeMapObject(map);
    return file;
}
#endif

// ---- AVIF and HEIC --------------------------------------------------------------------------------------------------

#ifdef STRATA_WITH_AVIF
/// Of good quality and all colours; as lossless as `depth` bits allow with depth 8. Empty: libavif has no encoder here.
inline Bytes make_avif(const strata::pictures::Picture& picture, std::uint32_t depth = 8, const Bytes& profile = {},
                       int turns = 0) {
    ::avifImage* const image =
        ::avifImageCreate(static_cast<std::uint32_t>(picture.width), static_cast<std::uint32_t>(picture.height), depth,
                          AVIF_PIXEL_FORMAT_YUV444);
    image->matrixCoefficients = AVIF_MATRIX_COEFFICIENTS_IDENTITY;
    if (!profile.empty())  // void before libavif 1.0
        static_cast<void>(
            ::avifImageSetProfileICC(image, reinterpret_cast<const std::uint8_t*>(profile.data()), profile.size()));
    if (turns > 0) {
        image->transformFlags |= AVIF_TRANSFORM_IROT;
        image->irot.angle = static_cast<std::uint8_t>(turns);
    }
    ::avifRGBImage rgb;
    ::avifRGBImageSetDefaults(&rgb, image);
    rgb.depth = 8;
    rgb.format = picture.channels == 4 ? AVIF_RGB_FORMAT_RGBA : AVIF_RGB_FORMAT_RGB;
    rgb.pixels = const_cast<std::uint8_t*>(picture.pixels.data());
    rgb.rowBytes = static_cast<std::uint32_t>(picture.width * picture.channels);
    const bool is_converted = ::avifImageRGBToYUV(image, &rgb) == AVIF_RESULT_OK;
    ::avifEncoder* const encoder = ::avifEncoderCreate();
    encoder->speed = 10;
    encoder->minQuantizer = encoder->maxQuantizer = AVIF_QUANTIZER_LOSSLESS;
    encoder->minQuantizerAlpha = encoder->maxQuantizerAlpha = AVIF_QUANTIZER_LOSSLESS;
    ::avifRWData output = AVIF_DATA_EMPTY;
    Bytes file;
    if (is_converted && ::avifEncoderWrite(encoder, image, &output) == AVIF_RESULT_OK) {
        const auto* begin = reinterpret_cast<const std::byte*>(output.data);
        file.assign(begin, begin + output.size);
    }
    ::avifRWDataFree(&output);
    ::avifEncoderDestroy(encoder);
    ::avifImageDestroy(image);
    return file;
}
#endif

#ifdef STRATA_WITH_HEIC
/// Of good quality, with 8, 10 or 12 bits a number. Empty: libheif has no encoder here, or none of so many bits.
inline Bytes make_heic(const strata::pictures::Picture& picture, int bits = 8) {
    const std::unique_ptr<::heif_context, decltype(&::heif_context_free)> context{::heif_context_alloc(),
                                                                                  &::heif_context_free};
    ::heif_encoder* encoder = nullptr;
    if (::heif_context_get_encoder_for_format(context.get(), heif_compression_HEVC, &encoder).code != heif_error_Ok)
        return {};
    const std::unique_ptr<::heif_encoder, decltype(&::heif_encoder_release)> release{encoder, &::heif_encoder_release};
    ::heif_encoder_set_lossy_quality(encoder, 95);
    ::heif_image* image = nullptr;
    const bool alpha = picture.channels == 4;
    const ::heif_chroma chroma =
        bits == 8 ? (alpha ? heif_chroma_interleaved_RGBA : heif_chroma_interleaved_RGB)
                  : (alpha ? heif_chroma_interleaved_RRGGBBAA_LE : heif_chroma_interleaved_RRGGBB_LE);
    ::heif_image_create(static_cast<int>(picture.width), static_cast<int>(picture.height), heif_colorspace_RGB, chroma,
                        &image);
    ::heif_image_add_plane(image, heif_channel_interleaved, static_cast<int>(picture.width),
                           static_cast<int>(picture.height), bits);
    int stride = 0;
    std::uint8_t* const plane = ::heif_image_get_plane(image, heif_channel_interleaved, &stride);
    const auto row = static_cast<std::size_t>(picture.width * picture.channels);
    for (std::int64_t y = 0; y < picture.height; ++y) {
        const std::uint8_t* const from = picture.pixels.data() + static_cast<std::size_t>(y) * row;
        std::uint8_t* const to = plane + y * stride;
        if (bits == 8) {
            std::memcpy(to, from, row);
            continue;
        }
        for (std::size_t i = 0; i < row; ++i) {
            const unsigned value = static_cast<unsigned>(from[i]) << (bits - 8) | from[i] >> (16 - bits);
            to[2 * i] = static_cast<std::uint8_t>(value & 0xffU);
            to[2 * i + 1] = static_cast<std::uint8_t>(value >> 8);
        }
    }
    ::heif_image_handle* handle = nullptr;
    const bool done =
        ::heif_context_encode_image(context.get(), image, encoder, nullptr, &handle).code == heif_error_Ok;
    if (handle != nullptr) ::heif_image_handle_release(handle);
    ::heif_image_release(image);
    Bytes file;
    if (!done) return file;
    ::heif_writer writer{};
    writer.writer_api_version = 1;
    writer.write = [](::heif_context*, const void* data, std::size_t size, void* out) {
        const auto* begin = static_cast<const std::byte*>(data);
        static_cast<Bytes*>(out)->assign(begin, begin + size);
        return ::heif_error{heif_error_Ok, heif_suberror_Unspecified, ""};
    };
    ::heif_context_write(context.get(), &writer, &file);
    return file;
}
#endif

}  // namespace strata_test
