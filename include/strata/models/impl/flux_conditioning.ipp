#pragma once
// strata/models/impl/flux_conditioning.ipp - bodies of the embedders.

#include <cmath>

#include <strata/models/flux_conditioning.hpp>
#include <strata/models/impl/flux_blocks.ipp>

namespace strata::models {

STRATA_INLINE Embedder::Embedder(std::int64_t in, std::int64_t D, FluxStart start)
    : linear_1(register_module("linear_1", std::make_shared<Linear>(in, D))),
      linear_2(register_module("linear_2", std::make_shared<Linear>(D, D))) {
    if (start != FluxStart::identity) return;
    // Inputs have a root mean square of about 1; so shall the output. Modulations start at zero, and Adam moves what
    // they put out in proportion to this size; libtorch's own start is five times smaller.
    torch::nn::init::normal_(linear_1->weight, 0.0, 1.0 / std::sqrt(static_cast<double>(in)));
    torch::nn::init::normal_(linear_2->weight, 0.0, 1.7 / std::sqrt(static_cast<double>(D)));
    torch::nn::init::zeros_(linear_1->bias);
    torch::nn::init::zeros_(linear_2->bias);
}

STRATA_INLINE at::Tensor Embedder::forward(const at::Tensor& x) {
    return linear_2->forward(at::silu(linear_1->forward(x)));
}

STRATA_INLINE TimeTextEmbedding::TimeTextEmbedding(std::int64_t pooled, std::int64_t D, bool has_guidance,
                                                   FluxStart start)
    : timestep_embedder(register_module("timestep_embedder", std::make_shared<Embedder>(256, D, start))) {
    if (has_guidance)
        guidance_embedder = register_module("guidance_embedder", std::make_shared<Embedder>(256, D, start));
    text_embedder = register_module("text_embedder", std::make_shared<Embedder>(pooled, D, start));
}

STRATA_INLINE at::Tensor TimeTextEmbedding::forward(const at::Tensor& sigma_B, const at::Tensor& guidance_B,
                                                    const at::Tensor& pooled_BE) {
    const at::ScalarType type = text_embedder->linear_1->weight.scalar_type();
    at::Tensor sum = timestep_embedder->forward(timestep_features(sigma_B).to(type));
    if (guidance_embedder) sum = sum + guidance_embedder->forward(timestep_features(guidance_B).to(type));
    return sum + text_embedder->forward(pooled_BE.to(type));
}

STRATA_INLINE at::Tensor timestep_features(const at::Tensor& sigma_B) {
    // fp32 whatever the model computes in, as of the reference: an angle of 3,500 shows every rounding of its
    // frequency.
    const at::Tensor sigma = sigma_B.to(at::kFloat);
    const at::Tensor frequencies = (at::arange(128, sigma.options()) * (-std::log(10000.0) / 128)).exp();
    const at::Tensor angles = (sigma * 1000).unsqueeze(1) * frequencies;
    return at::cat({angles.cos(), angles.sin()}, 1);
}

}  // namespace strata::models
