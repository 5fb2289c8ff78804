// Flux: what its loss is, what is drawn for it, and what an evaluation holds fixed.

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <tuple>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <strata/core/error.hpp>
#include <strata/models/flow_sampler.hpp>
#include <strata/models/flux.hpp>
#include <strata/train/trainable.hpp>

namespace {

namespace models = strata::models;
namespace diffusion = strata::diffusion;
using models::Flux;
using models::FluxOptions;
using models::FluxTraining;

static_assert(strata::Trainable<Flux>);

FluxOptions small(bool has_guidance = true) {
    return {.token_values = 16,
            .output_values = 16,
            .text_width = 32,
            .pooled_width = 24,
            .heads = 2,
            .rotary_axes = {4, 6, 6},
            .double_blocks = 1,
            .single_blocks = 1,
            .has_guidance = has_guidance};
}

FluxTraining with_guidances(double least, double most) {
    FluxTraining training;
    training.least_guidance = least;
    training.most_guidance = most;
    return training;
}

Flux::Batch batch_of(std::int64_t B, std::int64_t H = 4, std::int64_t W = 6) {
    Flux::Batch batch;
    batch.latents_BCHW = at::randn({B, 4, H, W});
    batch.text_BTE = at::randn({B, 5, 32}).to(at::kBFloat16);  // as it is cached
    batch.pooled_BE = at::randn({B, 24}).to(at::kBFloat16);
    batch.text_mask_BT = at::ones({B, 5}, at::kBool);
    batch.text_mask_BT.narrow(1, 3, 2).fill_(false);
    return batch;
}

double loss_at(Flux& model, const Flux::Batch& batch, std::uint64_t seed) {
    const at::NoGradGuard no_gradients;
    torch::manual_seed(seed);
    return model.loss(batch).item<double>();
}

TEST(Flux, TheLossIsThatOfTheVelocityAtWhatTheSeedDraws) {
    torch::manual_seed(1);
    Flux model{small(), with_guidances(1.5, 4)};
    const Flux::Batch batch = batch_of(3);
    const double loss = loss_at(model, batch, 2);
    EXPECT_EQ(loss_at(model, batch, 2), loss);
    EXPECT_NE(loss_at(model, batch, 3), loss);

    // Noise, a normal number for each level, guidance: in this order. diffusers: entry floor(u * 1000) of 1000 / 1000
    // ... 1 / 1000.
    const at::NoGradGuard no_gradients;
    torch::manual_seed(2);
    const at::Tensor noise = at::randn({3, 4, 4, 6});
    const at::Tensor u = at::sigmoid(at::randn({3}));
    const at::Tensor sigma = (1000 - (u * 1000).floor()) / 1000;
    const at::Tensor guidance = at::rand({3}) * 2.5 + 1.5;
    const at::Tensor s = sigma.view({3, 1, 1, 1});
    const at::Tensor& x = batch.latents_BCHW;
    const at::Tensor v = model.velocity(x * (1 - s) + noise * s, batch.text_BTE, batch.pooled_BE, sigma, guidance);
    EXPECT_NEAR((v - (noise - x)).square().mean().item<double>(), loss, 1e-4 * loss);
}

TEST(Flux, TheLossOfAnEvaluationIsThatOfItsPicturesInAnyBatch) {
    torch::manual_seed(4);
    Flux model{small(), with_guidances(1, 4)};
    const at::NoGradGuard no_gradients;
    const Flux::Batch batch = batch_of(4);
    const double all = model.evaluation_loss(batch).item<double>();
    torch::manual_seed(5);
    EXPECT_EQ(model.evaluation_loss(batch).item<double>(), all) << "no generator of the run counts";
    double sum = 0;
    for (std::int64_t i = 0; i < 4; ++i) {
        Flux::Batch one;
        one.latents_BCHW = batch.latents_BCHW.narrow(0, i, 1);
        one.text_BTE = batch.text_BTE.narrow(0, i, 1);
        one.pooled_BE = batch.pooled_BE.narrow(0, i, 1);
        sum += model.evaluation_loss(one).item<double>() / 4;
    }
    EXPECT_NEAR(sum, all, 1e-5 * all);
}

TEST(Flux, LargerPicturesGetMoreNoiseWhereTheShiftIsByTheirSize) {
    // A model that starts as the identity answers 0, so that its loss is weight * mean((noise - x)^2), whatever the
    // sigma: what shows sigma is a weight.
    FluxOptions options = small();
    options.start = models::FluxStart::identity;
    FluxTraining training;
    training.flow.shift_by_tokens = true;
    training.flow.weighting = diffusion::FlowWeighting::sigma_sqrt;  // 1 / sigma^2
    training.schedule.base_tokens = 1;
    training.schedule.max_tokens = 64;
    training.schedule.max_shift = 3;
    Flux model{options, training};
    const auto mean_loss = [&](std::int64_t edge) {
        double sum = 0;
        for (std::uint64_t seed = 0; seed < 8; ++seed) {
            torch::manual_seed(100);
            const Flux::Batch batch = batch_of(16, edge, edge);
            sum += loss_at(model, batch, seed) / 8;
        }
        return sum;
    };
    EXPECT_LT(mean_loss(16), 0.5 * mean_loss(4)) << "64 tokens and 4";
}

TEST(Flux, GuidanceIsToldInTrainingAndDrawing) {
    torch::manual_seed(6);
    const Flux::Batch batch = batch_of(2);
    const auto loss_of = [&](double guidance) {
        torch::manual_seed(7);
        Flux model{small(), with_guidances(guidance, guidance)};
        return loss_at(model, batch, 8);
    };
    EXPECT_NE(loss_of(1), loss_of(3.5));
    const at::NoGradGuard no_gradients;
    Flux model{small()};
    const at::Tensor sigma = at::full({2}, 0.5);
    const auto& [x, text, pooled] = std::tie(batch.latents_BCHW, batch.text_BTE, batch.pooled_BE);
    EXPECT_TRUE(
        at::equal(model.forward(x, text, pooled, sigma), model.velocity(x, text, pooled, sigma, at::full({2}, 3.5))));
    Flux without{small(false)};
    EXPECT_TRUE(at::equal(without.forward(x, text, pooled, sigma), without.velocity(x, text, pooled, sigma, {})));
}

TEST(Flux, PaddingIsLookedAtUnlessTextIsMasked) {
    torch::manual_seed(9);
    Flux model{small()};
    FluxTraining training;
    training.masks_text = true;
    torch::manual_seed(9);
    Flux masked{small(), training};
    Flux::Batch batch = batch_of(2);
    const double looked_at = loss_at(model, batch, 10);
    const double not_looked_at = loss_at(masked, batch, 10);
    batch.text_BTE = batch.text_BTE.clone();
    batch.text_BTE.narrow(1, 3, 2).fill_(1);
    EXPECT_NE(loss_at(model, batch, 10), looked_at);
    EXPECT_EQ(loss_at(masked, batch, 10), not_looked_at);
    batch.text_mask_BT = at::Tensor{};
    try {
        (void)loss_at(masked, batch, 10);
        FAIL() << "accepted";
    } catch (const strata::Error& error) {
        EXPECT_EQ(error.code(), strata::Errc::bad_value);
        EXPECT_NE(error.problem().find("text_mask_BT"), std::string::npos);
    }
}

TEST(Flux, TheLossFallsOnOneBatch) {
    torch::manual_seed(11);
    FluxOptions options = small();
    options.start = models::FluxStart::identity;
    Flux model{options};
    const Flux::Batch batch = batch_of(8, 4, 4);
    torch::optim::AdamW optimizer{model.parameters(), torch::optim::AdamWOptions(3e-3)};
    double first = 0, last = 0;
    for (int step = 0; step < 150; ++step) {
        optimizer.zero_grad();
        const at::Tensor loss = model.loss(batch);
        loss.backward();
        optimizer.step();
        (step < 20 ? first : last) += step < 20 || step >= 130 ? loss.item<double>() / 20 : 0.0;
    }
    EXPECT_LT(last, 0.75 * first);
}

TEST(Flux, ASamplerDrawsWithIt) {
    torch::manual_seed(12);
    Flux model{small()};
    const models::TextEmbedding prompt{at::randn({5, 32}), at::randn({24})};
    const at::Tensor drawn = models::sample_flow(model, {prompt}, prompt, 4, 4, 6, {.steps = 2, .guidance = 1});
    EXPECT_EQ(drawn.sizes(), (at::IntArrayRef{1, 4, 4, 6}));
    EXPECT_TRUE(drawn.isfinite().all().item<bool>());
}

void expect_refusal(strata::Errc code, const std::string& word, const std::function<void()>& run) {
    try {
        run();
        FAIL() << "accepted: " << word;
    } catch (const strata::Error& error) {
        EXPECT_EQ(error.code(), code) << error.what();
        EXPECT_NE(error.problem().find(word), std::string::npos) << error.what();
    }
}

TEST(Flux, WhatCannotBeTrainedIsRefused) {
    using strata::Errc;
    FluxOptions wide = small();
    wide.output_values = 12;
    expect_refusal(Errc::bad_model_options, "output_values 12", [&] { Flux{wide}; });
    expect_refusal(Errc::bad_model_options, "from 4 to 1", [] { Flux{small(), with_guidances(4, 1)}; });
    const double nan = std::numeric_limits<double>::quiet_NaN();
    expect_refusal(Errc::bad_model_options, "guidances", [&] { Flux{small(), with_guidances(nan, nan)}; });
    FluxTraining training;
    training.flow.density.deviation = 0;
    expect_refusal(Errc::bad_diffusion_options, "deviation", [&] { Flux{small(), training}; });
    Flux model{small()};
    expect_refusal(Errc::bad_value, "(2, 4, 3, 6)", [&] { (void)model.loss(batch_of(2, 3, 6)); });
}

}  // namespace
