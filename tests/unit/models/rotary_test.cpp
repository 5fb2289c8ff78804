// Rotary positions: what turning is for, and Flux's own numbers.

#include <gtest/gtest.h>

#include <torch/torch.h>

#include <strata/models/fused_ops.hpp>
#include <strata/models/rotary.hpp>

#include "golden.hpp"

namespace {

namespace models = strata::models;

/// q . k between the cells at a and b (row, column) of an 8 x 8 grid, for the same q and k everywhere.
double score(std::array<std::int64_t, 2> a, std::array<std::int64_t, 2> b) {
    torch::manual_seed(3);
    const at::Tensor weight = at::ones({16});
    const at::Tensor q = at::randn({1, 1, 16}).expand({1, 64, 16});
    const at::Tensor k = at::randn({1, 1, 16}).expand({1, 64, 16});
    const models::RotaryTable table = models::rotary_table(0, 8, 8, {4, 6, 6});
    const at::Tensor turned_q = models::rms_norm_rotate(q, weight, table.cosine_LK, table.sine_LK)[0][0];
    const at::Tensor turned_k = models::rms_norm_rotate(k, weight, table.cosine_LK, table.sine_LK)[0][0];
    return turned_q[a[0] * 8 + a[1]].dot(turned_k[b[0] * 8 + b[1]]).item<double>();
}

TEST(Rotary, ScoresDependOnTheDistanceAlone) {
    EXPECT_NEAR(score({0, 0}, {2, 3}), score({5, 4}, {7, 7}), 1e-5);
    EXPECT_NEAR(score({3, 6}, {1, 6}), score({7, 0}, {5, 0}), 1e-5);
    EXPECT_GT(std::abs(score({0, 0}, {2, 3}) - score({0, 0}, {3, 2})), 1e-3);
}

TEST(Rotary, TextTokensDoNotTurn) {
    const models::RotaryTable table = models::rotary_table(5, 2, 2, {4, 6, 6});
    EXPECT_EQ(table.cosine_LK.sizes(), (at::IntArrayRef{9, 16}));
    EXPECT_TRUE((table.cosine_LK.narrow(0, 0, 6) == 1).all().item<bool>());  // the first cell is (0, 0) as well
    EXPECT_TRUE((table.sine_LK.narrow(0, 0, 6) == 0).all().item<bool>());
    EXPECT_FALSE((table.sine_LK[6] == 0).all().item<bool>());
}

TEST(Rotary, AnglesAreThoseOfFlux) {
    STRATA_NEED_GOLDEN(golden, "flux.safetensors");
    const models::RotaryTable table = models::rotary_table(7, 3, 5, {4, 6, 6});
    EXPECT_LT((table.cosine_LK - golden("mid.c0.pos_embed.0")).abs().max().item<double>(), 1e-6);
    // Flux keeps |sine| for both entries of a pair and puts the sign elsewhere.
    const at::Tensor sign = at::tensor({-1.0f, 1.0f}).repeat({8});
    EXPECT_LT((table.sine_LK - golden("mid.c0.pos_embed.1") * sign).abs().max().item<double>(), 1e-6);
}

}  // namespace
