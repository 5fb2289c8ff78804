// The kernels against the same operations composed of libtorch calls in double precision, values and gradients.

#include <cstdint>

#include <gtest/gtest.h>

#include <torch/torch.h>

#include <strata/models/unet_ops.hpp>

#include "against_double.hpp"

namespace {

namespace models = strata::models;
using against_double::expect_same, against_double::random, against_double::Tensors;

TEST(UnetOps, GroupNormMatchesItsDefinitionWithSiluAndWithout) {
    torch::manual_seed(1);
    for (const bool with_silu : {false, true})
        expect_same([&](const Tensors& in) { return models::group_norm(in[0], 3, in[1], in[2], 1e-5, with_silu); },
                    {random({2, 12, 4, 8}) * 2 + 1, random({12}) + 1, random({12})});
}

TEST(UnetOps, GroupNormOfAnyNumberOfPositionsMatchesItsDefinition) {
    torch::manual_seed(2);
    expect_same([](const Tensors& in) { return models::group_norm(in[0], 2, in[1], in[2], 1e-6, true); },
                {random({1, 4, 3, 5}), random({4}) + 1, random({4})});
}

TEST(UnetOps, GroupNormOfLargeNumbersKeepsItsVariance) {
    torch::manual_seed(3);
    const at::Tensor x = at::randn({1, 4, 64, 64}) + 1000;
    const at::Tensor y = models::group_norm(x, 2, at::ones({4}), at::zeros({4}), 1e-5);
    const at::Tensor exact = at::group_norm(x.to(at::kDouble), 2, {}, {}, 1e-5);
    EXPECT_LT((y.to(at::kDouble) - exact).abs().max().item<double>(), 1e-3);
}

TEST(UnetOps, GroupNormTakesTensorsThatAreNotDense) {
    torch::manual_seed(4);
    const at::Tensor x = at::randn({2, 4, 4, 8}), weight = at::randn({4}), bias = at::randn({4});
    const at::Tensor dense = models::group_norm(x, 2, weight, bias, 1e-5);
    EXPECT_TRUE(
        at::equal(models::group_norm(x.contiguous(at::MemoryFormat::ChannelsLast), 2, weight, bias, 1e-5), dense));
}

// As of Except<Fp32>: parameters of norms stay fp32 beside bf16.
TEST(UnetOps, NormsTakeParametersOfAnotherType) {
    torch::manual_seed(5);
    const at::Tensor x = at::randn({2, 16, 16}).to(at::kBFloat16), weight = at::randn({16}), bias = at::randn({16});
    for (const at::Tensor& y :
         {models::layer_norm(x, weight, bias, 1e-5), models::group_norm(x, 4, weight, bias, 1e-5)})
        EXPECT_EQ(y.scalar_type(), at::kBFloat16);
    const at::Tensor exact = at::layer_norm(x.to(at::kFloat), {16}, weight, bias, 1e-5);
    EXPECT_LT((models::layer_norm(x, weight, bias, 1e-5).to(at::kFloat) - exact).abs().max().item<double>(), 0.05);
}

TEST(UnetOps, LayerNormMatchesItsDefinitionAtWidthsOfKernelsAndOthers) {
    torch::manual_seed(6);
    for (const std::int64_t width : {48, 20})
        expect_same([](const Tensors& in) { return models::layer_norm(in[0], in[1], in[2], 1e-5); },
                    {random({2, 5, width}) * 2 + 1, random({width}) + 1, random({width})});
}

TEST(UnetOps, GegluMatchesItsDefinitionAtWidthsOfKernelsAndOthers) {
    torch::manual_seed(7);
    for (const std::int64_t width : {96, 40})
        expect_same([](const Tensors& in) { return models::geglu(in[0]); }, {random({2, 5, width}) * 2});
}

TEST(UnetOps, GegluIsExactFarOut) {
    const at::Tensor gate = at::linspace(-40, 40, 160), value = at::ones({160});
    const at::Tensor y = models::geglu(at::cat({value, gate}));
    EXPECT_LT((y - at::gelu(gate)).abs().max().item<double>(), 2e-6);
    EXPECT_NEAR(y[0].item<float>(), 0.0, 1e-30);
    EXPECT_EQ(y[159].item<float>(), 40.0f);
}

}  // namespace
