#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <strata/adapters/merge_adapter_file.hpp>
#include <strata/core/error.hpp>
#include <strata/weights/weight_files.hpp>
#include <strata/zero/in_units.hpp>

#include "../../support/adapter_files.hpp"
#include "../../support/temporary_folder.hpp"

namespace {

using namespace strata_test;
using strata::Errc;
using strata::adapters::AdapterFileOptions;
using strata::adapters::FileNaming;
using strata::adapters::merge_into;
using strata::adapters::ModelPart;

class MergeAdapterFile : public testing::Test {
protected:
    void SetUp() override { torch::manual_seed(5); }
    [[nodiscard]] std::filesystem::path file() const { return folder_.path() / "adapter.safetensors"; }
    /// Merges these tensors into layers; the layers' weights change.
    strata::adapters::MergedAdapterFile merge(const Tensors& layers, const Tensors& tensors, double strength = 1,
                                              const strata::storage::SafetensorsMetadata& metadata = {},
                                              const AdapterFileOptions& options = {}) {
        write_adapter(file(), tensors, metadata);
        return merge_into(weights_of(layers), file(), strength, options);
    }
    Thrown refused(const Tensors& layers, const Tensors& tensors, const AdapterFileOptions& options = {}) {
        return thrown_by([&] { merge(layers, tensors, 1, {}, options); });
    }
    TemporaryFolder folder_;
};

const std::string to_q = "down_blocks.0.attentions.0.transformer_blocks.0.attn1.to_q";
const std::string flat_q = "lora_unet_down_blocks_0_attentions_0_transformer_blocks_0_attn1_to_q";

bool are_close(const at::Tensor& a, const at::Tensor& b) { return torch::allclose(a, b, 1e-5, 1e-6); }

TEST_F(MergeAdapterFile, ALoraIsAddedUnderAnyName) {
    const at::Tensor base = torch::randn({6, 4}), down = torch::randn({2, 4}), up = torch::randn({6, 2});
    const at::Tensor alpha = torch::full({}, 5.0);
    const std::vector<std::pair<FileNaming, Tensors>> files{
        {FileNaming::peft, {{"unet." + to_q + ".lora_A.weight", down}, {"unet." + to_q + ".lora_B.weight", up}}},
        {FileNaming::peft,
         {{"base_model.model." + to_q + ".lora_A.default.weight", down},
          {"base_model.model." + to_q + ".lora_B.default.weight", up}}},
        {FileNaming::peft, {{"unet." + to_q + ".lora.down.weight", down}, {"unet." + to_q + ".lora.up.weight", up}}},
        {FileNaming::peft,
         {{"down_blocks.0.attentions.0.transformer_blocks.0.attn1.processor.to_q_lora.down.weight", down},
          {"down_blocks.0.attentions.0.transformer_blocks.0.attn1.processor.to_q_lora.up.weight", up}}},
        {FileNaming::kohya, {{flat_q + ".lora_down.weight", down}, {flat_q + ".lora_up.weight", up}}},
        {FileNaming::cloneofsimo, {{"unet:0:down", down}, {"unet:0:up", up}}}};
    for (const auto& [naming, tensors] : files) {
        for (const bool says_alpha : {false, true}) {
            if (says_alpha && naming == FileNaming::cloneofsimo) continue;
            const at::Tensor weight = base.clone();
            Tensors written = tensors;
            if (says_alpha) {
                const std::string& name = tensors.front().first;
                const std::string module = naming == FileNaming::kohya ? flat_q : name.substr(0, name.find(".lora"));
                if (module == name) continue;  // a processor's has no alpha beside it
                written.emplace_back(module + ".alpha", alpha);
            }
            const auto merged = merge({{to_q, weight}}, written, 0.5);
            EXPECT_EQ(merged.naming, naming);
            EXPECT_EQ(merged.layers, 1);
            const double scale = says_alpha ? 5.0 / 2 : 1;
            EXPECT_TRUE(are_close(weight, base + 0.5 * scale * up.mm(down))) << tensors.front().first << says_alpha;
        }
    }
}

TEST_F(MergeAdapterFile, PeftsMetadataSayAlpha) {
    const std::string to_k = "down_blocks.0.attentions.0.transformer_blocks.0.attn1.to_k";
    const at::Tensor down = torch::randn({4, 4}), up = torch::randn({4, 4});
    const Tensors tensors{{"unet." + to_q + ".lora_A.weight", down},
                          {"unet." + to_q + ".lora_B.weight", up},
                          {"unet." + to_k + ".lora_A.weight", down},
                          {"unet." + to_k + ".lora_B.weight", up}};
    const auto merged_with = [&](const std::string& json, const AdapterFileOptions& options = {}) {
        const Tensors layers{{to_q, torch::zeros({4, 4})}, {to_k, torch::zeros({4, 4})}};
        merge(layers, tensors, 1, {{"lora_adapter_metadata", json}}, options);
        const auto scale = [&](const at::Tensor& weight) {
            return (weight.norm() / up.mm(down).norm()).item<double>();
        };
        return std::pair{scale(layers[0].second), scale(layers[1].second)};
    };
    const auto [q, k] = merged_with(R"({"unet.r": 4, "unet.lora_alpha": 8, "unet.alpha_pattern": {"attn1.to_k": 2}})");
    EXPECT_NEAR(q, 2, 1e-5);
    EXPECT_NEAR(k, 0.5, 1e-5);
    EXPECT_NEAR(merged_with(R"({"unet.lora_alpha": 8, "unet.use_rslora": true})").first, 4, 1e-5);
    EXPECT_NEAR(merged_with(R"({"text_encoder.lora_alpha": 8})").first, 1, 1e-5);
    EXPECT_NEAR(merged_with("{}", {.alpha = 1.0}).first, 0.25, 1e-5);
    EXPECT_EQ(thrown_by([&] { merged_with("no json"); }).code, Errc::bad_adapter_file);
}

TEST_F(MergeAdapterFile, ConvolutionsHaveMatricesOfTheirShape) {
    const std::string conv = "down_blocks.0.resnets.0.conv1", projection = "down_blocks.0.attentions.0.proj_in";
    const at::Tensor down = torch::randn({2, 3, 3, 3}), up = torch::randn({5, 2, 1, 1});
    const at::Tensor weight = torch::zeros({5, 3, 3, 3}), of_1x1 = torch::zeros({5, 3, 1, 1});
    const at::Tensor linear_down = torch::randn({2, 3}), linear_up = torch::randn({5, 2});
    merge({{conv, weight}, {projection, of_1x1}}, {{"unet." + conv + ".lora_A.weight", down},
                                                   {"unet." + conv + ".lora_B.weight", up},
                                                   {"unet." + projection + ".lora_A.weight", linear_down},
                                                   {"unet." + projection + ".lora_B.weight", linear_up}});
    EXPECT_TRUE(are_close(weight, at::einsum("oi,iabc->oabc", {up.flatten(1), down})));
    EXPECT_TRUE(are_close(of_1x1.flatten(1), linear_up.mm(linear_down)));

    const at::Tensor with_core = torch::zeros({5, 3, 3, 3}), core = torch::randn({2, 2, 3, 3});
    const at::Tensor in = torch::randn({2, 3, 1, 1});
    merge({{conv, with_core}}, {{"lora_unet_down_blocks_0_resnets_0_conv1.lora_down.weight", in},
                                {"lora_unet_down_blocks_0_resnets_0_conv1.lora_up.weight", up},
                                {"lora_unet_down_blocks_0_resnets_0_conv1.lora_mid.weight", core}});
    // the three convolutions, one behind the other
    const at::Tensor x = torch::randn({1, 3, 6, 6});
    EXPECT_TRUE(
        torch::allclose(at::conv2d(x, with_core), at::conv2d(at::conv2d(at::conv2d(x, in), core), up), 1e-4, 1e-4));
}

TEST_F(MergeAdapterFile, DoraScalesRowsAndOlderFilesColumns) {
    const at::Tensor base = torch::randn({6, 4}), down = torch::randn({2, 4}), up = torch::randn({6, 2});
    const at::Tensor sum = base + up.mm(down), rows = torch::rand({6}) + 0.5, columns = torch::rand({4}) + 0.5;
    const at::Tensor by_rows = sum * (rows / sum.norm(2, 1)).unsqueeze(1);
    const at::Tensor by_columns = sum * (columns / sum.norm(2, 0)).unsqueeze(0);
    const auto merged = [&](const std::string& name, const at::Tensor& magnitude, double strength) {
        const at::Tensor weight = base.clone();
        const bool is_peft = name.starts_with("unet.");
        merge({{to_q, weight}},
              {{is_peft ? "unet." + to_q + ".lora_A.weight" : flat_q + ".lora_down.weight", down},
               {is_peft ? "unet." + to_q + ".lora_B.weight" : flat_q + ".lora_up.weight", up},
               {name, magnitude}},
              strength);
        return weight;
    };
    EXPECT_TRUE(are_close(merged("unet." + to_q + ".lora_magnitude_vector", rows, 1), by_rows));
    EXPECT_TRUE(
        are_close(merged("unet." + to_q + ".lora_magnitude_vector.weight", rows, 0.25), base.lerp(by_rows, 0.25)));
    EXPECT_TRUE(are_close(merged(flat_q + ".dora_scale", rows.unsqueeze(1), 1), by_rows));
    EXPECT_TRUE(are_close(merged(flat_q + ".dora_scale", columns.unsqueeze(0), 1), by_columns));
}

TEST_F(MergeAdapterFile, ALokrIsAKroneckerProduct) {
    const at::Tensor w1 = torch::randn({2, 2}), w2 = torch::randn({3, 4}), a = torch::randn({3, 2}),
                     b = torch::randn({2, 4});
    const std::string name = "lycoris_down_blocks_0_attentions_0_transformer_blocks_0_attn1_to_q";
    const at::Tensor whole = torch::zeros({6, 8}), in_parts = torch::zeros({6, 8});
    merge({{to_q, whole}}, {{name + ".lokr_w1", w1}, {name + ".lokr_w2", w2}, {name + ".alpha", torch::full({}, 7.0)}});
    EXPECT_TRUE(are_close(whole, at::kron(w1, w2)));  // alpha says nothing of whole factors
    merge({{to_q, in_parts}}, {{name + ".lokr_w1", w1},
                               {name + ".lokr_w2_a", a},
                               {name + ".lokr_w2_b", b},
                               {name + ".alpha", torch::full({}, 7.0)}});
    EXPECT_TRUE(are_close(in_parts, 3.5 * at::kron(w1, a.mm(b))));

    const std::string conv = "down_blocks.0.resnets.0.conv1", flat = "lora_unet_down_blocks_0_resnets_0_conv1";
    const at::Tensor weight = torch::zeros({6, 8, 3, 3}), flat_b = torch::randn({2, 4 * 9});
    merge({{conv, weight}}, {{flat + ".lokr_w1", w1}, {flat + ".lokr_w2_a", a}, {flat + ".lokr_w2_b", flat_b}});
    EXPECT_TRUE(are_close(weight, at::kron(w1.view({2, 2, 1, 1}), a.mm(flat_b).view({3, 4, 3, 3}))));
}

TEST_F(MergeAdapterFile, FusedLayersOfFluxAreCutByRows) {
    const std::string block = "transformer_blocks.0.attn.", theirs = "lora_unet_double_blocks_0_img_attn_qkv";
    const at::Tensor q = torch::zeros({4, 4}), k = torch::zeros({4, 4}), v = torch::zeros({4, 4}),
                     out = torch::zeros({6, 4});
    const at::Tensor down = torch::randn({2, 4}), up = torch::randn({12, 2}), last_up = torch::randn({6, 2});
    const auto merged = merge({{block + "to_q", q}, {block + "to_k", k}, {block + "to_v", v}, {"norm_out.linear", out}},
                              {{theirs + ".lora_down.weight", down},
                               {theirs + ".lora_up.weight", up},
                               {"lora_unet_final_layer_adaLN_modulation_1.lora_down.weight", down},
                               {"lora_unet_final_layer_adaLN_modulation_1.lora_up.weight", last_up},
                               {"lora_te1_text_model_encoder_layers_0_mlp_fc1.lora_down.weight", down},
                               {"lora_te1_text_model_encoder_layers_0_mlp_fc1.lora_up.weight", up}});
    EXPECT_EQ(merged.layers, 4);
    EXPECT_EQ(merged.of_other_parts, 1);
    EXPECT_TRUE(are_close(torch::cat({q, k, v}), up.mm(down)));
    EXPECT_TRUE(are_close(out, torch::cat({last_up.narrow(0, 3, 3), last_up.narrow(0, 0, 3)}).mm(down)));
}

TEST_F(MergeAdapterFile, XlabsProcessorsAreLayersOfFlux) {
    const std::string both = "transformer_blocks.0.attn.", one = "single_transformer_blocks.3.";
    const auto zeros = [] { return torch::zeros({4, 4}); };
    const at::Tensor q = zeros(), k = zeros(), v = zeros(), tq = zeros(), tk = zeros(), tv = zeros(), out = zeros(),
                     text_out = zeros(), sq = zeros(), sk = zeros(), sv = zeros(), last = torch::zeros({4, 20});
    const Tensors layers{
        {both + "to_q", q},        {both + "to_k", k},        {both + "to_v", v},       {both + "add_q_proj", tq},
        {both + "add_k_proj", tk}, {both + "add_v_proj", tv}, {both + "to_out.0", out}, {both + "to_add_out", text_out},
        {one + "attn.to_q", sq},   {one + "attn.to_k", sk},   {one + "attn.to_v", sv},  {one + "proj_out", last}};
    Tensors tensors;
    std::vector<at::Tensor> products;
    const auto add = [&](const std::string& name, std::int64_t rows, std::int64_t columns) {
        const at::Tensor down = torch::randn({2, columns}), up = torch::randn({rows, 2});
        tensors.emplace_back(name + ".down.weight", down);
        tensors.emplace_back(name + ".up.weight", up);
        products.push_back(up.mm(down));
    };
    add("double_blocks.0.processor.qkv_lora1", 12, 4);
    add("double_blocks.0.processor.qkv_lora2", 12, 4);
    add("double_blocks.0.processor.proj_lora1", 4, 4);
    add("double_blocks.0.processor.proj_lora2", 4, 4);
    add("single_blocks.3.processor.qkv_lora", 12, 4);
    add("single_blocks.3.processor.proj_lora", 4, 20);
    EXPECT_EQ(merge(layers, tensors).layers, 12);
    EXPECT_TRUE(are_close(torch::cat({q, k, v}), products[0]));
    EXPECT_TRUE(are_close(torch::cat({tq, tk, tv}), products[1]));
    EXPECT_TRUE(are_close(out, products[2]));
    EXPECT_TRUE(are_close(text_out, products[3]));
    EXPECT_TRUE(are_close(torch::cat({sq, sk, sv}), products[4]));
    EXPECT_TRUE(are_close(last, products[5]));
}

TEST_F(MergeAdapterFile, WhatDoesNotFitIsOneErrorAndNothingChanges) {
    const at::Tensor weight = torch::zeros({6, 4}), down = torch::randn({2, 4}), up = torch::randn({6, 2});
    const std::string other = "down_blocks.0.attentions.7.transformer_blocks.0.attn1.to_q";
    const std::string to_k = "down_blocks.0.attentions.0.transformer_blocks.0.attn1.to_k";
    const std::string to_v = "down_blocks.0.attentions.0.transformer_blocks.0.attn1.to_v";
    const Tensors layers{{to_q, weight}, {to_k, torch::zeros({6, 5})}, {to_v, torch::zeros({6, 4})}};
    const Thrown error = refused(layers, {{"unet." + to_q + ".lora_A.weight", down},
                                          {"unet." + to_q + ".lora_B.weight", up},
                                          {"unet." + other + ".lora_A.weight", down},
                                          {"unet." + other + ".lora_B.weight", up},
                                          {"unet." + to_k + ".lora_A.weight", down},
                                          {"unet." + to_k + ".lora_B.weight", up},
                                          {"unet." + to_v + ".lora_A.weight", down},
                                          {"unet." + to_q + ".hada_w1_a", down}});
    EXPECT_EQ(error.code, Errc::adapter_does_not_fit);
    EXPECT_TRUE(error.says("(peft names)")) << error.message;
    EXPECT_TRUE(error.says("1 layers that the model does not have: unet." + other)) << error.message;
    EXPECT_TRUE(error.says("1 tensors that are of no LoRA, DoRA or LoKr: unet." + to_q + ".hada_w1_a"))
        << error.message;
    EXPECT_TRUE(
        error.says("'unet." + to_k + "' has down (2, 4) and up (6, 2), and the layer " + to_k + " a weight (6, 5)"))
        << error.message;
    EXPECT_TRUE(error.says("'unet." + to_v + "' has a down matrix and no up")) << error.message;
    EXPECT_TRUE(error.says("the model's nearest layers are " + to_q)) << error.message;
    EXPECT_EQ(weight.abs().max().item<float>(), 0);

    const Tensors left{{"unet." + to_q + ".lora_A.weight", down},
                       {"unet." + to_q + ".lora_B.weight", up},
                       {"unet." + other + ".lora_A.weight", down},
                       {"unet." + other + ".lora_B.weight", up}};
    EXPECT_EQ(
        merge(layers, left, 1, {}, {.may_be_left = [&](std::string_view name) { return name == "unet." + other; }})
            .layers,
        1);
    Tensors twice = left;
    twice.resize(2);
    twice.emplace_back(to_q + ".lora_A.weight", down);
    twice.emplace_back(to_q + ".lora_B.weight", up);
    EXPECT_TRUE(refused(layers, twice).says("are both the layer " + to_q));
    EXPECT_TRUE(refused(layers, {{"text_encoder.x.lora_A.weight", down}, {"text_encoder.x.lora_B.weight", up}})
                    .says("it has nothing for the unet, and 1 adapters for other models"));
    EXPECT_EQ(refused(layers, {{to_q + ".weight", weight}}).code, Errc::bad_adapter_file);
    EXPECT_EQ(thrown_by([&] { merge(layers, left, std::nan("")); }).code, Errc::bad_value);
}

TEST_F(MergeAdapterFile, PeftsOwnFolderHasItsConfigurationBeside) {
    const at::Tensor down = torch::randn({4, 6}), up = torch::randn({6, 4});
    const auto folder = folder_.path() / "style";
    std::filesystem::create_directories(folder);
    write_adapter(folder / "adapter_model.safetensors", {{"base_model.model." + to_q + ".lora_A.weight", down},
                                                         {"base_model.model." + to_q + ".lora_B.weight", up}});
    const auto scale_with = [&](const std::string& config) {
        std::ofstream{folder / "adapter_config.json"} << config;
        const at::Tensor weight = torch::zeros({6, 6});
        EXPECT_EQ(merge_into(weights_of({{to_q, weight}}), folder, 1).layers, 1);
        return (weight.norm() / up.mm(down).norm()).item<double>();
    };
    EXPECT_NEAR(scale_with(R"({"peft_type": "LORA", "r": 4, "lora_alpha": 8})"), 2, 1e-5);
    // PEFT's rule is the first pattern that fits, as the file has them
    EXPECT_NEAR(scale_with(R"({"lora_alpha": 8, "alpha_pattern": {"to_q": 2, "attn1.to_q": 12}})"), 0.5, 1e-5);
    EXPECT_NEAR(scale_with(R"({"lora_alpha": 8, "alpha_pattern": {"^to_q": 2, "attn\\d.to_q": 12}})"), 3, 1e-5);
    EXPECT_NEAR(scale_with(R"({"lora_alpha": 8, "use_rslora": true})"), 4, 1e-5);
    for (const char* wrong : {R"({"peft_type": "LOHA"})", "[]", "{"})
        EXPECT_EQ(thrown_by([&] { scale_with(wrong); }).code, Errc::bad_adapter_file) << wrong;
}

TEST_F(MergeAdapterFile, AlphasMayBeWholeNumbersAndAnyFloatIsRead) {
    const at::Tensor down = torch::randn({2, 4}), up = torch::randn({6, 2});
    for (const at::ScalarType type : {at::kFloat, at::kHalf, at::kBFloat16, at::kDouble}) {
        const at::Tensor weight = torch::zeros({6, 4});
        merge({{to_q, weight}}, {{flat_q + ".lora_down.weight", down.to(type)},
                                 {flat_q + ".lora_up.weight", up.to(type)},
                                 {flat_q + ".alpha", torch::full({}, 6, at::kLong)}});
        EXPECT_TRUE(are_close(weight, 3 * up.to(type).to(at::kFloat).mm(down.to(type).to(at::kFloat)))) << type;
    }
}

TEST_F(MergeAdapterFile, ValuesThatAreNoNumbersAreAllNamed) {
    const at::Tensor weight = torch::zeros({6, 4}), down = torch::randn({2, 4}), up = torch::randn({6, 2});
    at::Tensor diverged = up.clone(), overflown = down.clone();
    diverged[5][1] = std::nan("");
    overflown[0][0] = std::numeric_limits<float>::infinity();
    const Thrown error = refused({{to_q, weight}}, {{flat_q + ".lora_down.weight", overflown},
                                                    {flat_q + ".lora_up.weight", diverged.to(at::kBFloat16)},
                                                    {flat_q + ".alpha", torch::full({}, std::nan(""))}});
    EXPECT_EQ(error.code, Errc::bad_adapter_file);
    EXPECT_TRUE(error.says("3 tensors with NaN or infinity in them: " + flat_q + ".lora_down.weight, " + flat_q +
                           ".lora_up.weight, " + flat_q + ".alpha"))
        << error.message;
    EXPECT_EQ(weight.abs().max().item<float>(), 0);
}

TEST_F(MergeAdapterFile, OneMatrixUnderTwoNamesIsRefused) {
    const at::Tensor down = torch::randn({2, 4}), up = torch::randn({6, 2});
    const Thrown error = refused({{to_q, torch::zeros({6, 4})}}, {{"unet." + to_q + ".lora_A.weight", down},
                                                                  {"unet." + to_q + ".lora.down.weight", down * 2},
                                                                  {"unet." + to_q + ".lora_B.weight", up}});
    EXPECT_EQ(error.code, Errc::adapter_does_not_fit);
    EXPECT_TRUE(error.says("'unet." + to_q + ".lora_A.weight' is there under another name, too") ||
                error.says("'unet." + to_q + ".lora.down.weight' is there under another name, too"))
        << error.message;
}

TEST_F(MergeAdapterFile, OtherKindsAreCalledByTheirNames) {
    const at::Tensor a = torch::randn({6, 2}), b = torch::randn({2, 4});
    const Tensors layers{{to_q, torch::zeros({6, 4})}};
    const Thrown whole = refused(layers, {{flat_q + ".hada_w1_a", a}, {flat_q + ".hada_w1_b", b}});
    EXPECT_EQ(whole.code, Errc::bad_adapter_file);
    EXPECT_TRUE(whole.says("they are of another kind, LoHa")) << whole.message;
    const Thrown some = refused(layers, {{flat_q + ".lora_down.weight", b},
                                         {flat_q + ".lora_up.weight", a},
                                         {flat_q + ".a1.weight", a},
                                         {flat_q + ".diff_b", a}});
    EXPECT_EQ(some.code, Errc::adapter_does_not_fit);
    EXPECT_TRUE(some.says("2 tensors that are of no LoRA, DoRA or LoKr") && some.says("(GLoRA, whole difference)"))
        << some.message;
}

TEST_F(MergeAdapterFile, AnEncodersAdaptersInPeftsNamesAreForAnotherModel) {
    const at::Tensor down = torch::randn({2, 4}), up = torch::randn({6, 2});
    const std::string encoder = "base_model.model.text_model.encoder.layers.0.self_attn.q_proj";
    const auto merged = merge({{to_q, torch::zeros({6, 4})}}, {{"base_model.model." + to_q + ".lora_A.weight", down},
                                                               {"base_model.model." + to_q + ".lora_B.weight", up},
                                                               {encoder + ".lora_A.weight", down},
                                                               {encoder + ".lora_B.weight", up}});
    EXPECT_EQ(merged.layers, 1);
    EXPECT_EQ(merged.of_other_parts, 1);
}

TEST_F(MergeAdapterFile, SeveralFilesMayBeMergedInAnyOrder) {
    const at::Tensor base = torch::randn({6, 4});
    const auto style = folder_.path() / "style.safetensors", subject = folder_.path() / "subject.safetensors";
    write_adapter(style, {{flat_q + ".lora_down.weight", torch::randn({2, 4})},
                          {flat_q + ".lora_up.weight", torch::randn({6, 2})}});
    write_adapter(subject, {{"unet." + to_q + ".lora_A.weight", torch::randn({3, 4})},
                            {"unet." + to_q + ".lora_B.weight", torch::randn({6, 3})}});
    const at::Tensor one = base.clone(), other = base.clone();
    merge_into(weights_of({{to_q, one}}), style, 0.8);
    merge_into(weights_of({{to_q, one}}), subject, -0.5);
    merge_into(weights_of({{to_q, other}}), subject, -0.5);
    merge_into(weights_of({{to_q, other}}), style, 0.8);
    EXPECT_LT((one - other).abs().max().item<double>(), 1e-6);
    EXPECT_GT((one - base).abs().max().item<double>(), 0.1);
}

struct Block : torch::nn::Module {
    explicit Block(std::int64_t width)
        : to_q{register_module("to_q", torch::nn::Linear(width, width))},
          conv{register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(width, width, 3)))} {}
    torch::Tensor forward(const torch::Tensor& x) { return to_q(x); }
    torch::nn::Linear to_q;
    torch::nn::Conv2d conv;
};
struct Model : torch::nn::Module {
    explicit Model(at::ScalarType type = at::kFloat) {
        torch::manual_seed(3);
        first = register_module("first", std::make_shared<strata::Unit<Block>>(8));
        head = register_module("head", torch::nn::Linear(8, 8));
        if (type != at::kFloat) to(type);
    }
    std::shared_ptr<strata::Unit<Block>> first;
    torch::nn::Linear head{nullptr};
};

