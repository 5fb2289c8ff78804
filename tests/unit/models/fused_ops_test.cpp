// The kernels against the same operations composed of libtorch calls in double precision, values and gradients.

#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include <torch/torch.h>

#include <strata/models/attention.hpp>
#include <strata/models/fused_ops.hpp>
#include <strata/models/rotary.hpp>

namespace {

namespace models = strata::models;
using Tensors = std::vector<at::Tensor>;

struct Outcome {
    at::Tensor value;
    Tensors gradients;
};

/// Value of operation(inputs), and gradients of a fixed weighted sum of it, computed in `type`; returned in double.
Outcome run(const std::function<at::Tensor(const Tensors&)>& operation, const Tensors& inputs, at::ScalarType type) {
    Tensors leaves;
    for (const at::Tensor& input : inputs) leaves.push_back(input.to(type).detach().clone().requires_grad_(true));
    const at::Tensor y = operation(leaves);
    torch::manual_seed(7);
    const at::Tensor weight = at::randn(y.sizes(), at::kDouble).to(type);
    y.backward(weight);
    Outcome outcome{y.detach().to(at::kDouble), {}};
    for (const at::Tensor& leaf : leaves) outcome.gradients.push_back(leaf.grad().to(at::kDouble));
    return outcome;
}

/// Root mean square of a - b, as a share of that of b (of 1 where b is zero).
double deviation(const at::Tensor& a, const at::Tensor& b) {
    const double size = b.square().mean().sqrt().item<double>();
    return (a - b).square().mean().sqrt().item<double>() / (size > 1e-12 ? size : 1.0);
}

/// In fp32 and bf16 (kernels) as in fp64 (composed), up to rounding. Inputs are exact in bf16.
void expect_same(const std::function<at::Tensor(const Tensors&)>& operation, Tensors inputs) {
    for (at::Tensor& input : inputs) input = input.to(at::kBFloat16).to(at::kDouble);
    const Outcome exact = run(operation, inputs, at::kDouble);
    for (const auto& [type, bound] : {std::pair{at::kFloat, 2e-6}, std::pair{at::kBFloat16, 1.2e-2}}) {
        const Outcome fused = run(operation, inputs, type);
        EXPECT_LT(deviation(fused.value, exact.value), bound) << type;
        for (std::size_t i = 0; i < inputs.size(); ++i)
            EXPECT_LT(deviation(fused.gradients[i], exact.gradients[i]), bound) << type << ", input " << i;
    }
}

at::Tensor random(at::IntArrayRef shape) { return at::randn(shape, at::kDouble); }

TEST(FusedOps, ModulatedNormMatchesItsDefinition) {
    torch::manual_seed(1);
    expect_same([](const Tensors& in) { return models::modulated_norm(in[0], in[1], in[2]); },
                {random({3, 5, 64}) + 0.5, random({3, 64}), random({3, 64})});
}

TEST(FusedOps, ModulatedNormTakesChunksOfAProjection) {
    torch::manual_seed(2);
    expect_same(
        [](const Tensors& in) {
            const std::vector<at::Tensor> chunks = in[1].chunk(3, 1);
            return models::modulated_norm(in[0], chunks[2], chunks[1]) * 0.5 +
                   models::gated_add(in[0], chunks[0], in[0]);
        },
        {random({2, 4, 32}), random({2, 96})});
}

TEST(FusedOps, GatedAddMatchesItsDefinition) {
    torch::manual_seed(3);
    expect_same([](const Tensors& in) { return models::gated_add(in[0], in[1], in[2]); },
                {random({2, 7, 48}), random({2, 48}), random({2, 7, 48})});
}

TEST(FusedOps, RmsNormRotateMatchesItsDefinition) {
    torch::manual_seed(4);
    const models::RotaryTable table = models::rotary_table(3, 2, 4, {4, 6, 6});
    expect_same(
        [&](const Tensors& in) { return models::rms_norm_rotate(in[0], in[1], table.cosine_LK, table.sine_LK); },
        {random({2, 11, 48}), random({16}) + 1.0});
}

TEST(FusedOps, AttentionMatchesItsDefinitionAtAnyLength) {
    torch::manual_seed(5);
    for (const std::int64_t tokens : {1, 15, 16, 17, 40})
        expect_same([](const Tensors& in) { return models::attention(in[0], in[1], in[2]); },
                    {random({2, 3, tokens, 16}), random({2, 3, tokens, 16}), random({2, 3, tokens, 16})});
}

TEST(FusedOps, AttentionToTokensFarApartInScoreStaysFinite) {
    torch::manual_seed(6);
    const at::Tensor q = at::randn({1, 1, 19, 16}) * 200;
    const at::Tensor y = models::attention(q, q, at::ones({1, 1, 19, 16}));
    EXPECT_LT((y - 1).abs().max().item<double>(), 1e-5);
}

TEST(FusedOps, GeluMatchesItsDefinitionFarOutAndAtAnyLength) {
    torch::manual_seed(7);
    expect_same([](const Tensors& in) { return models::gelu_tanh(in[0]); }, {random({3, 37}) * 3});
    const at::Tensor far = at::tensor({-100.0f, -20.0f, -6.0f, 0.0f, 6.0f, 20.0f, 100.0f});
    EXPECT_LT((models::gelu_tanh(far) - at::gelu(far, "tanh")).abs().max().item<double>(), 1e-6);
}

TEST(FusedOps, ConcatenateAndLinearMatchLibtorch) {
    torch::manual_seed(8);
    expect_same([](const Tensors& in) { return models::concatenate(in[0], in[1], 1); },
                {random({2, 3, 16}), random({2, 5, 16})});
    expect_same([](const Tensors& in) { return models::linear(in[0], in[1], in[2]); },
                {random({2, 3, 16}), random({8, 16}), random({8})});
}

TEST(FusedOps, ConstantTokensHaveAFiniteNorm) {
    at::Tensor x = at::full({1, 2, 32}, 3.0f).requires_grad_(true);
    const at::Tensor y = models::modulated_norm(x, at::zeros({1, 32}), at::zeros({1, 32}));
    y.sum().backward();
    EXPECT_EQ(y.abs().max().item<float>(), 0.0f);
    EXPECT_TRUE(x.grad().isfinite().all().item<bool>());
}

}  // namespace
