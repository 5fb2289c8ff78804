#include <cmath>
#include <cstdint>
#include <fstream>
#include <memory>
#include <optional>
#include <string>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <strata/core/error.hpp>
#include <strata/models/autoencoder_kl.hpp>
#include <strata/models/trained_autoencoder.hpp>

#include "golden_cases.hpp"

namespace {

using namespace strata;
using models::AutoencoderKl;
using models::AutoencoderKlOptions;

AutoencoderKlOptions small_sdxl() {
    AutoencoderKlOptions options;
    options.widths = {8, 16, 16, 16};
    options.norm_groups = 4;
    return options;
}

AutoencoderKlOptions small_flux() {
    AutoencoderKlOptions options;
    options.widths = {16, 16, 24, 24};
    options.norm_groups = 8;
    options.latent_channels = 16;
    options.quant_conv = options.post_quant_conv = false;
    options.scaling_factor = 0.3611;
    options.shift_factor = 0.1159;
    return options;
}

AutoencoderKlOptions golden_options(const std::string& name) {
    return models::parse_autoencoder_kl(golden_json(name).at("config").dump(), name + ".json");
}

/// Outputs, gradients, and the latents that a diffusion model trains on.
void expect_golden(const GoldenCases& golden, const AutoencoderKlOptions& options) {
    AutoencoderKl model{options};
    golden.fill(model);
    for (const std::string& tag : golden.tags()) {
        const at::Tensor image = golden.input(tag, "image"), latents = golden.input(tag, "latents");
        const models::LatentDistribution encoded = model.encode(image);
        const at::Tensor decoded = model.decode(latents);
        const at::Tensor sampled = encoded.sample(golden("in." + tag + ".eps"));
        golden.expect_near("out." + tag + ".sampled", sampled, 1e-5);
        golden.expect_near("out." + tag + ".sampled_scaled", model.scaled(sampled), 1e-5);
        golden.expect_near("out." + tag + ".sampled", model.unscaled(model.scaled(sampled)), 1e-5);
        golden.expect(tag, model, {{"mean", encoded.mean}, {"logvar", encoded.logvar}, {"decoded", decoded}},
                      {{"image", image}, {"latents", latents}});
    }
}

TEST(AutoencoderKl, ComputesWhatSdxlsComputes) {
    STRATA_NEED_CASES(golden, "vae_sdxl");
    expect_golden(golden, golden_options("vae_sdxl"));
}

TEST(AutoencoderKl, ComputesWhatFluxsComputes) {
    STRATA_NEED_CASES(golden, "vae_flux");
    expect_golden(golden, golden_options("vae_flux"));
}

TEST(AutoencoderKl, EachBlockComputesWhatTheReferencesDoes) {
    STRATA_NEED_CASES(golden, "vae_sdxl");
    AutoencoderKl model{golden_options("vae_sdxl")};
    golden.fill(model);
    const torch::NoGradGuard no_gradient;
    const auto children = model.named_modules("", false);
    const auto expect = [&](const std::string& name, const at::Tensor& values) {
        golden.expect_near_if_there("mid.c0." + name, values, 1e-5);
    };
    const auto down = [&](const std::string& name, const at::Tensor& x) {
        return children[name]->as<Unit<models::KlDownBlock>>()->forward(x);
    };
    const std::size_t levels = model.options().widths.size();
    at::Tensor h = children["encoder.conv_in"]->as<torch::nn::Conv2d>()->forward(golden("in.c0.image"));
    for (std::size_t i = 0; i < levels; ++i) {
        h = down("encoder.down_blocks." + std::to_string(i), h);
        expect("encoder.down_blocks." + std::to_string(i), h);
    }
    h = children["encoder.mid_block"]->as<Unit<models::KlMidBlock>>()->forward(h);
    expect("encoder.mid_block", h);
    expect("encoder", children["encoder"]->as<models::KlEncoder>()->forward(golden("in.c0.image")));
    h = golden("in.c0.latents");
    if (model.options().post_quant_conv) h = children["post_quant_conv"]->as<torch::nn::Conv2d>()->forward(h);
    h = children["decoder.conv_in"]->as<torch::nn::Conv2d>()->forward(h);
    h = children["decoder.mid_block"]->as<Unit<models::KlMidBlock>>()->forward(h);
    expect("decoder.mid_block", h);
    for (std::size_t i = 0; i < levels; ++i) {
        h = children["decoder.up_blocks." + std::to_string(i)]->as<Unit<models::KlUpBlock>>()->forward(h);
        expect("decoder.up_blocks." + std::to_string(i), h);
    }
}

/// Root mean square of a - b as a share of b's.
double deviation(const at::Tensor& a, const at::Tensor& b) {
    return ((a.to(at::kDouble) - b).square().mean().sqrt() / b.to(at::kDouble).square().mean().sqrt()).item<double>();
}

TEST(AutoencoderKl, IsNearFp32InBf16AndItsGradientsAreFinite) {
    torch::manual_seed(1);
    AutoencoderKl model{small_sdxl()};
    const at::Tensor image = at::rand({2, 3, 32, 16}) * 2 - 1, latents = at::randn({2, 4, 4, 2});
    at::Tensor mean, decoded;
    {
        const torch::NoGradGuard no_gradient;
        mean = model.encode(image).mean;
        decoded = model.decode(latents);
    }
    model.to(at::kBFloat16);
    const at::Tensor mean16 = model.encode(image).mean, decoded16 = model.decode(latents);
    EXPECT_EQ(mean16.scalar_type(), at::kBFloat16);
    EXPECT_LT(deviation(mean16, mean), 0.05);
    EXPECT_LT(deviation(decoded16, decoded), 0.05);
    (mean16.sum() + decoded16.sum()).backward();
    for (const auto& parameter : model.named_parameters()) {
        ASSERT_TRUE(parameter.value().grad().defined()) << parameter.key();
        EXPECT_TRUE(parameter.value().grad().isfinite().all().item<bool>()) << parameter.key();
    }
}

TEST(AutoencoderKl, LogVariancesStayWithinTheirBounds) {
    AutoencoderKl model{small_flux()};
    const torch::NoGradGuard no_gradient;
    for (auto& parameter : model.named_parameters())
        if (parameter.key() == "encoder.conv_out.bias") {
            parameter.value().narrow(0, 16, 8).fill_(100.0);
            parameter.value().narrow(0, 24, 8).fill_(-100.0);
        }
    const at::Tensor logvar = model.encode(at::zeros({1, 3, 16, 16})).logvar;
    EXPECT_EQ(logvar.max().item<float>(), 20.0f);
    EXPECT_EQ(logvar.min().item<float>(), -30.0f);
}

TEST(AutoencoderKl, DecodesInTilesThatAreBlended) {
    torch::manual_seed(2);
    AutoencoderKl model{small_sdxl()};
    const torch::NoGradGuard no_gradient;
    const at::Tensor latents = at::randn({1, 4, 24, 9});
    const at::Tensor whole = model.decode(latents);
    EXPECT_TRUE(model.decode(latents, {24, 8}).equal(whole));
    const at::Tensor tiled = model.decode(latents, {16, 8});
    EXPECT_EQ(tiled.sizes(), whole.sizes());
    EXPECT_LT(deviation(tiled, whole), 0.35);
    EXPECT_FALSE(tiled.equal(whole));
}

TEST(AutoencoderKl, PicturesAboveALimitAreDecodedInTiles) {
    torch::manual_seed(2);
    const auto model = std::make_shared<AutoencoderKl>(small_sdxl());
    const torch::NoGradGuard no_gradient;
    const at::Tensor latents = at::randn({4, 24, 9});
    const std::int64_t edge = model->pixels_per_latent(), pixels = 24 * edge * 9 * edge;
    const auto decoded = [&](std::optional<std::int64_t> most) {
        models::LatentOptions options;
        options.most_pixels_whole = most;
        options.tiles = {16, 8};
        return models::TrainedAutoencoder<AutoencoderKl>{model, "weights", options}.decode(latents);
    };
    const at::Tensor unscaled = model->unscaled(latents.unsqueeze(0));
    EXPECT_TRUE(decoded({}).equal(model->decode(unscaled)[0]));
    EXPECT_TRUE(decoded(pixels).equal(model->decode(unscaled)[0]));
    EXPECT_TRUE(decoded(pixels - 1).equal(model->decode(unscaled, {16, 8})[0]));
}

TEST(AutoencoderKl, TilesOfALocalDecoderAreThePicture) {
    const auto nearest = [](const at::Tensor& z) {
        return at::upsample_nearest2d(z.narrow(1, 0, 3), {z.size(2) * 4, z.size(3) * 4});
    };
    torch::manual_seed(3);
    const at::Tensor latents = at::randn({2, 4, 37, 50});
    for (const models::TileOptions tiles : {models::TileOptions{16, 0}, {16, 3}, {16, 8}, {37, 8}, {12, 6}, {36, 18}})
        EXPECT_TRUE(models::tiled_decode(latents, 4, tiles, nearest).allclose(nearest(latents), 1e-5, 1e-6))
            << tiles.edge << ' ' << tiles.overlap;
    EXPECT_THROW(static_cast<void>(models::tiled_decode(latents, 4, {16, 9}, nearest)), Error);
    EXPECT_THROW(static_cast<void>(models::tiled_decode(latents, 4, {16, -1}, nearest)), Error);
}

TEST(AutoencoderKl, RefusesPicturesOfOtherSizes) {
    AutoencoderKl model{small_sdxl()};
    for (const at::Tensor& image : {at::zeros({1, 3, 20, 16}), at::zeros({1, 4, 16, 16}), at::zeros({3, 16, 16})}) {
        try {
            model.encode(image);
            FAIL() << image.sizes();
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), Errc::bad_value);
            EXPECT_NE(error.fix().find("multiples of 8"), std::string::npos);
        }
    }
}

