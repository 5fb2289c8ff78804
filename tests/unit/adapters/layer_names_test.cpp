#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <strata/adapters/adapter_match.hpp>
#include <strata/adapters/layer_names.hpp>
#include <strata/core/error.hpp>

#include "../../support/temporary_folder.hpp"

namespace {

using strata::adapters::LayerNames;
using strata::adapters::ModelPart;
using strata::adapters::NamedLayer;

const std::string q = ".transformer_blocks.0.attn1.to_q";

std::vector<NamedLayer> layers_of(const std::vector<std::string>& paths) {
    std::vector<NamedLayer> layers;
    for (const std::string& path : paths) layers.push_back({path, {8, 8}});
    return layers;
}
/// The one layer that files call this. Empty: none, or several.
std::string layer_of(const LayerNames& names, const std::string& in_file) {
    const auto& places = names.find(in_file);
    return places.size() == 1 ? names.layers()[places.front().layer].path : std::string{};
}

TEST(LayerNames, ALayerHasTheNamesOfDiffusersPeftAndKohya) {
    const LayerNames names{layers_of({"down_blocks.0.attentions.1" + q, "down_blocks.0.attentions.1.proj_in",
                                      "mid_block.attentions.0.transformer_blocks.0.attn2.to_out.0"}),
                           ModelPart::unet};
    const std::string path = "down_blocks.0.attentions.1" + q;
    for (const char* prefix : {"", "unet.", "base_model.model.", "diffusion_model."})
        EXPECT_EQ(layer_of(names, prefix + path), path) << prefix;
    EXPECT_EQ(layer_of(names, "lora_unet_down_blocks_0_attentions_1_transformer_blocks_0_attn1_to_q"), path);
    EXPECT_EQ(layer_of(names, "lycoris_down_blocks_0_attentions_1_proj_in"), "down_blocks.0.attentions.1.proj_in");
    EXPECT_EQ(layer_of(names, "unet.down_blocks.0.attentions.1.transformer_blocks.0.attn1.processor.to_q"), path);
    EXPECT_EQ(layer_of(names, "mid_block.attentions.0.transformer_blocks.0.attn2.processor.to_out"),
              "mid_block.attentions.0.transformer_blocks.0.attn2.to_out.0");
    EXPECT_EQ(layer_of(names, "transformer." + path), "");
    EXPECT_TRUE(names.is_of_another_part("text_encoder.text_model.encoder.layers.0.self_attn.q_proj"));
    EXPECT_TRUE(names.is_of_another_part("lora_te1_text_model_encoder_layers_0_self_attn_q_proj"));
    EXPECT_FALSE(names.is_of_another_part("lora_unet_no_such_layer"));
}

/// A file without prefixes, of the denoiser alone, is nothing that an encoder would have to know.
TEST(LayerNames, BareNamesOfADenoiserAreNoneOfAnEncoder) {
    const LayerNames names{layers_of({"text_model.encoder.layers.0.self_attn.q_proj"}), ModelPart::text_encoder};
    for (const char* of_another : {"down_blocks.0.attentions.1.proj_in", "transformer_blocks.0.attn.to_q",
                                   "base_model.model.single_transformer_blocks.0.proj_mlp", "lora_unet_conv_in",
                                   "lora_te2_text_model_encoder_layers_0_mlp_fc1", "lycoris_mid_block_conv"})
        EXPECT_TRUE(names.is_of_another_part(of_another)) << of_another;
    for (const char* unknown : {"text_model.no_such_layer", "lora_te1_no_such_layer", "text_encoder.no_such_layer",
                                "base_model.model.text_model.no_such_layer"})
        EXPECT_FALSE(names.is_of_another_part(unknown)) << unknown;
}

TEST(LayerNames, UnetsHaveTheNamesOfTheirFirstCode) {
    std::vector<std::string> paths{"conv_in", "time_embedding.linear_2", "add_embedding.linear_1"};
    for (const char* block : {"0", "1", "2"}) {  // as SDXL's: attention in the lower two
        const std::string down = std::string{"down_blocks."} + block;
        const std::string up = std::string{"up_blocks."} + block;
        for (const char* layer : {"0", "1", "2"}) {
            paths.push_back(up + ".resnets." + layer + ".conv_shortcut");
            if (*block != '2') paths.push_back(up + ".attentions." + layer + q);
            if (*layer == '2') continue;
            paths.push_back(down + ".resnets." + layer + ".conv1");
            if (*block != '0') paths.push_back(down + ".attentions." + layer + q);
        }
        if (*block != '2') paths.insert(paths.end(), {down + ".downsamplers.0.conv", up + ".upsamplers.0.conv"});
    }
    for (const char* inside : {"mid_block.resnets.0.conv1", "mid_block.resnets.1.time_emb_proj"})
        paths.push_back(inside);
    paths.push_back("mid_block.attentions.0" + q);
    const LayerNames names{layers_of(paths), ModelPart::unet};
    const std::vector<std::pair<std::string, std::string>> pairs{
        {"input_blocks_0_0", "conv_in"},
        {"time_embed_2", "time_embedding.linear_2"},
        {"label_emb_0_0", "add_embedding.linear_1"},
        {"input_blocks_1_0_in_layers_2", "down_blocks.0.resnets.0.conv1"},
        {"input_blocks_3_0_op", "down_blocks.0.downsamplers.0.conv"},
        {"input_blocks_4_1_transformer_blocks_0_attn1_to_q", "down_blocks.1.attentions.0" + q},
        {"input_blocks_8_1_transformer_blocks_0_attn1_to_q", "down_blocks.2.attentions.1" + q},
        {"middle_block_0_in_layers_2", "mid_block.resnets.0.conv1"},
        {"middle_block_1_transformer_blocks_0_attn1_to_q", "mid_block.attentions.0" + q},
        {"middle_block_2_emb_layers_1", "mid_block.resnets.1.time_emb_proj"},
        {"output_blocks_0_1_transformer_blocks_0_attn1_to_q", "up_blocks.0.attentions.0" + q},
        {"output_blocks_2_2_conv", "up_blocks.0.upsamplers.0.conv"},
        {"output_blocks_5_1_transformer_blocks_0_attn1_to_q", "up_blocks.1.attentions.2" + q},
        {"output_blocks_8_0_skip_connection", "up_blocks.2.resnets.2.conv_shortcut"}};
    for (const auto& [theirs, ours] : pairs) EXPECT_EQ(layer_of(names, "lora_unet_" + theirs), ours) << theirs;
    EXPECT_EQ(layer_of(names, "diffusion_model.input_blocks.4.1" + q), "down_blocks.1.attentions.0" + q);
}

TEST(LayerNames, AnUpBlockWithoutAttentionDoublesOnePlaceEarlier) {
    const LayerNames names{
        layers_of({"down_blocks.0.resnets.0.conv1", "down_blocks.0.resnets.1.conv1", "up_blocks.0.upsamplers.0.conv"}),
        ModelPart::unet};
    EXPECT_EQ(layer_of(names, "lora_unet_output_blocks_2_1_conv"), "up_blocks.0.upsamplers.0.conv");
}

TEST(LayerNames, LayersOfFluxAreRowsOfItsFirstOnes) {
    const std::string one = "single_transformer_blocks.3.";
    const std::vector<NamedLayer> layers{{"transformer_blocks.0.attn.to_q", {8, 8}},
                                         {"transformer_blocks.0.attn.to_k", {8, 8}},
                                         {"transformer_blocks.0.attn.to_v", {8, 8}},
                                         {one + "attn.to_q", {8, 8}},
                                         {one + "attn.to_k", {8, 8}},
                                         {one + "attn.to_v", {8, 8}},
                                         {one + "proj_mlp", {32, 8}},
                                         {one + "proj_out", {8, 40}},
                                         {"norm_out.linear", {16, 8}},
                                         {"proj_out", {4, 8}}};
    const LayerNames names{layers, ModelPart::transformer};
    const auto& qkv = names.find("lora_unet_double_blocks_0_img_attn_qkv");
    ASSERT_EQ(qkv.size(), 3);
    for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(qkv[i].layer, i);
        EXPECT_EQ(qkv[i].first_row, static_cast<std::int64_t>(8 * i));
        EXPECT_EQ(qkv[i].rows, 24);
    }
    const auto& first = names.find("diffusion_model.single_blocks.3.linear1");
    ASSERT_EQ(first.size(), 4);
    EXPECT_EQ(first[3].first_row, 24);
    EXPECT_EQ(first[3].rows, 56);
    EXPECT_EQ(layer_of(names, "lora_unet_single_blocks_3_linear2"), one + "proj_out");
    EXPECT_EQ(layer_of(names, "lora_unet_final_layer_linear"), "proj_out");
    ASSERT_EQ(names.find("lora_unet_final_layer_adaLN_modulation_1").size(), 1);
    EXPECT_TRUE(names.find("lora_unet_final_layer_adaLN_modulation_1").front().halves_swapped);
    EXPECT_FALSE(names.find("transformer.norm_out.linear").front().halves_swapped);
    EXPECT_EQ(layer_of(names, "lora_transformer_transformer_blocks_0_attn_to_q"), "transformer_blocks.0.attn.to_q");
}

