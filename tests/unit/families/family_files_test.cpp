// make_family() and the files of a model: what does not fit is told at once, and what they say besides weights is followed.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>
#include <nlohmann/json.hpp>

#include <strata/config/model_settings.hpp>
#include <strata/core/error.hpp>
#include <strata/families/family.hpp>
#include <strata/weights/weight_files.hpp>
#include <strata/zero/in_units.hpp>

#include "../../support/adapter_files.hpp"
#include "../../support/families.hpp"
#include "../../support/made_pipeline.hpp"
#include "../../support/temporary_folder.hpp"

namespace {

namespace config = strata::config;
namespace families = strata::families;
namespace fs = std::filesystem;
using strata::Errc;
using strata_test::Changed;
using strata_test::kinds;
using strata_test::PipelineKind;
using strata_test::Refusal;
using strata_test::refusal;
using strata_test::settings_of;

TEST(FamilyFiles, WeightsOfAllPartsThatDoNotFitAreOneErrorBeforeAnythingIsLoaded) {
    const Changed sdxl{PipelineKind::sdxl};
    sdxl.rewrite("vae", [](strata_test::Tensors& tensors) {
        for (auto& [name, values] : tensors)
            if (name == "encoder.conv_in.bias") values = at::zeros({9});
    });
    sdxl.rewrite("text_encoder", [](strata_test::Tensors& tensors) {
        std::erase_if(tensors, [](const auto& one) { return one.first == "text_model.final_layer_norm.bias"; });
    });
    sdxl.rewrite("unet", [](strata_test::Tensors& tensors) { tensors.emplace_back("surplus.weight", at::zeros({3})); });
    const Refusal all = refusal(sdxl.settings);
    EXPECT_EQ(all.code, Errc::bad_model_folder);
    for (const char* what : {"'encoder.conv_in.bias' has the shape (9), the model's (8)",
                             "1 missing: text_model.final_layer_norm.bias", "1 unexpected: surplus.weight"})
        EXPECT_TRUE(all.says(what)) << what << " in " << all.what;

    const Changed flux{PipelineKind::flux};
    flux.rewrite("text_encoder", [](strata_test::Tensors& tensors) { tensors.emplace_back("more", at::zeros({3})); });
    fs::remove(flux.folder.path() / "text_encoder_2/model-00001-of-00002.safetensors");
    EXPECT_TRUE(refusal(flux.settings).says("1 unexpected: more")) << refusal(flux.settings).what;
}

/// What tells weights that do not fit draws nothing: what is random behind it is what it would be.
TEST(FamilyFiles, MakingOneDrawsNoRandomNumbers) {
    torch::manual_seed(3);
    const at::Tensor expected = at::rand({4});
    for (const PipelineKind kind : kinds) {
        torch::manual_seed(3);
        (void)families::make_family(settings_of(kind));
        EXPECT_TRUE(at::equal(at::rand({4}), expected));
    }
}

TEST(FamilyFiles, FilesMayHaveAPrefixThatOtherProgramsPutInFront) {
    const std::map<PipelineKind, std::string> prefixes{{PipelineKind::sd15, "model.diffusion_model."},
                                                       {PipelineKind::sdxl, "unet."}};
    for (const auto& [kind, prefix] : prefixes) {
        const Changed changed{kind};
        changed.rewrite("unet", [&prefix = prefix](strata_test::Tensors& tensors) {
            for (auto& [name, values] : tensors) name = prefix + name;
            tensors.emplace_back("first_stage_model.of.another.model", at::zeros({2}));
        });
        const auto model = families::make_family(changed.settings)->make_model();
        const auto plain = families::make_family(settings_of(kind))->make_model();
        strata::make_whole(*model);
        strata::make_whole(*plain);
        for (const auto& parameter : plain->named_parameters())
            EXPECT_TRUE(at::equal(parameter.value(), model->named_parameters()[parameter.key()])) << parameter.key();
    }
}

TEST(FamilyFiles, AnEmptyPromptOfSdxlIsZerosUnlessTheModelSaysOtherwise) {
    EXPECT_FALSE(families::make_family(settings_of(PipelineKind::sdxl))->recipe()->dropped_caption());
    const Changed changed{PipelineKind::sdxl};
    auto index = strata_test::made::model_index(PipelineKind::sdxl);
    index["force_zeros_for_empty_prompt"] = false;
    strata_test::made::write_json(changed.folder.path() / "model_index.json", index);
    EXPECT_EQ(families::make_family(changed.settings)->recipe()->dropped_caption(), "");
    index.erase("force_zeros_for_empty_prompt");
    strata_test::made::write_json(changed.folder.path() / "model_index.json", index);
    EXPECT_FALSE(families::make_family(changed.settings)->recipe()->dropped_caption()) << "the pipeline's default";
}

TEST(FamilyFiles, TheEmbeddingOfT5MayHaveItsOtherName) {
    const Changed changed{PipelineKind::flux};
    const fs::path part = changed.folder.path() / "text_encoder_2";
    const strata::weights::WeightFiles files{part};
    strata_test::Tensors tensors;
    for (const auto& [name, tensor] : files.tensors())
        tensors.emplace_back(name == "shared.weight" ? "encoder.embed_tokens.weight" : name,
                             strata_test::tensor_in(files, name));
    for (const fs::path& shard : files.files()) fs::remove(shard);
    fs::remove(part / "model.safetensors.index.json");
    strata_test::write_adapter(part / "model.safetensors", tensors);
    const auto captions_of = [](const config::ModelSettings& settings) {
        const auto recipe = families::make_family(settings)->recipe();
        auto encoders = recipe->load_caption_encoders(at::kCPU);
        return recipe->encode_captions(encoders, std::vector<std::string>{"a cat"}).front();
    };
    EXPECT_TRUE(at::equal(captions_of(changed.settings).at("tokens"),
                          captions_of(settings_of(PipelineKind::flux)).at("tokens")));
}

/// As the pipelines' tokenizers have it, which know the end of a text where it stands in one.
TEST(FamilyFiles, MarksOfT5InACaptionAreThoseTokens) {
    const auto recipe = families::make_family(settings_of(PipelineKind::flux))->recipe();
    auto encoders = recipe->load_caption_encoders(at::kCPU);
    const auto caption = recipe->encode_captions(encoders, std::vector<std::string>{"</s>"}).front();
    EXPECT_EQ(caption.at("mask").sum().item<std::int64_t>(), 2) << "the mark, and the end of the text";
}

TEST(FamilyFiles, WeightsSayWhetherAClipWithoutArchitecturesHasAProjection) {
    const Changed changed{PipelineKind::sdxl};
    for (const char* part : {"text_encoder", "text_encoder_2"}) {
        const fs::path file = changed.folder.path() / part / "config.json";
        std::ifstream in{file};
        auto json = nlohmann::json::parse(in);
        json.erase("architectures");
        strata_test::made::write_json(file, json);
    }
    EXPECT_EQ(refusal(changed.settings).what, "");
}

/// Adapters of text encoders are merged where encoders are loaded: captions are those of encoders whose files have them merged.
TEST(FamilyFiles, AddedAdaptersOfTextEncodersChangeCaptions) {
    const std::string q1 = "text_model.encoder.layers.0.self_attn.q_proj", fc = "text_model.encoder.layers.0.mlp.fc1";
    strata_test::TemporaryFolder folder;
    const fs::path file = folder.path() / "lora.safetensors";
    torch::manual_seed(8);
    const at::Tensor down_1 = at::randn({2, 8}), up_1 = at::randn({8, 2}), down_2 = at::randn({1, 16}),
                     up_2 = at::randn({32, 1});
    const auto flat = [](std::string path) {
        std::replace(path.begin(), path.end(), '.', '_');
        return path;
    };
    strata_test::write_adapter(file, {{"lora_te1_" + flat(q1) + ".lora_down.weight", down_1},
                                      {"lora_te1_" + flat(q1) + ".lora_up.weight", up_1},
                                      {"lora_te2_" + flat(fc) + ".lora_down.weight", down_2},
                                      {"lora_te2_" + flat(fc) + ".lora_up.weight", up_2}});
    const Changed merged{PipelineKind::sdxl};
    const auto add = [](const std::string& path, const at::Tensor& change) {
        return [&path, change](strata_test::Tensors& tensors) {
            for (auto& [name, values] : tensors)
                if (name == path + ".weight") values += change;
        };
    };
    merged.rewrite("text_encoder", add(q1, 0.5 * up_1.mm(down_1)));
    merged.rewrite("text_encoder_2", add(fc, 0.5 * up_2.mm(down_2)));
    const auto captions_of = [](config::ModelSettings settings, const std::vector<families::AddedAdapter>& added) {
        settings.text_encoder_dtype = config::EncoderFormat::fp32;
        const auto family = families::make_family(settings, added);
        EXPECT_EQ(family->layers_of_encoders(), std::vector<std::size_t>(added.size(), 2));
        auto encoders = family->recipe()->load_caption_encoders(at::kCPU);
        return std::pair{
            family->recipe()->encode_captions(encoders, std::vector<std::string>{"a cat"}).front().at("tokens"),
            family->recipe()->caption_id()};
    };
    const config::ModelSettings plain = settings_of(PipelineKind::sdxl);
    const auto [as_published, id] = captions_of(plain, {});
    const auto [added, added_id] = captions_of(plain, {{file, 0.5}});
    const auto [expected, of_merged] = captions_of(merged.settings, {});
    EXPECT_LT((added - expected).abs().max().item<double>(), 1e-6);
    EXPECT_GT((added - as_published).abs().max().item<double>(), 1e-3);
    EXPECT_NE(added_id, id) << "what was cached without the adapter is something else";
    EXPECT_NE(captions_of(plain, {{file, 0.25}}).second, added_id);
    // Of one text encoder, it has nothing for the second; and a file of the denoiser's for neither.
    const fs::path other = folder.path() / "other.safetensors";
    strata_test::write_adapter(other, {{"down_blocks.1.attentions.0.proj_in.lora_A.weight", at::ones({1, 32})},
                                       {"down_blocks.1.attentions.0.proj_in.lora_B.weight", at::ones({32, 1})}});
    EXPECT_EQ(families::make_family(plain, {{other, 1}})->layers_of_encoders(), (std::vector<std::size_t>{0}));
    strata_test::write_adapter(other, {{"text_encoder.text_model.nothing.lora_A.weight", at::ones({1, 8})},
                                       {"text_encoder.text_model.nothing.lora_B.weight", at::ones({8, 1})}});
    try {
        (void)families::make_family(plain, {{other, 1}});
        ADD_FAILURE() << "accepted";
    } catch (const strata::Error& error) {
        EXPECT_EQ(error.code(), Errc::adapter_does_not_fit);
    }
}

/// Before anything is drawn: a schedule of 1000 levels has no 1001 steps.
TEST(FamilyFiles, WhatCannotBeDrawnIsToldWithoutDrawing) {
    for (const PipelineKind kind : kinds) {
        const auto family = families::make_family(settings_of(kind));
        const auto model = family->make_model();
        EXPECT_NO_THROW(family->recipe()->check_drawing(*model, {.steps = 20}));
        if (kind == PipelineKind::flux) continue;
        EXPECT_THROW(family->recipe()->check_drawing(*model, {.steps = 1001}), strata::Error);
        const auto other = families::make_family(settings_of(PipelineKind::flux))->make_model();
        EXPECT_THROW(family->recipe()->check_drawing(*other, {.steps = 20}), strata::Error);
    }
}

}  // namespace
