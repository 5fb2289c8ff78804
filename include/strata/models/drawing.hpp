#pragma once
// strata/models/drawing.hpp - what all recipes do to draw pictures: noise, guidance, a sampler, decoding.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/Device.h>

#include <strata/core/function_ref.hpp>
#include <strata/core/inline.hpp>
#include <strata/data/recipe.hpp>
#include <strata/diffusion/guidance.hpp>
#include <strata/diffusion/sampler.hpp>
#include <strata/models/sampler_options.hpp>
#include <strata/pictures/picture.hpp>

namespace strata::models {

namespace detail {

/// Where a model computes: where its parameters are.
template <class Model>
[[nodiscard]] at::Device device_of(const Model& model) {
    if constexpr (requires { model.parameters(); }) {
        const auto parameters = model.parameters();
        if (!parameters.empty()) return parameters.front().device();
    }
    return at::kCPU;
}

}  // namespace detail

/// C, H and W of latents.
struct LatentShape {
    std::int64_t C = 0;
    std::int64_t H = 0;
    std::int64_t W = 0;
};

/// Those of a picture of that size, as the recipe caches them.
template <data::Recipe R>
[[nodiscard]] LatentShape latent_shape(const R& recipe, const pictures::PictureSize& size) {
    const std::vector<std::int64_t> shape = recipe.picture_tensors(size).front().shape;
    return {shape.at(0), shape.at(1), shape.at(2)};
}

/// Noise of several prompts, each with a generator of its own: what a prompt gets depends on seed, index and shape, and on
/// nothing that is drawn beside it.
class PromptNoise {
public:
    /// For prompts first, first + 1, ..., first + count - 1 of a list.
    PromptNoise(std::uint64_t seed, std::int64_t first, std::int64_t count, const LatentShape& shape);
    /// (count, C, H, W) fp32 on the CPU: to begin with, and then whenever a solver adds some.
    [[nodiscard]] at::Tensor next();

private:
    LatentShape shape_;
    std::vector<at::Generator> generators_;
};

/// The first that PromptNoise gives prompt `index`, (C, H, W).
[[nodiscard]] at::Tensor sample_noise(std::uint64_t seed, std::int64_t index, std::int64_t C, std::int64_t H,
                                      std::int64_t W);

/// What several prompts are drawn by.
struct Drawing {
    const diffusion::Sampler& sampler;
    diffusion::Guidance guidance;
    std::uint64_t seed = 0;
    LatentShape shape;
    at::Device device = at::kCPU;  ///< that the model computes on
};

/// Latents of `count` prompts drawn together, from `first` on in the whole list.
///
///   model  as guided_call() takes it: what it is told of prompts has rows of prompts_and_empty()
/// Returns (count, C, H, W) fp32 on the device. Collective where the model's forward pass is: it is called once a step.
[[nodiscard]] at::Tensor draw_latents(const Drawing& drawing, std::int64_t first, std::int64_t count,
                                      diffusion::Denoiser model);

/// One tensor of each prompt, stacked; with guidance as many times that of the empty caption behind them.
[[nodiscard]] at::Tensor prompts_and_empty(std::span<const data::NamedTensors> prompts, const data::NamedTensors& empty,
                                           const char* name, const diffusion::Guidance& guidance);

/// What guidance leads away from, for a recipe's draw(): `negative` encoded, or where that is empty what the model was
/// shown in place of a dropped caption.
///
///   encoders  of recipe.load_caption_encoders()
template <data::Recipe R, class Encoders>
[[nodiscard]] data::NamedTensors negative_caption(const R& recipe, Encoders& encoders, const std::string& negative) {
    const at::NoGradGuard no_gradients;
    const auto dropped = recipe.dropped_caption();
    const std::vector<std::string> texts{negative.empty() && dropped ? *dropped : negative};
    data::NamedTensors encoded = std::move(recipe.encode_captions(encoders, texts).front());
    if (negative.empty() && !dropped)
        for (auto& [name, tensor] : encoded) tensor = at::zeros_like(tensor);
    return encoded;
}

/// Decodes latents (C, h, w) one after another: take(i, picture) with (3, H, W) fp32 on the CPU, not clamped. The recipe's autoencoder is in
/// memory meanwhile.
template <data::Recipe R>
void decode_each(const R& recipe, std::span<const at::Tensor> latents, at::Device device,
                 core::FunctionRef<void(std::size_t i, const at::Tensor& picture_3HW)> take) {
    const at::NoGradGuard no_gradients;
    const auto autoencoder = recipe.load_picture_encoders(device);
    for (std::size_t i = 0; i < latents.size(); ++i) take(i, autoencoder.decode(latents[i]).to(at::kCPU, at::kFloat));
}
/// All of them.
template <data::Recipe R>
[[nodiscard]] std::vector<at::Tensor> decoded(const R& recipe, std::span<const at::Tensor> latents, at::Device device) {
    std::vector<at::Tensor> pictures;
    decode_each(recipe, latents, device,
                [&](std::size_t /*i*/, const at::Tensor& picture_3HW) { pictures.push_back(picture_3HW); });
    return pictures;
}

}  // namespace strata::models

#ifndef STRATA_COMPILED
#include <strata/models/impl/drawing.ipp>
#endif
