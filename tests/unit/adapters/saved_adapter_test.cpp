#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>
#include <nlohmann/json.hpp>

#include <strata/adapters/load_adapter_file.hpp>
#include <strata/adapters/merge_adapter_file.hpp>
#include <strata/adapters/saved_adapter.hpp>
#include <strata/comm/self_comm.hpp>
#include <strata/weights/save_weights.hpp>
#include <strata/weights/weight_files.hpp>

#include "../../support/adapter_files.hpp"
#include "../../support/temporary_folder.hpp"

namespace {

using namespace strata_test;
using strata::Errc;
using strata::adapters::FileNaming;
using strata::adapters::SaveAdapterOptions;
using strata::storage::Dtype;
using strata::weights::WeightFiles;

/// Parameters of a model with adapters on some of its layers, by their names.
struct Parameters {
    Tensors all;

    void add_lora(const std::string& path, std::int64_t in, std::int64_t out, std::int64_t rank, bool dora = false) {
        all.emplace_back(path + ".weight", torch::randn({out, in}));
        all.emplace_back(path + ".bias", torch::randn({out}));
        all.emplace_back(path + ".lora.down", torch::randn({rank, in}));
        all.emplace_back(path + ".lora.up", torch::randn({out, rank}));
        if (dora) all.emplace_back(path + ".lora.magnitude", torch::rand({out}) + 0.5);
    }
    [[nodiscard]] std::vector<strata::weights::SavedTensor> saved() const {
        std::vector<strata::weights::SavedTensor> tensors;
        for (const auto& [name, tensor] : all) tensors.push_back({name, tensor});
        return tensors;
    }
    [[nodiscard]] std::vector<strata::weights::LoadTarget> targets() const {
        std::vector<strata::weights::LoadTarget> found;
        for (const auto& [name, tensor] : all) found.push_back({{name}, tensor});
        return found;
    }
    [[nodiscard]] const at::Tensor& at(const std::string& name) const {
        for (const auto& [known, tensor] : all) {
            if (known == name) return tensor;
        }
        throw std::logic_error{"no " + name};
    }
    /// The same base, and adapters of other values.
    [[nodiscard]] Parameters begun_anew() const {
        Parameters other;
        for (const auto& [name, tensor] : all)
            other.all.emplace_back(name,
                                   strata::adapters::is_of_adapter(name) ? torch::zeros_like(tensor) : tensor.clone());
        return other;
    }
};

class SavedAdapter : public testing::Test {
protected:
    void SetUp() override {
        torch::manual_seed(9);
        unet_.add_lora(q_, 4, 6, 2);
        unet_.add_lora("down_blocks.0.attentions.0.transformer_blocks.0.attn1.to_out.0", 6, 4, 2);
        unet_.all.emplace_back("down_blocks.0.attentions.0.transformer_blocks.0.attn2.to_q.weight",
                               torch::randn({6, 4}));
        unet_.all.emplace_back("down_blocks.0.resnets.0.conv1.weight", torch::randn({5, 4, 3, 3}));
        unet_.all.emplace_back("down_blocks.0.resnets.0.conv1.lora.down", torch::randn({2, 4, 3, 3}));
        unet_.all.emplace_back("down_blocks.0.resnets.0.conv1.lora.up", torch::randn({5, 2, 1, 1}));
    }
    WeightFiles write(const Parameters& parameters, const SaveAdapterOptions& options = {},
                      std::optional<Dtype> dtype = {}) {
        strata::comm::SelfComm comm;
        auto saved = strata::adapters::saved_adapter(parameters.saved(), options);
        strata::weights::save_weights(comm, file(), std::move(saved.tensors), [](const at::Tensor&) {},
                                      {.dtype = dtype, .metadata = saved.metadata});
        return WeightFiles{file()};
    }
    [[nodiscard]] std::filesystem::path file() const { return folder_.path() / "pytorch_lora_weights.safetensors"; }

