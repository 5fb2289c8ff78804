// Masks keep their edges: means over areas, nothing beyond 0 and 1, the same box as the picture's.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include <strata/core/error.hpp>
#include <strata/pictures/mask.hpp>

namespace {

using namespace strata::pictures;

/// White from column `edge` on.
Picture half_white(std::int64_t width, std::int64_t height, std::int64_t edge, std::int64_t channels = 3) {
    Picture picture{width, height, channels, {}};
    for (std::int64_t i = 0; i < width * height; ++i)
        for (std::int64_t c = 0; c < channels; ++c)
            picture.pixels.push_back(c == 3 || i % width >= edge ? std::uint8_t{255} : std::uint8_t{0});
    return picture;
}

std::vector<float> resized(const Picture& picture, const Frame& frame) {
    std::vector<float> values(static_cast<std::size_t>(frame.target.width * frame.target.height), -1.0F);
    resize_mask_into(picture, frame, values);
    return values;
}

TEST(Mask, IsTheSameWhereNothingIsResized) {
    EXPECT_EQ(resized(half_white(4, 2, 1), centered({4, 2}, {4, 2})), (std::vector<float>{0, 1, 1, 1, 0, 1, 1, 1}));
}

TEST(Mask, APixelHasTheShareOfItsAreaThatIsWhite) {
    EXPECT_EQ(resized(half_white(8, 2, 3), centered({8, 2}, {4, 1})), (std::vector<float>{0, 0.5F, 1, 1}));
    EXPECT_EQ(resized(half_white(4, 1, 1), {{3, 1}, 3, 1, 0, 0}),  // each covers 4/3 samples
              (std::vector<float>{0.25F, 1, 1}));
    EXPECT_EQ(resized(half_white(2, 1, 1), {{3, 1}, 3, 1, 0, 0}), (std::vector<float>{0, 0.5F, 1}));  // 2/3 of one
}

TEST(Mask, IsBlackAndWhiteUpToTheEdgeAtAnyScaleAndNeverBeyond) {
    for (const std::int64_t width : {7, 50, 64, 100, 333})
        for (const std::int64_t height : {5, 64, 99}) {
            const Frame frame{{64, 48}, 96.5, 60.25, 20.3, 7.7};
            const std::int64_t edge = width / 2;
            const std::vector<float> values = resized(half_white(width, height, edge), frame);
            const double at = static_cast<double>(edge) / static_cast<double>(width) * frame.width - frame.left;
            for (std::int64_t i = 0; i < 64 * 48; ++i) {
                const auto x = static_cast<double>(i % 64);
                const float value = values[static_cast<std::size_t>(i)];
                if (x + 1 <= at) {
                    ASSERT_EQ(value, 0) << width << ' ' << i;
                }
                if (x >= at) {
                    ASSERT_EQ(value, 1) << width << ' ' << i;
                }
                ASSERT_TRUE(value >= 0 && value <= 1);
            }
        }
}

TEST(Mask, WhatWasSoftStaysSoftAndColoursAreMeans) {
    Picture grey{2, 1, 3, {51, 51, 51, 255, 0, 0}};
    const std::vector<float> values = resized(grey, centered({2, 1}, {2, 1}));
    EXPECT_FLOAT_EQ(values[0], 0.2F);
    EXPECT_FLOAT_EQ(values[1], 1.0F / 3);
}

TEST(Mask, WhatIsTransparentIsBlack) {
    Picture cut = half_white(2, 1, 0, 4);
    cut.pixels[3] = 0;
    EXPECT_EQ(resized(cut, centered({2, 1}, {2, 1})), (std::vector<float>{0, 1}));
}

TEST(Mask, WrongMemoryAndNoPixelsAreRefused) {
    std::vector<float> values(4);
    const Frame frame = centered({2, 2}, {2, 2});
    EXPECT_THROW(resize_mask_into({0, 2, 3, {}}, frame, values), strata::Error);
    EXPECT_THROW(resize_mask_into({2, 2, 3, std::vector<std::uint8_t>(11)}, frame, values), strata::Error);
    EXPECT_THROW(resize_mask_into(half_white(2, 2, 1), frame, std::span{values}.first(3)), strata::Error);
}

}  // namespace
