// Winograd's convolution against libtorch's in fp64: values and gradients, borders, odd sizes, several blocks; and where it is taken.

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <torch/torch.h>

#include <strata/core/error.hpp>
#include <strata/models/convolution.hpp>
#include <strata/models/detail/winograd_blocks.hpp>
#include <strata/models/winograd_convolution.hpp>

namespace {

namespace models = strata::models;
using Tensors = std::vector<at::Tensor>;

struct Case {
    std::vector<std::int64_t> x, weight;
    std::int64_t padding;
    bool has_bias;
};

at::Tensor conv2d_of(const Tensors& in, std::int64_t padding) {
    return at::conv2d(in[0], in[1], in.size() > 2 ? in[2] : at::Tensor(), {1, 1}, {padding, padding});
}

/// Values and gradients of the convolution, each number within 2^-21 of what its terms are in total, and as much of the largest such
/// total: numbers of a tile share their rounding.
void expect_exact(const Case& c) {
    torch::manual_seed(3);
    Tensors inputs{at::randn(c.x), at::randn(c.weight)};
    if (c.has_bias) inputs.push_back(at::randn({c.weight[0]}));
    Tensors ours, exact, sizes;
    for (const at::Tensor& input : inputs) {
        ours.push_back(input.clone().requires_grad_());
        exact.push_back(input.to(at::kDouble).requires_grad_());
        sizes.push_back(input.to(at::kDouble).abs().requires_grad_());
    }
    const at::Tensor y = models::winograd_conv2d(ours[0], ours[1], c.has_bias ? ours[2] : at::Tensor(), c.padding);
    const at::Tensor y_exact = conv2d_of(exact, c.padding), y_sizes = conv2d_of(sizes, c.padding);
    const at::Tensor slope = at::randn(y_exact.sizes());
    y.backward(slope);
    y_exact.backward(slope.to(at::kDouble));
    y_sizes.backward(slope.to(at::kDouble).abs());
    const std::string what = c10::str(at::IntArrayRef{c.x}) + " under " + c10::str(at::IntArrayRef{c.weight}) +
                             ", padding " + std::to_string(c.padding);
    const auto near = [&](const at::Tensor& result, const at::Tensor& right, const at::Tensor& size,
                          const std::string& name) {
        ASSERT_EQ(result.sizes(), right.sizes()) << what << ": " << name;
        const at::Tensor share = (result.to(at::kDouble) - right).abs() / ((size + size.max()) * 0x1p-21);
        EXPECT_LE(share.max().item<double>(), 1.0) << what << ": " << name;
    };
    near(y.detach(), y_exact.detach(), y_sizes.detach(), "value");
    for (std::size_t i = 0; i < inputs.size(); ++i)
        near(ours[i].grad(), exact[i].grad(), sizes[i].grad(), "gradient " + std::to_string(i));
}

TEST(WinogradConvolution, ValuesAndGradientsAreThoseOfTheFormula) {
    for (const std::int64_t padding : {0, 1, 2}) {
        expect_exact({{1, 3, 8, 8}, {5, 3, 3, 3}, padding, true});
        expect_exact({{2, 18, 7, 11}, {17, 18, 3, 3}, padding, false});
        expect_exact({{3, 1, 3, 4}, {1, 1, 3, 3}, padding, true});
        expect_exact({{1, 40, 33, 5}, {33, 40, 3, 3}, padding, true});
    }
    expect_exact({{2, 4, 1, 1}, {4, 4, 3, 3}, 1, true});
}

TEST(WinogradConvolution, WhatDoesNotFitIntoOneBlockIsTheSame) {
    expect_exact({{1, 2048, 24, 24}, {80, 2048, 3, 3}, 1, true});
    expect_exact({{3, 16, 70, 600}, {16, 16, 3, 3}, 1, false});
}

TEST(WinogradConvolution, BlocksBoundTheScratch) {
    for (const std::int64_t C : {128, 320, 512, 1280, 8192})
        for (const std::int64_t O : {128, 320, 512, 1280, 8192})
            for (const std::int64_t width : {8, 32, 128, 512}) {
                const models::detail::WinogradBlocks blocks{{.height = 512, .width = width, .padding = 1}, 4, C, O};
                const std::int64_t tiles = blocks.tiles(blocks.rows);
                const std::int64_t numbers = 16 * (C * tiles + blocks.results * C + blocks.results * tiles);
                const bool has_long_lines = blocks.tiles(1) * std::max(C, O) * 16 > std::int64_t{4} << 20;
                EXPECT_TRUE(has_long_lines || numbers <= std::int64_t{10} << 20) << C << " to " << O << ", " << width;
                EXPECT_GE(blocks.rows, 1);
                EXPECT_GE(blocks.results, 16);
            }
}

TEST(WinogradConvolution, OnlyWhatNeedsAGradientGetsOne) {
    const at::Tensor x = at::randn({1, 8, 6, 6}), weight = at::randn({8, 8, 3, 3});
    EXPECT_FALSE(models::winograd_conv2d(x, weight, {}, 1).requires_grad());
    const at::Tensor trained = weight.clone().requires_grad_();
    models::winograd_conv2d(x, trained, {}, 1).sum().backward();
    EXPECT_TRUE(trained.grad().defined());
    const at::Tensor picture = x.clone().requires_grad_();
    models::winograd_conv2d(picture, weight, {}, 1).sum().backward();
    EXPECT_TRUE(picture.grad().defined());
}

TEST(WinogradConvolution, PicturesOfAnyStridesAreTaken) {
    const at::Tensor x = at::randn({2, 9, 12, 10}).transpose(2, 3),
                     weight = at::randn({6, 18, 3, 3}).slice(1, 0, 18, 2);
    const at::Tensor y = models::winograd_conv2d(x, weight, {}, 1);
    EXPECT_TRUE(at::allclose(y, at::conv2d(x, weight, {}, {1, 1}, {1, 1}), 1e-5, 1e-5));
}

TEST(WinogradConvolution, LayersOfManyChannelsGoThatWay) {
    const auto takes = [](at::IntArrayRef x, at::IntArrayRef weight, const models::ConvolutionForm& form,
                          at::ScalarType type = at::kFloat) {
        return models::takes_winograd(at::empty(x, type), at::empty(weight, type), form);
    };
    const models::ConvolutionForm bordered{.padding = {1, 1}};
    EXPECT_TRUE(takes({1, 128, 16, 16}, {128, 128, 3, 3}, bordered));
    EXPECT_TRUE(takes({4, 128, 8, 8}, {128, 128, 3, 3}, bordered));
    EXPECT_FALSE(takes({1, 128, 8, 8}, {128, 128, 3, 3}, bordered)) << "16 tiles";
    EXPECT_FALSE(takes({1, 64, 16, 16}, {128, 64, 3, 3}, bordered)) << "64 channels";
    EXPECT_FALSE(takes({1, 128, 16, 16}, {4, 128, 3, 3}, bordered)) << "4 results";
    EXPECT_FALSE(takes({1, 128, 16, 16}, {128, 128, 1, 1}, {})) << "1 x 1";
    EXPECT_FALSE(takes({1, 128, 16, 16}, {128, 128, 3, 3}, {.stride = {2, 2}, .padding = {1, 1}})) << "halving";
    EXPECT_FALSE(takes({1, 128, 32, 32}, {128, 128, 3, 3}, {.padding = {2, 2}, .dilation = {2, 2}})) << "dilation";
    EXPECT_FALSE(takes({1, 128, 16, 16}, {128, 128, 3, 3}, bordered, at::kBFloat16)) << "bf16";
    EXPECT_FALSE(takes({1, 128, 16, 16}, {128, 128, 3, 3}, bordered, at::kDouble)) << "fp64";
    const at::Tensor x = at::randn({1, 128, 16, 16}), weight = at::randn({128, 128, 3, 3}), bias = at::randn({128});
    EXPECT_TRUE(models::conv2d(x, weight, bias, bordered).equal(models::winograd_conv2d(x, weight, bias, 1)));
}

TEST(WinogradConvolution, WhatDoesNotFitIsOneError) {
    const auto code_of = [](at::IntArrayRef x, at::IntArrayRef weight, std::int64_t padding) {
        try {
            models::winograd_conv2d(at::zeros(x), at::zeros(weight), {}, padding);
        } catch (const strata::Error& error) {
            return error.code();
        }
        return strata::Errc{};
    };
    EXPECT_EQ(code_of({1, 3, 8, 8}, {4, 2, 3, 3}, 1), strata::Errc::bad_value) << "channels";
    EXPECT_EQ(code_of({1, 3, 8, 8}, {4, 3, 1, 1}, 0), strata::Errc::bad_value) << "windows";
    EXPECT_EQ(code_of({1, 3, 8, 8}, {4, 3, 3, 3}, 3), strata::Errc::bad_value) << "padding";
    EXPECT_EQ(code_of({1, 3, 2, 2}, {4, 3, 3, 3}, 0), strata::Errc::bad_value) << "a picture below the window";
    EXPECT_EQ(code_of({0, 3, 8, 8}, {4, 3, 3, 3}, 1), strata::Errc::bad_value) << "no picture";
    EXPECT_EQ(code_of({1, 3, 8, 0}, {4, 3, 3, 3}, 2), strata::Errc::bad_value) << "no width";
}

}  // namespace
