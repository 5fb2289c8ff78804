#pragma once
// strata/train/impl/picture_grid.ipp - from float planes to interleaved bytes.

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <strata/core/error.hpp>
#include <strata/pictures/png.hpp>
#include <strata/train/picture_grid.hpp>

namespace strata::train {

STRATA_INLINE std::vector<std::byte> encode_picture_grid(std::span<const at::Tensor> pictures, int columns, int gap) {
    if (pictures.empty() || columns < 1)
        throw Error{Errc::bad_argument, "a picture grid needs at least one picture and one column", "give it some"};
    const std::int64_t height = pictures[0].size(1), width = pictures[0].size(2);
    const auto count = static_cast<std::int64_t>(pictures.size());
    const std::int64_t rows = (count + columns - 1) / columns;
    const std::int64_t grid_width = columns * (width + gap) + gap, grid_height = rows * (height + gap) + gap;
    std::vector<std::uint8_t> rgb(static_cast<std::size_t>(grid_width * grid_height * 3), 255);
    for (std::int64_t i = 0; i < count; ++i) {
        const at::Tensor picture_3HW = pictures[static_cast<std::size_t>(i)].detach().cpu().to(at::kFloat).contiguous();
        if (picture_3HW.dim() != 3 || picture_3HW.size(0) != 3 || picture_3HW.size(1) != height ||
            picture_3HW.size(2) != width)
            throw Error{Errc::bad_argument, "the pictures of a grid have different shapes",
                        "draw them at one resolution"};
        const float* values = picture_3HW.data_ptr<float>();
        const std::int64_t left = gap + i % columns * (width + gap), top = gap + i / columns * (height + gap);
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
