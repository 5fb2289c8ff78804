#pragma once
// bench/models_step/blocks.hpp - the models that are trained, blocks of real width, and numbers that blocks.py makes too.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <torch/torch.h>

#include <strata/models/flux_transformer.hpp>
#include <strata/models/rotary.hpp>
#include <strata/models/unet_blocks.hpp>
#include <strata/models/unet_options.hpp>

namespace bench {

/// FNV-1a, so that what a tensor holds follows from its name, in both languages.
inline std::uint32_t seed_of(std::string_view name) {
    std::uint32_t hash = 2166136261U;
    for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
    return hash;
}

/// Element i becomes a number of [-1/2, 1/2) that follows from name and i, times `size`.
inline void fill(const at::Tensor& tensor, std::string_view name, double size) {
    const at::NoGradGuard no_grad;
    const std::uint32_t seed = seed_of(name);
    const at::Tensor flat = tensor.view({-1});
    constexpr std::int64_t run = 1 << 20;
    const at::Tensor buffer = at::empty({run}, at::kFloat);
    for (std::int64_t begin = 0; begin < flat.numel(); begin += run) {
        const std::int64_t count = std::min(run, flat.numel() - begin);
        auto* out = buffer.data_ptr<float>();
        for (std::int64_t i = 0; i < count; ++i) {
            std::uint32_t h = static_cast<std::uint32_t>(begin + i) * 2654435761U + seed;
            h = (h ^ (h >> 15)) * 0x2c1b3c6dU;
            h ^= h >> 12;
            out[i] = (static_cast<float>(h >> 8) * 0x1p-24f - 0.5f) * static_cast<float>(size);
        }
        flat.narrow(0, begin, count).copy_(buffer.narrow(0, 0, count));
    }
}

/// A tensor of numbers of variance 1.
inline at::Tensor made(std::string_view name, at::IntArrayRef shape, at::ScalarType type) {
    const at::Tensor tensor = at::empty(shape, type);
    fill(tensor, name, std::sqrt(12.0));
    return tensor;
}

/// Matrices keep the size of what they are given, biases are 0, weights of norms 1.
inline void fill_parameters(torch::nn::Module& model, at::ScalarType type) {
    model.to(type);
    const at::NoGradGuard no_grad;
    for (const auto& item : model.named_parameters()) {
        const at::Tensor& p = item.value();
        if (p.dim() == 1) {
            p.fill_(item.key().find("norm") != std::string::npos && item.key().ends_with("weight") ? 1.0 : 0.0);
        } else {
            fill(p, item.key(), std::sqrt(12.0 / (static_cast<double>(p.numel()) / static_cast<double>(p.size(0)))));
        }
    }
}

inline at::Tensor error_of(const at::Tensor& y, const at::Tensor& target) {
    return (y.to(at::kFloat) - target).square().mean();
}

/// Flux.1 [dev] with 1 double and 2 single blocks; a fourth of their parameters project modulations. A picture of 256 x 256
/// pixels is 256 tokens, beside 128 of text.
struct Flux final : torch::nn::Module {
    explicit Flux(at::ScalarType type) {
        strata::models::FluxOptions options;
        options.double_blocks = 1;
        options.single_blocks = 2;
        model_ = register_module("model", std::make_shared<strata::models::FluxTransformer>(options));
        fill_parameters(*model_, type);
        input_ = {.tokens_BIP = made("tokens", {1, 256, 64}, type),
                  .text_BTE = made("text", {1, 128, 4096}, type),
                  .pooled_BE = made("pooled", {1, 768}, type),
                  .sigma_B = at::full({1}, 0.7f),
                  .guidance_B = at::full({1}, 3.5f),
                  .image_ids_I3 = strata::models::grid_ids(16, 16)};
    }
    at::Tensor loss() { return error_of(model_->forward(input_), target_); }

private:
    std::shared_ptr<strata::models::FluxTransformer> model_;
    strata::models::FluxInput input_;
    at::Tensor target_ = made("target", {1, 256, 64}, at::kFloat);
};

/// The second of SDXL's three down blocks: 320 to 640 channels, two residual blocks, each with an attention of two
/// transformer blocks, and a halving. Latents of a picture of 512 x 512 pixels are 32 x 32 there.
struct Sdxl final : torch::nn::Module {
    explicit Sdxl(at::ScalarType type)
        : x_{made("x", {1, 320, 32, 32}, type)},
          time_{made("time", {1, 1280}, type)},
          context_{made("context", {1, 77, 2048}, type)} {
        const strata::models::UnetOptions options = strata::models::sdxl_unet_options();
        model_ = register_module("model", std::make_shared<strata::models::UnetDownBlock>(
                                              options, strata::models::down_block_shapes(options)[1]));
        fill_parameters(*model_, type);
    }
    at::Tensor loss() {
        std::vector<at::Tensor> skips;
        return error_of(model_->forward(x_, time_, context_, skips), target_);
    }

private:
    at::Tensor x_, time_, context_;
    at::Tensor target_ = made("target", {1, 640, 16, 16}, at::kFloat);
    std::shared_ptr<strata::models::UnetDownBlock> model_;
};

}  // namespace bench
