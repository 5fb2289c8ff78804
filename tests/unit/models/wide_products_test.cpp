// Products and convolutions of bf16 by way of fp32 against the formula in fp64: sums of fp32, and one rounding.

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <torch/torch.h>

#include <strata/core/error.hpp>
#include <strata/models/attention.hpp>
#include <strata/models/fused_ops.hpp>
#include <strata/models/wide_convolution.hpp>
#include <strata/models/wide_products.hpp>

namespace {

namespace models = strata::models;
using Tensors = std::vector<at::Tensor>;
using Operation = std::function<at::Tensor(const Tensors&)>;

/// Numbers that bf16 has exactly.
at::Tensor random(at::IntArrayRef shape) { return at::randn(shape).to(at::kBFloat16); }

/// Each number of `result`, bf16, is the nearest one to a sum of fp32: half a step of bf16 (up to 2^-8 of it) from the exact number,
/// and what fp32 loses of a sum whose terms are `sizes` in total, whatever their order: 2^-20 of it up to 10,000 terms, as they come.
void expect_rounded_once(const at::Tensor& result, const at::Tensor& exact, const at::Tensor& sizes,
                         const std::string& what) {
    ASSERT_EQ(result.scalar_type(), at::kBFloat16) << what;
    ASSERT_EQ(result.sizes(), exact.sizes()) << what;
    const at::Tensor bound = exact.abs() * (0x1p-8 * 1.001) + sizes * 0x1p-20 + 1e-30;
    const at::Tensor share = (result.to(at::kDouble) - exact).abs() / bound;
    EXPECT_LE(share.max().item<double>(), 1.0) << what;
}

/// Value and gradients of `wide` in bf16 beside those of `formula` in fp64, for every choice of what needs a gradient.
/// Both are linear in each input, so the formula of absolute values gives the sizes of all sums.
void expect_exact(const Operation& wide, const Operation& formula, const Tensors& inputs, const std::string& what) {
    const auto doubles = [&](bool absolute) {
        Tensors all;
        for (const at::Tensor& input : inputs) {
            const at::Tensor x = input.to(at::kDouble);
            all.push_back((absolute ? x.abs() : x).detach().clone().requires_grad_(true));
        }
        return all;
    };
    const Tensors exact = doubles(false), sizes = doubles(true);
    const at::Tensor y = formula(exact), y_sizes = formula(sizes);
    const at::Tensor slope = random(y.sizes());
    y.backward(slope.to(at::kDouble));
    y_sizes.backward(slope.to(at::kDouble).abs());
    for (unsigned needed = 0; needed < 1U << inputs.size(); ++needed) {
        Tensors leaves;
        for (std::size_t i = 0; i < inputs.size(); ++i)
            leaves.push_back(inputs[i].detach().requires_grad_((needed >> i & 1U) != 0));
        const std::string name = what + ", gradients " + std::to_string(needed);
        const at::Tensor result = wide(leaves);
        expect_rounded_once(result.detach(), y.detach(), y_sizes.detach(), name);
        EXPECT_EQ(result.requires_grad(), needed != 0) << name;
        if (needed != 0) result.backward(slope);
        for (std::size_t i = 0; i < inputs.size(); ++i) {
            ASSERT_EQ(leaves[i].grad().defined(), (needed >> i & 1U) != 0) << name;
            if (leaves[i].grad().defined())
                expect_rounded_once(leaves[i].grad(), exact[i].grad(), sizes[i].grad(),
                                    name + ", input " + std::to_string(i));
        }
    }
}

TEST(WideProducts, LinearIsRoundedOnceAtAnySize) {
    torch::manual_seed(1);
    const auto shapes = {std::array{1, 1, 1}, {3, 5, 7},       {17, 33, 65},
                         {513, 40, 31},       {2, 2050, 1030}, {1030, 257, 1100}};
    for (const auto& [R, I, O] : shapes) {
        const std::string what = std::to_string(R) + " rows, " + std::to_string(I) + " to " + std::to_string(O);
        expect_exact([](const Tensors& in) { return models::wide_linear(in[0], in[1], in[2]); },
                     [](const Tensors& in) { return at::linear(in[0], in[1], in[2]); },
                     {random({R, I}), random({O, I}), random({O})}, what);
        expect_exact([](const Tensors& in) { return models::wide_linear(in[0], in[1], at::Tensor()); },
                     [](const Tensors& in) { return at::linear(in[0], in[1]); }, {random({R, I}), random({O, I})},
                     what + ", no bias");
    }
}

TEST(WideProducts, LinearTakesOperandsOfAnyStrides) {
    torch::manual_seed(2);
    const auto wide = [](const Tensors& in) { return models::wide_linear(in[0], in[1], in[2]); };
    const auto formula = [](const Tensors& in) { return at::linear(in[0], in[1], in[2]); };
    expect_exact(wide, formula, {random({40, 21}).t(), random({40, 13}).t(), random({13, 2}).select(1, 1)},
                 "columns dense");
    expect_exact(wide, formula, {random({21, 90}).narrow(1, 7, 40), random({30, 40}).narrow(0, 3, 13), random({13})},
                 "rows apart");
    expect_exact(wide, formula, {random({21, 40, 2}).select(2, 1), random({13, 40, 3}).select(2, 0), random({13})},
                 "nothing dense");
    expect_exact(wide, formula, {random({1, 40}).expand({21, 40}), random({13, 1}).expand({13, 40}), random({13})},
                 "repeated");
    // More rows than libtorch's own forward is taken for.
    expect_exact(wide, formula, {random({40, 530}).t(), random({40, 20}).t(), random({20})}, "many columns dense");
    expect_exact(wide, formula, {random({1, 40}).expand({530, 40}), random({20, 90}).narrow(1, 3, 40), random({20})},
                 "many repeated");
}

TEST(WideProducts, NothingGivesNothing) {
    const at::Tensor none = models::wide_linear(random({0, 8}), random({5, 8}), random({5}));
    EXPECT_EQ(none.sizes(), (std::vector<std::int64_t>{0, 5}));
    const at::Tensor bias = random({5});
    EXPECT_TRUE(at::equal(models::wide_linear(random({2, 0}), random({5, 0}), bias), bias.expand({2, 5})));
}

TEST(WideProducts, LinearOfTwoIsTheSumOfBothRoundedOnce) {
    torch::manual_seed(3);
    for (const auto& [A, B] : {std::array{16, 32}, std::array{1100, 7}})
        expect_exact([](const Tensors& in) { return models::wide_linear_of_two(in[0], in[1], in[2], in[3]); },
                     [](const Tensors& in) {
                         return at::linear(at::cat({in[0], in[1]}, 1), in[2], in[3]);
                     },
                     {random({19, A}), random({19, B}), random({23, A + B}), random({23})}, std::to_string(A));
}

TEST(WideProducts, ABatchIsEachOfItsProducts) {
    torch::manual_seed(4);
    const at::Tensor a = random({3, 40, 21}).transpose(1, 2), b = random({3, 40, 9});
    const at::Tensor exact = at::bmm(a.to(at::kDouble), b.to(at::kDouble));
    expect_rounded_once(models::wide_bmm(a, b), exact, at::bmm(a.to(at::kDouble).abs(), b.to(at::kDouble).abs()),
                        "batch");
}

struct Case {
    std::string name;
    std::vector<std::int64_t> x, weight;
    models::ConvolutionForm form;
};

TEST(WideConvolution, IsRoundedOnceInEveryForm) {
    torch::manual_seed(5);
    const std::vector<Case> cases{
        {"3 x 3", {2, 5, 9, 7}, {6, 5, 3, 3}, {.padding = {1, 1}}},
        {"3 x 3 without a border", {1, 3, 5, 6}, {2, 3, 3, 3}, {}},
        {"1 x 1", {2, 17, 6, 5}, {9, 17, 1, 1}, {}},
        {"1 x 1, every other", {1, 4, 7, 6}, {3, 4, 1, 1}, {.stride = {2, 2}}},
        {"halving", {2, 6, 9, 8}, {5, 6, 3, 3}, {.stride = {2, 2}, .padding = {1, 1}}},
        {"uneven", {1, 3, 11, 13}, {4, 3, 2, 5}, {.stride = {3, 1}, .padding = {0, 3}, .dilation = {2, 2}}},
        {"a window as large as the picture", {2, 3, 4, 4}, {5, 3, 4, 4}, {}},
        {"more border than picture", {1, 2, 1, 2}, {3, 2, 3, 3}, {.padding = {3, 3}}},
        {"several blocks", {2, 70, 34, 33}, {40, 70, 3, 3}, {.padding = {1, 1}}},
        {"many channels", {1, 300, 5, 4}, {130, 300, 3, 3}, {.stride = {2, 2}, .padding = {1, 1}}}};
    for (const Case& c : cases) {
        const auto libtorchs = [&](const Tensors& in) {
            return at::conv2d(in[0], in[1], in.size() > 2 ? in[2] : at::Tensor(), c.form.stride, c.form.padding,
                              c.form.dilation);
        };
        const auto wide = [&](const Tensors& in) {
            return models::wide_conv2d(in[0], in[1], in.size() > 2 ? in[2] : at::Tensor(), c.form);
        };
        expect_exact(wide, libtorchs, {random(c.x), random(c.weight), random({c.weight[0]})}, c.name);
        expect_exact(wide, libtorchs, {random(c.x).transpose(2, 3).contiguous().transpose(2, 3), random(c.weight)},
                     c.name + ", turned, no bias");
    }
}

// Frozen weights are trained around: what only their gradient would need is not kept for it.
TEST(WideProducts, KeepsForBackwardOnlyWhatSomeGradientNeeds) {
    using Layer = std::function<at::Tensor(const at::Tensor&, const at::Tensor&)>;
    const auto expect_lean = [](const Layer& layer, at::IntArrayRef x_shape, at::IntArrayRef weight_shape) {
        for (const bool is_frozen : {true, false}) {
            const at::Tensor x = random(x_shape), weight = random(weight_shape);
            const at::Tensor trained = (is_frozen ? x : weight).clone().requires_grad_(true).mul(1);
            const at::Tensor& other = is_frozen ? weight : x;
            const auto of_trained = trained.use_count(), of_other = other.use_count();
            const at::Tensor y = is_frozen ? layer(trained, weight) : layer(x, trained);
            EXPECT_EQ(trained.use_count(), of_trained);
            EXPECT_GT(other.use_count(), of_other);
        }
    };
    expect_lean([](const at::Tensor& x, const at::Tensor& w) { return models::wide_linear(x, w, at::Tensor()); },
                {3, 8}, {5, 8});
    expect_lean([](const at::Tensor& x, const at::Tensor& w) { return models::wide_conv2d(x, w, at::Tensor(), {}); },
                {1, 3, 4, 4}, {2, 3, 3, 3});
}

/// The message of the error that `call` throws.
std::string refused(const std::function<void()>& call) {
    try {
        call();
    } catch (const strata::Error& error) {
        EXPECT_EQ(error.code(), strata::Errc::bad_value);
        return error.what();
    }
    return "nothing was refused";
}

TEST(WideProducts, ShapesThatDoNotFitAreRefused) {
    const at::Tensor x = random({4, 8});
    EXPECT_NE(refused([&] {
                  models::wide_linear(x, random({3, 7}), random({3}));
              }).find("rows of 8 numbers got a weight of [3, 7]"),
              std::string::npos);
    EXPECT_NE(refused([&] {
                  models::wide_linear(x, random({3, 8}), random({4}));
              }).find("a bias of [4]"),
              std::string::npos);
    EXPECT_NE(refused([&] {
                  models::wide_linear_of_two(x, x, random({3, 8}), random({3}));
              }).find("rows of 16 numbers"),
              std::string::npos);
    EXPECT_NE(refused([&] {
                  models::wide_linear_of_two(x, random({3, 8}), random({3, 16}), random({3}));
              }).find("4 rows of bf16 got [3, 8]"),
              std::string::npos);
    EXPECT_NE(refused([&] {
                  models::wide_linear(x.to(at::kFloat), random({3, 8}), random({3}));
              }).find("in Float"),
              std::string::npos);
    EXPECT_NE(refused([&] {
                  models::wide_linear(x, random({3, 8}), at::zeros({3}));
              }).find("a bias of [3] in Float"),
              std::string::npos);
    const at::Tensor picture = random({1, 3, 4, 4});
    for (const auto& [weight, form] : {std::pair<at::Tensor, models::ConvolutionForm>{random({2, 4, 3, 3}), {}},
                                       {random({2, 3, 5, 5}), {}},
                                       {random({2, 3, 3, 3}), {.dilation = {2, 1}}},
                                       {random({2, 3, 3, 3}), {.stride = {0, 1}}},
                                       {random({2, 3, 3, 3}), {.padding = {-1, 0}}}})
        EXPECT_NE(refused([&] {
                      models::wide_conv2d(picture, weight, at::Tensor(), form);
                  }).find("a convolution got pictures of [1, 3, 4, 4]"),
                  std::string::npos);
}

// Where libtorch's products are slow, and elsewhere its own: the layers' functions give bf16 within its rounding of fp64.
TEST(WideProducts, LayersAndAttentionAreCloseToFp64WhicheverWayTheyTake) {
    torch::manual_seed(6);
    const auto deviation = [](const at::Tensor& a, const at::Tensor& b) {
        return ((a.to(at::kDouble) - b).square().mean() / b.square().mean()).sqrt().item<double>();
    };
    const at::Tensor x = random({2, 9, 48}), weight = random({40, 48}), bias = random({40});
    EXPECT_LT(deviation(models::linear(x, weight, bias),
                        at::linear(x.to(at::kDouble), weight.to(at::kDouble), bias.to(at::kDouble))),
              3e-3);
    EXPECT_LT(deviation(models::linear(x, weight, at::Tensor()), at::linear(x.to(at::kDouble), weight.to(at::kDouble))),
              3e-3);
    for (const std::int64_t K : {32, 40}) {  // in tiles, and by the formula
        const at::Tensor q = random({2, 3, 33, K}), k = random({2, 3, 20, K}), v = random({2, 3, 20, K});
        EXPECT_LT(deviation(models::attention(q, k, v),
                            models::attention(q.to(at::kDouble), k.to(at::kDouble), v.to(at::kDouble))),
                  6e-3)
            << K;
    }
}

TEST(WideProducts, TheChoiceIsMadeOfTypesAndTheCpuAlone) {
    const at::Tensor bf16 = random({2, 2}), fp32 = at::randn({2, 2});
    EXPECT_EQ(models::takes_wide_products(bf16, bf16), models::bf16_products_are_slow());
    EXPECT_FALSE(models::takes_wide_products(fp32, fp32));
    EXPECT_FALSE(models::takes_wide_products(bf16, fp32));
    EXPECT_FALSE(models::takes_wide_products(fp32, bf16));
}

}  // namespace
