#include "by_hand.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <numbers>

#include <jpeglib.h>

namespace by_hand {

namespace {

#ifdef __clang__
#define BY_HAND_CLONES
#else
#define BY_HAND_CLONES [[gnu::target_clones("avx512f", "avx2", "default")]]
#endif

struct Taps {
    int first = 0;
    std::vector<float> weights;
};

std::vector<Taps> taps_of(int source, int result, double step) {
    std::vector<Taps> all(static_cast<std::size_t>(result));
    const double stretch = std::max(1.0, step);
    for (int i = 0; i < result; ++i) {
        const double center = (source - step * result) / 2 + (i + 0.5) * step;
        Taps& taps = all[static_cast<std::size_t>(i)];
        taps.first = std::clamp(static_cast<int>(std::floor(center - 3 * stretch + 0.5)), 0, source - 1);
        const int end = std::clamp(static_cast<int>(std::floor(center + 3 * stretch + 0.5)), taps.first + 1, source);
        double sum = 0;
        for (int pass = 0; pass < 2; ++pass)
            for (int j = taps.first; j < end; ++j) {
                const double x = std::abs((j + 0.5 - center) / stretch);
                const double angle = std::numbers::pi * x;
                const double weight = x < 1e-9 ? 1
                                      : x >= 3 ? 0
                                               : 3 * std::sin(angle) * std::sin(angle / 3) / (angle * angle);
                if (pass == 0)
                    sum += weight;
                else
                    taps.weights.push_back(static_cast<float>(weight / sum));
            }
    }
    return all;
}

typedef float Four __attribute__((vector_size(16)));

/// One row of the result: columns of the source first, then along the row, a pixel and one float more at a time.
BY_HAND_CLONES void one_row(const unsigned char* source, std::size_t stride, const float* weights, std::size_t count,
                            std::size_t samples, float* row, const Taps* across, int size, float* planes) {
    std::fill_n(row, samples, 0.0F);
    for (std::size_t t = 0; t < count; ++t, source += stride)
        for (std::size_t i = 0; i < samples; ++i) row[i] += weights[t] * static_cast<float>(source[i]);
    for (int x = 0; x < size; ++x) {
        const Taps& taps = across[x];
        const float* in = row + static_cast<std::size_t>(taps.first) * 3;
        Four sum{};
        for (const float weight : taps.weights) {
            Four pixel;
            std::memcpy(&pixel, in, sizeof pixel);
            sum += weight * pixel;
            in += 3;
        }
        for (int c = 0; c < 3; ++c) planes[c * size * size + x] = std::clamp(sum[c], 0.0F, 255.0F) / 127.5F - 1.0F;
    }
}

}  // namespace

void Worker::decode(std::span<const std::byte> file, int size) {
    jpeg_decompress_struct jpeg;
    jpeg_error_mgr errors;
    jpeg.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&jpeg);
    jpeg_mem_src(&jpeg, reinterpret_cast<const unsigned char*>(file.data()), file.size());
    jpeg_read_header(&jpeg, TRUE);
    jpeg.out_color_space = JCS_RGB;
    jpeg.scale_num = 1;
    jpeg.scale_denom = 1;
    const auto shorter = static_cast<int>(std::min(jpeg.image_width, jpeg.image_height));
    while (jpeg.scale_denom < 8 &&
           (shorter + static_cast<int>(jpeg.scale_denom) * 2 - 1) / (static_cast<int>(jpeg.scale_denom) * 2) >= size)
        jpeg.scale_denom *= 2;
    jpeg_start_decompress(&jpeg);
    width_ = static_cast<int>(jpeg.output_width);
    height_ = static_cast<int>(jpeg.output_height);
    const std::size_t stride = std::size_t{jpeg.output_width} * 3;
    pixels_.resize(std::max(pixels_.size(), stride * jpeg.output_height));
    while (jpeg.output_scanline < jpeg.output_height) {
        JSAMPROW rows[4];
        for (std::size_t i = 0; i < 4; ++i)
            rows[i] = pixels_.data() + std::min<std::size_t>(jpeg.output_scanline + i, jpeg.output_height - 1) * stride;
        jpeg_read_scanlines(&jpeg, rows, 4);
    }
    jpeg_finish_decompress(&jpeg);
    jpeg_destroy_decompress(&jpeg);
}

void Worker::decode_and_resize(std::span<const std::byte> file, int size, float* planes) {
    decode(file, size);
    const double step = static_cast<double>(std::min(width_, height_)) / size;
    std::vector<Taps> across = taps_of(width_, size, step);
    const std::vector<Taps> down = taps_of(height_, size, step);
    const int left = across.front().first;  // only the columns that are kept
    const std::size_t samples =
        (static_cast<std::size_t>(across.back().first - left) + across.back().weights.size()) * 3;
    for (Taps& taps : across) taps.first -= left;
    row_.resize(samples + 1);
    const std::size_t stride = static_cast<std::size_t>(width_) * 3;
    for (int y = 0; y < size; ++y) {
        const Taps& taps = down[static_cast<std::size_t>(y)];
        one_row(pixels_.data() + static_cast<std::size_t>(taps.first) * stride + static_cast<std::size_t>(left) * 3,
                stride, taps.weights.data(), taps.weights.size(), samples, row_.data(), across.data(), size,
                planes + static_cast<std::ptrdiff_t>(y) * size);
    }
}

}  // namespace by_hand
