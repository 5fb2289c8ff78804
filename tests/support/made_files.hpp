#pragma once
// tests/support/made_files.hpp - JPEG and WebP files of every kind, EXIF data, and chunks to put it into.

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <jpeglib.h>
#include <webp/encode.h>
#include <zlib.h>

#include <strata/pictures/picture.hpp>

namespace strata_test {

using Bytes = std::vector<std::byte>;

inline Bytes bytes_of(std::string_view text) {
    const auto* begin = reinterpret_cast<const std::byte*>(text.data());
    return {begin, begin + text.size()};
}
inline void append(Bytes& to, const Bytes& part) { to.insert(to.end(), part.begin(), part.end()); }
inline Bytes joined(std::initializer_list<Bytes> parts) {
    Bytes all;
    for (const Bytes& part : parts) append(all, part);
    return all;
}
inline Bytes big_endian_bytes(std::uint64_t value, int count) {
    Bytes bytes;
    for (int i = count - 1; i >= 0; --i) bytes.push_back(static_cast<std::byte>(value >> (8 * i)));
    return bytes;
}
inline Bytes little_endian_bytes(std::uint64_t value, int count) {
    Bytes bytes;
    for (int i = 0; i < count; ++i) bytes.push_back(static_cast<std::byte>(value >> (8 * i)));
    return bytes;
}
inline Bytes inserted(const Bytes& file, std::size_t at, const Bytes& part) {
    Bytes all = file;
    all.insert(all.begin() + static_cast<std::ptrdiff_t>(at), part.begin(), part.end());
    return all;
}

/// A picture without symmetry that survives a lossy format: gradients, a bright quarter, 3 or 4 channels.
inline strata::pictures::Picture soft_picture(std::int64_t width, std::int64_t height, std::int64_t channels = 3) {
    strata::pictures::Picture picture{width, height, channels, {}};
    for (std::int64_t y = 0; y < height; ++y)
        for (std::int64_t x = 0; x < width; ++x) {
            const bool bright = x * 2 < width && y * 2 < height;
            const std::array<std::int64_t, 4> sample{bright ? 220 : 30 + x * 120 / width,
                                                     bright ? 200 : 40 + y * 150 / height,
                                                     60 + x * 50 / width + y * 50 / height, 255 - x * 200 / width};
            for (std::int64_t c = 0; c < channels; ++c)
                picture.pixels.push_back(static_cast<std::uint8_t>(sample[static_cast<std::size_t>(c)]));
        }
    return picture;
}

/// Average distance of samples, which must be as many.
inline double mean_difference(const strata::pictures::Picture& a, const strata::pictures::Picture& b) {
    if (a.width != b.width || a.height != b.height || a.channels != b.channels) return 1e9;
    double sum = 0;
    for (std::size_t i = 0; i < a.pixels.size(); ++i) sum += std::abs(int{a.pixels[i]} - int{b.pixels[i]});
    return sum / static_cast<double>(a.pixels.size());
}

/// How a JPEG is written.
struct JpegKind {
    std::string name = "baseline 4:2:0";
    J_COLOR_SPACE pixels = JCS_RGB;  ///< of what goes in: JCS_RGB, JCS_GRAYSCALE, JCS_CMYK
    J_COLOR_SPACE stored = JCS_YCbCr;
    int sampling = 0x22;  ///< of the first component, horizontal and vertical
    bool progressive = false;
    bool arithmetic = false;
    int restart_rows = 0;
    int quality = 95;
};

inline std::vector<JpegKind> all_jpeg_kinds() {
    return {
        {},
        {.name = "4:4:4", .sampling = 0x11},
        {.name = "4:2:2", .sampling = 0x21},
        {.name = "4:4:0", .sampling = 0x12},
        {.name = "progressive", .progressive = true},
        {.name = "arithmetic", .arithmetic = true},
        {.name = "arithmetic progressive", .progressive = true, .arithmetic = true},
        {.name = "restarts", .restart_rows = 1},
        {.name = "RGB", .stored = JCS_RGB, .sampling = 0x11},
        {.name = "grey", .pixels = JCS_GRAYSCALE, .stored = JCS_GRAYSCALE, .sampling = 0x11},
        {.name = "CMYK", .pixels = JCS_CMYK, .stored = JCS_CMYK, .sampling = 0x11},
        {.name = "YCCK", .pixels = JCS_CMYK, .stored = JCS_YCCK},
        {.name = "progressive CMYK", .pixels = JCS_CMYK, .stored = JCS_CMYK, .sampling = 0x11, .progressive = true}};
}

/// The samples as they are stored: `samples` has 1, 3 or 4 a pixel, as kind.pixels says.
inline Bytes encode_jpeg(const JpegKind& kind, std::int64_t width, std::int64_t height,
                         std::span<const std::uint8_t> samples) {
    jpeg_compress_struct jpeg{};
    jpeg_error_mgr errors{};
    jpeg.err = jpeg_std_error(&errors);
    jpeg_create_compress(&jpeg);
    unsigned char* memory = nullptr;
    unsigned long length = 0;
    jpeg_mem_dest(&jpeg, &memory, &length);
    jpeg.image_width = static_cast<JDIMENSION>(width);
    jpeg.image_height = static_cast<JDIMENSION>(height);
    jpeg.input_components = kind.pixels == JCS_GRAYSCALE ? 1 : kind.pixels == JCS_CMYK ? 4 : 3;
    jpeg.in_color_space = kind.pixels;
    jpeg_set_defaults(&jpeg);
    jpeg_set_colorspace(&jpeg, kind.stored);
    jpeg_set_quality(&jpeg, kind.quality, TRUE);
    jpeg.comp_info[0].h_samp_factor = kind.sampling >> 4;
    jpeg.comp_info[0].v_samp_factor = kind.sampling & 15;
    if (kind.stored == JCS_YCCK) {  // black at full size, as the first
        jpeg.comp_info[3].h_samp_factor = kind.sampling >> 4;
        jpeg.comp_info[3].v_samp_factor = kind.sampling & 15;
    }
    jpeg.arith_code = kind.arithmetic ? TRUE : FALSE;
    jpeg.restart_in_rows = kind.restart_rows;
    if (kind.progressive) jpeg_simple_progression(&jpeg);
    jpeg_start_compress(&jpeg, TRUE);
    while (jpeg.next_scanline < jpeg.image_height) {
        auto* row = const_cast<JSAMPROW>(samples.data()) + static_cast<std::size_t>(jpeg.next_scanline) *
                                                               static_cast<std::size_t>(width * jpeg.input_components);
        jpeg_write_scanlines(&jpeg, &row, 1);
    }
    jpeg_finish_compress(&jpeg);
    const auto* begin = reinterpret_cast<const std::byte*>(memory);
    Bytes file(begin, begin + length);
    jpeg_destroy_compress(&jpeg);
    std::free(memory);
    return file;
}

/// A JPEG and what it shows. Inks are stored as Adobe does: 255 is none.
struct MadeJpeg {
    Bytes file;
    strata::pictures::Picture shows;
};

inline MadeJpeg make_jpeg(const JpegKind& kind, std::int64_t width, std::int64_t height) {
    strata::pictures::Picture shows = soft_picture(width, height);
    std::vector<std::uint8_t> samples;
    for (std::size_t i = 0; i < shows.pixels.size(); i += 3) {
        std::uint8_t* const rgb = &shows.pixels[i];
        if (kind.pixels == JCS_GRAYSCALE) {
            rgb[1] = rgb[2] = rgb[0];
            samples.push_back(rgb[0]);
        } else if (kind.pixels == JCS_CMYK) {  // a black of 240 in front of the colours
            for (int c = 0; c < 3; ++c) {
                samples.push_back(rgb[c]);
                rgb[c] = static_cast<std::uint8_t>((rgb[c] * 240 * 2 + 255) / 510);
            }
            samples.push_back(240);
        } else {
            samples.insert(samples.end(), rgb, rgb + 3);
        }
    }
    return {encode_jpeg(kind, width, height, samples), std::move(shows)};
}

inline Bytes jpeg_segment(unsigned marker, const Bytes& data) {
    return joined({{std::byte{0xFF}, static_cast<std::byte>(marker)}, big_endian_bytes(data.size() + 2, 2), data});
}

/// A TIFF header with a directory of one or two entries; the last is the orientation.
inline Bytes exif(unsigned orientation, bool big_endian = true, unsigned type = 3) {
    const auto number = [&](std::uint64_t value, int count) {
        return big_endian ? big_endian_bytes(value, count) : little_endian_bytes(value, count);
    };
    const int value_bytes = type == 1 ? 1 : type == 3 ? 2 : 4;
    return joined({bytes_of(big_endian ? "MM" : "II"), number(42, 2), number(8, 4), number(2, 2), number(0x010F, 2),
                   number(2, 2), number(4, 4), bytes_of("abc."),  // the maker's name
                   number(0x0112, 2), number(type, 2), number(1, 4), number(orientation, value_bytes),
                   Bytes(4U - static_cast<unsigned>(value_bytes)), number(0, 4)});
}
inline Bytes exif_segment(const Bytes& tiff) { return jpeg_segment(0xE1, joined({bytes_of({"Exif\0\0", 6}), tiff})); }

inline Bytes png_chunk(std::string_view type, const Bytes& data) {
    const Bytes body = joined({bytes_of(type), data});
    const auto sum = ::crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()));
    return joined({big_endian_bytes(data.size(), 4), body, big_endian_bytes(sum, 4)});
}
constexpr std::size_t after_png_header = 33;

