// Adapters of SimpleTuner's configurations: what is trained, over which layers, and what its base is kept in.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <strata/config/any_config.hpp>
#include <strata/config/simpletuner.hpp>
#include <strata/config/trainer_config.hpp>
#include <strata/config/trainer_writer.hpp>

#include "../../support/temporary_folder.hpp"

namespace {

namespace fs = std::filesystem;
using namespace strata::config;
using strata::Errc;
using Names = std::vector<std::string>;

TrainerConfig look(std::string_view json, const std::string& name = "config.json") {
    return look_at_trainer_config(parse_json(json, name, JsonDialect::relaxed));
}
/// The first finding of a key, which must be there.
Finding of(const TrainerConfig& config, std::string_view key) {
    for (const Finding& one : config.reading.findings.all())
        if (one.key == key) return one;
    ADD_FAILURE() << "nothing is said of " << key;
    return {};
}
Composition composed(const TrainerConfig& config) { return config.reading.intent.composition; }

TEST(AdapterSettings, AUsualLoraIsRead) {
    const TrainerConfig config = look(R"({"--model_type": "lora", "--model_family": "flux", "--lora_rank": "32",
        "lora_alpha": 16, "lora_dropout": 0.0, "lora_init_type": "gaussian", "lora_type": "standard", "use_dora": "true",
        "flux_lora_target": "context+ffs", "lora_format": "comfyui", "init_lora": "before.safetensors",
        "peft_lora_mode": "standard", "base_model_precision": "int8-quanto"})");
    EXPECT_EQ(config.reading.findings.refused(), 0U) << config.reading.findings.table();
    const AdapterSettings& adapter = config.adapter;
    EXPECT_TRUE(adapter.is_on());
    EXPECT_EQ(adapter.kind(), AdapterName::lora);
    EXPECT_EQ(adapter.rank, 32);
    EXPECT_EQ(adapter.alpha, 16);
    EXPECT_EQ(adapter.dropout, 0);
    EXPECT_EQ(adapter.init, LoraInit::gaussian);
    EXPECT_TRUE(adapter.use_dora);
    EXPECT_EQ(adapter.format, LoraFormat::comfyui);
    EXPECT_EQ(adapter.init_file, "before.safetensors");
    EXPECT_EQ(policies(composed(config)), "Adapter<Lora>, FrozenWeights<Int8>");
    EXPECT_EQ(of(config, "--model_type").to, "Adapter<Lora>");
    EXPECT_EQ(of(config, "base_model_precision").to, "FrozenWeights<Int8>");
    EXPECT_EQ(of(config, "--lora_rank").effect, Effect::acts);
}

TEST(AdapterSettings, RanksAndAlphasMayDifferFromLayerToLayer) {
    const TrainerConfig config = look(R"({"model_type": "lora", "model_family": "flux",
        "lora_rank_pattern": {"to_q": 8, "single_transformer_blocks.*.to_q": 4}, "lora_alpha_pattern": {"to_v": 0.5}})");
    EXPECT_EQ(config.reading.findings.refused(), 0U) << config.reading.findings.table();
    using Ranks = std::vector<std::pair<std::string, std::int64_t>>;
    EXPECT_EQ(config.adapter.rank_pattern, (Ranks{{"single_transformer_blocks.*.to_q", 4}, {"to_q", 8}}))
        << "longest first";
    EXPECT_EQ(config.adapter.alpha_pattern, (std::vector<std::pair<std::string, double>>{{"to_v", 0.5}}));
    for (const char* wrong : {R"({"to_q": 0})", R"({"to_q": 2.5})", R"({"to_[qk]": 4})", "[4]"}) {
        const TrainerConfig other = look(R"({"model_type": "lora", "lora_rank_pattern": )" + std::string{wrong} + "}");
        EXPECT_EQ(other.reading.findings.refused(), 1U) << wrong;
    }
}