TEST(LayerNames, TextEncodersAreToldApartByTheirPart) {
    const std::string path = "text_model.encoder.layers.0.self_attn.q_proj";
    const LayerNames first{layers_of({path}), ModelPart::text_encoder};
    const LayerNames second{layers_of({path}), ModelPart::text_encoder_2};
    for (const char* name : {"lora_te_text_model_encoder_layers_0_self_attn_q_proj",
                             "lora_te1_text_model_encoder_layers_0_self_attn_q_proj",
                             "text_encoder.text_model.encoder.layers.0.self_attn.to_q"}) {
        EXPECT_EQ(layer_of(first, name), path) << name;
        EXPECT_EQ(layer_of(second, name), "") << name;
        EXPECT_TRUE(second.is_of_another_part(name)) << name;
    }
    EXPECT_EQ(layer_of(second, "lora_te2_text_model_encoder_layers_0_self_attn_q_proj"), path);
    EXPECT_TRUE(first.is_of_another_part("text_encoder_2.text_model.encoder.layers.0.self_attn.q_proj"));
}

TEST(LayerNames, APartIsToldByItsLayers) {
    EXPECT_EQ(part_of(layers_of({"conv_in", "down_blocks.0.resnets.0.conv1"})), ModelPart::unet);
    EXPECT_EQ(part_of(layers_of({"text_model.encoder.layers.0.mlp.fc1"})), ModelPart::text_encoder);
    EXPECT_EQ(part_of(layers_of({"encoder.block.0.layer.0.SelfAttention.q"})), ModelPart::text_encoder_2);
    EXPECT_EQ(part_of(layers_of({"net.0"})), ModelPart::transformer);
}

