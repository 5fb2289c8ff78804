#pragma once
// tests/support/fake_encoders.hpp - an autoencoder and a text encoder so simple that a test can foresee them.

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

#include <ATen/ops/full.h>

#include <strata/data/encoders.hpp>

namespace strata_test {

/// Latents are the mean colour of each 8 x 8 block. Counts its calls.
struct MeanCodec {
    std::string name = "mean";
    std::shared_ptr<std::atomic<int>> calls = std::make_shared<std::atomic<int>>(0);
    [[nodiscard]] std::string id() const { return name; }
    [[nodiscard]] std::int64_t latent_channels() const { return 3; }
    [[nodiscard]] std::int64_t pixels_per_latent() const { return 8; }
    [[nodiscard]] at::Tensor encode(const at::Tensor& image_3HW) const {
        ++*calls;
        const std::int64_t h = image_3HW.size(1) / 8;
        const std::int64_t w = image_3HW.size(2) / 8;
        return image_3HW.reshape({3, h, 8, w, 8}).mean(at::IntArrayRef{2, 4});
    }
    [[nodiscard]] at::Tensor decode(const at::Tensor& latents_Chw) const {
        return latents_Chw.repeat_interleave(8, 1).repeat_interleave(8, 2);
    }
};

/// Four tokens of width 2, all of the caption's length. Counts its calls.
struct LengthText {
    std::string name = "length";
    std::shared_ptr<std::atomic<int>> calls = std::make_shared<std::atomic<int>>(0);
    [[nodiscard]] std::string id() const { return name; }
    [[nodiscard]] strata::data::TextEmbedding encode(std::string_view caption) const {
        ++*calls;
        const auto length = static_cast<double>(caption.size());
        return {at::full({4, 2}, length, at::kFloat), at::full({2}, length, at::kFloat)};
    }
};
static_assert(strata::data::Autoencoder<MeanCodec> && strata::data::TextEncoder<LengthText>);

}  // namespace strata_test
