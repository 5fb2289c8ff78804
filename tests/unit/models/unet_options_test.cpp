// UnetOptions: the config.json of the two known models, what is refused, and how many parameters follow.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <strata/core/error.hpp>
#include <strata/models/unet_options.hpp>
#include <strata/storage/safetensors.hpp>

namespace {

using namespace strata::models;

UnetOptions read(const std::string& json) {
    return unet_options_of(strata::config::parse_json(json, "config.json", strata::config::JsonDialect::strict));
}

std::string refusal_of(const std::string& json) {
    try {
        read(json);
    } catch (const strata::Error& error) {
        EXPECT_EQ(error.code(), strata::Errc::bad_model_config) << error.what();
        return error.what();
    }
    return "accepted";
}

/// The keys of SDXL's file, with values in place of some.
std::string sdxl_with(const std::map<std::string, std::string>& others) {
    std::map<std::string, std::string> keys{
        {"_class_name", R"("UNet2DConditionModel")"},
        {"_diffusers_version", R"("0.19.0.dev0")"},
        {"act_fn", R"("silu")"},
        {"addition_embed_type", R"("text_time")"},
        {"addition_embed_type_num_heads", "64"},
        {"addition_time_embed_dim", "256"},
        {"attention_head_dim", "[5, 10, 20]"},
        {"block_out_channels", "[320, 640, 1280]"},
        {"center_input_sample", "false"},
        {"class_embed_type", "null"},
        {"conv_in_kernel", "3"},
        {"cross_attention_dim", "2048"},
        {"down_block_types", R"(["DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"])"},
        {"downsample_padding", "1"},
        {"flip_sin_to_cos", "true"},
        {"freq_shift", "0"},
        {"in_channels", "4"},
        {"layers_per_block", "2"},
        {"mid_block_scale_factor", "1"},
        {"norm_eps", "1e-05"},
        {"norm_num_groups", "32"},
        {"num_attention_heads", "null"},
        {"out_channels", "4"},
        {"projection_class_embeddings_input_dim", "2816"},
        {"resnet_out_scale_factor", "1.0"},
        {"sample_size", "128"},
        {"transformer_layers_per_block", "[1, 2, 10]"},
        {"up_block_types", R"(["CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"])"},
        {"upcast_attention", "null"},
        {"use_linear_projection", "true"},
    };
    for (const auto& [key, value] : others) keys[key] = value;
    std::string json;
    for (const auto& [key, value] : keys)
        if (!value.empty()) json += (json.empty() ? "{\"" : ", \"") + key + "\": " + value;
    return json + "}";
}

void expect_same(const UnetOptions& a, const UnetOptions& b) {
    const auto list = [](const UnetOptions& options) {
        std::vector<std::pair<std::string, std::vector<std::int64_t>>> all;
        for (const UnetParameter& parameter : unet_parameters(options))
            all.emplace_back(parameter.name, parameter.shape);
        return all;
    };
    EXPECT_EQ(list(a), list(b));
    for (std::size_t i = 0; i < std::min(a.levels.size(), b.levels.size()); ++i)
        EXPECT_EQ(a.levels[i].heads, b.levels[i].heads);
    EXPECT_EQ(a.norm_groups, b.norm_groups);
    EXPECT_EQ(a.norm_eps, b.norm_eps);
}

TEST(UnetOptions, TheKnownModelsHaveTheirPublishedNumberOfParameters) {
    EXPECT_EQ(unet_parameter_count(sdxl_unet_options()), 2'567'463'684);
    EXPECT_EQ(unet_parameter_count(sd15_unet_options()), 859'520'964);
}

TEST(UnetOptions, TheirFilesAreRead) {
    expect_same(read(sdxl_with({})), sdxl_unet_options());
    expect_same(read(R"({"_class_name": "UNet2DConditionModel", "act_fn": "silu", "attention_head_dim": 8,
        "block_out_channels": [320, 640, 1280, 1280], "center_input_sample": false, "cross_attention_dim": 768,
        "down_block_types": ["CrossAttnDownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D", "DownBlock2D"],
        "downsample_padding": 1, "flip_sin_to_cos": true, "freq_shift": 0, "in_channels": 4, "layers_per_block": 2,
        "mid_block_scale_factor": 1, "norm_eps": 1e-05, "norm_num_groups": 32, "out_channels": 4, "sample_size": 64,
        "up_block_types": ["UpBlock2D", "CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "CrossAttnUpBlock2D"]})"),
                sd15_unet_options());
}

/// A UNet2DConditionModel of which nothing is said has SD 1.5's blocks, and attends to tokens of 1280 numbers.
TEST(UnetOptions, WhatIsAbsentIsAsTheClassHasIt) {
    UnetOptions expected = sd15_unet_options();
    expected.cross_attention_dim = 1280;
    expect_same(read("{}"), expected);
    expect_same(read(R"({"attention_head_dim": null, "block_out_channels": null, "cross_attention_dim": null})"),
                expected);
    EXPECT_NE(refusal_of(R"({"block_out_channels": [320, 640]})").find("lacks down_block_types"), std::string::npos);
    EXPECT_NE(refusal_of(sdxl_with({{"up_block_types", ""}})).find("lacks up_block_types"), std::string::npos);
    expect_same(read(sdxl_with({{"only_cross_attention", "[false, false, false]"}})), sdxl_unet_options());
}

TEST(UnetOptions, NullIsNoDefaultWhereItMeansAnotherModel) {
    for (const char* const key : {"act_fn", "flip_sin_to_cos", "mid_block_type", "norm_num_groups"}) {
        const std::string message = refusal_of(sdxl_with({{key, "null"}}));
        EXPECT_NE(message.find(std::string{key} + " is null, which is no default"), std::string::npos) << message;
    }
    EXPECT_NE(refusal_of(sdxl_with({{"only_cross_attention", "[false, true, false]"}})).find("only_cross_attention"),
              std::string::npos);
}

TEST(UnetOptions, EverythingThatIsWrongIsToldAtOnce) {
    const std::string message = refusal_of(sdxl_with({{"act_fn", R"("mish")"},
                                                      {"attention_head_dim", "[5, 10]"},
                                                      {"addition_time_embed_dim", ""},
                                                      {"in_channels", "-4"},
                                                      {"num_class_embeds", "10"},
                                                      {"resnet_time_scale_shift", R"("scale_shift")"},
                                                      {"wavelets", "true"}}));
    for (const char* words : {"7 problems", "act_fn is \"mish\", and only \"silu\" is computed",
                              "attention_head_dim has 2 entries", "lacks addition_time_embed_dim", "in_channels is -4",
                              "num_class_embeds is 10", "resnet_time_scale_shift", "wavelets is a key that no U-Net"})
        EXPECT_NE(message.find(words), std::string::npos) << message << "\nlacks: " << words;
}

TEST(UnetOptions, WhatIsOfAnotherModelIsRefused) {
    const std::pair<std::map<std::string, std::string>, std::string> cases[] = {
        {{{"_class_name", R"("FluxTransformer2DModel")"}}, "_class_name is \"FluxTransformer2DModel\""},
        {{{"addition_embed_type", R"("image")"}}, "addition_embed_type is \"image\""},
        {{{"addition_time_embed_dim", ""}}, "lacks addition_time_embed_dim"},
        {{{"projection_class_embeddings_input_dim", "1536"}}, "leaves none for the pooled text"},
        {{{"block_out_channels", "[320, 640, 1300]"}}, "groups do not divide the channels of level 2"},
        {{{"block_out_channels", "640"}}, "block_out_channels is no list"},
        {{{"attention_head_dim", "[5, 10, 7]"}}, "heads do not divide the channels of level 2"},
        {{{"upcast_attention", "true"}}, "upcast_attention is true"},
        {{{"down_block_types", R"(["DownBlock2D", "CrossAttnDownBlock2D", "AttnDownBlock2D"])"}},
         "blocks are DownBlock2D or CrossAttnDownBlock2D"},
        {{{"up_block_types", R"(["UpBlock2D", "CrossAttnUpBlock2D", "CrossAttnUpBlock2D"])"}}, "the other way round"},
        {{{"norm_eps", "0"}}, "norm_eps is no number above 0"},
        {{{"use_linear_projection", "3"}}, "use_linear_projection is neither true nor false"},
    };
    for (const auto& [others, words] : cases) {
        const std::string message = refusal_of(sdxl_with(others));
        EXPECT_NE(message.find(words), std::string::npos) << message << "\nlacks: " << words;
        EXPECT_EQ(message.find("problems:"), std::string::npos) << message << " has more than one problem";
    }
    EXPECT_NE(refusal_of("[1]").find("is no object"), std::string::npos);
    try {
        (void)load_unet_options("/nowhere/config.json");
        FAIL() << "accepted";
    } catch (const strata::Error& error) {
        EXPECT_EQ(error.code(), strata::Errc::unreadable_config);
    }
}

/// A published adapter of SD 1.5 changes every linear layer of its attentions, and the first of each feed-forward.
TEST(UnetOptions, PublishedAdaptersFit) {
    const std::filesystem::path file =
        std::filesystem::path{STRATA_REFERENCE_DIR} / "data/weights/lora/analog_svd_rank4.safetensors";
    if (!std::filesystem::exists(file)) GTEST_SKIP() << file << " is not there: nothing to compare with";
    std::ifstream in(file, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    const auto header = strata::storage::parse_safetensors(std::as_bytes(std::span{text}));
    using Shape = std::pair<std::int64_t, std::int64_t>;  // out, in
    std::map<Shape, int> adapted, ours;
    for (const auto& tensor : header.tensors) {
        const std::string up = ":up";
        if (!tensor.name.starts_with("unet:") || !tensor.name.ends_with(up)) continue;
        const auto& down = header.at(tensor.name.substr(0, tensor.name.size() - up.size()) + ":down");
        ++adapted[{tensor.shape.at(0), down.shape.at(1)}];
    }
    for (const UnetParameter& parameter : unet_parameters(sd15_unet_options())) {
        const auto ends = [&](const char* end) { return parameter.name.ends_with(end); };
        if (ends("to_q.weight") || ends("to_k.weight") || ends("to_v.weight") || ends("to_out.0.weight") ||
            ends("ff.net.0.proj.weight"))
            ++ours[{parameter.shape.at(0), parameter.shape.at(1)}];
    }
    EXPECT_EQ(adapted, ours);
    EXPECT_FALSE(adapted.empty());
}

}  // namespace
