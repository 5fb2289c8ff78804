// What a run records of its model is what others read.

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <strata/config/model_record.hpp>
#include <strata/core/error.hpp>

#include "../../support/temporary_folder.hpp"

namespace {

using namespace strata::config;

TEST(ModelRecord, HasEveryKeyOfAModel) {
    const auto json = nlohmann::json::parse(model_record_text({}));
    for (const KeyInfo& key : model_schema().keys()) EXPECT_TRUE(json.contains(key.key)) << key.key;
    for (const char* key : {"model_family", "model_flavour", "pretrained_model_name_or_path"})
        EXPECT_TRUE(json.contains(key)) << key;
}

TEST(ModelRecord, IsReadAsItWasWritten) {
    ModelSettings model;
    model.family = "flux";
    model.flavour = "schnell";
    model.path = "/models/flux";
    model.transformer = "/tuned/a.safetensors";
    model.transformer_subfolder = "b";
    model.unet = "/unet";
    model.unet_subfolder = "c";
    model.vae = "/vae";
    model.t5 = "/t5";
    model.from_scratch = true;
    model.vae_dtype = model.text_encoder_dtype = EncoderFormat::fp32;
    model.tokenizer_max_length = 77;
    model.prediction_type = PredictionType::v_prediction;
    model.rescale_betas_zero_snr = false;
    model.snr_gamma = 5;
    model.offset_noise = true;
    model.noise_offset = 0.05;
    model.noise_offset_probability = 0.5;
    model.input_perturbation = 0.2;
    model.flow_schedule_shift = 3;
    model.flow_schedule_auto_shift = true;
    model.flow_sigmoid_scale = 1.5;
    model.flow_use_uniform_schedule = true;
    model.flux_guidance_mode = FluxGuidanceMode::random_range;
    model.flux_guidance_value = 2;
    model.flux_guidance_min = 1;
    model.flux_guidance_max = 3;
    model.flux_attention_masked_training = true;
    const strata_test::TemporaryFolder folder;
    const auto file = folder.path() / model_record_name;
    for (const ModelSettings& written : {model, ModelSettings{}}) {
        std::ofstream{file} << model_record_text(written);
        EXPECT_EQ(model_record_text(read_model_record(file)), model_record_text(written));
    }
    const auto read = [&] { return nlohmann::json::parse(model_record_text(model)); }();
    const auto usual = nlohmann::json::parse(model_record_text({}));
    for (const auto& item : read.items()) EXPECT_NE(item.value(), usual.at(item.key())) << item.key();
}

TEST(ModelRecord, PathsMeanTheSameFromAnyFolder) {
    ModelSettings model;
    model.path = "models/flux";
    const auto json = nlohmann::json::parse(model_record_text(model));
    EXPECT_EQ(json.at("pretrained_model_name_or_path"), (std::filesystem::current_path() / "models/flux").string());
    EXPECT_EQ(json.at("pretrained_vae_model_name_or_path"), "");
}

TEST(ModelRecord, WhatNoRunHasWrittenIsRefused) {
    const strata_test::TemporaryFolder folder;
    const auto file = folder.path() / model_record_name;
    for (const char* text : {"[]", R"({"model_famly": "flux"})", R"({"snr_gamma": "much"})"}) {
        std::ofstream{file} << text;
        EXPECT_THROW((void)read_model_record(file), strata::Error) << text;
    }
}

}  // namespace
