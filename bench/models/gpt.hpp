#pragma once
// bench/models/gpt.hpp - Gpt: a GPT-shaped transformer made of units; bench/models/gpt.py is the same in Python.
//
// Shapes: B samples, T tokens, V words, D width, H heads, K = D / H

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <torch/torch.h>

#include <strata/zero/unit.hpp>

namespace bench {

/// The default has 42.1 million parameters: 12 blocks of 3.15 million, two tables of 2.1 million words each.
struct GptShape {
    std::int64_t width = 512;
    std::int64_t heads = 8;  ///< divides width
    std::int64_t layers = 12;
    std::int64_t vocabulary = 4096;
    std::int64_t context = 256;  ///< tokens of a sample
    torch::Dtype dtype = torch::kFloat;

    /// Parameters that a Gpt of this shape has.
    [[nodiscard]] constexpr std::int64_t numel() const noexcept {
        const std::int64_t block = 12 * width * width + 13 * width;
        return layers * block + 2 * vocabulary * width + context * width + 2 * width;
    }
};
static_assert(GptShape{}.numel() == 42'155'008);

/// x + attention(norm(x)), then x + mlp(norm(x)) (GPT-2: Radford et al. 2019); the mlp is 4 D wide, with gelu.
class GptBlock : public torch::nn::Module {
public:
    explicit GptBlock(const GptShape& shape) : heads_{shape.heads} {
        const std::int64_t D = shape.width;
        norm1 = register_module("norm1", torch::nn::LayerNorm{torch::nn::LayerNormOptions{{D}}});
        qkv = register_module("qkv", torch::nn::Linear{D, 3 * D});
        out = register_module("out", torch::nn::Linear{D, D});
        norm2 = register_module("norm2", torch::nn::LayerNorm{torch::nn::LayerNormOptions{{D}}});
        up = register_module("up", torch::nn::Linear{D, 4 * D});
        down = register_module("down", torch::nn::Linear{4 * D, D});
    }

    /// x (B, T, D); mask (T, T) is added to the scores. Returns (B, T, D).
    torch::Tensor forward(torch::Tensor x, const torch::Tensor& mask) {
        x = x + out(attention(qkv(norm1(x)), mask));
        return x + down(torch::gelu(up(norm2(x))));
    }

private:
    torch::Tensor attention(const torch::Tensor& qkv_BT3D, const torch::Tensor& mask) const {
        const std::int64_t B = qkv_BT3D.size(0);
        const std::int64_t T = qkv_BT3D.size(1);
        const std::int64_t K = qkv_BT3D.size(2) / 3 / heads_;
        const auto parts = qkv_BT3D.view({B, T, 3, heads_, K}).permute({2, 0, 3, 1, 4}).reshape({3, B * heads_, T, K});
        const auto qkv_NTK = parts.unbind(0);  // N = B H
        const double scale = 1.0 / std::sqrt(static_cast<double>(K));
        const auto scores = torch::baddbmm(mask, qkv_NTK[0], qkv_NTK[1].transpose(1, 2), 1.0, scale);  // (N, T, T)
        const auto mixed = torch::bmm(scores.softmax(-1), qkv_NTK[2]);                                 // (N, T, K)
        return mixed.view({B, heads_, T, K}).transpose(1, 2).reshape({B, T, heads_ * K});
    }

    std::int64_t heads_;
    torch::nn::LayerNorm norm1{nullptr}, norm2{nullptr};
    torch::nn::Linear qkv{nullptr}, out{nullptr}, up{nullptr}, down{nullptr};
};

/// Predicts the next token. Token table, blocks and output head are units; positions and the last norm are not.
class Gpt : public torch::nn::Module {
public:
    using Batch = torch::Tensor;  ///< (B, T + 1) token numbers
    using Units = strata::UnitList<GptBlock, torch::nn::EmbeddingImpl, torch::nn::LinearImpl>;

    /// Weights: normal(0, 0.02) from libtorch's generator after manual_seed(seed), biases 0, norms 1. Holds no more
    /// than one block in another type than shape.dtype.
    explicit Gpt(const GptShape& shape, std::uint64_t seed = 1) {
        const std::int64_t D = shape.width;
        position = register_parameter("position", torch::empty({shape.context, D}, shape.dtype));
        token = add<torch::nn::EmbeddingImpl>("token", shape, torch::nn::EmbeddingOptions{shape.vocabulary, D});
        for (std::int64_t i = 0; i < shape.layers; ++i) {
            blocks.push_back(add<GptBlock>("block" + std::to_string(i), shape, shape));
        }
        norm = register_module("norm", torch::nn::LayerNorm{torch::nn::LayerNormOptions{{D}}});
        norm->to(shape.dtype);
        head = add<torch::nn::LinearImpl>("head", shape, torch::nn::LinearOptions{D, shape.vocabulary}.bias(false));

        constexpr float minus_infinity = -std::numeric_limits<float>::infinity();
        mask_TT = torch::full({shape.context, shape.context}, minus_infinity).triu(1).to(shape.dtype);

        const torch::NoGradGuard no_grad;
        torch::manual_seed(seed);
        for (const auto& item : named_parameters()) {
            const bool of_norm = item.key().find("norm") != std::string::npos;
            torch::Tensor parameter = item.value();
            if (parameter.dim() > 1) {
                parameter.normal_(0.0, 0.02);
            } else {
                parameter.fill_(of_norm && item.key().ends_with("weight") ? 1.0 : 0.0);
            }
        }
    }

    /// (B, T) token numbers to (B, T, V); T at most shape.context.
    torch::Tensor forward(const torch::Tensor& ids_BT) {
        const std::int64_t T = ids_BT.size(1);
        auto x_BTD = token->forward(ids_BT) + position.slice(0, 0, T);
        const auto mask = mask_TT.slice(0, 0, T).slice(1, 0, T);
        for (const auto& block : blocks) x_BTD = block->forward(x_BTD, mask);
        return head->forward(norm(x_BTD));
    }

    /// Mean cross entropy of the tokens 1 .. T.
    torch::Tensor loss(const Batch& ids) {
        const auto logits = forward(ids.slice(1, 0, -1));
        return torch::cross_entropy_loss(logits.view({-1, logits.size(2)}), ids.slice(1, 1).reshape(-1));
    }

private:
    template <class Module, class... Args>
    std::shared_ptr<strata::Unit<Module>> add(const std::string& name, const GptShape& shape, const Args&... args) {
        auto unit = register_module(name, std::make_shared<strata::Unit<Module>>(args...));
        unit->to(shape.dtype);
        return unit;
    }

    torch::Tensor position;  // (context, D)
    std::shared_ptr<strata::Unit<torch::nn::EmbeddingImpl>> token;
    std::vector<std::shared_ptr<strata::Unit<GptBlock>>> blocks;
    torch::nn::LayerNorm norm{nullptr};
    std::shared_ptr<strata::Unit<torch::nn::LinearImpl>> head;
    torch::Tensor mask_TT;  // 0, and minus infinity above the diagonal
};

/// (samples, context + 1) tokens, the same whenever `seed` is.
inline torch::Tensor random_tokens(const GptShape& shape, std::int64_t samples, std::uint64_t seed) {
    torch::manual_seed(seed);
    return torch::randint(shape.vocabulary, {samples, shape.context + 1}, torch::kLong);
}

}  // namespace bench
