// Pictures with ICC profiles in every format: what is shown is sRGB.

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include <strata/pictures/colour_profile.hpp>
#include <strata/pictures/decode_image.hpp>
#include <strata/pictures/png.hpp>

#include "../../support/other_formats.hpp"
#include "../../support/pictures.hpp"

namespace {

using namespace strata::pictures;
using namespace strata_test;

/// Red and green exchanged, which is what swapped_profile() shows.
Picture swapped(Picture picture) {
    for (std::size_t i = 0; i < picture.pixels.size(); i += static_cast<std::size_t>(picture.channels))
        std::swap(picture.pixels[i], picture.pixels[i + 1]);
    return picture;
}

int worst_difference(const Picture& a, const Picture& b) {
    if (a.pixels.size() != b.pixels.size()) return 256;
    int worst = 0;
    for (std::size_t i = 0; i < a.pixels.size(); ++i)
        worst = std::max(worst, std::abs(int{a.pixels[i]} - int{b.pixels[i]}));
    return worst;
}

void expect_swapped(const Bytes& file, const Picture& without, const std::string& what) {
    const Picture shown = decode_image(file);
    EXPECT_LE(worst_difference(shown, swapped(without)), 2) << what;
    EXPECT_GT(worst_difference(shown, without), 50) << what;
    EXPECT_EQ(shown.note, "") << what;
}

TEST(ColourProfile, EveryFormatThatCarriesOneIsConverted) {
    const Bytes profile = swapped_profile();
    const Bytes jpeg = make_jpeg({}, 64, 48).file;
    const auto parts = profile_segments(profile, 3);
    expect_swapped(inserted(jpeg, 2, profile_segments(profile, 1)[0]), decode_image(jpeg), "JPEG");
    expect_swapped(inserted(jpeg, 2, joined({parts[2], parts[0], parts[1]})), decode_image(jpeg), "JPEG, parts");

    for (const PngKind& kind :
         {PngKind{PNG_COLOR_TYPE_RGB, 8, false, false}, PngKind{PNG_COLOR_TYPE_RGB_ALPHA, 16, false, false},
          PngKind{PNG_COLOR_TYPE_PALETTE, 4, true, true}}) {
        const MadePng made = make_png(kind, 20, 15);
        expect_swapped(inserted(made.file, after_png_header, profile_chunk(profile)), decode_image(made.file),
                       strata_test::name_of(kind));
    }
    for (const std::int64_t channels : {3, 4}) {
        const Picture picture = soft_picture(40, 30, channels);
        const unsigned flags = channels == 4 ? 0x30 : 0x20;
        const Bytes webp = webp_file(
            joined({vp8x_chunk(flags, 40, 30), webp_chunk("ICCP", profile), webp_chunks(make_webp(picture, true))}));
        expect_swapped(webp, picture, "WebP");
#ifdef STRATA_WITH_AVIF
        if (const Bytes avif = make_avif(picture, 8, profile); !avif.empty()) expect_swapped(avif, picture, "AVIF");
#endif
#ifdef STRATA_WITH_TIFF
        const auto alpha = static_cast<std::uint16_t>(channels == 4 ? EXTRASAMPLE_UNASSALPHA : 0);
        expect_swapped(
            make_tiff({.alpha = alpha, .profile = profile}, 40, 30, static_cast<int>(channels), picture.pixels),
            picture, "TIFF");
#endif
    }
}

TEST(ColourProfile, OfSrgbChangesNothingAndCostsNothing) {
    const Bytes plain = encode_png(20, 15, soft_picture(20, 15).pixels);
    const Bytes file = inserted(plain, after_png_header, profile_chunk(srgb_profile()));
    const ImageHeader header = image_header(file);
    EXPECT_EQ(header.profile.parts.size(), 1U);
    const ToSrgb to_srgb{file, header};
    EXPECT_FALSE(to_srgb);
    EXPECT_EQ(to_srgb.note(), "");
    EXPECT_EQ(decode_image(file).pixels, soft_picture(20, 15).pixels);
}

TEST(ColourProfile, OfGreyIsForGreyPictures) {
    const MadePng grey = make_png({PNG_COLOR_TYPE_GRAY, 8, false, false}, 20, 15);
    const Picture before = decode_image(grey.file);
    const Picture after = decode_image(inserted(grey.file, after_png_header, profile_chunk(grey_profile())));
    EXPECT_EQ(after.note, "");
    for (std::size_t i = 0; i < before.pixels.size(); ++i) {
        const double light = std::pow(before.pixels[i] / 255.0, 1.8);
        const double srgb = light <= 0.0031308 ? light * 12.92 : 1.055 * std::pow(light, 1 / 2.4) - 0.055;
        EXPECT_NEAR(after.pixels[i], srgb * 255, 2) << int{before.pixels[i]};
    }
    const MadePng alpha = make_png({PNG_COLOR_TYPE_GRAY_ALPHA, 8, false, false}, 20, 15);
    const Picture seen = decode_image(inserted(alpha.file, after_png_header, profile_chunk(grey_profile())));
    for (std::size_t i = 3; i < seen.pixels.size(); i += 4) EXPECT_EQ(seen.pixels[i], alpha.pixels.pixels[i]);
}

TEST(ColourProfile, OfInksIsForInks) {
    // Stored is what the inks leave: no ink; all cyan; half of black; all cyan and all black.
    const std::vector<std::array<std::uint8_t, 4>> stored{
        {255, 255, 255, 255}, {0, 255, 255, 255}, {255, 255, 255, 119}, {0, 255, 255, 0}};
    for (std::size_t i = 0; i < stored.size(); ++i) {
        std::vector<std::uint8_t> samples;
        for (int pixel = 0; pixel < 256; ++pixel) samples.insert(samples.end(), stored[i].begin(), stored[i].end());
        const Bytes file =
            encode_jpeg({.pixels = JCS_CMYK, .stored = JCS_CMYK, .sampling = 0x11, .quality = 100}, 16, 16, samples);
        const Picture shown = decode_image(inserted(file, 2, profile_segments(black_ink_profile(), 1)[0]));
        const double expected = std::array{255.0, 255.0, 110.0, 0.0}[i];  // lightness 46.7 is 110
        for (std::size_t c = 0; c < 3; ++c) EXPECT_NEAR(shown.pixels[c], expected, 3) << i;
#ifdef STRATA_WITH_TIFF
        std::vector<std::uint8_t> inks;
        for (const std::uint8_t left : stored[i]) inks.push_back(static_cast<std::uint8_t>(255 - left));
        const Bytes tiff =
            make_tiff({.photometric = PHOTOMETRIC_SEPARATED, .profile = black_ink_profile()}, 1, 1, 4, inks);
        for (std::size_t c = 0; c < 3; ++c) EXPECT_NEAR(decode_image(tiff).pixels[c], expected, 3) << i;
#endif
    }
}

TEST(ColourProfile, ThatCannotBeUsedIsLeftOutAndNoted) {
    const Bytes profile = swapped_profile();
    const Bytes cut(profile.begin(), profile.end() - 40);
    const Bytes noise(700, std::byte{0x5A});
    const Bytes png = encode_png(20, 15, soft_picture(20, 15).pixels);
    const Bytes jpeg = make_jpeg({}, 64, 48).file;
    const Bytes grey = make_png({PNG_COLOR_TYPE_GRAY, 8, false, false}, 20, 15).file;
    const auto parts = profile_segments(profile, 3);
    Bytes broken_stream = joined({bytes_of({"name\0\0", 6}), zlib_packed(profile)});
    broken_stream[40] ^= std::byte{0x55};
    struct Case {
        std::string what;
        Bytes plain, file;
    };
    for (const Case& one :
         {Case{"cut short", png, inserted(png, after_png_header, profile_chunk(cut))},
          Case{"noise", png, inserted(png, after_png_header, profile_chunk(noise))},
          Case{"empty", png, inserted(png, after_png_header, png_chunk("iCCP", {}))},
          Case{"broken zlib", png, inserted(png, after_png_header, png_chunk("iCCP", broken_stream))},
          Case{"grey for colours", png, inserted(png, after_png_header, profile_chunk(grey_profile()))},
          Case{"colours for grey", grey, inserted(grey, after_png_header, profile_chunk(profile))},
          Case{"inks for colours", jpeg, inserted(jpeg, 2, profile_segments(black_ink_profile(), 1)[0])},
          Case{"a part is missing", jpeg, inserted(jpeg, 2, joined({parts[0], parts[2]}))},
          Case{"a part twice", jpeg, inserted(jpeg, 2, joined({parts[0], parts[1], parts[1], parts[2]}))}}) {
        const Picture shown = decode_image(one.file);
        EXPECT_EQ(shown.pixels, decode_image(one.plain).pixels) << one.what;
        EXPECT_NE(shown.note.find("colour profile"), std::string::npos) << one.what;
    }
}

TEST(ColourProfile, ManyThreadsMayConvertAtOnce) {
    const Bytes png = encode_png(200, 150, soft_picture(200, 150).pixels);
    const Bytes file = inserted(png, after_png_header, profile_chunk(swapped_profile()));
    const std::vector<std::uint8_t> expected = decode_image(file).pixels;
    std::vector<int> wrong(4);
    std::vector<std::thread> threads;
    for (int& mine : wrong)
        threads.emplace_back([&mine, &file, &expected] {
            for (int i = 0; i < 20; ++i) mine += decode_image(file).pixels == expected ? 0 : 1;
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, (std::vector<int>(4)));
}

}  // namespace
