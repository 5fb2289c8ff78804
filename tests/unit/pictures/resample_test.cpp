#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <vector>

#include <gtest/gtest.h>

#include <strata/core/simd.hpp>
#include <strata/pictures/resample.hpp>

#include "../../support/temporary_folder.hpp"

namespace {

using namespace strata::pictures;

/// A picture from a function of (x, y) -> {r, g, b, a}.
template <class Colour>
Picture picture_of(std::int64_t width, std::int64_t height, const Colour& colour) {
    Picture picture{width, height, 4, {}};
    for (std::int64_t y = 0; y < height; ++y)
        for (std::int64_t x = 0; x < width; ++x)
            for (const int value : colour(x, y)) picture.pixels.push_back(static_cast<std::uint8_t>(value));
    return picture;
}
using Rgba = std::array<int, 4>;
float at(const PlanarImage& image, std::size_t plane, std::int64_t y, std::int64_t x) {
    return image.values[(plane * static_cast<std::size_t>(image.height) + static_cast<std::size_t>(y)) *
                            static_cast<std::size_t>(image.width) +
                        static_cast<std::size_t>(x)];
}

TEST(Resample, TheSameSizeKeepsEveryPixel) {
    const Picture picture = picture_of(8, 6, [](auto x, auto y) {
        return Rgba{static_cast<int>(x * 30), static_cast<int>(y * 40), static_cast<int>((x * y) % 256), 255};
    });
    const PlanarImage image = cover_and_crop(picture, 8, 6);
    for (std::int64_t y = 0; y < 6; ++y)
        for (std::int64_t x = 0; x < 8; ++x)
            for (std::size_t c = 0; c < 3; ++c) {
                const float expected =
                    static_cast<float>(picture.pixels[static_cast<std::size_t>(y * 8 + x) * 4 + c]) / 127.5F - 1;
                EXPECT_NEAR(at(image, c, y, x), expected, 1e-5F);
            }
}

TEST(Resample, AlphaIsLaidOnWhiteBeforeTheResize) {
    // Black that cannot be seen beside white: resizing before flattening would bleed grey into the result.
    const Picture picture = picture_of(64, 64, [](auto x, auto) {
        return x < 32 ? Rgba{0, 0, 0, 0} : Rgba{255, 255, 255, 255};
    });
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
    const Picture stripes = picture_of(256, 256, [](auto x, auto) {
        return x % 2 == 0 ? Rgba{0, 0, 0, 255} : Rgba{255, 255, 255, 255};
    });
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

TEST(Resample, WithoutAlphaItIsTheSameAsOpaque) {
    const Picture opaque = picture_of(300, 41, [](auto x, auto y) {
        return Rgba{static_cast<int>(x * y % 256), static_cast<int>((x * 7 + y) % 256), static_cast<int>(y * 6), 255};
    });
    Picture plain{300, 41, 3, {}};
    for (std::size_t i = 0; i < opaque.pixels.size(); ++i)
        if (i % 4 != 3) plain.pixels.push_back(opaque.pixels[i]);
    EXPECT_EQ(cover_and_crop(plain, 100, 20).values, cover_and_crop(opaque, 100, 20).values);
}

TEST(Resample, ABoxIsTheSamePartOfTheWholeResizedPicture) {
    const Picture picture = picture_of(150, 90, [](auto x, auto y) {
        return Rgba{static_cast<int>(x * y % 256), static_cast<int>((x * 7 + y) % 256), static_cast<int>(y * 2), 255};
    });
    for (const auto& [width, height] : {std::pair{75, 45}, std::pair{100, 61}, std::pair{300, 180}}) {
        const PlanarImage whole = resize_and_crop(picture, {{width, height}, double(width), double(height), 0, 0});
        for (const auto& [left, top] : {std::pair{0, 0}, std::pair{width - 40, height - 30}, std::pair{11, 7}}) {
            const PlanarImage part =
                resize_and_crop(picture, {{40, 30}, double(width), double(height), double(left), double(top)});
            for (std::size_t c = 0; c < 3; ++c)
                for (std::int64_t y = 0; y < 30; ++y)
                    for (std::int64_t x = 0; x < 40; ++x)
                        ASSERT_NEAR(at(part, c, y, x), at(whole, c, top + y, left + x), 1e-5F);
        }
    }
}

/// As cover_and_crop says it, sample by sample in double.
std::vector<double> by_definition(const Picture& picture, std::int64_t width, std::int64_t height) {
    const double step = std::min(static_cast<double>(picture.width) / static_cast<double>(width),
                                 static_cast<double>(picture.height) / static_cast<double>(height));
    const double stretch = std::max(1.0, step);
    const auto axis = [&](std::int64_t source, std::int64_t result) {
        std::vector<std::vector<double>> all;  // a weight for every sample of the source
        const double begin = (static_cast<double>(source) - step * static_cast<double>(result)) / 2;
        for (std::int64_t i = 0; i < result; ++i) {
            const double center = begin + (static_cast<double>(i) + 0.5) * step;
            std::vector<double> weights;
            double sum = 0;
            for (std::int64_t j = 0; j < source; ++j) {
                const double x = std::abs((static_cast<double>(j) + 0.5 - center) / stretch);
                const double angle = std::numbers::pi * x;
                weights.push_back(x < 1e-9 ? 1
                                  : x >= 3 ? 0
                                           : 3 * std::sin(angle) * std::sin(angle / 3) / (angle * angle));
                sum += weights.back();
            }
            for (double& weight : weights) weight /= sum;
            all.push_back(std::move(weights));
        }
        return all;
    };
    const auto columns = axis(picture.width, width);
    const auto rows = axis(picture.height, height);
    std::vector<double> values;
    for (std::size_t c = 0; c < 3; ++c)
        for (const auto& down : rows)
            for (const auto& across : columns) {
                double sum = 0;
                for (std::size_t y = 0; y < down.size(); ++y) {
                    if (down[y] == 0) continue;
                    for (std::size_t x = 0; x < across.size(); ++x)
                        sum += down[y] * across[x] * picture.pixels[(y * across.size() + x) * 4 + c];
                }
                values.push_back(std::clamp(sum, 0.0, 255.0) / 127.5 - 1);
            }
    return values;
}

TEST(Resample, EverySizeIsWhatTheDefinitionSays) {
    const auto noise = [](auto x, auto y) {
        const auto mixed = [&](auto c) {
            return static_cast<int>((x * 7919 + y * 104729 + c * 1299709 + x * y * 31) % 256);
        };
        return Rgba{mixed(1), mixed(2), mixed(3), 255};
    };
    struct Case {
        std::int64_t source_width, source_height, width, height;
    };
    for (const Case& one : {Case{150, 40, 37, 21}, Case{33, 61, 16, 16}, Case{7, 5, 40, 33}, Case{270, 33, 129, 17},
                            Case{90, 90, 3, 1}, Case{1, 1, 17, 18}, Case{130, 3, 5, 3}}) {
        const Picture picture = picture_of(one.source_width, one.source_height, noise);
        const std::vector<double> expected = by_definition(picture, one.width, one.height);
        const PlanarImage image = cover_and_crop(picture, one.width, one.height);
        ASSERT_EQ(image.values.size(), expected.size());
        for (std::size_t i = 0; i < expected.size(); ++i)
            ASSERT_NEAR(image.values[i], expected[i], 1e-5)
                << one.source_width << " to " << one.width << ", value " << i;
    }
}

TEST(Resample, EveryInstructionSetGivesTheSameBits) {
    const Picture picture = picture_of(331, 207, [](auto x, auto y) {
        return Rgba{static_cast<int>(x * 5 % 256), static_cast<int>(y * 3 % 256), static_cast<int>(x * y % 256),
                    static_cast<int>(x % 256)};
    });
    using strata::core::SimdLevel;
    for (const auto& [width, height] : {std::pair{64, 48}, std::pair{129, 33}, std::pair{400, 300}}) {
        const PlanarImage baseline = cover_and_crop(picture, width, height, SimdLevel::baseline);
        for (const SimdLevel level : {SimdLevel::avx2, SimdLevel::avx512}) {
            if (level > strata::core::simd_level()) continue;
            EXPECT_EQ(cover_and_crop(picture, width, height, level).values, baseline.values);
        }
    }
}

TEST(Resample, MemoryThatDoesNotFitIsRefused) {
    Picture picture{4, 4, 3, std::vector<std::uint8_t>(47)};
    EXPECT_EQ(strata_test::thrown_by([&] { (void)cover_and_crop(picture, 8, 8); }).code, strata::Errc::bad_picture);
    picture.pixels.resize(48);
    std::vector<float> values(191);
    EXPECT_EQ(strata_test::thrown_by([&] { cover_and_crop_into(picture, 8, 8, values); }).code,
              strata::Errc::bad_picture);
}

TEST(Resample, AnEmptyPictureIsRefused) {
    EXPECT_EQ(strata_test::thrown_by([] { (void)cover_and_crop({}, 8, 8); }).code, strata::Errc::bad_picture);
}

}  // namespace
