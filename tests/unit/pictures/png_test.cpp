#include <zlib.h>

#include <gtest/gtest.h>

#include <strata/pictures/decode_image.hpp>
#include <strata/pictures/png.hpp>

#include "../../support/pictures.hpp"
#include "../../support/temporary_folder.hpp"

namespace {

using namespace strata::pictures;
using strata::Errc;
using strata_test::thrown_by;
using Bytes = std::vector<std::byte>;

/// True if decoded; a refusal must be one of a picture.
bool decodes(const Bytes& file, Picture* picture = nullptr, const DecodeLimits& limits = {}) {
    try {
        Picture decoded = decode_image(file, {}, "test", limits);
        if (picture != nullptr) *picture = std::move(decoded);
        return true;
    } catch (const strata::Error& error) {
        EXPECT_TRUE(is_picture_fault(error.code())) << error.what();
        return false;
    }
}

TEST(Png, EveryKindDecodesToItsPixels) {
    for (const auto& kind : strata_test::all_png_kinds()) {
        for (const auto& [width, height] : {std::pair{13, 9}, std::pair{2, 1}, std::pair{1, 17}}) {
            const auto made = strata_test::make_png(kind, width, height);
            const Picture picture = decode_image(made.file);
            EXPECT_EQ(picture.width, width);
            EXPECT_EQ(picture.height, height);
            const bool has_alpha = kind.transparent || (kind.colour_type & PNG_COLOR_MASK_ALPHA) != 0;
            EXPECT_EQ(picture.channels, has_alpha ? 4 : 3);
            EXPECT_EQ(strata_test::as_rgba(picture).pixels, made.pixels.pixels) << strata_test::name_of(kind);
        }
    }
}

TEST(Png, WhatIsEncodedDecodesToTheSamePixels) {
    std::vector<std::uint8_t> rgb;
    for (int i = 0; i < 7 * 5 * 3; ++i) rgb.push_back(static_cast<std::uint8_t>(i * 31));
    const Bytes file = encode_png(7, 5, rgb);
    EXPECT_EQ(file, encode_png(7, 5, rgb));
    const Picture picture = decode_image(file);
    EXPECT_EQ(picture.pixels, rgb);
    EXPECT_EQ(thrown_by([&] { (void)encode_png(7, 6, rgb); }).code, Errc::bad_picture);
    EXPECT_EQ(thrown_by([&] { (void)encode_png(0, 5, {}); }).code, Errc::bad_picture);
}

TEST(Png, TextsStandBeforeThePixelsAndChangeNoneOfThem) {
    const std::vector<std::uint8_t> rgb(4 * 4 * 3, 77);
    const std::vector<PngText> texts{{"parameters", "a red apple\nSteps: 4, Seed: 1"},
                                     {"strata", "{\"prompt\": \"ein \xc3\x84pfel\"}"},
                                     {"empty", ""}};
    const Bytes file = encode_png(4, 4, rgb, texts);
    const std::vector<PngText> found = png_texts(file);
    ASSERT_EQ(found.size(), texts.size());
    for (std::size_t i = 0; i < texts.size(); ++i) {
        EXPECT_EQ(found[i].key, texts[i].key);
        EXPECT_EQ(found[i].text, texts[i].text);
    }
    EXPECT_EQ(decode_image(file).pixels, rgb);
    const std::string bytes{reinterpret_cast<const char*>(file.data()), file.size()};
    EXPECT_LT(bytes.find("tEXtparameters"), bytes.find("IDAT"));  // ASCII as every reader knows it
    EXPECT_LT(bytes.find("iTXtstrata"), bytes.find("IDAT"));
    EXPECT_EQ(encode_png(4, 4, rgb), encode_png(4, 4, rgb, std::vector<PngText>{}));
}

TEST(Png, TextsOfADamagedFileEndWhereItIsDamaged) {
    const std::vector<PngText> texts{{"first", "1"}, {"second", "2"}};
    Bytes file = encode_png(1, 1, std::vector<std::uint8_t>(3), texts);
    const std::string bytes{reinterpret_cast<const char*>(file.data()), file.size()};
    file[bytes.find("second")] ^= std::byte{1};
    ASSERT_EQ(png_texts(file).size(), 1U);
    EXPECT_EQ(png_texts(file).front().key, "first");
    for (std::size_t size = 0; size < file.size(); ++size)
        EXPECT_LE(png_texts(std::span{file}.first(size)).size(), 1U) << size;
    const std::vector<std::vector<PngText>> wrong{{{"", "x"}},
                                                  {{" key", "x"}},
                                                  {{"key", std::string{"a\0b", 3}}},
                                                  {{std::string(80, 'k'), "x"}},
                                                  {{"k\xc3\xa4", "x"}}};
    for (const auto& refused : wrong)
        EXPECT_EQ(thrown_by([&] { (void)encode_png(1, 1, std::vector<std::uint8_t>(3), refused); }).code,
                  Errc::bad_picture);
}

TEST(Png, EveryTruncationBeforeTheLastPixelIsRefusedByName) {
    const auto made = strata_test::make_png({PNG_COLOR_TYPE_RGB_ALPHA, 8, false, false}, 20, 20);
    constexpr std::size_t end_chunk = 12;
    constexpr std::size_t check_sums = 8;  // of the pixels' stream and chunk; libpng stops at the last pixel
    for (std::size_t size = 0; size + end_chunk + check_sums < made.file.size(); ++size) {
        const Bytes cut(made.file.begin(), made.file.begin() + static_cast<std::ptrdiff_t>(size));
        constexpr std::size_t signature = 8;
        const bool is_png = size >= signature || size == 0;
        EXPECT_EQ(thrown_by([&] { (void)decode_image(cut); }).code,
                  is_png ? Errc::bad_picture : Errc::unsupported_picture)
            << size;
    }
    const auto error = thrown_by([&] { (void)decode_image(std::span{made.file}.first(60), {}, "'a/b.png'"); });
    EXPECT_TRUE(error.says("'a/b.png'")) << error.message;
}

TEST(Png, FlippedBytesGiveAnErrorOrAPictureOfTheSameSize) {
    for (const auto& kind : strata_test::all_png_kinds()) {
        const auto made = strata_test::make_png(kind, 9, 7);
        for (std::size_t i = 0; i < made.file.size(); ++i) {
            Bytes damaged = made.file;
            damaged[i] ^= std::byte{0x41};
            Picture picture;
            if (decodes(damaged, &picture)) {
                EXPECT_EQ(picture.pixels.size(), static_cast<std::size_t>(9 * 7 * picture.channels));
            }
        }
    }
}

TEST(Png, HugeClaimsAreRefusedBeforeMemoryIsTaken) {
    Bytes file = strata_test::plain_png(4, 4, 1, 2, 3);
    const auto claim = [&](std::uint32_t width, std::uint32_t height) {
        for (int i = 0; i < 4; ++i) {
            file[static_cast<std::size_t>(16 + i)] = static_cast<std::byte>(width >> (24 - 8 * i));
            file[static_cast<std::size_t>(20 + i)] = static_cast<std::byte>(height >> (24 - 8 * i));
        }
        const auto sum = ::crc32(0, reinterpret_cast<const unsigned char*>(file.data()) + 12, 17);
        for (int i = 0; i < 4; ++i)
            file[static_cast<std::size_t>(29 + i)] = static_cast<std::byte>(sum >> (24 - 8 * i));
    };
    claim(30'000, 30'000);
    EXPECT_FALSE(decodes(file));
    claim(0x7FFFFFFF, 1);
    EXPECT_FALSE(decodes(file));
    claim(0xFFFFFFFF, 1);
    EXPECT_FALSE(decodes(file));
    claim(0, 4);
    EXPECT_FALSE(decodes(file));
    claim(100, 100);
    EXPECT_FALSE(decodes(file, nullptr, {.edge = 99, .pixels = 1'000'000}));
    EXPECT_FALSE(decodes(file, nullptr, {.edge = 100, .pixels = 9'999}));
}

}  // namespace