inline Bytes zlib_packed(const Bytes& data) {
    uLongf length = ::compressBound(static_cast<uLong>(data.size()));
    Bytes packed(length);
    ::compress(reinterpret_cast<Bytef*>(packed.data()), &length, reinterpret_cast<const Bytef*>(data.data()),
               static_cast<uLong>(data.size()));
    packed.resize(length);
    return packed;
}

inline Bytes webp_chunk(std::string_view type, const Bytes& data) {
    return joined({bytes_of(type), little_endian_bytes(data.size(), 4), data, Bytes(data.size() % 2)});
}
inline Bytes webp_file(const Bytes& chunks) {
    return joined({bytes_of("RIFF"), little_endian_bytes(chunks.size() + 4, 4), bytes_of("WEBP"), chunks});
}
/// Flags: 0x02 animation, 0x08 EXIF, 0x10 alpha.
inline Bytes vp8x_chunk(unsigned flags, std::int64_t width, std::int64_t height) {
    return webp_chunk(
        "VP8X", joined({little_endian_bytes(flags, 4), little_endian_bytes(static_cast<std::uint64_t>(width - 1), 3),
                        little_endian_bytes(static_cast<std::uint64_t>(height - 1), 3)}));
}
/// A still, lossless with equal pixels or lossy with quality 95.
inline Bytes make_webp(const strata::pictures::Picture& picture, bool lossless) {
    std::uint8_t* memory = nullptr;
    const auto width = static_cast<int>(picture.width);
    const auto height = static_cast<int>(picture.height);
    const auto stride = static_cast<int>(picture.width * picture.channels);
    std::size_t length = 0;
    if (picture.channels == 4) {
        length = lossless ? WebPEncodeLosslessRGBA(picture.pixels.data(), width, height, stride, &memory)
                          : WebPEncodeRGBA(picture.pixels.data(), width, height, stride, 95, &memory);
    } else {
        length = lossless ? WebPEncodeLosslessRGB(picture.pixels.data(), width, height, stride, &memory)
                          : WebPEncodeRGB(picture.pixels.data(), width, height, stride, 95, &memory);
    }
    const auto* begin = reinterpret_cast<const std::byte*>(memory);
    Bytes file(begin, begin + length);
    WebPFree(memory);
    return file;
}
/// The chunks of a still: everything behind "RIFF....WEBP".
inline Bytes webp_chunks(const Bytes& still) { return {still.begin() + 12, still.end()}; }

/// An animation of one frame at (left, top), both even.
inline Bytes make_animation(const strata::pictures::Picture& frame, std::int64_t width, std::int64_t height,
                            std::int64_t left, std::int64_t top) {
    Bytes chunks = webp_chunks(make_webp(frame, true));
    const auto number = [](std::int64_t value) { return little_endian_bytes(static_cast<std::uint64_t>(value), 3); };
    const Bytes head = joined(
        {number(left / 2), number(top / 2), number(frame.width - 1), number(frame.height - 1), number(100), Bytes(1)});
    return webp_file(joined({vp8x_chunk(frame.channels == 4 ? 0x12 : 0x02, width, height), webp_chunk("ANIM", Bytes(6)),
                             webp_chunk("ANMF", joined({head, chunks}))}));
}

}  // namespace strata_test
