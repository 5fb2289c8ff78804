// Attention in tiles against its formula in double precision, values and gradients, and what it keeps in memory.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <c10/core/CPUAllocator.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <strata/core/error.hpp>
#include <strata/models/attention.hpp>

namespace {

using strata::models::attention;
using strata::models::AttentionOptions;
using strata::models::AttentionTiles;
using Tensors = std::vector<at::Tensor>;

struct Case {
    std::string name;
    std::int64_t B, H, L, S, K;
    AttentionTiles tiles;
    std::vector<std::int64_t> bias = {};  // shape, or none
    bool is_causal = false;
    std::optional<double> scale = {};
    double masked = 0.0;  // share of the bias that is -inf
};

/// The formula, in the type of its inputs: q, k, v and perhaps a bias.
at::Tensor formula(const Tensors& in, const Case& one) {
    const double scale = one.scale.value_or(1.0 / std::sqrt(static_cast<double>(one.K)));
    at::Tensor s = at::matmul(in[0], in[1].transpose(2, 3)) * scale;
    if (in.size() > 3) s = s + in[3];
    if (one.is_causal)
        s = s.masked_fill(at::ones({one.L, one.S}, at::kBool).triu(1), -std::numeric_limits<double>::infinity());
    return at::matmul(at::softmax(s, -1), in[2]).transpose(1, 2).flatten(2);
}

Tensors with_gradients(const at::Tensor& y, const Tensors& leaves) {
    torch::manual_seed(5);
    y.backward(at::randn(y.sizes(), at::kDouble).to(y.scalar_type()));
    Tensors values{y.detach().to(at::kDouble)};
    for (const at::Tensor& leaf : leaves) values.push_back(leaf.grad().to(at::kDouble));
    return values;
}

Tensors leaves_of(const Tensors& inputs, at::ScalarType type) {
    Tensors leaves;
    for (std::size_t i = 0; i < inputs.size(); ++i)
        leaves.push_back(inputs[i].to(i == 3 && type != at::kDouble ? at::kFloat : type).detach().clone());
    for (at::Tensor& leaf : leaves) leaf.requires_grad_();
    return leaves;
}

double deviation(const at::Tensor& a, const at::Tensor& b) {
    const double size = b.square().mean().sqrt().item<double>();
    return (a - b).square().mean().sqrt().item<double>() / (size > 1e-12 ? size : 1.0);
}

void expect_the_formula(const Case& one) {
    torch::manual_seed(3);
    const auto random = [](std::vector<std::int64_t> shape) {
        return at::randn(shape, at::kDouble).to(at::kBFloat16).to(at::kDouble);
    };
    Tensors inputs{random({one.B, one.H, one.L, one.K}), random({one.B, one.H, one.S, one.K}),
                   random({one.B, one.H, one.S, one.K})};
    if (!one.bias.empty()) {
        at::Tensor bias = random(one.bias);
        if (one.masked > 0) {
            at::Tensor mask = at::rand(one.bias) < one.masked;
            mask.select(-1, one.S - 1).fill_(false);
            bias = bias.masked_fill(mask, -std::numeric_limits<double>::infinity());
        }
        inputs.push_back(bias);
    }
    const Tensors exact_leaves = leaves_of(inputs, at::kDouble);
    const Tensors exact = with_gradients(formula(exact_leaves, one), exact_leaves);
    for (const auto& [type, bound] : {std::pair{at::kFloat, 3e-6}, std::pair{at::kBFloat16, 1.5e-2}})
        for (const bool tiles_are_given : {true, false}) {
            const Tensors leaves = leaves_of(inputs, type);
            AttentionOptions options;
            if (leaves.size() > 3) options.bias_BHLS = leaves[3];
            options.is_causal = one.is_causal;
            options.scale = one.scale;
            if (tiles_are_given) options.tiles = one.tiles;
            const Tensors values = with_gradients(attention(leaves[0], leaves[1], leaves[2], options), leaves);
            for (std::size_t i = 0; i < values.size(); ++i) {
                ASSERT_EQ(values[i].sizes(), exact[i].sizes());
                EXPECT_LT(deviation(values[i], exact[i]), bound)
                    << one.name << ", " << type << ", value " << i << (tiles_are_given ? "" : ", no tiles given");
            }
        }
}

TEST(Attention, IsItsFormulaWithAllGradients) {
    for (const Case& one : {
             Case{"one tile", 2, 3, 16, 16, 32, {64, 64}},
             Case{"tiles that fit", 1, 2, 32, 64, 16, {16, 16}},
             Case{"tiles that do not", 2, 1, 37, 53, 16, {16, 24}},
             Case{"one query at a time", 1, 1, 5, 40, 16, {1, 7}},
             Case{"one key at a time", 1, 1, 7, 5, 16, {3, 1}},
             Case{"causal", 1, 2, 45, 45, 16, {16, 12}, {}, true},
             Case{"causal, one tile", 1, 1, 20, 20, 16, {32, 32}, {}, true},
             Case{"another scale", 1, 1, 20, 30, 16, {8, 8}, {}, false, 0.7},
             Case{"no scale, as in T5", 1, 2, 20, 30, 16, {8, 8}, {1, 2, 20, 30}, false, 1.0},
             Case{"bias of a batch", 3, 2, 20, 30, 16, {8, 16}, {3, 1, 20, 30}},
             Case{"bias of all queries", 2, 2, 20, 30, 16, {8, 16}, {2, 1, 1, 30}},
             Case{"masked keys", 2, 2, 20, 30, 16, {8, 16}, {2, 1, 1, 30}, false, {}, 0.5},
             Case{"masked scores", 1, 2, 20, 30, 16, {8, 4}, {1, 2, 20, 30}, false, {}, 0.8},
             Case{"bias of all samples", 3, 2, 20, 30, 16, {8, 16}, {1, 2, 20, 30}},
             Case{
                 "masked keys in a width that no kernel takes", 2, 2, 20, 20, 20, {8, 8}, {2, 1, 1, 20}, true, {}, 0.0},
             Case{"causal with a bias", 1, 2, 33, 33, 16, {10, 10}, {1, 2, 33, 33}, true, 0.5},
         })
        expect_the_formula(one);
}

TEST(Attention, LargeLogitsAndTilesWithoutASeenKeyStayFinite) {
    torch::manual_seed(4);
    const Tensors leaves = leaves_of(
        {at::randn({1, 1, 24, 16}) * 60, at::randn({1, 1, 40, 16}) * 60, at::randn({1, 1, 40, 16})}, at::kFloat);
    AttentionOptions options;
    options.tiles = AttentionTiles{8, 8};
    options.bias_BHLS = at::zeros({1, 1, 24, 40});
    options.bias_BHLS.narrow(3, 0, 16).fill_(-std::numeric_limits<float>::infinity());
    options.bias_BHLS.select(2, 3).fill_(-std::numeric_limits<float>::infinity());
    const at::Tensor y = attention(leaves[0], leaves[1], leaves[2], options);
    y.sum().backward();
    EXPECT_TRUE(y.isfinite().all().item<bool>());
    EXPECT_TRUE(y[0][3].allclose(leaves[2][0][0].mean(0), 1e-4, 1e-5)) << "a query that sees no key";
    for (const at::Tensor& leaf : leaves) EXPECT_TRUE(leaf.grad().isfinite().all().item<bool>());
    EXPECT_EQ(leaves[1].grad().narrow(2, 0, 16).abs().max().item<float>(), 0.0f) << "keys that nobody sees";
    EXPECT_EQ(leaves[2].grad().narrow(2, 0, 16).abs().max().item<float>(), 0.0f) << "values that nobody sees";
}

TEST(Attention, ShortSequencesAndTilesGiveTheSame) {
    torch::manual_seed(6);
    const at::Tensor q = at::randn({2, 3, 44, 32}), k = at::randn({2, 3, 44, 32}), v = at::randn({2, 3, 44, 32});
    AttentionOptions tiled;
    tiled.tiles = AttentionTiles{64, 64};
    EXPECT_TRUE(attention(q, k, v).allclose(attention(q, k, v, tiled), 1e-5, 1e-6));
    const at::Tensor p = at::softmax(at::matmul(q, k.transpose(2, 3)) / std::sqrt(32.0), -1);
    EXPECT_TRUE(attention(q, k, v).allclose(at::matmul(p, v).transpose(1, 2).flatten(2), 1e-5, 1e-6));
}

TEST(Attention, InTilesRefusesWhatDoesNotFit) {
    const at::Tensor q = at::zeros({2, 3, 8, 16}), k = at::zeros({2, 3, 12, 16});
    const auto refused = [&](const AttentionOptions& options, const char* part) {
        try {
            attention(q, k, k, options);
            ADD_FAILURE() << part;
        } catch (const strata::Error& error) {
            EXPECT_EQ(error.code(), strata::Errc::bad_value);
            EXPECT_NE(error.problem().find(part), std::string::npos) << error.problem();
        }
    };
    AttentionOptions options;
    options.tiles = AttentionTiles{0, 4};
    refused(options, "tiles of 0 queries");
    options.tiles = AttentionTiles{4, 4};
    for (const std::vector<std::int64_t>& shape :
         {std::vector<std::int64_t>{2, 3, 8, 8}, {2, 3, 4, 12}, {3, 1, 1, 12}, {8, 12}, {1, 1, 1, 1}}) {
        options.bias_BHLS = at::zeros(shape);
        refused(options, "a bias of shape");
    }
    options.bias_BHLS = at::Tensor();
    options.is_causal = true;
    refused(options, "8 queries and 12 keys under a causal mask");
}

/// The allocator of libtorch while this lives, and the one of before again.
struct InPlaceOfTheUsual {
    explicit InPlaceOfTheUsual(c10::Allocator* other) { c10::SetCPUAllocator(other); }
    ~InPlaceOfTheUsual() { c10::SetCPUAllocator(usual); }
    c10::Allocator* usual = c10::GetCPUAllocator();
};

/// Passes requests on, and remembers the largest. allocate() is const in libtorch 1.13 and not in 2.6, which has
/// copy_data() as well.
struct WatchedAllocator final : c10::Allocator {
    explicit WatchedAllocator(c10::Allocator* to_) : to{to_} {}
    c10::DataPtr allocate(std::size_t bytes) const { return watched(bytes); }
    c10::DataPtr allocate(std::size_t bytes) { return watched(bytes); }
    c10::DataPtr watched(std::size_t bytes) const {
        largest = std::max(largest, bytes);
        return to->allocate(bytes);
    }
    c10::DeleterFnPtr raw_deleter() const override { return to->raw_deleter(); }
    void copy_data(void* dest, const void* from, std::size_t bytes) const { std::memcpy(dest, from, bytes); }
    c10::Allocator* to;
    mutable std::size_t largest = 0;
};

/// Bytes of the largest allocation of a forward and a backward pass.
std::size_t largest_of(const Tensors& leaves, const AttentionOptions& options) {
    WatchedAllocator watched{c10::GetCPUAllocator()};
    const InPlaceOfTheUsual exchanged{&watched};
    attention(leaves[0], leaves[1], leaves[2], options).sum().backward();
    return watched.largest;
}

TEST(Attention, LongSequencesNeverHaveTheirScoresInMemory) {
    torch::manual_seed(7);
    const std::int64_t L = 2048;
    const Tensors leaves =
        leaves_of({at::randn({1, 3, L, 16}), at::randn({1, 3, L, 16}), at::randn({1, 3, L, 16})}, at::kFloat);
    const std::size_t largest = largest_of(leaves, {});
    EXPECT_GT(largest, 0U);
    EXPECT_LT(largest, static_cast<std::size_t>(L * L)) << "bytes; all scores of one head are four times this";
    EXPECT_TRUE(leaves[0].grad().isfinite().all().item<bool>());
}

TEST(Attention, MaskedAndCausalScoresAreNeverInMemoryHoweverFew) {
    torch::manual_seed(8);
    const std::int64_t B = 2, H = 8, L = 512;  // all scores: 16 MiB in fp32
    AttentionOptions masked, causal;
    masked.bias_BHLS = at::zeros({B, 1, 1, L});
    masked.bias_BHLS.narrow(3, L / 2, L / 4).fill_(-std::numeric_limits<float>::infinity());
    causal.is_causal = true;
    for (const at::ScalarType type : {at::kFloat, at::kBFloat16})
        for (const AttentionOptions& options : {masked, causal}) {
            const Tensors leaves =
                leaves_of({at::randn({B, H, L, 16}), at::randn({B, H, L, 16}), at::randn({B, H, L, 16})}, type);
            EXPECT_LE(largest_of(leaves, options), static_cast<std::size_t>(L * L) * sizeof(float))
                << "bytes; more than the scores of one head of one sample, " << type << ", causal "
                << options.is_causal;
            EXPECT_TRUE(leaves[0].grad().isfinite().all().item<bool>());
        }
}

}  // namespace
