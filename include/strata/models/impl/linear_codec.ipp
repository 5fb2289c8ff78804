#pragma once
// strata/models/impl/linear_codec.ipp - the transform, its kept coefficients and their scales.

#include <array>
#include <cmath>
#include <numbers>
#include <vector>

#include <strata/models/linear_codec.hpp>

namespace strata::models {

namespace detail {

inline constexpr std::size_t codec_pixels = 64;
inline constexpr std::size_t codec_inputs = 3 * codec_pixels;

/// Which basis function a latent channel is: a colour axis and the frequencies of its two cosines.
struct CodecChannel {
    std::size_t colour;
    int vertical;
    int horizontal;
    float mean;   ///< of the coefficient
    float scale;  ///< latent = (coefficient - mean) * scale
};

/// Means and deviations were measured on 635 clip-art pictures on white at 128 x 128 pixels. A scale is
/// deviation^-1/2 / 1.27: latents then have a root mean square of 1 over all channels, and a coarse channel keeps more
/// signal than a fine one at the same noise, so that training settles shape and colour before detail.
inline constexpr std::array<CodecChannel, 16> codec_channels{{
    {0, 0, 0, 5.2f, 0.261f},
    {0, 0, 1, 0.0f, 0.510f},
    {0, 1, 0, 0.0f, 0.510f},
    {0, 0, 2, 0.0f, 0.713f},
    {0, 1, 1, 0.0f, 0.722f},
    {0, 2, 0, 0.0f, 0.713f},
    {0, 0, 3, 0.0f, 0.931f},
    {0, 1, 2, 0.0f, 0.909f},
    {0, 2, 1, 0.0f, 0.909f},
    {0, 3, 0, 0.0f, 0.931f},
    {1, 0, 0, 0.7f, 0.516f},
    {1, 0, 1, 0.0f, 1.156f},
    {1, 1, 0, 0.0f, 1.156f},
    {2, 0, 0, 0.0f, 0.689f},
    {2, 0, 1, 0.0f, 1.521f},
    {2, 1, 0, 0.0f, 1.521f},
}};

using CodecBasis = std::array<std::array<float, codec_inputs>, 16>;

/// Row c: the orthonormal basis function of channel c over (colour, y, x). Colour axes: grey, red - blue, and what is
/// left (Ohta, Kanade & Sakai 1980), close to the principal axes of natural pictures.
inline const CodecBasis& codec_basis() {
    static const CodecBasis basis = [] {
        const double grey = 1.0 / std::sqrt(3.0), opponent = 1.0 / std::sqrt(2.0), rest = 1.0 / std::sqrt(6.0);
        const double colours[3][3] = {{grey, grey, grey}, {opponent, 0.0, -opponent}, {rest, -2.0 * rest, rest}};
        const auto cosine = [](int frequency, std::size_t position) {
            const double angle = (2.0 * static_cast<double>(position) + 1.0) * frequency * std::numbers::pi / 16.0;
            return (frequency == 0 ? std::sqrt(0.125) : 0.5) * std::cos(angle);
        };
        CodecBasis rows{};
        for (std::size_t c = 0; c < rows.size(); ++c)
            for (std::size_t plane = 0; plane < 3; ++plane)
                for (std::size_t y = 0; y < 8; ++y)
                    for (std::size_t x = 0; x < 8; ++x)
                        rows[c][plane * codec_pixels + y * 8 + x] = static_cast<float>(
                            colours[codec_channels[c].colour][plane] * cosine(codec_channels[c].vertical, y) *
                            cosine(codec_channels[c].horizontal, x));
        return rows;
    }();
    return basis;
}

}  // namespace detail

STRATA_INLINE at::Tensor LinearCodec::encode(const at::Tensor& images) const {
    if (images.dim() == 4) {
        std::vector<at::Tensor> latents;
        for (std::int64_t i = 0; i < images.size(0); ++i) latents.push_back(encode(images[i]));
        return at::stack(latents);
    }
    const at::Tensor image = images.to(at::kCPU, at::kFloat).contiguous();
    const std::int64_t H = image.size(1), W = image.size(2), h = H / block, w = W / block;
    at::Tensor latents = at::empty({channels, h, w}, at::kFloat);
    const auto* pixels = image.data_ptr<float>();
    auto* out = latents.data_ptr<float>();
    const detail::CodecBasis& basis = detail::codec_basis();
    for (std::int64_t cell = 0; cell < h * w; ++cell) {
        std::array<float, detail::codec_inputs> patch;
        auto* next = patch.data();
        for (std::int64_t plane = 0; plane < 3; ++plane)
            for (std::int64_t y = 0; y < block; ++y)
                for (std::int64_t x = 0; x < block; ++x)
                    *next++ = pixels[(plane * H + cell / w * block + y) * W + cell % w * block + x];
        for (std::size_t c = 0; c < basis.size(); ++c) {
            float coefficient = 0.0f;
            for (std::size_t i = 0; i < patch.size(); ++i) coefficient += basis[c][i] * patch[i];
            const detail::CodecChannel& channel = detail::codec_channels[c];
            out[static_cast<std::int64_t>(c) * h * w + cell] = (coefficient - channel.mean) * channel.scale;
        }
    }
    return latents;
}

STRATA_INLINE at::Tensor LinearCodec::decode(const at::Tensor& latents_Chw) const {
    const at::Tensor latents = latents_Chw.to(at::kFloat).contiguous();
    const std::int64_t h = latents.size(1), w = latents.size(2), H = h * block, W = w * block;
    at::Tensor image = at::empty({3, H, W}, at::kFloat);
    const auto* in = latents.data_ptr<float>();
    auto* pixels = image.data_ptr<float>();
    const detail::CodecBasis& basis = detail::codec_basis();
    for (std::int64_t cell = 0; cell < h * w; ++cell) {
        std::array<float, detail::codec_inputs> patch{};
        for (std::size_t c = 0; c < basis.size(); ++c) {
            const detail::CodecChannel& channel = detail::codec_channels[c];
            const float coefficient = in[static_cast<std::int64_t>(c) * h * w + cell] / channel.scale + channel.mean;
            for (std::size_t i = 0; i < patch.size(); ++i) patch[i] += basis[c][i] * coefficient;
        }
        const auto* next = patch.data();
        for (std::int64_t plane = 0; plane < 3; ++plane)
            for (std::int64_t y = 0; y < block; ++y)
                for (std::int64_t x = 0; x < block; ++x)
                    pixels[(plane * H + cell / w * block + y) * W + cell % w * block + x] = *next++;
    }
    return image;
}

}  // namespace strata::models
