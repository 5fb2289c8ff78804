#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <span>
#include <string>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <strata/core/error.hpp>
#include <strata/models/autoencoder_tiny.hpp>
#include <strata/storage/safetensors.hpp>

#include "golden_cases.hpp"

namespace {

using namespace strata;
using models::AutoencoderTiny;
using models::AutoencoderTinyOptions;

AutoencoderTinyOptions narrow() {
    AutoencoderTinyOptions options;
    options.width = 8;
    return options;
}

AutoencoderTinyOptions golden_options() {
    return models::parse_autoencoder_tiny(golden_json("taesd").at("config").dump(), "taesd.json");
}

TEST(AutoencoderTiny, ComputesWhatTheReferenceComputes) {
    STRATA_NEED_CASES(golden, "taesd");
    AutoencoderTiny model{golden_options()};
    golden.fill(model);
    for (const std::string& tag : golden.tags()) {
        const at::Tensor image = golden.input(tag, "image"), z = golden.input(tag, "latents");
        const at::Tensor latents = model.encode(image), decoded = model.decode(z);
        golden.expect_near("out." + tag + ".scale_latents", model.to_unit(latents), 1e-5);
        golden.expect_near("out." + tag + ".unscale_latents", model.from_unit(model.to_unit(latents)), 1e-5);
        golden.expect(tag, model, {{"latents", latents}, {"decoded", decoded}}, {{"image", image}, {"latents", z}});
    }
}

TEST(AutoencoderTiny, EachLayerComputesWhatTheReferencesDoes) {
    STRATA_NEED_CASES(golden, "taesd");
    AutoencoderTiny model{golden_options()};
    golden.fill(model);
    const torch::NoGradGuard no_gradient;
    const auto children = model.named_modules("", false);
    const auto run = [&](const std::string& half, at::Tensor h, int last) {
        for (int i = 0; i <= last; ++i) {
            const std::string name = half + ".layers." + std::to_string(i);
            if (const auto* conv = children[name]->as<torch::nn::Conv2d>()) {
                h = const_cast<torch::nn::Conv2dImpl*>(conv)->forward(h);
            } else if (auto* block = children[name]->as<models::TinyBlock>()) {
                h = block->forward(h);
            } else {
                h = at::relu(h);
            }
            golden.expect_near_if_there("mid.c0." + name, h, 1e-5);
        }
    };
    run("encoder", (golden("in.c0.image") + 1) / 2, 2);
    run("decoder", at::tanh(golden("in.c0.latents") / 3) * 3, 2);
}

/// A half of one of the family, as upstream publishes it: tensors of 16 bits under upstream's names.
void load_upstream(AutoencoderTiny& model, const std::string& name, const std::string& half) {
    const torch::NoGradGuard no_gradient;
    const storage::SafetensorsFile file{std::string{STRATA_REFERENCE_DIR} + "/data/weights/taesd/" + name + "_" + half +
                                        ".safetensors"};
    auto parameters = model.named_parameters();
    std::size_t loaded = 0;
    for (const storage::SafetensorsEntry& entry : file.header().tensors) {
        at::Tensor* parameter = parameters.find(AutoencoderTiny::name_of_upstream(half, entry.name));
        ASSERT_NE(parameter, nullptr) << entry.name;
        at::Tensor tensor = at::empty(entry.shape, entry.dtype == storage::Dtype::bf16 ? at::kBFloat16 : at::kHalf);
        file.read(entry, {static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes()});
        ASSERT_EQ(tensor.sizes(), parameter->sizes()) << entry.name;
        parameter->copy_(tensor);
        ++loaded;
    }
    std::size_t expected = 0;
    for (const auto& parameter : parameters) expected += parameter.key().starts_with(half + ".") ? 1 : 0;
    EXPECT_EQ(loaded, expected);
}

TEST(AutoencoderTiny, AllFiveGiveTheLatentsAndPicturesOfUpstreamsWeights) {
    const std::string folder = std::string{STRATA_REFERENCE_DIR} + "/data";
    if (!std::filesystem::exists(folder + "/golden/taesd_golden.safetensors"))
        GTEST_SKIP() << folder + "/golden/taesd_golden.safetensors is not there: nothing to compare with";
    const Golden golden{"../data/golden/taesd_golden.safetensors"};
    const at::Tensor x = golden("x");
    const torch::NoGradGuard no_gradient;
    const std::map<std::string, double> psnr{
        {"taesd", 28.70}, {"taesdxl", 29.44}, {"taesd3", 33.06}, {"taef1", 30.86}, {"taef2", 32.90}};
    for (const auto& [name, decibels] : psnr) {
        AutoencoderTiny model{models::autoencoder_tiny_named(name)};
        load_upstream(model, name, "encoder");
        load_upstream(model, name, "decoder");
        const at::Tensor z = golden("z." + name), y = golden("y." + name);
        const at::Tensor latents = model.encode(x * 2 - 1);
        // 40 convolutions of oneDNN, one after the other: on a CPU without AVX-512 they are 1.4e-5 away, and so are PyTorch's.
        EXPECT_LT((latents - z).abs().max().item<double>(), 2e-5 * z.abs().max().item<double>()) << name;
        const at::Tensor decoded = (model.decode(z) + 1) / 2;
        EXPECT_LT((decoded - y).abs().max().item<double>(), 1e-5 * y.abs().max().item<double>()) << name;
        const double error = ((model.decode(latents) + 1) / 2).clamp(0, 1).sub(x).square().mean().item<double>();
        EXPECT_NEAR(-10 * std::log10(error), decibels, 0.01) << name;

        const at::Tensor tiled = (model.decode(z, {8, 4}) + 1) / 2;
        const double tile_error = (tiled - y).square().mean().item<double>();
        EXPECT_GT(-10 * std::log10(tile_error), 25.0) << name;
        RecordProperty(name + "_tiles_of_8_by_4_psnr", std::to_string(-10 * std::log10(tile_error)));

        model.to(at::kBFloat16);
        const double bf16_error =
            ((model.decode(model.encode(x * 2 - 1)).to(at::kFloat) + 1) / 2).sub(y).square().mean().item<double>();
        EXPECT_GT(-10 * std::log10(bf16_error), 35.0) << name;
    }
}

TEST(AutoencoderTiny, PoolsAreInTheBlocksOfTheCoarsestResolution) {
    AutoencoderTinyOptions options = narrow();
    options.coarse_pools = true;
    const AutoencoderTiny model{options};
    std::vector<std::string> pools;
    for (const auto& parameter : model.named_parameters())
        if (parameter.key().ends_with("pool.0.weight")) pools.push_back(parameter.key());
    EXPECT_EQ(pools, (std::vector<std::string>{"encoder.layers.11.pool.0.weight", "encoder.layers.12.pool.0.weight",
                                               "encoder.layers.13.pool.0.weight", "decoder.layers.2.pool.0.weight",
                                               "decoder.layers.3.pool.0.weight", "decoder.layers.4.pool.0.weight"}));
}

TEST(AutoencoderTiny, DecodesInTilesNearlyAsAWhole) {
    torch::manual_seed(1);
    AutoencoderTiny model{narrow()};
    const torch::NoGradGuard no_gradient;
    const at::Tensor z = at::randn({1, 4, 40, 24});
    const at::Tensor whole = model.decode(z);
    EXPECT_LT((model.decode(z, {24, 12}) - whole).abs().max().item<double>(), 0.02 * whole.abs().max().item<double>());
}

std::filesystem::path config_of(const std::string& text) {
    const std::filesystem::path file = std::filesystem::path{testing::TempDir()} / "autoencoder_tiny_config.json";
    std::ofstream{file} << text;
    return file;
}

TEST(AutoencoderTiny, ReadsItsConfig) {
    const AutoencoderTinyOptions options = models::read_autoencoder_tiny(config_of(R"({
        "_class_name": "AutoencoderTiny", "act_fn": "relu", "in_channels": 3, "out_channels": 3, "latent_channels": 16,
        "encoder_block_out_channels": [64, 64, 64, 64], "decoder_block_out_channels": [64, 64, 64, 64],
        "num_encoder_blocks": [1, 3, 3, 3], "num_decoder_blocks": [3, 3, 3, 1], "latent_magnitude": 3,
        "latent_shift": 0.5,
        "upsampling_scaling_factor": 2, "upsample_fn": "nearest", "force_upcast": false, "scaling_factor": 1.0,
        "shift_factor": 0.0})"));
    EXPECT_EQ(options.latent_channels, 16);
    EXPECT_EQ(options.width, 64);
    EXPECT_EQ(options.decoder_blocks, (std::vector<std::int64_t>{3, 3, 3, 1}));
    EXPECT_EQ(AutoencoderTiny{options}.pixels_per_latent(), 8);
}

TEST(AutoencoderTiny, RefusesAConfigWithAllThatIsWrongInIt) {
    try {
        static_cast<void>(models::read_autoencoder_tiny(config_of(R"({
            "act_fn": "silu", "encoder_block_out_channels": [64, 32, 64, 64], "num_decoder_blocks": [3, 3, 1],
            "upsample_fn": "bilinear", "scaling_factor": 0, "mystery": 1})")));
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), Errc::bad_model_config);
        for (const char* const part : {"'act_fn'", "different widths", "'num_decoder_blocks' has 3", "'upsample_fn'",
                                       "'scaling_factor' is 0", "'mystery' is not known"})
            EXPECT_NE(error.problem().find(part), std::string::npos) << part << " in " << error.problem();
    }
}

TEST(AutoencoderTiny, KnowsUpstreamsNames) {
    EXPECT_EQ(AutoencoderTiny::name_of_upstream("encoder", "3.conv.0.weight"), "encoder.layers.3.conv.0.weight");
    EXPECT_EQ(AutoencoderTiny::name_of_upstream("decoder", "19.bias"), "decoder.layers.18.bias");
    EXPECT_EQ(AutoencoderTiny::name_of_upstream("decoder", "decoder.layers.0.bias"), "decoder.layers.0.bias");
}

TEST(AutoencoderTiny, RefusesANameThatIsNoneOfTheFamily) {
    try {
        static_cast<void>(models::autoencoder_tiny_named("taexl"));
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), Errc::bad_value);
        EXPECT_NE(error.fix().find("taef2"), std::string::npos);
    }
}

}  // namespace