TEST(AutoencoderKl, RefusesSizesThatDoNotFit) {
    AutoencoderKlOptions options = small_sdxl();
    options.norm_groups = 3;
    EXPECT_THROW(AutoencoderKl{options}, Error);
    options = small_sdxl();
    options.widths.clear();
    EXPECT_THROW(AutoencoderKl{options}, Error);
    options = small_sdxl();
    options.scaling_factor = 0;
    EXPECT_THROW(AutoencoderKl{options}, Error);
}

std::filesystem::path config_of(const std::string& text) {
    const std::filesystem::path file = std::filesystem::path{testing::TempDir()} / "autoencoder_kl_config.json";
    std::ofstream{file} << text;
    return file;
}

TEST(AutoencoderKl, ReadsTheConfigOfFluxs) {
    const AutoencoderKlOptions options = models::read_autoencoder_kl(config_of(R"({
        "_class_name": "AutoencoderKL", "_diffusers_version": "0.30.0", "act_fn": "silu", "in_channels": 3,
        "out_channels": 3, "block_out_channels": [128, 256, 512, 512], "layers_per_block": 2, "norm_num_groups": 32, "sample_size": 1024,
        "down_block_types": ["DownEncoderBlock2D", "DownEncoderBlock2D", "DownEncoderBlock2D", "DownEncoderBlock2D"],
        "up_block_types": ["UpDecoderBlock2D", "UpDecoderBlock2D", "UpDecoderBlock2D", "UpDecoderBlock2D"],
        "force_upcast": true, "latent_channels": 16, "latents_mean": null, "latents_std": null,
        "mid_block_add_attention": true, "scaling_factor": 0.3611, "shift_factor": 0.1159,
        "use_post_quant_conv": false, "use_quant_conv": false})"));
    EXPECT_EQ(options.latent_channels, 16);
    EXPECT_EQ(options.widths, (std::vector<std::int64_t>{128, 256, 512, 512}));
    EXPECT_EQ(options.layers_per_block, 2);
    EXPECT_EQ(options.scaling_factor, 0.3611);
    EXPECT_EQ(options.shift_factor, 0.1159);
    EXPECT_TRUE(options.mid_attention);
    EXPECT_FALSE(options.quant_conv || options.post_quant_conv);
}

