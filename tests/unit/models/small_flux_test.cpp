// SmallFlux: shapes, Flux's own numbers, learning, and what must not change with the number format.

#include <cmath>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include <torch/torch.h>

#include <strata/core/error.hpp>
#include <strata/models/packing.hpp>
#include <strata/models/small_flux.hpp>
#include <strata/train/trainable.hpp>

#include "golden.hpp"

namespace {

namespace models = strata::models;
using models::SmallFlux;
using models::SmallFluxOptions;

static_assert(strata::Trainable<SmallFlux>);

SmallFluxOptions tiny_options() {
    SmallFluxOptions options;
    options.latent_channels = 4;
    options.text_width = 32;
    options.heads = 4;
    options.rotary_axes = {4, 6, 6};
    options.double_blocks = 2;
    options.single_blocks = 2;
    return options;
}

/// Makes every zero-initialised parameter take part.
void randomise(SmallFlux& model) {
    const at::NoGradGuard no_gradients;
    for (at::Tensor& parameter : model.parameters()) parameter.add_(at::randn_like(parameter) * 0.05);
}

SmallFlux::Batch batch_of(std::int64_t B, std::int64_t H, std::int64_t W) {
    SmallFlux::Batch batch;
    batch.latents_BCHW = at::randn({B, 4, H, W});
    batch.text_BTE = at::randn({B, 3, 32});
    batch.pooled_BE = at::randn({B, 32});
    return batch;
}

void to_bf16(SmallFlux& model) {
    for (at::Tensor& parameter : model.parameters()) parameter.set_data(parameter.detach().to(at::kBFloat16));
}

TEST(SmallFlux, AnyGridOfWholePatchesGivesAVelocityOfItsShape) {
    torch::manual_seed(1);
    SmallFlux model{tiny_options()};
    randomise(model);
    for (const auto& [H, W] : {std::pair<std::int64_t, std::int64_t>{8, 8}, {2, 2}, {10, 6}, {4, 24}}) {
        const SmallFlux::Batch batch = batch_of(2, H, W);
        const at::Tensor v =
            model.forward(batch.latents_BCHW, batch.text_BTE, batch.pooled_BE, at::tensor({0.2f, 0.9f}));
        EXPECT_EQ(v.sizes(), batch.latents_BCHW.sizes());
        EXPECT_EQ(v.scalar_type(), at::kFloat);
        EXPECT_TRUE(v.isfinite().all().item<bool>());
    }
}

TEST(SmallFlux, LatentsThatAreNoWholePatchesAreRefused) {
    SmallFlux model{tiny_options()};
    for (const auto& [H, W] : {std::pair<std::int64_t, std::int64_t>{3, 4}, {4, 3}}) {
        try {
            (void)model.loss(batch_of(1, H, W));
            FAIL() << "accepted";
        } catch (const strata::Error& error) {
            EXPECT_EQ(error.code(), strata::Errc::bad_value);
            EXPECT_NE(error.problem().find(std::to_string(H) + " x " + std::to_string(W)), std::string::npos);
        }
    }
}

/// The published weights of a small Flux, put under the same names into SmallFlux, give the published outputs.
/// Its guidance embedding is a constant here, and goes into the bias beside it.
TEST(SmallFlux, ComputesWhatFluxComputes) {
    STRATA_NEED_GOLDEN(golden, "flux.safetensors");
    SmallFlux model{tiny_options()};
    const at::NoGradGuard no_gradients;
    // The reference takes packed tokens of 16 values; its pooled text is 24 wide.
    for (auto& entry : model.named_parameters()) {
        at::Tensor value = entry.key() == "time_text_embed.text_embedder.linear_1.weight"
                               ? at::constant_pad_nd(golden(entry.key()), {0, 8})
                               : golden(entry.key());
        ASSERT_EQ(value.sizes(), entry.value().sizes()) << entry.key();
        entry.value().copy_(value);
    }
    const std::string guide = "time_text_embed.guidance_embedder.";
    const at::Tensor hidden = at::silu(at::linear(models::timestep_features(golden("in.c0.guidance")),
                                                  golden(guide + "linear_1.weight"), golden(guide + "linear_1.bias")));
    model.named_parameters()["time_text_embed.timestep_embedder.linear_2.bias"].add_(
        at::linear(hidden, golden(guide + "linear_2.weight"), golden(guide + "linear_2.bias"))[0]);

    const at::Tensor latents = models::unpack_2x2(golden("in.c0.hidden_states"), 6, 10);
    const at::Tensor v =
        model.forward(latents, golden("in.c0.encoder_hidden_states"),
                      at::constant_pad_nd(golden("in.c0.pooled_projections"), {0, 8}), golden("in.c0.timestep"));
    const double difference = (models::pack_2x2(v) - golden("out.c0.sample")).abs().max().item<double>();
    EXPECT_LT(difference, 2e-5);
}

TEST(SmallFlux, PacksInTheOrderOfFlux) {
    STRATA_NEED_GOLDEN(golden, "flux.safetensors");
    const at::Tensor latents = golden("in.pack.latents");
    EXPECT_TRUE(at::equal(models::pack_2x2(latents), golden("out.pack.packed")));
    EXPECT_TRUE(at::equal(models::unpack_2x2(models::pack_2x2(latents), 6, 8), latents));
}

TEST(SmallFlux, EveryParameterGetsAGradient) {
    for (const bool bf16 : {false, true}) {
        torch::manual_seed(2);
        SmallFlux model{tiny_options()};
        randomise(model);
        if (bf16) to_bf16(model);
        model.loss(batch_of(2, 4, 6)).backward();
        std::set<std::string> without;
        for (const auto& entry : model.named_parameters()) {
            const at::Tensor& gradient = entry.value().grad();
            if (!gradient.defined() || gradient.abs().max().item<float>() == 0.0f)
                without.insert(entry.key());
            else
                EXPECT_TRUE(gradient.isfinite().all().item<bool>()) << entry.key();
        }
        EXPECT_TRUE(without.empty()) << *without.begin() << " and " << without.size() - 1 << " more, bf16 " << bf16;
    }
}

TEST(SmallFlux, FusedGradientsMatchNumericalOnes) {
    torch::manual_seed(3);
    SmallFlux model{tiny_options()};
    randomise(model);
    const SmallFlux::Batch batch = batch_of(2, 4, 4);
    const auto loss = [&] {
        torch::manual_seed(4);
        return model.loss(batch);
    };
    loss().backward();
    // Along a random direction over all parameters: (f(p + h d) - f(p - h d)) / 2h.
    torch::manual_seed(5);
    double predicted = 0.0;
    std::vector<at::Tensor> direction;
    for (const at::Tensor& parameter : model.parameters()) {
        direction.push_back(at::randn_like(parameter));
        predicted += (direction.back() * parameter.grad()).sum().item<double>();
    }
    const at::NoGradGuard no_gradients;
    const auto moved = [&](double h) {
        std::size_t i = 0;
        for (at::Tensor& parameter : model.parameters()) parameter.add_(direction[i++], h);
        const double value = loss().item<double>();
        i = 0;
        for (at::Tensor& parameter : model.parameters()) parameter.sub_(direction[i++], h);
        return value;
    };
    const double h = 1e-3;
    const double measured = (moved(h) - moved(-h)) / (2 * h);
    EXPECT_NEAR(measured, predicted, 0.02 * std::abs(predicted) + 1e-3);
}

TEST(SmallFlux, Bf16ComputesTheSameLossUpToRounding) {
    torch::manual_seed(6);
    SmallFlux model{tiny_options()};
    randomise(model);
    const SmallFlux::Batch batch = batch_of(4, 8, 8);
    torch::manual_seed(7);
    const double fp32 = model.loss(batch).item<double>();
    to_bf16(model);
    torch::manual_seed(7);
    const at::Tensor bf16 = model.loss(batch);
    EXPECT_EQ(bf16.scalar_type(), at::kFloat);
    EXPECT_NEAR(bf16.item<double>(), fp32, 0.01 * fp32);
}

TEST(SmallFlux, TheLossIsDecidedByTheSeed) {
    torch::manual_seed(8);
    SmallFlux model{tiny_options()};
    randomise(model);
    const SmallFlux::Batch batch = batch_of(2, 4, 4);
    const auto loss = [&](std::uint64_t seed) {
        torch::manual_seed(seed);
        return model.loss(batch).item<double>();
    };
    EXPECT_EQ(loss(1), loss(1));
    EXPECT_NE(loss(1), loss(2));
}

TEST(SmallFlux, TheLossOfAnEvaluationIsThatOfItsPicturesInAnyBatch) {
    torch::manual_seed(8);
    SmallFlux model{tiny_options()};
    randomise(model);
    const at::NoGradGuard no_gradients;
    const SmallFlux::Batch batch = batch_of(4, 4, 4);
    const double all = model.evaluation_loss(batch).item<double>();
    torch::manual_seed(9);
    EXPECT_EQ(model.evaluation_loss(batch).item<double>(), all) << "no generator of the run counts";
    double sum = 0;
    for (std::int64_t i = 0; i < 4; ++i) {
        SmallFlux::Batch one;
        one.latents_BCHW = batch.latents_BCHW.narrow(0, i, 1);
        one.text_BTE = batch.text_BTE.narrow(0, i, 1);
        one.pooled_BE = batch.pooled_BE.narrow(0, i, 1);
        sum += model.evaluation_loss(one).item<double>();
    }
    EXPECT_NEAR(sum / 4, all, 1e-5 * all);
    EXPECT_NE(model.loss(batch).item<double>(), all);
}

TEST(SmallFlux, TextAndTimeAndPositionChangeTheVelocity) {
    torch::manual_seed(9);
    SmallFlux model{tiny_options()};
    randomise(model);
    const SmallFlux::Batch batch = batch_of(1, 4, 4);
    const at::NoGradGuard no_gradients;
    const auto velocity = [&](const at::Tensor& x, const at::Tensor& text, const at::Tensor& pooled, float sigma) {
        return model.forward(x, text, pooled, at::full({1}, sigma));
    };
    const at::Tensor& x = batch.latents_BCHW;
    const at::Tensor v = velocity(x, batch.text_BTE, batch.pooled_BE, 0.5f);
    EXPECT_GT((velocity(x, -batch.text_BTE, batch.pooled_BE, 0.5f) - v).abs().max().item<float>(), 1e-3f);
    EXPECT_GT((velocity(x, batch.text_BTE, -batch.pooled_BE, 0.5f) - v).abs().max().item<float>(), 1e-3f);
    EXPECT_GT((velocity(x, batch.text_BTE, batch.pooled_BE, 0.7f) - v).abs().max().item<float>(), 1e-3f);
    const at::Tensor mirrored = velocity(x.flip(3), batch.text_BTE, batch.pooled_BE, 0.5f).flip(3);
    EXPECT_GT((mirrored - v).abs().max().item<float>(), 1e-3f);
}

TEST(SmallFlux, TheLossFallsOnOneBatch) {
    torch::manual_seed(10);
    SmallFluxOptions options = tiny_options();
    options.single_blocks = 1;
    SmallFlux model{options};
    const SmallFlux::Batch batch = batch_of(8, 4, 4);
    torch::optim::AdamW optimizer{model.parameters(), torch::optim::AdamWOptions(3e-3)};
    double first = 0.0;
    double last = 0.0;
    for (int step = 0; step < 200; ++step) {
        optimizer.zero_grad();
        const at::Tensor loss = model.loss(batch);
        loss.backward();
        optimizer.step();
        (step < 20 ? first : last) += step < 20 || step >= 180 ? loss.item<double>() / 20 : 0.0;
    }
    EXPECT_NEAR(first, 2.0, 0.3);  // an untrained model predicts 0 against noise - x
    EXPECT_LT(last, 0.6 * first);
}

TEST(SmallFlux, NamesAreThoseOfFlux) {
    SmallFlux model{tiny_options()};
    std::set<std::string> names;
    for (const auto& entry : model.named_parameters()) names.insert(entry.key());
    for (const char* name :
         {"x_embedder.weight", "context_embedder.bias", "proj_out.weight", "norm_out.linear.weight",
          "time_text_embed.text_embedder.linear_2.bias", "transformer_blocks.1.norm1_context.linear.weight",
          "transformer_blocks.0.attn.to_out.0.weight", "transformer_blocks.0.attn.norm_added_k.weight",
          "transformer_blocks.1.ff_context.net.0.proj.weight", "transformer_blocks.1.ff.net.2.bias",
          "single_transformer_blocks.1.proj_mlp.weight", "single_transformer_blocks.0.attn.norm_q.weight"})
        EXPECT_TRUE(names.contains(name)) << name;
}

TEST(SmallFlux, BlocksAreUnits) {
    SmallFlux model{tiny_options()};
    int units = 0;
    for (const auto& module : model.modules(/*include_self=*/false))
        units += dynamic_cast<const strata::zero::UnitBase*>(module.get()) != nullptr ? 1 : 0;
    EXPECT_EQ(units, 4);
}

TEST(SmallFlux, AHeadWidthThatKernelsCannotTakeIsRefused) {
    SmallFluxOptions options = tiny_options();
    options.rotary_axes = {4, 6, 8};
    try {
        SmallFlux model{options};
        FAIL() << "accepted";
    } catch (const strata::Error& error) {
        EXPECT_EQ(error.code(), strata::Errc::bad_model_options);
        EXPECT_NE(std::string{error.what()}.find("{4, 6, 8}"), std::string::npos);
    }
}

}  // namespace