TEST(AdapterSettings, WithoutAWordEverythingIsTrained) {
    const TrainerConfig silent = look(R"({"learning_rate": 1e-4})");
    EXPECT_FALSE(silent.adapter.is_on());
    EXPECT_EQ(silent.adapter.kind(), AdapterName::none);
    EXPECT_FALSE(composed(silent).adapter) << "a program's composition decides";
    const TrainerConfig full =
        look(R"({"model_type": "full", "use_dora": true, "lora_rank": 4, "lora_init_type": "pissa",
        "peft_lora_target_modules": [], "base_model_precision": "no_change"})");
    EXPECT_EQ(full.reading.findings.refused(), 0U) << full.reading.findings.table();
    EXPECT_EQ(composed(full).adapter, AdapterName::none);
    EXPECT_FALSE(composed(full).frozen);
    for (const char* key : {"use_dora", "lora_rank", "lora_init_type"}) {
        EXPECT_EQ(of(full, key).effect, Effect::none) << key;
        EXPECT_TRUE(of(full, key).warns) << key;
    }
    EXPECT_FALSE(of(full, "peft_lora_target_modules").warns) << "it asks for nothing";
}

TEST(AdapterSettings, AFlagGoesBeforeTheFileForWhatIsTrained) {
    const Document file = parse_json(R"({"model_type": "full", "lora_rank": 4})", "config.json", JsonDialect::relaxed);
    const TrainerConfig lora = look_at_trainer_config(file, {{"model_type", {"lora"}}});
    EXPECT_TRUE(lora.adapter.is_on());
    EXPECT_EQ(lora.adapter.rank, 4);
    const TrainerConfig rank = look_at_trainer_config(file, {{"model_type", {"lora"}}, {"lora_rank", {"8"}}});
    EXPECT_EQ(rank.adapter.rank, 8);
}

TEST(AdapterSettings, WhatIsQuantisedIsNotTrained) {
    for (const char* json : {R"({"model_type": "full", "base_model_precision": "int8-quanto"})",
                             R"({"base_model_precision": "nf4-bnb"})"}) {
        const TrainerConfig config = look(json);
        ASSERT_EQ(config.reading.findings.refused(), 1U) << json;
        const Finding refused = of(config, "base_model_precision");
        EXPECT_EQ(refused.code, Errc::unsupported_key);
        EXPECT_NE(refused.words.find("kept quantised cannot learn"), std::string::npos) << refused.words;
        EXPECT_NE(refused.fix.find(R"("model_type": "lora")"), std::string::npos) << refused.fix;
    }
}

TEST(AdapterSettings, BasesAreKeptInTheNearestThatThereIs) {
    const auto with = [](const std::string& precision) {
        return look(R"({"model_type": "lora", "base_model_precision": ")" + precision + "\"}");
    };
    EXPECT_FALSE(composed(look(R"({"model_type": "lora"})")).frozen);
    EXPECT_EQ(composed(with("no_change")).frozen, FrozenName::as_computed);
    for (const char* word : {"int8-quanto", "int8-torchao", "int8-sdnq", "int8dq-torchao"})
        EXPECT_EQ(composed(with(word)).frozen, FrozenName::int8) << word;
    for (const char* word : {"nf4-bnb", "int4-quanto", "int4-torchao", "uint4-sdnq"})
        EXPECT_EQ(composed(with(word)).frozen, FrozenName::nf4) << word;
    EXPECT_FALSE(of(with("int8-quanto"), "base_model_precision").warns);
    EXPECT_TRUE(of(with("int4-quanto"), "base_model_precision").warns) << "four bits, but not those";
    for (const char* word :
         {"fp8-quanto", "fp8-torchao", "int2-quanto", "fp16-sdnq", "uint3-sdnq", "int8dq-int4-torchao"}) {
        const TrainerConfig config = with(word);
        EXPECT_EQ(config.reading.findings.refused(), 1U) << word;
        EXPECT_NE(of(config, "base_model_precision").fix.find("`int8-quanto`"), std::string::npos) << word;
    }
    EXPECT_EQ(with("int9-quanto").reading.findings.refused(), 1U);
}

