#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <strata/core/random.hpp>
#include <strata/pictures/framing.hpp>

#include "../../support/temporary_folder.hpp"

namespace {

using namespace strata::core;
using namespace strata::pictures;
using strata::Errc;
using strata::config::BucketMode;
using strata::config::CropAspect;
using strata::config::CropStyle;
using strata::config::ImageDataset;
using strata::config::ResolutionType;
using strata_test::thrown_by;

constexpr BucketSettings nearest{64, BucketMode::nearest, 2};
constexpr BucketSettings simpletuner{64, BucketMode::simpletuner, 2};

ImageDataset cropped(CropAspect aspect, CropStyle style = CropStyle::center) {
    ImageDataset dataset;
    dataset.crop = true;
    dataset.crop_aspect = aspect;
    dataset.crop_style = style;
    if (aspect == CropAspect::closest || aspect == CropAspect::random)
        dataset.crop_aspect_buckets = {{1.0, 0.5}, {0.75, 0.25}, {1.5, 0.25}};
    return dataset;
}

/// Data sets of every kind.
std::vector<ImageDataset> all_kinds() {
    std::vector<ImageDataset> all{ImageDataset{}};
    for (const CropAspect aspect : {CropAspect::square, CropAspect::preserve, CropAspect::closest, CropAspect::random})
        for (const CropStyle style : {CropStyle::center, CropStyle::corner, CropStyle::random}) {
            all.push_back(cropped(aspect, style));
            all.push_back(all.back());
            all.back().maximum_image_size = 1600;
            all.back().target_downsample_size = 1400;
        }
    const std::size_t count = all.size();
    for (std::size_t i = 0; i < count; ++i) {
        all.push_back(all[i]);
        all.back().resolution_type = ResolutionType::pixel;
        all.back().resolution = 768;
        all.push_back(all[i]);
        all.back().resolution_type = ResolutionType::area;
        all.back().resolution = 0.5;
        if (all[i].maximum_image_size > 0) {
            all.back().maximum_image_size = 1.5;
            all.back().target_downsample_size = 1;
        }
    }
    return all;
}

TEST(Framing, TheBoxIsInsideWhateverTheSettings) {
    Random random{1};
    for (const ImageDataset& dataset : all_kinds()) {
        for (const BucketSettings& settings : {nearest, simpletuner}) {
            const Framer framer{dataset, settings};
            for (int i = 0; i < 200; ++i) {
                const PictureSize picture{static_cast<std::int64_t>(20 + random.below(5000)),
                                          static_cast<std::int64_t>(20 + random.below(5000))};
                const Frame frame = framer.frame(picture, random.next());
                ASSERT_EQ(frame.target.width % 64, 0);
                ASSERT_EQ(frame.target.height % 64, 0);
                ASSERT_GT(frame.target.width, 0);
                ASSERT_GE(frame.left, 0);
                ASSERT_GE(frame.top, 0);
                ASSERT_LE(frame.left + static_cast<double>(frame.target.width), frame.width);
                ASSERT_LE(frame.top + static_cast<double>(frame.target.height), frame.height);
                const auto shapes = framer.shapes_of(picture);
                ASSERT_TRUE(
                    std::any_of(shapes.begin(), shapes.end(), [&](const Shape& s) { return s.size == frame.target; }));
                double sum = 0;
                for (const Shape& shape : shapes) sum += shape.weight;
                ASSERT_NEAR(sum, 1, 1e-9);
                if (settings.mode == BucketMode::nearest) {  // the picture is not distorted
                    ASSERT_NEAR(frame.width / frame.height,
                                static_cast<double>(picture.width) / static_cast<double>(picture.height),
                                1e-9 * frame.width / frame.height);
                }
            }
        }
    }
}

TEST(Framing, WithoutCropItIsTheNearestBucketAndItsMiddle) {
    for (const ResolutionType type : {ResolutionType::pixel_area, ResolutionType::pixel}) {
        ImageDataset dataset;
        dataset.resolution_type = type;
        const auto sizes = bucket_list(bucket_rule(dataset, 64));
        const Framer framer{dataset, nearest};
        for (std::int64_t width = 100; width < 4000; width += 97)
            for (std::int64_t height = 100; height < 4000; height += 89) {
                const PictureSize picture{width, height};
                const PictureSize target = sizes[nearest_bucket(sizes, picture)];
                ASSERT_EQ(framer.frame(picture), centered(picture, target));
                ASSERT_EQ(framer.shapes_of(picture), (std::vector<Shape>{{target, 1}}));
            }
    }
}

TEST(Framing, TheMiddleCoversTheTargetWithOneEdgeOfItsOwn) {
    EXPECT_EQ(centered({3000, 2000}, {512, 512}), (Frame{{512, 512}, 768, 512, 128, 0}));
    EXPECT_EQ(centered({2000, 3000}, {512, 512}), (Frame{{512, 512}, 512, 768, 0, 128}));
    EXPECT_EQ(centered({512, 512}, {512, 512}), (Frame{{512, 512}, 512, 512, 0, 0}));
    const Frame odd = centered({1001, 667}, {512, 512});
    EXPECT_EQ(odd.height, 512);
    EXPECT_DOUBLE_EQ(odd.width, 1001 * 512.0 / 667);
    EXPECT_DOUBLE_EQ(odd.left, (odd.width - 512) / 2);
}

TEST(Framing, CornerAndCenterAreWhereTheySay) {
    const PictureSize picture{3000, 2000};
    EXPECT_EQ((Framer{cropped(CropAspect::square), nearest}.frame(picture)), (Frame{{1024, 1024}, 1536, 1024, 256, 0}));
    EXPECT_EQ((Framer{cropped(CropAspect::square, CropStyle::corner), nearest}.frame(picture)),
              (Frame{{1024, 1024}, 1536, 1024, 0, 0}));
    ImageDataset whole = cropped(CropAspect::square, CropStyle::corner);
    whole.crop = false;  // then crop_style and crop_aspect have no say
    EXPECT_EQ((Framer{whole, nearest}.frame(picture)), (Framer{ImageDataset{}, nearest}.frame(picture)));
}

TEST(Framing, ARandomBoxIsEvenlyAnywhereAndFollowsFromItsNumber) {
    const Framer framer{cropped(CropAspect::square, CropStyle::random), nearest};
    std::map<int, int> places;
    for (std::uint64_t i = 0; i < 5130; ++i) {
        const Frame frame = framer.frame({3000, 2000}, combine({i}));
        EXPECT_EQ(frame, framer.frame({3000, 2000}, combine({i})));
        EXPECT_EQ(frame.top, 0);
        EXPECT_EQ(frame.left, std::floor(frame.left));
        ++places[static_cast<int>(frame.left) / 57];  // 513 places, nine parts of 57
    }
    ASSERT_EQ(places.size(), 9U);
    for (const auto& [part, count] : places) EXPECT_NEAR(count, 570, 5 * 23) << part;
}

TEST(Framing, MirroredPicturesHaveMirroredFrames) {
    for (const CropAspect aspect : {CropAspect::square, CropAspect::preserve}) {
        for (const bool shrunk : {false, true}) {
            ImageDataset dataset = cropped(aspect);
            if (shrunk) dataset.maximum_image_size = dataset.target_downsample_size = 1500;
            const Framer framer{dataset, nearest};
            for (std::int64_t width = 200; width < 4000; width += 211)
                for (std::int64_t height = 200; height < 4000; height += 173) {
                    const Frame upright = framer.frame({width, height});
                    const Frame turned = framer.frame({height, width});
                    ASSERT_EQ(upright.target, (PictureSize{turned.target.height, turned.target.width}));
                    ASSERT_EQ(upright.width, turned.height);
                    ASSERT_EQ(upright.left, turned.top);
                }
        }
    }
}

TEST(Framing, ClosestTakesTheListedShapeNearestInRatio) {
    const Framer framer{cropped(CropAspect::closest), nearest};
    const PictureSize tall = framer.frame({750, 1000}).target;
    const PictureSize wide = framer.frame({1500, 1000}).target;
    EXPECT_EQ(framer.frame({1000, 1000}).target, (PictureSize{1024, 1024}));
    EXPECT_NEAR(static_cast<double>(tall.width) / static_cast<double>(tall.height), 0.75, 0.06);
    EXPECT_NEAR(static_cast<double>(wide.width) / static_cast<double>(wide.height), 1.5, 0.06);
    EXPECT_EQ(framer.frame({4000, 1000}).target, wide);
    EXPECT_EQ(framer.frame({1000, 4000}).target, tall);
    EXPECT_EQ(framer.frame({1300, 1000}).target, wide);  // 1.3 is nearer to 1.5 than to 1
    EXPECT_EQ(framer.frame({1200, 1000}).target.width, 1024);
}

TEST(Framing, RandomDrawsTheListedShapesByTheirWeights) {
    const Framer framer{cropped(CropAspect::random), nearest};
    const auto shapes = framer.shapes_of({2000, 2000});
    ASSERT_EQ(shapes.size(), 3U);
    EXPECT_TRUE(is_narrower(shapes[0].size, shapes[1].size) && is_narrower(shapes[1].size, shapes[2].size));
    EXPECT_EQ(shapes[1], (Shape{{1024, 1024}, 0.5}));
    std::map<std::int64_t, int> drawn_widths;
    for (std::uint64_t i = 0; i < 4000; ++i) ++drawn_widths[framer.frame({2000, 2000}, combine({3, i})).target.width];
    EXPECT_NEAR(drawn_widths[1024], 2000, 5 * 32);
    EXPECT_NEAR(drawn_widths[shapes[0].size.width], 1000, 5 * 28);
    EXPECT_NEAR(drawn_widths[shapes[2].size.width], 1000, 5 * 28);
}

TEST(Framing, ShapesThatEnlargeTooMuchAreLeftOut) {
    for (const BucketSettings& settings : {nearest, simpletuner}) {
        ImageDataset dataset = cropped(CropAspect::random);
        const Framer any{dataset, settings};
        dataset.max_upscale_threshold = 0.2;
        const Framer framer{dataset, settings};
        for (std::int64_t width = 300; width < 2000; width += 83)
            for (std::int64_t height = 300; height < 2000; height += 71) {
                const auto shapes = framer.shapes_of({width, height});
                std::vector<Shape> kept;
                for (const Shape& shape : any.shapes_of({width, height}))
                    if (static_cast<double>(shape.size.width) <= 1.2 * static_cast<double>(width) &&
                        static_cast<double>(shape.size.height) <= 1.2 * static_cast<double>(height))
                        kept.push_back(shape);
                if (kept.empty()) {
                    ASSERT_EQ(shapes.size(), 1U);
                    if (settings.mode == BucketMode::simpletuner) {
                        ASSERT_EQ(shapes[0].size, (PictureSize{1024, 1024}));
                    }
                    continue;
                }
                ASSERT_EQ(shapes.size(), kept.size());
                for (std::size_t i = 0; i < kept.size(); ++i) ASSERT_EQ(shapes[i].size, kept[i].size);
            }
    }
    ImageDataset dataset = cropped(CropAspect::closest);
    dataset.max_upscale_threshold = 0;
    const Framer framer{dataset, nearest};
    EXPECT_EQ(framer.frame({1100, 1500}).target,
              (Framer{cropped(CropAspect::closest), nearest}.frame({750, 1000}).target));
    EXPECT_EQ(framer.frame({1030, 1500}).target,
              (Framer{cropped(CropAspect::closest), nearest}.frame({750, 1000}).target));
    EXPECT_EQ(framer.frame({1030, 1030}).target, (PictureSize{1024, 1024}));
    // Nothing fits: of the three the one that a small wide picture has to grow least for.
    EXPECT_EQ(framer.frame({600, 400}).target,
              (Framer{cropped(CropAspect::closest), nearest}.frame({1500, 1000}).target));
}

TEST(Framing, LargePicturesAreShrunkToTheirOwnSizeBeforeTheyAreCropped) {
    ImageDataset dataset = cropped(CropAspect::square);
    dataset.maximum_image_size = 2000;
    dataset.target_downsample_size = 1500;
    const Framer framer{dataset, nearest};
    const Frame frame = framer.frame({4000, 4000});
    EXPECT_EQ(frame.target, (PictureSize{1024, 1024}));
    EXPECT_DOUBLE_EQ(frame.width, 1500);
    EXPECT_DOUBLE_EQ(frame.left, 238);
    const Frame wide = framer.frame({6000, 3000});  // the same area as a square of 4243
    EXPECT_NEAR(wide.width * wide.height, 1500.0 * 1500, 1);
    EXPECT_DOUBLE_EQ(wide.width / wide.height, 2);
    EXPECT_EQ(framer.frame({2000, 2000}).width, 1024);    // not above the maximum
    EXPECT_EQ(framer.frame({40000, 1000}).height, 1024);  // the square must be covered all the same
    dataset.resolution_type = ResolutionType::pixel;
    EXPECT_EQ((Framer{dataset, nearest}.frame({4000, 3000}).height), 1500);
    EXPECT_EQ((Framer{dataset, nearest}.frame({4000, 2000}).height), 1024);
    dataset.crop = false;
    EXPECT_EQ((Framer{dataset, nearest}.frame({4000, 3000}).height), 1024);
}

TEST(Framing, SimpletunerModeHasTheSizesAndBoxesOfSimpletuner) {
    const Framer plain{ImageDataset{}, simpletuner};
    EXPECT_EQ(plain.frame({1080, 1920}), (Frame{{768, 1344}, 768, 1365, 0, 10}));
    EXPECT_EQ(plain.frame({4475, 6709}), (Frame{{832, 1280}, 854, 1280, 11, 0}));
    ImageDataset square = cropped(CropAspect::square);
    square.resolution = 512;
    square.resolution_type = ResolutionType::pixel;
    EXPECT_EQ((Framer{square, simpletuner}.frame({800, 600})), (Frame{{512, 512}, 682, 512, 85, 0}));
    square.crop_style = CropStyle::corner;
    EXPECT_EQ((Framer{square, simpletuner}.frame({800, 600})), (Frame{{512, 512}, 682, 512, 0, 0}));
    square.resolution_type = ResolutionType::area;
    square.resolution = 0.5;
    EXPECT_EQ((Framer{square, simpletuner}.frame({800, 600}).target), (PictureSize{768, 768}));
    const Framer closest{cropped(CropAspect::closest), simpletuner};
    EXPECT_EQ(closest.frame({1000, 1300}).target, (PictureSize{896, 1152}));
    EXPECT_EQ(closest.frame({1280, 1000}).target, (PictureSize{1280, 832}));  // 1.28 is nearer to 1.5 than to 1
    EXPECT_EQ(closest.frame({1240, 1000}).target, (PictureSize{1024, 1024}));
}

TEST(Framing, SimpletunerShrinksPicturesOfAllSizesFirst) {
    ImageDataset dataset = cropped(CropAspect::square);
    dataset.maximum_image_size = 3000;
    dataset.target_downsample_size = 1536;
    const Framer framer{dataset, simpletuner};
    EXPECT_EQ(framer.frame({1200, 1200}), (Frame{{1024, 1024}, 1536, 1536, 256, 256}));
    EXPECT_EQ(framer.frame({5000, 5000}), (Frame{{1024, 1024}, 1536, 1536, 256, 256}));
}

TEST(Framing, SimpletunerCountsWholePixels) {
    ImageDataset dataset;
    dataset.id = "photos";
    dataset.resolution_type = ResolutionType::pixel;
    dataset.resolution = 512.5;
    const auto error = thrown_by([&] { Framer(dataset, simpletuner); });
    EXPECT_EQ(error.code, Errc::bad_value);
    EXPECT_TRUE(error.says("data set 'photos': 'resolution'")) << error.message;
    Framer(dataset, nearest);
}

}  // namespace
