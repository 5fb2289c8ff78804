#include <array>
#include <cmath>

#include <gtest/gtest.h>

#include <strata/data/resample.hpp>

#include "../storage/temporary_folder.hpp"

namespace {

using namespace strata::data;

/// A picture from a function of (x, y) -> {r, g, b, a}.
template <class Colour>
Picture picture_of(std::int64_t width, std::int64_t height, const Colour& colour) {
    Picture picture{width, height, {}};
    for (std::int64_t y = 0; y < height; ++y)
        for (std::int64_t x = 0; x < width; ++x)
            for (const int value : colour(x, y)) picture.rgba.push_back(static_cast<std::uint8_t>(value));
    return picture;
}
using Rgba = std::array<int, 4>;
float at(const PlanarImage& image, std::size_t plane, std::int64_t y, std::int64_t x) {
    return image.values[(plane * static_cast<std::size_t>(image.height) + static_cast<std::size_t>(y)) *
                            static_cast<std::size_t>(image.width) + static_cast<std::size_t>(x)];
}

TEST(Resample, TheSameSizeKeepsEveryPixel) {
    const Picture picture = picture_of(8, 6, [](auto x, auto y) {
        return Rgba{static_cast<int>(x * 30), static_cast<int>(y * 40), static_cast<int>((x * y) % 256), 255};
    });
    const PlanarImage image = cover_and_crop(picture, 8, 6);
    for (std::int64_t y = 0; y < 6; ++y)
        for (std::int64_t x = 0; x < 8; ++x)
            for (std::size_t c = 0; c < 3; ++c) {
                const float expected = static_cast<float>(picture.rgba[static_cast<std::size_t>(y * 8 + x) * 4 + c]) / 127.5F - 1;
                EXPECT_NEAR(at(image, c, y, x), expected, 1e-5F);
            }
}

TEST(Resample, AlphaIsLaidOnWhiteBeforeTheResize) {
    // Black that cannot be seen beside white: resizing before flattening would bleed grey into the result.
    const Picture picture = picture_of(64, 64, [](auto x, auto) { return x < 32 ? Rgba{0, 0, 0, 0} : Rgba{255, 255, 255, 255}; });
    for (const float value : cover_and_crop(picture, 24, 24).values) EXPECT_NEAR(value, 1.0F, 1e-5F);
    const Picture half = picture_of(4, 4, [](auto, auto) { return Rgba{0, 0, 0, 51}; });
    for (const float value : cover_and_crop(half, 4, 4).values) EXPECT_NEAR(value, 204.0F / 127.5F - 1, 1e-5F);
}

TEST(Resample, OneColourStaysOneColourAtEverySize) {
    const Picture picture = picture_of(37, 23, [](auto, auto) { return Rgba{200, 100, 50, 255}; });
    for (const auto& [width, height] : {std::pair{8, 8}, std::pair{128, 64}, std::pair{1, 1}, std::pair{64, 128}}) {
        const PlanarImage image = cover_and_crop(picture, width, height);
        ASSERT_EQ(image.values.size(), static_cast<std::size_t>(3 * width * height));
        EXPECT_NEAR(at(image, 0, height / 2, width / 2), 200.0F / 127.5F - 1, 1e-4F);
        EXPECT_NEAR(at(image, 2, height - 1, width - 1), 50.0F / 127.5F - 1, 1e-4F);
    }
}

TEST(Resample, FinePatternsBecomeGreyInsteadOfAliasing) {
    const Picture stripes = picture_of(256, 256, [](auto x, auto) { return x % 2 == 0 ? Rgba{0, 0, 0, 255} : Rgba{255, 255, 255, 255}; });
    const PlanarImage image = cover_and_crop(stripes, 32, 32);
    for (std::int64_t x = 2; x < 30; ++x) EXPECT_NEAR(at(image, 0, 16, x), 0.0F, 0.02F);
}

TEST(Resample, TheMiddleIsKept) {
    // Red, green and blue thirds: a square out of the middle is green.
    const Picture wide = picture_of(96, 32, [](auto x, auto) {
        return x < 32 ? Rgba{255, 0, 0, 255} : x < 64 ? Rgba{0, 255, 0, 255} : Rgba{0, 0, 255, 255};
    });
    const PlanarImage image = cover_and_crop(wide, 32, 32);
    EXPECT_NEAR(at(image, 1, 16, 0), 1.0F, 1e-5F);
    EXPECT_NEAR(at(image, 1, 16, 31), 1.0F, 1e-5F);
    EXPECT_NEAR(at(image, 0, 16, 0), -1.0F, 1e-5F);
    const Picture tall = picture_of(32, 96, [](auto, auto y) {
        return y < 32 ? Rgba{255, 0, 0, 255} : y < 64 ? Rgba{0, 255, 0, 255} : Rgba{0, 0, 255, 255};
    });
    EXPECT_NEAR(at(cover_and_crop(tall, 16, 16), 1, 8, 8), 1.0F, 1e-5F);
}

TEST(Resample, ALineKeepsItsPlaceAndSlopeWhenEnlarged) {
    const Picture ramp = picture_of(32, 8, [](auto x, auto) { return Rgba{static_cast<int>(x * 8), 0, 0, 255}; });
    const PlanarImage image = cover_and_crop(ramp, 128, 32);
    for (std::int64_t x = 20; x < 108; ++x) {
        const double source = (static_cast<double>(x) + 0.5) / 4 - 0.5;
        EXPECT_NEAR(at(image, 0, 16, x), static_cast<float>(source * 8 / 127.5 - 1), 0.01F) << x;
    }
}

TEST(Resample, AnEmptyPictureIsRefused) {
    EXPECT_EQ(strata_test::thrown_by([] { (void)cover_and_crop({}, 8, 8); }).code, strata::Errc::bad_picture);
}

}  // namespace
