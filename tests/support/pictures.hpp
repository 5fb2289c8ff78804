#pragma once
// tests/support/pictures.hpp - picture files of every kind, made with libpng, libjpeg and libwebp, with the pixels they
// must decode to. Without a setjmp of ours libpng and libjpeg end the process when they cannot write: a loud failure is
// all a test needs.

#include <cstdint>
#include <string>
#include <vector>

#include <png.h>

#include <strata/pictures/png.hpp>

namespace strata_test {

struct PngKind {
    int colour_type;
    int bit_depth;
    bool interlaced;
    bool transparent;  ///< with a tRNS chunk; not for types with alpha
};

struct MadePng {
    std::vector<std::byte> file;
    strata::pictures::Picture pixels;  ///< RGBA
};

/// The picture with an opaque alpha where it has none.
inline strata::pictures::Picture as_rgba(const strata::pictures::Picture& picture) {
    strata::pictures::Picture rgba{picture.width, picture.height, 4, {}};
    for (std::size_t i = 0; i < picture.pixels.size(); ++i) {
        rgba.pixels.push_back(picture.pixels[i]);
        if (picture.channels == 3 && i % 3 == 2) rgba.pixels.push_back(255);
    }
    return rgba;
}

inline std::string name_of(const PngKind& kind) {
    return "colour type " + std::to_string(kind.colour_type) + ", " + std::to_string(kind.bit_depth) + " bits" +
           (kind.interlaced ? ", interlaced" : "") + (kind.transparent ? ", tRNS" : "");
}

inline std::vector<PngKind> all_png_kinds() {
    std::vector<PngKind> kinds;
    for (const bool interlaced : {false, true}) {
        for (const bool transparent : {false, true}) {
            for (const int depth : {1, 2, 4, 8, 16})
                kinds.push_back({PNG_COLOR_TYPE_GRAY, depth, interlaced, transparent});
            for (const int depth : {1, 2, 4, 8})
                kinds.push_back({PNG_COLOR_TYPE_PALETTE, depth, interlaced, transparent});
            for (const int depth : {8, 16}) kinds.push_back({PNG_COLOR_TYPE_RGB, depth, interlaced, transparent});
        }
        for (const int depth : {8, 16}) {
            kinds.push_back({PNG_COLOR_TYPE_GRAY_ALPHA, depth, interlaced, false});
            kinds.push_back({PNG_COLOR_TYPE_RGB_ALPHA, depth, interlaced, false});
        }
    }
    return kinds;
}

/// Sample number `channel` of a pixel; the pattern has sharp edges, gradients and no symmetry.
inline unsigned pattern(int x, int y, int channel, int bit_depth) {
    const auto value = static_cast<unsigned>(x * 4099 + y * 257 * (channel + 1) + channel * 9001 + (x > y ? 30000 : 0));
    return (value & 0xFFFFU) >> (16 - bit_depth);
}

inline MadePng make_png(const PngKind& kind, int width, int height) {
    const int channels = kind.colour_type == PNG_COLOR_TYPE_RGB          ? 3
                         : kind.colour_type == PNG_COLOR_TYPE_RGB_ALPHA  ? 4
                         : kind.colour_type == PNG_COLOR_TYPE_GRAY_ALPHA ? 2
                                                                         : 1;
    const std::size_t row_bytes = (static_cast<std::size_t>(width * channels * kind.bit_depth) + 7) / 8;
    std::vector<std::uint8_t> rows(row_bytes * static_cast<std::size_t>(height));
    MadePng made;
    made.pixels = {width, height, 4, {}};

    std::vector<png_color> palette(std::size_t{1} << (kind.bit_depth <= 8 ? kind.bit_depth : 8));
    std::vector<png_byte> palette_alpha(palette.size());
    for (std::size_t i = 0; i < palette.size(); ++i) {
        palette[i] = {static_cast<png_byte>(i * 37), static_cast<png_byte>(255 - i), static_cast<png_byte>(i * 91 + 5)};
        palette_alpha[i] = static_cast<png_byte>(i * 53);
    }
    const auto eight = [&](unsigned value) {
        return static_cast<std::uint8_t>(kind.bit_depth == 16 ? value >> 8
                                                              : value * 255 / ((1U << kind.bit_depth) - 1));
    };
    png_color_16 clear{};  // the colour of the pixel at (1, 0)
    clear.gray = static_cast<png_uint_16>(pattern(1, 0, 0, kind.bit_depth));
    clear.red = clear.gray;
    clear.green = static_cast<png_uint_16>(pattern(1, 0, 1, kind.bit_depth));
    clear.blue = static_cast<png_uint_16>(pattern(1, 0, 2, kind.bit_depth));

    for (int y = 0; y < height; ++y) {
        std::uint8_t* row = rows.data() + row_bytes * static_cast<std::size_t>(y);
        for (int x = 0; x < width; ++x) {
            unsigned s[4] = {};
            for (int c = 0; c < channels; ++c) {
                s[c] = pattern(x, y, c, kind.bit_depth);
                const int index = x * channels + c;
                if (kind.bit_depth == 16) {
                    row[index * 2] = static_cast<std::uint8_t>(s[c] >> 8);
                    row[index * 2 + 1] = static_cast<std::uint8_t>(s[c]);
                } else {
                    const int per_byte = 8 / kind.bit_depth;
                    const int shift = 8 - kind.bit_depth * (1 + index % per_byte);
                    row[index / per_byte] = static_cast<std::uint8_t>(row[index / per_byte] | (s[c] << shift));
                }
            }
            std::uint8_t rgba[4] = {0, 0, 0, 255};
            if (kind.colour_type == PNG_COLOR_TYPE_PALETTE) {
                rgba[0] = palette[s[0]].red;
                rgba[1] = palette[s[0]].green;
                rgba[2] = palette[s[0]].blue;
                if (kind.transparent) rgba[3] = palette_alpha[s[0]];
            } else if (channels <= 2) {
                rgba[0] = rgba[1] = rgba[2] = eight(s[0]);
                if (channels == 2)
                    rgba[3] = eight(s[1]);
                else if (kind.transparent && s[0] == clear.gray)
                    rgba[3] = 0;
            } else {
                for (int c = 0; c < 3; ++c) rgba[c] = eight(s[c]);
                if (channels == 4)
                    rgba[3] = eight(s[3]);
                else if (kind.transparent && s[0] == clear.red && s[1] == clear.green && s[2] == clear.blue)
                    rgba[3] = 0;
            }
            made.pixels.pixels.insert(made.pixels.pixels.end(), rgba, rgba + 4);
        }
    }

    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
    png_infop info = png_create_info_struct(png);
    std::vector<png_bytep> pointers;
    for (int y = 0; y < height; ++y) pointers.push_back(rows.data() + row_bytes * static_cast<std::size_t>(y));
    png_set_write_fn(
        png, &made.file,
        [](png_structp p, png_bytep data, std::size_t length) {
            auto* file = static_cast<std::vector<std::byte>*>(png_get_io_ptr(p));
            const auto* begin = reinterpret_cast<const std::byte*>(data);
            file->insert(file->end(), begin, begin + length);
        },
        [](png_structp) {});
    png_set_IHDR(png, info, static_cast<png_uint_32>(width), static_cast<png_uint_32>(height), kind.bit_depth,
                 kind.colour_type, kind.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    const bool has_palette = kind.colour_type == PNG_COLOR_TYPE_PALETTE;
    if (has_palette) png_set_PLTE(png, info, palette.data(), static_cast<int>(palette.size()));
    if (kind.transparent)
        png_set_tRNS(png, info, has_palette ? palette_alpha.data() : nullptr,
                     has_palette ? static_cast<int>(palette_alpha.size()) : 0, has_palette ? nullptr : &clear);
    png_set_rows(png, info, pointers.data());
    png_write_png(png, info, PNG_TRANSFORM_IDENTITY, nullptr);
    png_destroy_write_struct(&png, &info);
    return made;
}

/// An RGB picture of one colour.
inline std::vector<std::byte> plain_png(int width, int height, std::uint8_t red, std::uint8_t green,
                                        std::uint8_t blue) {
    std::vector<std::uint8_t> rgb;
    for (int i = 0; i < width * height; ++i) rgb.insert(rgb.end(), {red, green, blue});
    return strata::pictures::encode_png(width, height, rgb);
}

}  // namespace strata_test