TEST(AdapterSettings, WhatALoraHereIsNotIsRefusedWhereOneIsTrained) {
    for (const char* json :
         {R"("lora_init_type": "loftq")", R"("lora_init_type": "olora")", R"("peft_lora_mode": "singlora")",
          R"("flux_lora_target": "controlnet")", R"("flux_lora_target": "everything")", R"("lora_rank": 0)",
          R"("lora_dropout": 1)", R"("slider_lora_target": true)", R"("init_lokr_norm": 1e-3)",
          R"("assistant_lora_path": "x")", R"("lora_format": "onnx")"})
        EXPECT_EQ(look(R"({"model_type": "lora", )" + std::string{json} + "}").reading.findings.refused(), 1U) << json;
}

TEST(AdapterSettings, NamesOfFluxTargetsAreThoseOfItsLayers) {
    using enum FluxLoraTarget;
    EXPECT_EQ(flux_lora_targets(mmdit), (Names{"to_k", "to_q", "to_v", "to_out.0"}));
    EXPECT_EQ(flux_lora_targets(context), (Names{"add_k_proj", "add_q_proj", "add_v_proj", "to_add_out"}));
    EXPECT_EQ(flux_lora_targets(all).size(), 8U);
    EXPECT_EQ(flux_lora_targets(context_ffs).size(), 6U);
    EXPECT_EQ(flux_lora_targets(all_ffs).size(), 14U);
    EXPECT_EQ(flux_lora_targets(all_ffs_embedder).back(), "x_embedder");
    EXPECT_EQ(flux_lora_targets(ai_toolkit).size(), 17U);
    EXPECT_EQ(flux_lora_targets(nano), (Names{"single_transformer_blocks.7.proj_out"}));
    EXPECT_EQ(flux_lora_targets(tiny).size(), 2U);
}

TEST(AdapterSettings, LayersAreTheFamilysUnlessTheyAreNamed) {
    AdapterSettings settings;
    EXPECT_EQ(adapter_targets(settings, ModelFamily::flux).targets, flux_lora_targets(FluxLoraTarget::all));
    for (const ModelFamily unet : {ModelFamily::sdxl, ModelFamily::sd15})
        EXPECT_EQ(adapter_targets(settings, unet).targets, (Names{"to_k", "to_q", "to_v", "to_out.0"}));
    settings.flux_target = FluxLoraTarget::nano;
    EXPECT_EQ(adapter_targets(settings, ModelFamily::small).targets.size(), 1U);
    settings.targets = {"to_q"};
    settings.excluded = {"mid_block.*"};
    const AdapterTargets named = adapter_targets(settings, ModelFamily::flux);
    EXPECT_EQ(named, (AdapterTargets{{"to_q"}, {"mid_block.*"}}));

    const TrainerConfig config = look(R"({"model_type": "lora", "model_family": "sdxl", "flux_lora_target": "mmdit",
                 "peft_lora_target_modules": ["to_q", "conv1"]})");
    EXPECT_EQ(config.adapter.targets, (Names{"to_q", "conv1"}));
    EXPECT_EQ(of(config, "flux_lora_target").effect, Effect::none);
}