TEST_F(MergeAdapterFile, UnitsWithoutMemoryGetTheBitsOfThoseWithIt) {
    const at::Tensor down = torch::randn({2, 8}), up = torch::randn({8, 2});
    write_adapter(file(), {{"transformer.first.to_q.lora_A.weight", down},
                           {"transformer.first.to_q.lora_B.weight", up},
                           {"transformer.first.to_q.lora_magnitude_vector", torch::rand({8})},
                           {"transformer.first.conv.lokr_w1", torch::randn({2, 2})},
                           {"transformer.first.conv.lokr_w2", torch::randn({4, 4, 3, 3})},
                           {"transformer.head.lora_A.weight", down},
                           {"transformer.head.lora_B.weight", up}});
    Model at_once;
    EXPECT_EQ(strata::adapters::merge_adapter_file(at_once, file(), 0.7).layers, 3);
    const auto in_units = strata::in_units([] { return std::make_shared<Model>(); });
    EXPECT_EQ(strata::adapters::merge_adapter_file(*in_units, file(), 0.7).layers, 3);
    // ranges that begin and end inside of rows
    const auto& link = strata::weights::load_targets_of(*in_units).front().link;
    const at::Tensor whole = at_once.first->to_q->weight.detach().view(-1);
    for (const auto& [begin, count] :
         std::vector<std::pair<std::int64_t, std::int64_t>>{{0, 64}, {3, 2}, {7, 30}, {63, 1}}) {
        const at::Tensor some = torch::empty({count});
        link->deferred->values->read(link->deferred->find(in_units->first->to_q->weight).value(), begin, some);
        EXPECT_TRUE(some.equal(whole.narrow(0, begin, count))) << begin;
    }
    strata::make_whole(*in_units);
    const auto a = at_once.named_parameters(), b = in_units->named_parameters();
    for (const auto& item : a) EXPECT_TRUE(item.value().equal(b[item.key()])) << item.key();
}

TEST_F(MergeAdapterFile, WeightsInBf16AreRoundedOnce) {
    const at::Tensor down = torch::randn({2, 8}), up = torch::randn({8, 2});
    write_adapter(file(), {{"transformer.head.lora_A.weight", down}, {"transformer.head.lora_B.weight", up}});
    Model model{at::kBFloat16};
    const at::Tensor before = model.head->weight.detach().to(at::kFloat);
    strata::adapters::merge_adapter_file(model, file());
    EXPECT_EQ(model.head->weight.scalar_type(), at::kBFloat16);
    EXPECT_TRUE(model.head->weight.detach().equal((before + up.mm(down)).to(at::kBFloat16)));
}

}  // namespace
