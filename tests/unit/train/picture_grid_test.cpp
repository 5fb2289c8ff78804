// Pictures side by side: every pixel where it belongs, white in between.

#include <array>
#include <vector>

#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <strata/core/error.hpp>
#include <strata/pictures/decode_image.hpp>
#include <strata/train/picture_grid.hpp>

namespace {

at::Tensor plain(float red, float green, float blue) {
    const auto picture = at::full({3, 2, 3}, red, at::kFloat);
    picture.select(0, 1).fill_(green);
    picture.select(0, 2).fill_(blue);
    return picture;
}

std::array<int, 3> pixel(const strata::pictures::Picture& grid, std::int64_t x, std::int64_t y) {
    const auto at = static_cast<std::size_t>((y * grid.width + x) * grid.channels);
    return {grid.pixels[at], grid.pixels[at + 1], grid.pixels[at + 2]};
}

TEST(PictureGrid, PlacesPicturesRowByRowWithWhiteBetween) {
    const std::vector<at::Tensor> pictures{plain(1, -1, -1), plain(-1, 1, -1), plain(-1, -1, 0)};
    const auto file = strata::train::encode_picture_grid(pictures, 2, 1);
    const auto grid = strata::pictures::decode_image(file);
    ASSERT_EQ(grid.width, 2 * 4 + 1);
    ASSERT_EQ(grid.height, 2 * 3 + 1);
    EXPECT_EQ(pixel(grid, 1, 1), (std::array{255, 0, 0}));
    EXPECT_EQ(pixel(grid, 3, 2), (std::array{255, 0, 0}));
    EXPECT_EQ(pixel(grid, 5, 1), (std::array{0, 255, 0}));
    EXPECT_EQ(pixel(grid, 1, 4), (std::array{0, 0, 128}));
    for (const auto& [x, y] : {std::pair{0, 0}, {4, 1}, {1, 3}, {5, 4}, {8, 6}})
        EXPECT_EQ(pixel(grid, x, y), (std::array{255, 255, 255})) << x << ' ' << y;
}

TEST(PictureGrid, ClampsValuesOutsideTheRange) {
    const std::vector<at::Tensor> pictures{plain(3, -7, 1.0001F)};
    const auto grid = strata::pictures::decode_image(strata::train::encode_picture_grid(pictures, 1, 0));
    EXPECT_EQ(pixel(grid, 0, 0), (std::array{255, 0, 255}));
}

TEST(PictureGrid, ColumnsAndRowsAreAsLargeAsTheirLargestPicture) {
    const std::vector<at::Tensor> pictures{plain(1, -1, -1), at::full({3, 4, 5}, -1, at::kFloat), plain(-1, 1, -1)};
    const auto grid = strata::pictures::decode_image(strata::train::encode_picture_grid(pictures, 2, 1));
    ASSERT_EQ(grid.width, 1 + 3 + 1 + 5 + 1);
    ASSERT_EQ(grid.height, 1 + 4 + 1 + 2 + 1);
    EXPECT_EQ(pixel(grid, 1, 1), (std::array{255, 0, 0}));
    EXPECT_EQ(pixel(grid, 1, 3), (std::array{255, 255, 255})) << "below a picture that is lower than its row";
    EXPECT_EQ(pixel(grid, 5, 1), (std::array{0, 0, 0}));
    EXPECT_EQ(pixel(grid, 9, 4), (std::array{0, 0, 0}));
    EXPECT_EQ(pixel(grid, 3, 7), (std::array{0, 255, 0}));
    EXPECT_EQ(pixel(grid, 5, 6), (std::array{255, 255, 255}));
}

TEST(PictureGrid, RefusesWhatIsNoPicture) {
    const std::vector<at::Tensor> pictures{plain(0, 0, 0), at::full({4, 4, 4}, 0, at::kFloat)};
    EXPECT_THROW((void)strata::train::encode_picture_grid(pictures, 2), strata::Error);
    EXPECT_THROW((void)strata::train::encode_picture_grid({}, 2), strata::Error);
    EXPECT_THROW((void)strata::train::encode_picture_grid(std::vector{plain(0, 0, 0)}, 0), strata::Error);
}

}  // namespace
