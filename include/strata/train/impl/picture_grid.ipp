#pragma once
// strata/train/impl/picture_grid.ipp - from float planes to interleaved bytes.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>

#include <strata/core/error.hpp>
#include <strata/pictures/png.hpp>
#include <strata/train/picture_grid.hpp>

namespace strata::train {

STRATA_INLINE std::vector<std::byte> encode_picture_grid(std::span<const at::Tensor> pictures, int columns, int gap) {
    if (pictures.empty() || columns < 1)
        throw Error{Errc::bad_argument, "a picture grid needs at least one picture and one column", "give it some"};
    const auto across = static_cast<std::size_t>(columns);
    std::vector<std::int64_t> widths(across), heights((pictures.size() + across - 1) / across);
    for (std::size_t i = 0; i < pictures.size(); ++i) {
        if (pictures[i].dim() != 3 || pictures[i].size(0) != 3)
            throw Error{Errc::bad_argument, "a picture of a grid is no tensor of 3 colours, height and width",
                        "give it what a recipe draws"};
        heights[i / across] = std::max(heights[i / across], pictures[i].size(1));
        widths[i % across] = std::max(widths[i % across], pictures[i].size(2));
    }
    // Columns that no picture is in are as wide as the widest.
    const std::int64_t widest = *std::max_element(widths.begin(), widths.end());
    std::replace(widths.begin(), widths.end(), std::int64_t{0}, widest);
    const auto before = [gap](const std::vector<std::int64_t>& lengths, std::size_t n) {
        return std::accumulate(lengths.begin(), lengths.begin() + static_cast<std::ptrdiff_t>(n), std::int64_t{gap},
                               [gap](std::int64_t sum, std::int64_t length) { return sum + length + gap; });
    };
    const std::int64_t grid_width = before(widths, widths.size()), grid_height = before(heights, heights.size());
    std::vector<std::uint8_t> rgb(static_cast<std::size_t>(grid_width * grid_height * 3), 255);
    for (std::size_t i = 0; i < pictures.size(); ++i) {
        const at::Tensor picture_3HW = pictures[i].detach().cpu().to(at::kFloat).contiguous();
        const std::int64_t height = picture_3HW.size(1), width = picture_3HW.size(2);
        const float* values = picture_3HW.data_ptr<float>();
        const std::int64_t left = before(widths, i % across), top = before(heights, i / across);
        for (std::int64_t channel = 0; channel < 3; ++channel)
            for (std::int64_t y = 0; y < height; ++y)
                for (std::int64_t x = 0; x < width; ++x) {
                    const float unit = std::clamp(*values++ * 0.5F + 0.5F, 0.0F, 1.0F);
                    rgb[static_cast<std::size_t>(((top + y) * grid_width + left + x) * 3 + channel)] =
                        static_cast<std::uint8_t>(std::lround(unit * 255.0F));
                }
    }
    return pictures::encode_png(grid_width, grid_height, rgb);
}

}  // namespace strata::train