TEST(AdapterSettings, LycorisIsAFileOfItsOwn) {
    const strata_test::TemporaryFolder folder;
    std::ofstream{folder.path() / "lycoris_config.json"} << R"({"algo": "lokr", "multiplier": 1.0, "linear_dim": 10000,
        "linear_alpha": 1, "factor": 16, "apply_preset": {"target_module": ["Attention", "FeedForward"],
        "module_algo_map": {"Attention": {"factor": 16}, "FeedForward": {"factor": 16}}}})";
    const std::string name = (folder.path() / "config.json").string();
    const TrainerConfig config = look(R"({"model_type": "lora", "lora_type": "lycoris", "lora_rank": 128,
                 "lycoris_config": "config/examples/sana/lycoris_config.json"})",
                                      name);
    EXPECT_EQ(config.reading.findings.refused(), 0U) << config.reading.findings.table();
    EXPECT_EQ(config.adapter.kind(), AdapterName::lokr);
    EXPECT_EQ(config.adapter.lycoris.factor, 16);
    EXPECT_EQ(policies(composed(config)), "Adapter<Lokr>");
    EXPECT_EQ(of(config, "lora_rank").words, "`lycoris_config` says it");
    EXPECT_EQ(of(config, "lycoris_config").words, "factor 16, rank 10000");
    const Names flux = adapter_targets(config.adapter, ModelFamily::flux).targets;
    EXPECT_TRUE(std::find(flux.begin(), flux.end(), "ff_context.net.2") != flux.end());
    EXPECT_EQ(adapter_targets(config.adapter, ModelFamily::sdxl).targets.size(), 6U);

    const TrainerConfig absent =
        look(R"({"model_type": "lora", "lora_type": "lycoris", "lycoris_config": "nowhere.json"})");
    EXPECT_EQ(absent.reading.intent.missing_files, (Names{"nowhere.json"}));
    std::ofstream{folder.path() / "lycoris_config.json"} << R"({"algo": "loha", "linear_dim": 8})";
    const TrainerConfig wrong = look(R"({"model_type": "lora", "lora_type": "lycoris"})", name);
    ASSERT_EQ(wrong.reading.findings.refused(), 1U);
    EXPECT_NE(of(wrong, "lora_type").words.find("loha"), std::string::npos);
    EXPECT_EQ(look(R"({"model_type": "lora", "lycoris_config": "nowhere.json"})").reading.intent.missing_files.size(),
              0U)
        << "a LoRA reads none";
}

TEST(AdapterSettings, DeepSpeedGoesWithAnAdapter) {
    const TrainerConfig config = look(R"({"model_type": "lora", "deepspeed_config": {"zero_optimization": {"stage": 3,
        "offload_optimizer": {"device": "cpu"}}}})");
    EXPECT_EQ(config.reading.findings.refused(), 0U) << config.reading.findings.table();
    EXPECT_EQ(policies(composed(config)), "Adapter<Lora>, ZeroStage<3>, OffloadTarget<Cpu>");
}

TEST(AdapterSettings, WrittenBackTheySayTheSame) {
    for (const char* json :
         {R"({"model_type": "lora", "lora_rank": 8, "base_model_precision": "nf4-bnb"})", R"({"model_type": "full"})",
          R"({"model_type": "lora", "base_model_precision": "no_change"})"}) {
        const Intent intent = look(json).reading.intent;
        const TrainerConfig again = look(write_trainer_config(intent));
        EXPECT_EQ(again.reading.findings.refused(), 0U) << again.reading.findings.table();
        EXPECT_EQ(again.reading.intent.composition, intent.composition) << json;
    }
}

/// What of the files that people have is refused because of its adapter: nothing but what strata has not.
TEST(AdapterSettings, RealFilesOfAdaptersAreTaken) {
    const fs::path folder = fs::path{STRATA_REFERENCE_DIR} / "data/configs/simpletuner";
    if (!fs::is_directory(folder)) GTEST_SKIP() << "no real files: " << folder;
    std::size_t loras = 0, lycoris = 0, quantised = 0;
    for (const auto& entry : fs::directory_iterator{folder}) {
        const AnyConfig config = look_at_config(entry.path());
        if (config.format != ConfigFormat::trainer || !config.trainer) continue;
        loras += config.trainer->adapter.is_on() ? 1 : 0;
        lycoris +=
            config.trainer->adapter.is_on() && config.trainer->adapter.library == AdapterLibrary::lycoris ? 1 : 0;
        quantised +=
            config.intent.composition.frozen.value_or(FrozenName::as_computed) != FrozenName::as_computed ? 1 : 0;
        for (const Finding& one : config.findings.all()) {
            const bool is_about_adapters =
                one.key.find("lora") != std::string::npos || one.key.find("lycoris") != std::string::npos ||
                one.key.find("model_type") != std::string::npos || one.key == "base_model_precision";
            if (!is_about_adapters || one.effect != Effect::refused) continue;
            EXPECT_EQ(one.key, "base_model_precision") << entry.path() << " " << sentence(one);
            EXPECT_FALSE(config.trainer->adapter.is_on()) << "a part of a page, without the key that says LoRA";
        }
    }
    EXPECT_GE(loras, 20U);
    EXPECT_GE(lycoris, 4U);
    EXPECT_GE(quantised, 8U);
}

}  // namespace