TEST(AutoencoderKl, WhatAConfigLacksIsAsTheClassHasIt) {
    const AutoencoderKlOptions options = models::parse_autoencoder_kl("{}", "config.json");
    EXPECT_EQ(options.widths, (std::vector<std::int64_t>{64}));
    EXPECT_EQ(options.layers_per_block, 1);
    EXPECT_EQ(options.norm_groups, 32);
    EXPECT_EQ(options.scaling_factor, 0.18215);
}

/// The authors' code takes null for none: no norms, no attention.
TEST(AutoencoderKl, NullIsNoDefaultWhereItMeansSomethingElse) {
    for (const std::string key : {"norm_num_groups", "mid_block_add_attention", "use_quant_conv", "act_fn"}) {
        try {
            static_cast<void>(models::parse_autoencoder_kl("{\"" + key + "\": null}", "config.json"));
            ADD_FAILURE() << key;
        } catch (const Error& error) {
            EXPECT_NE(error.problem().find("'" + key + "' is null"), std::string::npos) << error.problem();
        }
    }
}

TEST(AutoencoderKl, RefusesAConfigWithAllThatIsWrongInIt) {
    try {
        static_cast<void>(models::read_autoencoder_kl(config_of(R"({
            "_class_name": "AutoencoderTiny", "act_fn": "gelu", "latent_channels": "four", "norm_num_groups": 32,
            "block_out_channels": [128, 250], "down_block_types": ["DownEncoderBlock2D"], "layers_per_block": 2,
            "latents_mean": [0.5], "use_fancy_conv": true, "up_block_types": ["UpDecoderBlock2D", "Other"]})")));
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), Errc::bad_model_config);
        for (const char* const part :
             {"'_class_name' is \"AutoencoderTiny\"", "'act_fn' is \"gelu\"", "'latent_channels' is \"four\"",
              "'block_out_channels' has 250", "'down_block_types' has 1 blocks", "'latents_mean' is not known",
              "'use_fancy_conv' is not known", "'up_block_types' has 'Other'", "config.json:2:"})
            EXPECT_NE(error.problem().find(part), std::string::npos) << part << " in " << error.problem();
    }
}

