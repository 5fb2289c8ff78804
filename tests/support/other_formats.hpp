#pragma once
// tests/support/other_formats.hpp - BMP, TIFF, GIF, AVIF and HEIC files, and colour profiles to put into any file; made
// with the libraries that are built in, so that a test needs no files from elsewhere.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <lcms2.h>

#include <strata/pictures/formats.hpp>
#include <strata/pictures/picture.hpp>
#ifdef STRATA_WITH_TIFF
#include <tiffio.h>
#endif
#ifdef STRATA_WITH_GIF
#include <gif_lib.h>
#endif
#ifdef STRATA_WITH_AVIF
#include <avif/avif.h>
#endif
#ifdef STRATA_WITH_HEIC
#include <libheif/heif.h>
#endif

#include "made_files.hpp"

namespace strata_test {

// ---- colour profiles -----------------------------------------------------------------------------------------------

inline Bytes saved(::cmsHPROFILE profile) {
    cmsUInt32Number size = 0;
    ::cmsSaveProfileToMem(profile, nullptr, &size);
    Bytes bytes(size);
    ::cmsSaveProfileToMem(profile, bytes.data(), &size);
    ::cmsCloseProfile(profile);
    return bytes;
}

/// sRGB with red and green exchanged: a pixel (r, g, b) shows what (g, r, b) does without it.
inline Bytes swapped_profile() {
    const cmsCIExyY white{0.3127, 0.3290, 1};
    const cmsCIExyYTRIPLE primaries{{0.30, 0.60, 1}, {0.64, 0.33, 1}, {0.15, 0.06, 1}};
    const std::array<cmsFloat64Number, 5> srgb{2.4, 1 / 1.055, 0.055 / 1.055, 1 / 12.92, 0.04045};
    ::cmsToneCurve* const curve = ::cmsBuildParametricToneCurve(nullptr, 4, srgb.data());
    ::cmsToneCurve* const curves[3] = {curve, curve, curve};
    const ::cmsHPROFILE profile = ::cmsCreateRGBProfile(&white, &primaries, curves);
    ::cmsFreeToneCurve(curve);
    return saved(profile);
}
inline Bytes srgb_profile() { return saved(::cmsCreate_sRGBProfile()); }
/// Grey of gamma 1.8.
inline Bytes grey_profile() {
    const cmsCIExyY white{0.3457, 0.3585, 1};
    ::cmsToneCurve* const curve = ::cmsBuildGamma(nullptr, 1.8);
    const ::cmsHPROFILE profile = ::cmsCreateGrayProfile(&white, curve);
    ::cmsFreeToneCurve(curve);
    return saved(profile);
}

/// Inks of which black alone counts: the lightness is what it leaves.
inline Bytes black_ink_profile() {
    const ::cmsHPROFILE profile = ::cmsCreateProfilePlaceholder(nullptr);
    ::cmsSetProfileVersion(profile, 2.1);
    ::cmsSetDeviceClass(profile, cmsSigOutputClass);
    ::cmsSetColorSpace(profile, cmsSigCmykData);
    ::cmsSetPCS(profile, cmsSigLabData);
    ::cmsPipeline* const pipeline = ::cmsPipelineAlloc(nullptr, 4, 3);
    ::cmsStage* const table = ::cmsStageAllocCLut16bit(nullptr, 5, 4, 3, nullptr);
    ::cmsStageSampleCLut16bit(
        table,
        [](const cmsUInt16Number* inks, cmsUInt16Number* lab, void*) -> cmsInt32Number {
            const cmsCIELab colour{100.0 * (65535 - inks[3]) / 65535, 0, 0};
            ::cmsFloat2LabEncodedV2(lab, &colour);
            return TRUE;
        },
        nullptr, 0);
    ::cmsPipelineInsertStage(pipeline, cmsAT_BEGIN, table);
    ::cmsWriteTag(profile, cmsSigAToB0Tag, pipeline);
    ::cmsPipelineFree(pipeline);
    return saved(profile);
}

/// A profile as the segments of a JPEG, in so many parts.
inline std::vector<Bytes> profile_segments(const Bytes& profile, std::size_t parts) {
    std::vector<Bytes> segments;
    const std::size_t each = (profile.size() + parts - 1) / parts;
    for (std::size_t i = 0; i < parts; ++i) {
        const std::size_t begin = i * each;
        const std::size_t end = std::min(profile.size(), begin + each);
        segments.push_back(jpeg_segment(
            0xE2, joined({bytes_of({"ICC_PROFILE\0", 12}),
                          {static_cast<std::byte>(i + 1), static_cast<std::byte>(parts)},
                          Bytes(profile.begin() + static_cast<std::ptrdiff_t>(begin),
                                profile.begin() + static_cast<std::ptrdiff_t>(end))})));
    }
    return segments;
}
/// The same as a chunk of a PNG.
inline Bytes profile_chunk(const Bytes& profile) {
    return png_chunk("iCCP", joined({bytes_of({"name\0\0", 6}), zlib_packed(profile)}));
}

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
            const std::uint8_t* const pixel = &picture.pixels[static_cast<std::size_t>((y * picture.width + x) * picture.channels)];
            for (const int c : {2, 1, 0, 3})
                if (c < picture.channels) file.push_back(static_cast<std::byte>(pixel[c]));
        }
        if (!alpha) file.resize(file.size() + static_cast<std::size_t>(picture.width % 4));
    }
    return file;
}