TEST(LayerNames, NumbersFollowTheListOfModulesOfThatLibrary) {
    const auto block = [](const std::string& at, std::vector<std::string>& paths) {
        // in this library's order, which is not theirs
        for (const char* layer : {"attn1.to_q", "attn1.to_k", "attn1.to_v", "attn1.to_out.0", "attn2.to_q",
                                  "attn2.to_k", "attn2.to_v", "attn2.to_out.0", "ff.net.0.proj", "ff.net.2"})
            paths.push_back(at + ".transformer_blocks.0." + layer);
    };
    std::vector<std::string> paths{"down_blocks.0.resnets.0.conv1", "down_blocks.0.attentions.0.proj_in"};
    block("down_blocks.0.attentions.0", paths);
    block("mid_block.attentions.0", paths);
    block("up_blocks.1.attentions.0", paths);
    const std::vector<NamedLayer> layers = layers_of(paths);
    const std::vector<std::string> classes{"CrossAttention", "Attention", "GEGLU"};
    const auto named = [&](const std::vector<std::size_t>& order, std::size_t i) { return layers[order[i]].path; };

    const auto first = numbered_layers(layers, ModelPart::unet, classes, true);
    ASSERT_EQ(first.size(), 27);
    EXPECT_EQ(named(first, 3), "down_blocks.0.attentions.0.transformer_blocks.0.attn1.to_out.0");
    EXPECT_EQ(named(first, 4), "down_blocks.0.attentions.0.transformer_blocks.0.ff.net.0.proj");
    EXPECT_EQ(named(first, 5), "down_blocks.0.attentions.0.transformer_blocks.0.attn2.to_q");
    EXPECT_EQ(named(first, 9), "up_blocks.1.attentions.0" + q);
    EXPECT_EQ(named(first, 18), "mid_block.attentions.0" + q);
    const auto last = numbered_layers(layers, ModelPart::unet, classes, false);
    EXPECT_EQ(named(last, 4), "down_blocks.0.attentions.0.transformer_blocks.0.attn2.to_q");
    EXPECT_EQ(named(last, 8), "down_blocks.0.attentions.0.transformer_blocks.0.ff.net.0.proj");
    EXPECT_EQ(numbered_layers(layers, ModelPart::unet, {"GEGLU"}, true).size(), 3);

    const std::vector<NamedLayer> clip =
        layers_of({"text_model.encoder.layers.10.self_attn.q_proj", "text_model.encoder.layers.2.self_attn.q_proj",
                   "text_model.encoder.layers.2.self_attn.k_proj", "text_model.encoder.layers.2.mlp.fc1"});
    EXPECT_EQ(numbered_layers(clip, ModelPart::text_encoder, {"CLIPAttention"}, true),
              (std::vector<std::size_t>{2, 1, 0}));
    const strata_test::Thrown error = strata_test::thrown_by(
        [&] { static_cast<void>(numbered_layers(layers, ModelPart::unet, {"ResnetBlock2D"}, true)); });
    EXPECT_EQ(error.code, strata::Errc::bad_adapter_file);
    EXPECT_TRUE(error.says("of the classes ResnetBlock2D")) << error.message;
}

}  // namespace