TEST(AutoencoderKl, KnowsTheNamesOfOlderFiles) {
    EXPECT_EQ(AutoencoderKl::current_name("encoder.mid_block.attentions.0.query.weight"),
              "encoder.mid_block.attentions.0.to_q.weight");
    EXPECT_EQ(AutoencoderKl::current_name("decoder.mid_block.attentions.0.proj_attn.bias"),
              "decoder.mid_block.attentions.0.to_out.0.bias");
    EXPECT_EQ(AutoencoderKl::current_name("decoder.mid_block.attentions.0.to_k.bias"),
              "decoder.mid_block.attentions.0.to_k.bias");
    EXPECT_EQ(AutoencoderKl::current_name("encoder.conv_in.weight"), "encoder.conv_in.weight");
}

TEST(AutoencoderKl, IsAnAutoencoderOfARecipe) {
    torch::manual_seed(4);
    auto model = std::make_shared<AutoencoderKl>(small_flux());
    const models::TrainedAutoencoder<AutoencoderKl> mode{model, "w"}, drawn{model, "w", {.draws = true, .tiles = {}}};
    EXPECT_NE(mode.id(), drawn.id());
    const at::Tensor images = at::rand({2, 3, 16, 24}) * 2 - 1;
    const at::Tensor latents = mode.encode(images);
    EXPECT_EQ(latents.sizes(), (std::vector<std::int64_t>{2, 16, 2, 3}));
    EXPECT_FALSE(latents.requires_grad());
    EXPECT_TRUE(latents.allclose((model->encode(images).mean - 0.1159) * 0.3611));
    EXPECT_TRUE(drawn.encode(images).equal(drawn.encode(images)));
    EXPECT_FALSE(drawn.encode(images).allclose(latents));
    EXPECT_EQ(mode.decode(latents[0]).sizes(), (std::vector<std::int64_t>{3, 16, 24}));
    model->to(at::kBFloat16);
    EXPECT_EQ(mode.encode(images[0]).scalar_type(), at::kFloat);
    EXPECT_TRUE(models::on_device(mode, at::kCPU).model() == model);
}

}  // namespace