// ---- TIFF -----------------------------------------------------------------------------------------------------------

#ifdef STRATA_WITH_TIFF
struct TiffKind {
    std::string name = "8 bits";
    int bits = 8;
    std::uint16_t photometric = PHOTOMETRIC_RGB;
    std::uint16_t packing = COMPRESSION_NONE;
    bool planes = false;
    bool tiles = false;
    std::uint16_t alpha = 0;  ///< EXTRASAMPLE_...; 0: none
    const char* mode = "w";   ///< "wb" big endian, "wl" little, "w8" BigTIFF
    std::uint16_t orientation = ORIENTATION_TOPLEFT;
    Bytes profile = {};
};

/// Samples of 8 bits, `samples` a pixel, as a TIFF of that kind; bits below 8 take the highest ones.
inline Bytes make_tiff(const TiffKind& kind, std::int64_t width, std::int64_t height, int samples,
                       const std::vector<std::uint8_t>& values) {
    struct Output {
        Bytes bytes;
        std::uint64_t at = 0;
    } output;
    const auto of = [](::thandle_t handle) -> Output& { return *static_cast<Output*>(handle); };
    static const auto access = of;
    ::TIFF* const tiff = ::TIFFClientOpen(
        "made", kind.mode, &output,
        [](::thandle_t handle, void* out, ::tmsize_t size) {
            Output& to = access(handle);
            const auto count = std::min<std::uint64_t>(static_cast<std::uint64_t>(size), to.bytes.size() - to.at);
            std::memcpy(out, to.bytes.data() + to.at, count);
            to.at += count;
            return static_cast<::tmsize_t>(count);
        },
        [](::thandle_t handle, void* data, ::tmsize_t size) {
            Output& to = access(handle);
            to.bytes.resize(std::max<std::size_t>(to.bytes.size(), to.at + static_cast<std::size_t>(size)));
            std::memcpy(to.bytes.data() + to.at, data, static_cast<std::size_t>(size));
            to.at += static_cast<std::uint64_t>(size);
            return size;
        },
        [](::thandle_t handle, ::toff_t offset, int whence) {
            Output& to = access(handle);
            to.at = offset + (whence == SEEK_CUR ? to.at : whence == SEEK_END ? to.bytes.size() : 0);
            return static_cast<::toff_t>(to.at);
        },
        [](::thandle_t) { return 0; }, [](::thandle_t handle) -> ::toff_t { return access(handle).bytes.size(); },
        nullptr, nullptr);
    constexpr std::uint32_t tile = 16;
    ::TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, static_cast<std::uint32_t>(width));
    ::TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, static_cast<std::uint32_t>(height));
    ::TIFFSetField(tiff, TIFFTAG_SAMPLESPERPIXEL, samples);
    ::TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, kind.bits);
    ::TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, kind.photometric);
    ::TIFFSetField(tiff, TIFFTAG_COMPRESSION, kind.packing);
    ::TIFFSetField(tiff, TIFFTAG_PLANARCONFIG, kind.planes ? PLANARCONFIG_SEPARATE : PLANARCONFIG_CONTIG);
    ::TIFFSetField(tiff, TIFFTAG_ORIENTATION, kind.orientation);
    if (kind.alpha != 0) ::TIFFSetField(tiff, TIFFTAG_EXTRASAMPLES, 1, &kind.alpha);
    if (!kind.profile.empty())
        ::TIFFSetField(tiff, TIFFTAG_ICCPROFILE, static_cast<std::uint32_t>(kind.profile.size()), kind.profile.data());
    if (kind.photometric == PHOTOMETRIC_PALETTE) {  // number i is the colour (i, 255 - i, i / 2) of 16 bits
        std::array<std::vector<std::uint16_t>, 3> map;
        for (unsigned i = 0; i < 1U << kind.bits; ++i) {
            map[0].push_back(static_cast<std::uint16_t>(i * 257));
            map[1].push_back(static_cast<std::uint16_t>((255 - i) * 257));
            map[2].push_back(static_cast<std::uint16_t>(i / 2 * 257));
        }
        ::TIFFSetField(tiff, TIFFTAG_COLORMAP, map[0].data(), map[1].data(), map[2].data());
    }
    if (kind.tiles) {
        ::TIFFSetField(tiff, TIFFTAG_TILEWIDTH, tile);
        ::TIFFSetField(tiff, TIFFTAG_TILELENGTH, tile);
    } else {
        ::TIFFSetField(tiff, TIFFTAG_ROWSPERSTRIP, 7U);
    }
    /// `count` pixels of a row from x on, all their samples or one's, as they are stored; black beyond the picture.
    const auto packed = [&](std::int64_t x, std::int64_t y, std::int64_t count, int plane) {
        std::vector<std::uint8_t> row;
        unsigned bit = 0;
        for (std::int64_t i = 0; i < count; ++i)
            for (int s = plane < 0 ? 0 : plane; s < (plane < 0 ? samples : plane + 1); ++s) {
                const bool inside = x + i < width && y < height;
                const unsigned value = inside ? values[static_cast<std::size_t>((y * width + x + i) * samples + s)] : 0U;
                if (kind.bits == 16) {
                    const auto wide = static_cast<std::uint16_t>(value * 256 + 17);  // the low byte is dropped
                    row.resize(row.size() + 2);
                    std::memcpy(row.data() + row.size() - 2, &wide, 2);
                } else if (kind.bits == 8) {
                    row.push_back(static_cast<std::uint8_t>(value));
                } else {
                    if (bit % 8 == 0) row.push_back(0);
                    const auto shift = 8 - static_cast<unsigned>(kind.bits) - bit % 8;
                    row.back() = static_cast<std::uint8_t>(row.back() | (value >> (8 - kind.bits)) << shift);
                    bit += static_cast<unsigned>(kind.bits);
                }
            }
        return row;
    };
    for (int plane = kind.planes ? 0 : -1; plane < (kind.planes ? samples : 0); ++plane) {
        const auto sample = static_cast<std::uint16_t>(std::max(plane, 0));
        if (!kind.tiles)
            for (std::int64_t y = 0; y < height; ++y)
                ::TIFFWriteScanline(tiff, packed(0, y, width, plane).data(), static_cast<std::uint32_t>(y), sample);
        else
            for (std::int64_t top = 0; top < height; top += tile)
                for (std::int64_t left = 0; left < width; left += tile) {
                    std::vector<std::uint8_t> block;
                    for (std::int64_t y = top; y < top + tile; ++y) {
                        const auto row = packed(left, y, tile, plane);
                        block.insert(block.end(), row.begin(), row.end());
                    }
                    ::TIFFWriteTile(tiff, block.data(), static_cast<std::uint32_t>(left),
                                    static_cast<std::uint32_t>(top), 0, sample);
                }
    }
    ::TIFFClose(tiff);
    return output.bytes;
}
#endif

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
    ::avifImage* const image = ::avifImageCreate(static_cast<std::uint32_t>(picture.width),
                                                 static_cast<std::uint32_t>(picture.height), depth,
                                                 AVIF_PIXEL_FORMAT_YUV444);
    image->matrixCoefficients = AVIF_MATRIX_COEFFICIENTS_IDENTITY;
    if (!profile.empty())
        ::avifImageSetProfileICC(image, reinterpret_cast<const std::uint8_t*>(profile.data()), profile.size());
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
    ::avifImageRGBToYUV(image, &rgb);
    ::avifEncoder* const encoder = ::avifEncoderCreate();
    encoder->speed = 10;
    encoder->minQuantizer = encoder->maxQuantizer = AVIF_QUANTIZER_LOSSLESS;
    encoder->minQuantizerAlpha = encoder->maxQuantizerAlpha = AVIF_QUANTIZER_LOSSLESS;
    ::avifRWData output = AVIF_DATA_EMPTY;
    Bytes file;
    if (::avifEncoderWrite(encoder, image, &output) == AVIF_RESULT_OK) {
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
/// Of good quality. Empty: libheif has no encoder here.
inline Bytes make_heic(const strata::pictures::Picture& picture) {
    const std::unique_ptr<::heif_context, decltype(&::heif_context_free)> context{::heif_context_alloc(),
                                                                                  &::heif_context_free};
    ::heif_encoder* encoder = nullptr;
    if (::heif_context_get_encoder_for_format(context.get(), heif_compression_HEVC, &encoder).code != heif_error_Ok)
        return {};
    const std::unique_ptr<::heif_encoder, decltype(&::heif_encoder_release)> release{encoder, &::heif_encoder_release};
    ::heif_encoder_set_lossy_quality(encoder, 95);
    ::heif_image* image = nullptr;
    const bool alpha = picture.channels == 4;
    ::heif_image_create(static_cast<int>(picture.width), static_cast<int>(picture.height), heif_colorspace_RGB,
                        alpha ? heif_chroma_interleaved_RGBA : heif_chroma_interleaved_RGB, &image);
    ::heif_image_add_plane(image, heif_channel_interleaved, static_cast<int>(picture.width),
                           static_cast<int>(picture.height), 8);
    int stride = 0;
    std::uint8_t* const plane = ::heif_image_get_plane(image, heif_channel_interleaved, &stride);
    const auto row = static_cast<std::size_t>(picture.width * picture.channels);
    for (std::int64_t y = 0; y < picture.height; ++y)
        std::memcpy(plane + y * stride, picture.pixels.data() + static_cast<std::size_t>(y) * row, row);
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
