#pragma once
// tests/support/fake_encoders.hpp - an autoencoder and a text encoder so simple that a test can foresee them.

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/ops/full.h>

#include <strata/models/flux_recipe.hpp>

namespace strata_test {

/// Latents are the mean colour of each 8 x 8 block. Counts the pictures.
struct MeanCodec {
    std::string name = "mean";
    std::shared_ptr<std::atomic<int>> calls = std::make_shared<std::atomic<int>>(0);
    [[nodiscard]] std::string id() const { return name; }
    [[nodiscard]] std::int64_t latent_channels() const { return 3; }
    [[nodiscard]] std::int64_t pixels_per_latent() const { return 8; }
    [[nodiscard]] at::Tensor encode(const at::Tensor& images_B3HW) const {
        std::vector<at::Tensor> latents;  // one by one, so that their bits are the same in any company
        for (std::int64_t i = 0; i < images_B3HW.size(0); ++i) {
            ++*calls;
            const std::int64_t h = images_B3HW.size(2) / 8;
            const std::int64_t w = images_B3HW.size(3) / 8;
            latents.push_back(images_B3HW[i].reshape({3, h, 8, w, 8}).mean(at::IntArrayRef{2, 4}));
        }
        return at::stack(latents);
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
    [[nodiscard]] strata::models::TextEmbedding encode(std::string_view caption) const {
        ++*calls;
        const auto length = static_cast<double>(caption.size());
        return {at::full({4, 2}, length, at::kFloat), at::full({2}, length, at::kFloat)};
    }
};
static_assert(strata::models::Autoencoder<MeanCodec> && strata::models::TextEncoder<LengthText>);

/// A recipe of both, of which copies count together.
using FakeRecipe = strata::models::FluxRecipe<MeanCodec, LengthText>;

}  // namespace strata_test
