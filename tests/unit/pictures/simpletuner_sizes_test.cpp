#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <strata/pictures/simpletuner_sizes.hpp>

namespace {

using namespace strata::pictures;
using strata::config::ResolutionType;

SimpletunerRule area(double megapixels, std::int64_t alignment = 64) {
    return {megapixels, ResolutionType::area, alignment, 2};
}
SimpletunerRule pixel(double edge) { return {edge, ResolutionType::pixel, 64, 2}; }

/// What SimpleTuner gives a picture, read off its own functions.
struct Known {
    PictureSize picture;
    PictureSize target;
    PictureSize intermediary;
    double key;
};
void expect(const SimpletunerRule& rule, const std::vector<Known>& all) {
    for (const auto& [picture, target, intermediary, key] : all) {
        const SimpletunerSize size = simpletuner_size(rule, rounded_ratio(picture, rule.rounding), picture);
        EXPECT_EQ(size.target.width, target.width) << picture.width << " x " << picture.height;
        EXPECT_EQ(size.target.height, target.height) << picture.width << " x " << picture.height;
        EXPECT_EQ(size.key, key) << picture.width << " x " << picture.height;
        const PictureSize resized = simpletuner_intermediary(rule, picture, size.target);
        EXPECT_EQ(resized.width, intermediary.width) << picture.width << " x " << picture.height;
        EXPECT_EQ(resized.height, intermediary.height) << picture.width << " x " << picture.height;
    }
}

TEST(SimpletunerSizes, RatiosAreRoundedAsPythonDoes) {
    EXPECT_EQ(rounded_ratio({1920, 1080}, 2), 1.78);
    EXPECT_EQ(rounded_ratio({1080, 1920}, 2), 0.56);
    EXPECT_EQ(rounded_ratio({300, 4000}, 2), 0.07);  // 0.075 is a little less in binary
    EXPECT_EQ(rounded_ratio({1, 8}, 2), 0.12);       // a true half goes to the even digit
    EXPECT_EQ(rounded_ratio({3, 8}, 2), 0.38);
    EXPECT_EQ(rounded_ratio({1000, 1001}, 9), 0.999000999);
    EXPECT_EQ(rounded_ratio({10, 4000}, 2), 0.01);  // there 0, and a crash
}

TEST(SimpletunerSizes, AnAreaHasTheSizesOfSimpletuner) {
    const std::vector<Known> one{
        {{1024, 1024}, {1024, 1024}, {1024, 1024}, 1.0}, {{4000, 4000}, {1024, 1024}, {1024, 1024}, 1.0},
        {{2000, 2000}, {1024, 1024}, {1024, 1024}, 1.0}, {{1080, 1920}, {768, 1344}, {768, 1365}, 0.57},
        {{3000, 4000}, {896, 1152}, {896, 1194}, 0.78},  {{4539, 6527}, {832, 1216}, {845, 1216}, 0.68},
        {{1000, 1001}, {1024, 1024}, {1024, 1026}, 1.0}, {{4475, 6709}, {832, 1280}, {854, 1280}, 0.65},
        {{6000, 2000}, {1792, 576}, {1792, 597}, 3.11},  {{300, 4000}, {256, 3840}, {288, 3840}, 0.07}};
    expect(area(1.0), one);
    expect(area(1.048576), one);
    expect({1024, ResolutionType::pixel_area, 64, 2}, one);
    expect(area(0.262144), {{{1024, 1024}, {512, 512}, {512, 512}, 1.0},
                            {{1080, 1920}, {384, 704}, {396, 704}, 0.55},
                            {{3000, 4000}, {448, 576}, {448, 597}, 0.78},
                            {{4539, 6527}, {448, 640}, {448, 644}, 0.7},
                            {{1000, 1001}, {512, 512}, {512, 513}, 1.0},
                            {{4475, 6709}, {448, 640}, {448, 671}, 0.7},
                            {{6000, 2000}, {896, 320}, {960, 320}, 2.8},
                            {{300, 4000}, {128, 1920}, {144, 1920}, 0.07}});
    expect(area(0.5), {{{1024, 1024}, {704, 704}, {704, 704}, 1.0},
                       {{1080, 1920}, {512, 960}, {540, 960}, 0.53},
                       {{3000, 4000}, {640, 832}, {640, 853}, 0.77},
                       {{4539, 6527}, {576, 832}, {578, 832}, 0.69},
                       {{1000, 1001}, {704, 704}, {704, 705}, 1.0},
                       {{4475, 6709}, {576, 832}, {576, 863}, 0.69},
                       {{6000, 2000}, {1216, 384}, {1216, 405}, 3.17},
                       {{300, 4000}, {192, 2688}, {201, 2688}, 0.07}});
}

TEST(SimpletunerSizes, OtherAlignmentsHaveTheSizesOfSimpletuner) {
    const auto target = [](std::int64_t alignment, PictureSize picture) {
        return simpletuner_size(area(1.0, alignment), rounded_ratio(picture, 2), picture);
    };
    EXPECT_EQ(target(8, {1920, 1080}), (SimpletunerSize{{1336, 752}, 1.78}));
    EXPECT_EQ(target(8, {4000, 3000}), (SimpletunerSize{{1152, 864}, 1.33}));
    EXPECT_EQ(target(8, {832, 1216}).target, (PictureSize{824, 1216}));
    EXPECT_EQ(simpletuner_intermediary(area(1.0, 8), {832, 1216}, {824, 1216}), (PictureSize{832, 1216}));
    EXPECT_EQ(target(16, {1920, 1080}), (SimpletunerSize{{1328, 736}, 1.8}));
    EXPECT_EQ(simpletuner_intermediary(area(1.0, 16), {1920, 1080}, {1328, 736}), (PictureSize{1328, 747}));
    EXPECT_EQ(target(16, {4000, 3000}).target, (PictureSize{1152, 864}));
    EXPECT_EQ(target(16, {832, 1216}).target, (PictureSize{816, 1200}));
    EXPECT_EQ(simpletuner_intermediary(area(1.0, 16), {832, 1216}, {816, 1200}), (PictureSize{821, 1200}));
    EXPECT_EQ(target(32, {1920, 1080}), (SimpletunerSize{{1312, 736}, 1.78}));
    EXPECT_EQ(simpletuner_intermediary(area(1.0, 32), {1920, 1080}, {1312, 736}), (PictureSize{1312, 738}));
    EXPECT_EQ(target(32, {4000, 3000}).target, (PictureSize{1152, 864}));
    EXPECT_EQ(target(32, {832, 1216}).target, (PictureSize{832, 1216}));
}

TEST(SimpletunerSizes, AnEdgeHasTheSizesOfSimpletuner) {
    expect(pixel(512), {{{1920, 1080}, {896, 512}, {910, 512}, 1.75},
                        {{4000, 3000}, {704, 512}, {704, 528}, 1.38},
                        {{3911, 5476}, {512, 704}, {512, 716}, 0.73},
                        {{2560, 1080}, {1216, 512}, {1216, 513}, 2.38},
                        {{1000, 1001}, {512, 512}, {512, 512}, 1.0}});
    expect(pixel(1024), {{{1920, 1080}, {1792, 1024}, {1820, 1024}, 1.75},
                         {{4000, 3000}, {1344, 1024}, {1365, 1024}, 1.31},
                         {{3911, 5476}, {1024, 1472}, {1051, 1472}, 0.7},
                         {{2560, 1080}, {2432, 1024}, {2432, 1026}, 2.38},
                         {{1000, 1001}, {1024, 1024}, {1024, 1025}, 1.0}});
}

TEST(SimpletunerSizes, EveryRatioOfAMegapixelHasItsSizeAndKey) {
    struct Range {
        int from, to;  // hundredths
        PictureSize target;
        double key;
    };
    const std::vector<Range> ranges{
        {25, 25, {512, 2048}, 0.25},   {26, 27, {512, 1984}, 0.26},   {28, 28, {512, 1920}, 0.27},
        {29, 29, {576, 1920}, 0.3},    {30, 31, {576, 1856}, 0.31},   {32, 33, {576, 1792}, 0.32},
        {34, 35, {576, 1728}, 0.33},   {36, 36, {640, 1728}, 0.37},   {37, 39, {640, 1664}, 0.38},
        {40, 42, {640, 1600}, 0.4},    {43, 43, {640, 1536}, 0.42},   {44, 46, {704, 1536}, 0.46},
        {47, 50, {704, 1472}, 0.48},   {51, 51, {704, 1408}, 0.5},    {52, 55, {768, 1408}, 0.55},
        {56, 60, {768, 1344}, 0.57},   {61, 61, {768, 1280}, 0.6},    {62, 67, {832, 1280}, 0.65},
        {68, 71, {832, 1216}, 0.68},   {72, 74, {896, 1216}, 0.74},   {75, 82, {896, 1152}, 0.78},
        {83, 83, {960, 1152}, 0.83},   {84, 93, {960, 1088}, 0.88},   {94, 94, {1024, 1088}, 0.94},
        {95, 106, {1024, 1024}, 1.0},  {107, 119, {1088, 960}, 1.13}, {120, 121, {1152, 960}, 1.2},
        {122, 133, {1152, 896}, 1.29}, {134, 140, {1216, 896}, 1.36}, {141, 148, {1216, 832}, 1.46},
        {149, 163, {1280, 832}, 1.54}, {164, 164, {1280, 768}, 1.67}, {165, 180, {1344, 768}, 1.75},
        {181, 193, {1408, 768}, 1.83}, {194, 197, {1408, 704}, 2.0},  {198, 215, {1472, 704}, 2.09},
        {216, 232, {1536, 704}, 2.18}, {233, 234, {1536, 640}, 2.4},  {235, 254, {1600, 640}, 2.5},
        {255, 274, {1664, 640}, 2.6},  {275, 283, {1728, 640}, 2.7},  {284, 295, {1728, 576}, 3.0},
        {296, 317, {1792, 576}, 3.11}, {318, 339, {1856, 576}, 3.22}, {340, 354, {1920, 576}, 3.33},
        {355, 363, {1920, 512}, 3.75}, {364, 387, {1984, 512}, 3.88}, {388, 400, {2048, 512}, 4.0}};
    int next = 25;
    for (const Range& range : ranges) {
        EXPECT_EQ(range.from, next);
        for (int ratio = range.from; ratio <= range.to; ++ratio)
            EXPECT_EQ(simpletuner_size(area(1.0), ratio / 100.0, {1, 1}), (SimpletunerSize{range.target, range.key}))
                << ratio;
        next = range.to + 1;
    }
    EXPECT_EQ(next, 401);
}

TEST(SimpletunerSizes, SquaresHaveTheEdgesOfSimpletuner) {
    const std::vector<std::pair<double, std::int64_t>> known{{0.25, 512},      {0.5, 768},  {1.0, 1024},
                                                             {1.048576, 1024}, {2.0, 1536}, {4.0, 2048}};
    for (const auto& [megapixels, edge] : known) EXPECT_EQ(simpletuner_square(area(megapixels)), edge);
    EXPECT_EQ(simpletuner_square(area(0.7)), 832);
    EXPECT_EQ(simpletuner_square({1024, ResolutionType::pixel_area, 64, 2}), 1024);
    EXPECT_EQ(simpletuner_square(pixel(512)), 512);
}

TEST(SimpletunerSizes, WhereSizesShareAKeyEachRatioKeepsItsOwn) {
    const SimpletunerSize narrow = simpletuner_size(area(1.0), 0.08, {8, 100});
    const SimpletunerSize wider = simpletuner_size(area(1.0), 0.09, {9, 100});
    EXPECT_EQ(narrow, (SimpletunerSize{{320, 3648}, 0.09}));
    EXPECT_EQ(wider, (SimpletunerSize{{320, 3392}, 0.09}));
}

TEST(SimpletunerSizes, WhatIsResizedCoversTheTrainingSizeAndKeepsTheRatio) {
    for (const SimpletunerRule& rule :
         {area(1.0), area(0.5), area(0.262144, 8), pixel(512), pixel(1024), pixel(1280)}) {
        for (std::int64_t width = 64; width < 6000; width += 371) {
            for (std::int64_t height = 64; height < 6000; height += 293) {
                const PictureSize picture{width, height};
                const PictureSize target = simpletuner_size(rule, rounded_ratio(picture, 2), picture).target;
                const PictureSize size = simpletuner_intermediary(rule, picture, target);
                ASSERT_GE(size.width, target.width);
                ASSERT_GE(size.height, target.height);
                if (rule.resolution_type == ResolutionType::pixel) {
                    ASSERT_GE(std::min(target.width, target.height), rule.resolution);
                }
                if (width < 512 || height < 512 || width > 2500 || height > 2500) continue;
                const auto ratio = [](const PictureSize& s) {
                    return static_cast<double>(s.width) / static_cast<double>(s.height);
                };
                ASSERT_NEAR(ratio(picture), ratio(size), 0.025);
            }
        }
    }
}

}  // namespace
