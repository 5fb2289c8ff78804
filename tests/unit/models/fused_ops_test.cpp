// The kernels against the same operations composed of libtorch calls in double precision, values and gradients.

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include <torch/torch.h>

#include <strata/models/attention.hpp>
#include <strata/models/fused_ops.hpp>
#include <strata/models/rotary.hpp>

#include "against_double.hpp"

namespace {

namespace models = strata::models;
using against_double::expect_same, against_double::random, against_double::Tensors;

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

TEST(FusedOps, LinearOfTwoIsLinearOfBothSideBySide) {
    torch::manual_seed(9);
    expect_same([](const Tensors& in) { return models::linear_of_two(in[0], in[1], in[2], in[3]); },
                {random({2, 3, 16}), random({2, 3, 32}), random({8, 48}), random({8})});
    const at::Tensor a = at::randn({2, 3, 16}), b = at::randn({2, 3, 32}), weight = at::randn({8, 48}),
                     bias = at::randn({8});
    EXPECT_LT((models::linear_of_two(a, b, weight, bias) - at::linear(at::cat({a, b}, 2), weight, bias))
                  .abs()
                  .max()
                  .item<double>(),
              1e-5);
}

// A weight of a million numbers: kernels for few rows, products of matrices from nine on.
TEST(FusedOps, LinearOfFewRowsAndALargeWeightMatchesItsDefinition) {
    torch::manual_seed(10);
    for (const std::int64_t rows : {1, 2, 8, 9})
        expect_same([](const Tensors& in) { return models::linear(in[0], in[1], in[2]); },
                    {random({rows, 1040}), random({1021, 1040}), random({1021})});
}

TEST(FusedOps, LinearOfFewRowsGivesFrozenWeightsNoGradient) {
    torch::manual_seed(11);
    const at::Tensor weight = at::randn({1024, 1024}), bias = at::randn({1024});
    at::Tensor x = at::randn({1, 1024}).requires_grad_(true);
    models::linear(x, weight, bias).sum().backward();
    EXPECT_TRUE(at::allclose(x.grad(), weight.sum(0, true), 1e-4, 1e-3));
    EXPECT_FALSE(weight.grad().defined());
}

TEST(FusedOps, ConstantTokensHaveAFiniteNorm) {
    at::Tensor x = at::full({1, 2, 32}, 3.0f).requires_grad_(true);
    const at::Tensor y = models::modulated_norm(x, at::zeros({1, 32}), at::zeros({1, 32}));
    y.sum().backward();
    EXPECT_EQ(y.abs().max().item<float>(), 0.0f);
    EXPECT_TRUE(x.grad().isfinite().all().item<bool>());
}

}  // namespace