    const std::string q_ = "down_blocks.0.attentions.0.transformer_blocks.0.attn1.to_q";
    Parameters unet_;
    TemporaryFolder folder_;
};

TEST_F(SavedAdapter, PeftsFilesHaveItsNamesAndItsConfiguration) {
    const WeightFiles files = write(unet_, {.facts = {.alpha = 8, .dropout = 0.1},
                                            .model = {.architecture = "stable-diffusion-v1",
                                                      .title = "a run",
                                                      .resolution = "512x512",
                                                      .prediction = "epsilon"}});
    EXPECT_EQ(files.tensors().size(), 6);
    for (const auto& [name, tensor] : files.tensors()) EXPECT_GT(tensor.bytes(), 0) << name;
    EXPECT_TRUE(tensor_in(files, "unet." + q_ + ".lora_A.weight").equal(unet_.at(q_ + ".lora.down")));
    EXPECT_TRUE(tensor_in(files, "unet." + q_ + ".lora_B.weight").equal(unet_.at(q_ + ".lora.up")));
    EXPECT_EQ(files.find("unet.down_blocks.0.resnets.0.conv1.lora_A.weight")->entry->shape,
              (std::vector<std::int64_t>{2, 4, 3, 3}));

    const auto& metadata = files.metadata();
    EXPECT_EQ(metadata.at("format"), "pt");
    EXPECT_EQ(metadata.at("modelspec.sai_model_spec"), "1.0.1");
    EXPECT_EQ(metadata.at("modelspec.architecture"), "stable-diffusion-v1/lora");
    EXPECT_EQ(metadata.at("modelspec.resolution"), "512x512");
    EXPECT_FALSE(metadata.contains("modelspec.date"));
    const auto config = nlohmann::json::parse(metadata.at("lora_adapter_metadata"));
    EXPECT_EQ(config["unet.r"], 2);
    EXPECT_EQ(config["unet.lora_alpha"], 8);
    EXPECT_EQ(config["unet.lora_dropout"], 0.1);
    EXPECT_EQ(config["unet.use_dora"], false);
    // attn2.to_q has no adapter, so that to_q alone would say too much
    EXPECT_EQ(config["unet.target_modules"], (nlohmann::json{"conv1", q_, "to_out.0"}));
}

TEST_F(SavedAdapter, KohyasFilesHaveAnAlphaALayerInFp32) {
    const WeightFiles files = write(unet_, {.naming = FileNaming::kohya, .facts = {.alpha = 0.7}}, Dtype::f16);
    const std::string flat = "lora_unet_down_blocks_0_attentions_0_transformer_blocks_0_attn1_to_out_0";
    EXPECT_EQ(files.tensors().size(), 9);
    EXPECT_EQ(files.find(flat + ".lora_down.weight")->entry->dtype, Dtype::f16);
    EXPECT_EQ(files.find(flat + ".alpha")->entry->dtype, Dtype::f32);
    EXPECT_EQ(tensor_in(files, flat + ".alpha").item<float>(), 0.7F);
    EXPECT_EQ(files.metadata().at("ss_network_dim"), "2");
    EXPECT_EQ(files.metadata().at("ss_network_alpha"), "0.7");
    EXPECT_FALSE(files.metadata().contains("lora_adapter_metadata"));
}

TEST_F(SavedAdapter, WhatIsWrittenIsReadBackBitByBit) {
    for (const FileNaming naming : {FileNaming::peft, FileNaming::kohya}) {
        for (const double alpha : {0.0, 3.0}) {
            write(unet_, {.naming = naming, .facts = {.alpha = alpha}});
            const Parameters read = unet_.begun_anew();
            const auto loaded = strata::adapters::load_adapter_into(read.targets(), file(), {.alpha = alpha});
            EXPECT_EQ(loaded.layers, 3);
            EXPECT_EQ(loaded.naming, naming);
            EXPECT_TRUE(loaded.missing.empty());
            for (const auto& [name, tensor] : unet_.all) EXPECT_TRUE(read.at(name).equal(tensor)) << name;
        }
    }
    // an adapter of another alpha computes the same
    write(unet_, {.facts = {.alpha = 4}});
    const Parameters other = unet_.begun_anew();
    strata::adapters::load_adapter_into(other.targets(), file(), {.alpha = 2});
    EXPECT_TRUE(other.at(q_ + ".lora.up").equal(2 * unet_.at(q_ + ".lora.up")));
}

TEST_F(SavedAdapter, ADorasMagnitudesAreNormsInFilesAndRatiosInModels) {
    Parameters dora;
    dora.add_lora("transformer_blocks.0.attn.to_q", 4, 6, 2, true);
    const std::string path = "transformer_blocks.0.attn.to_q";
    const at::Tensor base = dora.at(path + ".weight");
    const at::Tensor norms = dora.at(path + ".lora.magnitude") * base.norm(2, 1);
    const at::Tensor sum = base + dora.at(path + ".lora.up").mm(dora.at(path + ".lora.down"));
    for (const FileNaming naming : {FileNaming::peft, FileNaming::kohya}) {
        const WeightFiles files = write(dora, {.naming = naming});
        const std::string name = naming == FileNaming::peft
                                     ? "transformer." + path + ".lora_magnitude_vector"
                                     : "lora_transformer_transformer_blocks_0_attn_to_q.dora_scale";
        EXPECT_EQ(files.find(name)->entry->shape.size(), naming == FileNaming::peft ? 1 : 2);
        EXPECT_TRUE(torch::allclose(tensor_in(files, name).view(-1), norms));
        const Parameters read = dora.begun_anew();
        strata::adapters::load_adapter_into(read.targets(), file(), {});
        EXPECT_TRUE(torch::allclose(read.at(path + ".lora.magnitude"), dora.at(path + ".lora.magnitude")));
        const at::Tensor weight = base.clone();
        strata::adapters::merge_into(weights_of({{path, weight}}), file(), 1);
        EXPECT_TRUE(torch::allclose(weight, sum * (norms / sum.norm(2, 1)).unsqueeze(1), 1e-5, 1e-6));
    }
}

TEST_F(SavedAdapter, ALokrHasTheNamesOfLycoris) {
    Parameters lokr;
    const std::string path = "transformer_blocks.0.attn.to_q";
    lokr.all = {{path + ".weight", torch::zeros({6, 8})},
                {path + ".lokr.w1", torch::randn({2, 2})},
                {path + ".lokr.w2_a", torch::randn({3, 2})},
                {path + ".lokr.w2_b", torch::randn({2, 4})}};
    const WeightFiles files = write(lokr, {.facts = {.alpha = 1}});
    EXPECT_EQ(files.tensors().size(), 4);
    EXPECT_EQ(tensor_in(files, "lycoris_transformer_blocks_0_attn_to_q.alpha").item<float>(), 1);
    const Parameters read = lokr.begun_anew();
    EXPECT_EQ(strata::adapters::load_adapter_into(read.targets(), file(), {.alpha = 1}).layers, 1);
    for (const auto& [name, tensor] : lokr.all) EXPECT_TRUE(read.at(name).equal(tensor)) << name;
    const at::Tensor weight = torch::zeros({6, 8});
    strata::adapters::merge_into(weights_of({{path, weight}}), file(), 1);
    EXPECT_TRUE(torch::allclose(weight, 0.5 * at::kron(lokr.at(path + ".lokr.w1"),
                                                       lokr.at(path + ".lokr.w2_a").mm(lokr.at(path + ".lokr.w2_b")))));
}

TEST_F(SavedAdapter, ComfyuisFilesOfATransformerHavePathsAndAlphas) {
    Parameters flux;
    flux.add_lora("transformer_blocks.0.attn.to_q", 4, 6, 2, true);
    const WeightFiles files = write(flux, {.naming = FileNaming::comfyui, .facts = {.alpha = 1}});
    EXPECT_EQ(files.tensors().size(), 4);
    const std::string module = "diffusion_model.transformer_blocks.0.attn.to_q";
    EXPECT_NE(files.find(module + ".lora_A.weight"), nullptr);
    EXPECT_NE(files.find(module + ".dora_scale"), nullptr);
    EXPECT_EQ(tensor_in(files, module + ".alpha").item<float>(), 1);
    EXPECT_EQ(strata::adapters::load_adapter_into(flux.begun_anew().targets(), file(), {.alpha = 1}).layers, 1);
    EXPECT_NE(
        write(unet_, {.naming = FileNaming::comfyui}).find("lora_unet_down_blocks_0_resnets_0_conv1.lora_down.weight"),
        nullptr);
}

TEST_F(SavedAdapter, AKindOfOnesOwnIsWrittenUnderItsOwnNames) {
    Parameters own;
    own.all = {{"net.0.weight", torch::zeros({2, 2})}, {"net.0.scaled.by", torch::randn({2})}};
    const WeightFiles files = write(own, {.facts = {.kind = "scaled"}});
    EXPECT_EQ(files.tensors().size(), 1);
    EXPECT_TRUE(tensor_in(files, "transformer.net.0.scaled.by").equal(own.at("net.0.scaled.by")));
}

TEST_F(SavedAdapter, PublishedModelsAreCalledByTheirArchitecture) {
    using strata::adapters::architecture_of;
    const std::string to_k = "down_blocks.1.attentions.0.transformer_blocks.0.attn2.to_k";
    EXPECT_EQ(architecture_of({{to_k, {320, 768}}}), "stable-diffusion-v1");
    EXPECT_EQ(architecture_of({{to_k, {640, 2048}}}), "stable-diffusion-xl-v1-base");
    EXPECT_EQ(architecture_of({{"context_embedder", {3072, 4096}}}), "flux-1-schnell");
    EXPECT_EQ(
        architecture_of({{"context_embedder", {3072, 4096}}, {"time_text_embed.guidance_embedder.linear_1", {1, 1}}}),
        "flux-1-dev");
    EXPECT_EQ(architecture_of({{to_k, {32, 16}}}), "");
}

TEST_F(SavedAdapter, WhatAFileLacksAndWhatIsLeftOfItIsSaid) {
    strata_test::write_adapter(file(), {{"unet." + q_ + ".lora_A.weight", torch::randn({2, 4})},
                                        {"unet." + q_ + ".lora_B.weight", torch::randn({6, 2})},
                                        {"text_encoder.text_model.a.lora_A.weight", torch::randn({2, 4})},
                                        {"text_encoder.text_model.a.lora_B.weight", torch::randn({6, 2})}});
    const auto loaded = strata::adapters::load_adapter_into(unet_.targets(), file(), {});
    EXPECT_EQ(
        strata::adapters::words_of(loaded, "a.safetensors"),
        "1 layer of a.safetensors, and anew 2 layers that it has nothing for: "
        "down_blocks.0.attentions.0.transformer_blocks.0.attn1.to_out.0, down_blocks.0.resnets.0.conv1; it has 1 layer "
        "of other models besides, which are left");
    EXPECT_EQ(strata::adapters::words_of({.layers = 3, .missing = {"a", "b", "c", "d"}}, "f"),
              "3 layers of f, and anew 4 layers that it has nothing for: a, b, c, ...");
    EXPECT_EQ(strata::adapters::words_of({.layers = 3}, "f"), "3 layers of f");
}

TEST_F(SavedAdapter, AdaptersOfAnotherShapeAreOneError) {
    write(unet_);
    Parameters other;
    other.add_lora(q_, 4, 6, 3);
    other.all.emplace_back("down_blocks.0.attentions.0.transformer_blocks.0.attn1.to_out.0.weight",
                           torch::randn({4, 6}));
    other.all.emplace_back("down_blocks.0.resnets.0.conv1.weight", torch::randn({5, 4, 3, 3}));
    const Thrown error = thrown_by([&] { strata::adapters::load_adapter_into(other.targets(), file(), {}); });
    EXPECT_EQ(error.code, Errc::adapter_does_not_fit);
    EXPECT_TRUE(error.says("has a lora.down (2, 4), and the model's layer " + q_ + " one (3, 4)")) << error.message;
    EXPECT_TRUE(error.says("is for the layer down_blocks.0.resnets.0.conv1, which has no adapter here"))
        << error.message;

    Parameters half;
    half.all = {{"a.weight", torch::zeros({2, 2})}, {"a.lora.down", torch::zeros({1, 2})}};
    EXPECT_EQ(thrown_by([&] { static_cast<void>(strata::adapters::saved_adapter(half.saved())); }).code,
              Errc::bad_parameter);
    half.all = {
        {"a.weight", torch::zeros({2, 2})}, {"a.lora.down", torch::zeros({0, 2})}, {"a.lora.up", torch::zeros({2, 0})}};
    EXPECT_TRUE(
        thrown_by([&] { static_cast<void>(strata::adapters::saved_adapter(half.saved())); }).says("empty tensor"));
    half.all.resize(1);
    EXPECT_EQ(thrown_by([&] { static_cast<void>(strata::adapters::saved_adapter(half.saved())); }).code,
              Errc::bad_parameter);
}

}  // namespace
