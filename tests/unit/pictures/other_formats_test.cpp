// BMP, TIFF, GIF, AVIF and HEIC: their pixels, their headers, their memory, and what is said where a library is not
// built in. Files are made here; golden_formats_test.cpp has files of other programs.

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include <strata/pictures/decode_image.hpp>

#include "../../support/address_space.hpp"
#include "../../support/other_formats.hpp"
#include "../../support/pictures.hpp"
#include "../../support/temporary_folder.hpp"

namespace {

using namespace strata::pictures;
using namespace strata_test;
using strata::Errc;

[[maybe_unused]] std::vector<std::uint8_t> first_pixels(const Picture& picture, std::size_t count) {
    return {picture.pixels.begin(),
            picture.pixels.begin() + static_cast<std::ptrdiff_t>(count * static_cast<std::size_t>(picture.channels))};
}

TEST(OtherFormats, EveryFormatIsInTheTableOnce) {
    for (const FormatFacts& one : formats) {
        EXPECT_EQ(one.package.empty(), one.option.empty()) << one.name;
        EXPECT_TRUE(one.built_in || !one.package.empty()) << one.name;
        for (const std::string_view ending : one.endings) {
            if (!ending.empty()) {
                EXPECT_TRUE(is_picture_name("a" + std::string{ending}));
                EXPECT_FALSE(is_picture_name(ending));
            }
        }
        EXPECT_EQ(decoded_formats().find(one.name) != std::string::npos, one.built_in) << decoded_formats();
    }
    EXPECT_TRUE(decoded_formats().starts_with("PNG, JPEG, WebP"));
}

TEST(OtherFormats, WhatIsNotBuiltInIsMeasuredAndRefusedByPackageAndOption) {
    for (const FormatFacts& one : formats) {
        if (one.built_in) {
            EXPECT_NO_THROW(require_decoder(one.format, "'x'"));
            continue;
        }
        const auto error = thrown_by([&] { require_decoder(one.format, "'a/b.x'"); });
        EXPECT_EQ(error.code, Errc::no_picture_library);
        for (const std::string_view word : {std::string_view{"'a/b.x'"}, one.name, one.package, one.option})
            EXPECT_TRUE(error.says(std::string{word})) << error.message;
    }
    const Bytes gif = joined({bytes_of("GIF89a"), little_endian_bytes(60, 2), little_endian_bytes(40, 2), Bytes(50)});
    EXPECT_EQ(image_header(gif).size(), (PictureSize{60, 40}));
}

TEST(OtherFormats, ABmpHasItsPixels) {
    for (const std::int64_t channels : {3, 4})
        for (const std::int64_t width : {1, 5, 6, 7, 8}) {
            const Picture picture = soft_picture(width, 9, channels);
            const Picture decoded = decode_image(make_bmp(picture));
            EXPECT_EQ(decoded.pixels, picture.pixels) << width;
            EXPECT_EQ(decoded.channels, channels);
        }
    Bytes without_padding = make_bmp(soft_picture(5, 4));
    without_padding.pop_back();  // of the last row, as some programs write it
    EXPECT_EQ(decode_image(without_padding).pixels, soft_picture(5, 4).pixels);
    without_padding.pop_back();
    EXPECT_EQ(thrown_by([&] { (void)decode_image(without_padding); }).code, Errc::bad_picture);
}

TEST(OtherFormats, ABmpOfFewBitsHasThePalettesColours) {
    const Bytes palette = joined({little_endian_bytes(0x00112233, 4), little_endian_bytes(0x00FF8000, 4)});
    const std::vector<std::uint8_t> a{0x11, 0x22, 0x33};
    const std::vector<std::uint8_t> b{0xFF, 0x80, 0x00};
    const auto pixels = [&](std::string_view numbers) {
        std::vector<std::uint8_t> all;
        for (const char n : numbers) {
            const auto& colour = n == 'a' ? a : n == 'b' ? b : std::vector<std::uint8_t>(3);
            all.insert(all.end(), colour.begin(), colour.end());
        }
        return all;
    };
    const auto file = [&](int bits, int packing, std::int32_t height, std::string_view data) {
        return joined({bmp_header(5, height, bits, packing, 62, 2), palette, bytes_of(data)});
    };
    using namespace std::string_view_literals;
    // A row from the left: the highest bits first. The first row of the file is the lowest.
    EXPECT_EQ(decode_image(file(1, 0, 1, "\x58\0\0\0"sv)).pixels, pixels("ababb"));
    EXPECT_EQ(decode_image(file(4, 0, 1, "\x01\x01\x10\0"sv)).pixels, pixels("ababb"));
    EXPECT_EQ(decode_image(file(8, 0, 1, "\0\1\0\1\x09\0\0\0"sv)).pixels, pixels("abab-"))
        << "beyond the palette: black";
    EXPECT_EQ(decode_image(file(8, 0, 2, "\0\0\0\0\0\0\0\0\1\1\1\1\1\0\0\0"sv)).pixels, pixels("bbbbbaaaaa"));
    EXPECT_EQ(decode_image(file(8, 0, -2, "\0\0\0\0\0\0\0\0\1\1\1\1\1\0\0\0"sv)).pixels, pixels("aaaaabbbbb"));
    // RLE8: 2 of b, end of row; then 3 as they are and padded; the rest is left out. RLE4 the same by halves of bytes.
    EXPECT_EQ(decode_image(file(8, 1, 2, "\2\1\0\0\0\3\1\0\1\0\0\1"sv)).pixels, pixels("babaabbaaa"));
    EXPECT_EQ(decode_image(file(4, 2, 2, "\3\x10\0\0\0\3\x10\x10\0\1"sv)).pixels, pixels("babaababaa"));
    EXPECT_EQ(decode_image(file(8, 1, 2, "\0\2\3\1\1\1\0\1"sv)).pixels, pixels("aaabaaaaaa")) << "a jump";
    EXPECT_EQ(thrown_by([&] { (void)decode_image(file(8, 1, 2, "\2\1\0\0\0\3\1"sv)); }).code, Errc::bad_picture);
    EXPECT_EQ(thrown_by([&] { (void)image_header(file(1, 4, 1, "")); }).code, Errc::unsupported_picture);
}

TEST(OtherFormats, SixteenBitsOfABmpAreRounded) {
    const Bytes plain =
        joined({bmp_header(2, 1, 16, 0, 54), little_endian_bytes(0x7C1F, 2), little_endian_bytes(1, 2)});
    EXPECT_EQ(decode_image(plain).pixels, (std::vector<std::uint8_t>{255, 0, 255, 0, 0, 8}));
    Bytes masked = bmp_header(2, 1, 16, 3, 66);
    for (const std::uint32_t mask : {0xF800U, 0x07E0U, 0x001FU}) append(masked, little_endian_bytes(mask, 4));
    append(masked, joined({little_endian_bytes(0x07FF, 2), little_endian_bytes(0x0820, 2)}));
    EXPECT_EQ(decode_image(masked).pixels, (std::vector<std::uint8_t>{0, 255, 255, 8, 4, 0}));
}

#ifdef STRATA_WITH_TIFF
TEST(OtherFormats, EveryTiffHasItsPixels) {
    constexpr std::int64_t width = 37;
    constexpr std::int64_t height = 23;
    const Picture rgb = soft_picture(width, height);
    for (const TiffKind& kind :
         {TiffKind{}, TiffKind{.name = "16 bits", .bits = 16}, TiffKind{.name = "big endian", .bits = 16, .mode = "wb"},
          TiffKind{.name = "planes", .planes = true}, TiffKind{.name = "tiles", .tiles = true},
          TiffKind{.name = "planes in tiles", .bits = 16, .planes = true, .tiles = true},
          TiffKind{.name = "LZW", .packing = COMPRESSION_LZW}, TiffKind{.name = "BigTIFF", .mode = "w8"},
          TiffKind{.name = "deflate", .packing = COMPRESSION_ADOBE_DEFLATE, .tiles = true}}) {
        const Bytes file = make_tiff(kind, width, height, 3, rgb.pixels);
        EXPECT_EQ(decode_image(file).pixels, rgb.pixels) << kind.name;
        EXPECT_EQ(image_header(file).size(), (PictureSize{width, height})) << kind.name;
    }
}

TEST(OtherFormats, ATiffsSamplesMeanWhatItSays) {
    const std::vector<std::uint8_t> grey{0, 85, 170, 255};
    const auto shown = [&](const TiffKind& kind, int samples, const std::vector<std::uint8_t>& values,
                           std::int64_t width) {
        return decode_image(make_tiff(kind, width, 1, samples, values)).pixels;
    };
    const std::vector<std::uint8_t> as_rgb{0, 0, 0, 85, 85, 85, 170, 170, 170, 255, 255, 255};
    std::vector<std::uint8_t> inverted;
    for (const std::uint8_t value : as_rgb) inverted.push_back(static_cast<std::uint8_t>(255 - value));
    for (const int bits : {2, 4, 8, 16}) {
        EXPECT_EQ(shown({.bits = bits, .photometric = PHOTOMETRIC_MINISBLACK}, 1, grey, 4), as_rgb) << bits;
        EXPECT_EQ(shown({.bits = bits, .photometric = PHOTOMETRIC_MINISWHITE}, 1, grey, 4), inverted) << bits;
    }
    EXPECT_EQ(shown({.bits = 1, .photometric = PHOTOMETRIC_MINISBLACK}, 1, {255, 0}, 2),
              (std::vector<std::uint8_t>{255, 255, 255, 0, 0, 0}));
    EXPECT_EQ(shown({.photometric = PHOTOMETRIC_PALETTE}, 1, {9, 200}, 2),
              (std::vector<std::uint8_t>{9, 246, 4, 200, 55, 100}));
    // Inks: what two of them leave together.
    EXPECT_EQ(shown({.photometric = PHOTOMETRIC_SEPARATED}, 4, {255, 0, 0, 0, 0, 100, 0, 51}, 2),
              (std::vector<std::uint8_t>{0, 255, 255, 204, 124, 204}));
    // Alpha on its own, and taken out of the colours that it was multiplied into.
    for (const int bits : {8, 16}) {
        EXPECT_EQ(shown({.bits = bits, .alpha = EXTRASAMPLE_UNASSALPHA}, 4, {100, 50, 0, 128}, 1),
                  (std::vector<std::uint8_t>{100, 50, 0, 128}));
        const auto divided = shown({.bits = bits, .alpha = EXTRASAMPLE_ASSOCALPHA}, 4, {64, 32, 0, 128}, 1);
        EXPECT_NEAR(divided[0], 128, 1);
        EXPECT_NEAR(divided[1], 64, 1);
        EXPECT_EQ(divided[3], 128);
    }
}

TEST(OtherFormats, ATiffIsTurnedAsItSays) {
    const Picture picture = soft_picture(20, 12);
    const Picture seen = decode_image(make_tiff({.orientation = ORIENTATION_RIGHTTOP}, 20, 12, 3, picture.pixels));
    EXPECT_EQ(seen.pixels, turn_upright(picture, Orientation::turn_right).pixels);
}

TEST(OtherFormats, WhatLibtiffShowsButHasNoPlainSamplesIsShown) {
    // CIE Lab: L of 100, a and b of 0 are white, black is 0.
    const Bytes file = make_tiff({.photometric = PHOTOMETRIC_CIELAB}, 2, 1, 3, {255, 0, 0, 0, 0, 0});
    const Picture picture = decode_image(file);
    for (std::size_t c = 0; c < 3; ++c) {
        EXPECT_GT(picture.pixels[c], 200) << c;
        EXPECT_LT(picture.pixels[3 + c], 15) << c;
    }
    const Bytes wide = make_tiff({.photometric = PHOTOMETRIC_MINISBLACK}, 3, 1, 1, {1, 2, 3});
    Bytes of_64_bits = wide;
    for (std::size_t i = 0; i + 12 <= of_64_bits.size(); ++i)
        if (of_64_bits[i] == std::byte{2} && of_64_bits[i + 1] == std::byte{1} && of_64_bits[i + 2] == std::byte{3})
            of_64_bits[i + 8] = std::byte{24};  // tag 258, bits a sample
    EXPECT_EQ(thrown_by([&] { (void)decode_image(of_64_bits); }).code, Errc::unsupported_picture);
}
#endif

#ifdef STRATA_WITH_GIF
TEST(OtherFormats, AGifShowsItsFirstFrameOnItsCanvas) {
    std::vector<std::uint8_t> numbers;
    for (int i = 0; i < 20 * 11; ++i) numbers.push_back(static_cast<std::uint8_t>(i % 7));
    const auto colour = [](int i) {
        return std::vector<std::uint8_t>{static_cast<std::uint8_t>(30 * i), static_cast<std::uint8_t>(255 - 30 * i),
                                         static_cast<std::uint8_t>(7 * i)};
    };
    for (const bool interlaced : {false, true}) {
        const Picture whole = decode_image(make_gif({.interlaced = interlaced}, 20, 11, 20, 11, numbers));
        ASSERT_EQ(whole.channels, 3);
        for (std::size_t i = 0; i < numbers.size(); ++i)
            EXPECT_EQ(std::vector<std::uint8_t>(&whole.pixels[i * 3], &whole.pixels[i * 3] + 3), colour(numbers[i]))
                << i;
    }
    // On a larger canvas: around the frame is the background colour, or nothing where the frame has transparency.
    const Picture inside = decode_image(make_gif({.left = 2, .top = 1}, 30, 20, 20, 11, numbers));
    EXPECT_EQ((PictureSize{inside.width, inside.height}), (PictureSize{30, 20}));
    EXPECT_EQ(first_pixels(inside, 1), colour(2));
    EXPECT_EQ(std::vector<std::uint8_t>(&inside.pixels[32 * 3], &inside.pixels[32 * 3] + 3), colour(0));
    const Picture clear = decode_image(make_gif({.left = 2, .top = 1, .transparent = 0}, 30, 20, 20, 11, numbers));
    ASSERT_EQ(clear.channels, 4);
    EXPECT_EQ(clear.pixels[3], 0);
    EXPECT_EQ(clear.pixels[32 * 4 + 3], 0) << "the transparent colour";
    EXPECT_EQ(clear.pixels[33 * 4 + 3], 255);
    const Bytes cut_off = make_gif({.left = 15, .top = 15}, 20, 20, 20, 11, numbers);
    EXPECT_EQ(decode_image(cut_off).pixels.size(), 20U * 20 * 3) << "a frame that reaches beyond its canvas";
}
#endif

#ifdef STRATA_WITH_AVIF
TEST(OtherFormats, AnAvifHasItsPixels) {
    for (const std::int64_t channels : {3, 4}) {
        const Picture picture = soft_picture(61, 43, channels);
        const Bytes file = make_avif(picture);
        if (file.empty()) GTEST_SKIP() << "libavif has no encoder";
        EXPECT_EQ(decode_image(file).pixels, picture.pixels);
        EXPECT_EQ(image_header(file).channels, channels);
        const Picture deep = decode_image(make_avif(picture, 10));
        EXPECT_LT(mean_difference(deep, picture), 1);
        const Picture turned_left = decode_image(make_avif(picture, 8, {}, 1));
        EXPECT_EQ(turned_left.pixels, turn_upright(picture, Orientation::turn_left).pixels);
    }
}
#endif

#ifdef STRATA_WITH_HEIC
TEST(OtherFormats, AHeicHasItsPixels) {
    for (const std::int64_t channels : {3, 4}) {
        const Picture picture = soft_picture(128, 96, channels);
        const Bytes file = make_heic(picture);
        if (file.empty()) GTEST_SKIP() << "libheif has no encoder";
        EXPECT_LT(mean_difference(decode_image(file), picture), 4);
        EXPECT_EQ(image_header(file).size(), (PictureSize{128, 96}));
        EXPECT_EQ(image_header(file).channels, channels);
    }
}

/// As phones with HDR write them: twice the bytes of one of 8 bits while it is decoded.
TEST(OtherFormats, AHeicOfTenBitsHasItsPixelsAndTakesNoMoreMemoryThanItSays) {
    const Picture picture = soft_picture(1000, 600);
    const Bytes file = make_heic(picture, 10);
    if (file.empty()) GTEST_SKIP() << "libheif has no encoder of 10 bits";
    EXPECT_LT(mean_difference(decode_image(file), picture), 4);
    const ImageHeader header = image_header(file);
    const AddressSpaceLimit limit{static_cast<std::uint64_t>(decode_bytes(header)) + (4U << 20)};
    EXPECT_EQ(decode_image(file, header).width, 1000);
}
#endif

TEST(OtherFormats, TakeNoMoreMemoryThanTheySay) {
    constexpr std::int64_t width = 2000;
    constexpr std::int64_t height = 1000;
    const Picture picture = soft_picture(width, height, 4);
    const Picture rgb = soft_picture(width, height);
    [[maybe_unused]] const Picture small = soft_picture(1000, 600, 4);  // encoders take their time
    std::vector<Bytes> files{make_bmp(picture), make_bmp(rgb)};
#ifdef STRATA_WITH_TIFF
    for (const TiffKind& kind : {TiffKind{.packing = COMPRESSION_LZW, .orientation = ORIENTATION_RIGHTTOP},
                                 TiffKind{.bits = 16, .planes = true}, TiffKind{.bits = 16, .tiles = true},
                                 TiffKind{.photometric = PHOTOMETRIC_CIELAB}})
        files.push_back(make_tiff(kind, width, height, 3, rgb.pixels));
    for (const TiffKind& kind :
         {TiffKind{.bits = 16, .alpha = EXTRASAMPLE_UNASSALPHA, .orientation = ORIENTATION_RIGHTTOP},
          TiffKind{.bits = 16, .packing = COMPRESSION_LZW, .tiles = true, .alpha = EXTRASAMPLE_ASSOCALPHA}})
        files.push_back(make_tiff(kind, width, height, 4, picture.pixels));
#endif
#ifdef STRATA_WITH_GIF
    files.push_back(make_gif({.transparent = 3}, width, height, 4, 1, {1, 2, 3, 4}));
#endif
#ifdef STRATA_WITH_AVIF
    for (const std::uint32_t depth : {8U, 10U, 12U})
        if (Bytes file = make_avif(small, depth, {}, 1); !file.empty()) files.push_back(std::move(file));
#endif
#ifdef STRATA_WITH_HEIC
    if (Bytes file = make_heic(small); !file.empty()) files.push_back(std::move(file));
#endif
    for (const Bytes& file : files) (void)decode_image(file);  // libraries make tables at their first use
    for (const Bytes& file : files) {
        const ImageHeader header = image_header(file);
        const std::int64_t said = decode_bytes(header);
        const std::string ending{facts_of(header.format).endings[0]};
        EXPECT_LE(said, decode_bytes_of("a" + ending, header.size())) << ending;
        EXPECT_LE(said, decode_bytes_of("a", header.size())) << ending;
        const AddressSpaceLimit limit{static_cast<std::uint64_t>(said) + (4U << 20)};
        EXPECT_GT(decode_image(file, header).width, 0) << name_of(header.format) << ' ' << said;
    }
}

}  // namespace
