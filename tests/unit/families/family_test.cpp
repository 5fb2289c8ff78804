// Family, AnyModel, AnyRecipe: folders of published models become something to train, and nothing of it is copied or lost.

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <strata/config/model_settings.hpp>
#include <strata/core/error.hpp>
#include <strata/families/family.hpp>
#include <strata/families/pretrained_encoders.hpp>
#include <strata/families/weights_id.hpp>
#include <strata/storage/atomic_file.hpp>
#include <strata/testing/recipe_conformance.hpp>
#include <strata/train/gallery.hpp>
#include <strata/train/trainable.hpp>
#include <strata/weights/file_values.hpp>
#include <strata/weights/weight_files.hpp>
#include <strata/zero/in_units.hpp>

#include "../../support/families.hpp"
#include "../../support/made_pipeline.hpp"
#include "../../support/made_weights.hpp"
#include "../../support/temporary_folder.hpp"

namespace {

namespace config = strata::config;
namespace data = strata::data;
namespace families = strata::families;
namespace fs = std::filesystem;
namespace models = strata::models;
using strata::Errc;
using strata_test::kinds;
using strata_test::pipeline;
using strata_test::PipelineKind;
using strata_test::Refusal;
using strata_test::refusal;
using strata_test::settings_of;

static_assert(strata::Trainable<families::AnyModel>);
static_assert(strata::train::DrawingRecipe<families::AnyRecipe, families::AnyModel>);

const char* denoiser_of(PipelineKind kind) { return kind == PipelineKind::flux ? "transformer" : "unet"; }

/// What a source would make of two captioned pictures of 32 x 32.
families::AnyBatch batch_of(const families::AnyRecipe& recipe) {
    torch::manual_seed(4);
    auto of_pictures = recipe.load_picture_encoders(at::kCPU);
    auto of_captions = recipe.load_caption_encoders(at::kCPU);
    const data::Geometry geometry{{32, 32}, {{32, 32}, 32, 32, 0, 0}};
    const auto pictures = recipe.encode_pictures(of_pictures, {at::rand({2, 3, 32, 32}) * 2 - 1, {geometry, geometry}});
    const std::vector<std::string> texts{"a cat", "dogs"};
    const auto captions = recipe.encode_captions(of_captions, texts);
    std::vector<data::Example> examples;
    for (std::size_t i = 0; i < 2; ++i)
        examples.push_back({.picture = pictures[i],
                            .caption = captions[i],
                            .geometry = geometry,
                            .text = texts[i],
                            .name = "picture" + std::to_string(i) + ".png"});
    return recipe.collate(examples);
}

TEST(Family, IsWhatTheFolderSaysAndItsRecipeConforms) {
    const std::map<PipelineKind, std::string> names{
        {PipelineKind::flux, "flux"}, {PipelineKind::sdxl, "sdxl"}, {PipelineKind::sd15, "sd15"}};
    for (const PipelineKind kind : kinds) {
        const auto family = families::make_family(settings_of(kind));
        SCOPED_TRACE(family->title());
        EXPECT_EQ(family->name(), names.at(kind));
        EXPECT_TRUE(family->scheduler().has_value());
        EXPECT_EQ(strata::testing::recipe_failures(*family->recipe()), std::vector<std::string>{});
        for (const data::TensorSpec& spec : family->recipe()->caption_tensors()) {
            if (spec.name == "mask") continue;
            EXPECT_EQ(spec.type, at::kBFloat16) << spec.name;
        }
        EXPECT_EQ(family->recipe()->picture_tensors({32, 32}).at(0).type, at::kBFloat16);
    }
}

/// The values in memory are those of the files, under their names, and there is no other tensor.
TEST(Family, AModelHasTheFilesTensors) {
    for (const PipelineKind kind : kinds) {
        const auto model = families::make_family(settings_of(kind))->make_model();
        strata::make_whole(*model);
        const strata::weights::WeightFiles files{pipeline(kind) / denoiser_of(kind)};
        std::size_t compared = 0;
        for (const auto& parameter : model->named_parameters()) {
            const auto* const tensor = files.find(parameter.key());
            ASSERT_NE(tensor, nullptr) << parameter.key();
            const at::Tensor expected = at::empty(parameter.value().sizes(), at::kFloat);
            strata::weights::read_values(*tensor, 0, expected.view(-1));
            EXPECT_TRUE(at::equal(parameter.value().detach(), expected)) << parameter.key();
            ++compared;
        }
        EXPECT_EQ(compared, files.tensors().size());
    }
}

TEST(Family, NoUnitHasMemoryBeforeAnEngineTakesIt) {
    const auto model = families::make_family(settings_of(PipelineKind::flux))->make_model();
    std::size_t without = 0;
    for (const auto& parameter : model->named_parameters())
        if (parameter.key().find("transformer_blocks.") != std::string::npos) {
            EXPECT_EQ(parameter.value().storage().data(), nullptr) << parameter.key();
            ++without;
        }
    EXPECT_GT(without, 20U);
}

TEST(Family, LossesHaveTheBitsOfTheInnerModel) {
    for (const PipelineKind kind : kinds) {
        const auto family = families::make_family(settings_of(kind));
        SCOPED_TRACE(family->title());
        const auto model = family->make_model();
        strata::make_whole(*model);
        const families::AnyBatch batch = batch_of(*family->recipe());
        EXPECT_EQ(batch.samples, (std::vector<std::string>{"picture0.png", "picture1.png"}));
        torch::manual_seed(9);
        const at::Tensor loss = model->loss(batch);
        const at::Tensor evaluated = model->evaluation_loss(batch);
        torch::manual_seed(9);
        std::visit(
            [&](const auto& inner) {
                using Inner = std::remove_reference_t<decltype(*inner)>;
                if constexpr (std::is_same_v<Inner, models::SmallFlux>) {
                    ADD_FAILURE() << "files of no SmallFlux";
                } else {
                    const auto& own = std::get<typename Inner::Batch>(batch.of);
                    EXPECT_TRUE(at::equal(inner->loss(own), loss));
                    EXPECT_TRUE(at::equal(inner->evaluation_loss(own), evaluated));
                }
            },
            model->inner());
        EXPECT_TRUE(loss.isfinite().item<bool>());
        loss.backward();
        for (const auto& parameter : model->named_parameters())
            EXPECT_TRUE(parameter.value().grad().defined()) << parameter.key();
    }
}

TEST(Family, ModesAndBuffersAreTheInnerModels) {
    const auto model = families::make_family(settings_of(PipelineKind::sd15))->make_model();
    auto* const inner = model->as<models::Sd15Unet>();
    ASSERT_NE(inner, nullptr);
    EXPECT_EQ(model->as<models::Flux>(), nullptr);
    model->eval();
    EXPECT_FALSE(inner->is_training());
    EXPECT_EQ(model->named_buffers().size(), inner->named_buffers().size());
    EXPECT_EQ(model->named_parameters().keys(), inner->named_parameters().keys());
}

TEST(Family, ABatchOfAnotherModelIsRefused) {
    const auto flux = families::make_family(settings_of(PipelineKind::flux))->make_model();
    try {
        (void)flux->loss(families::AnyBatch{models::UnetBatch{}});
        ADD_FAILURE() << "accepted";
    } catch (const strata::Error& error) {
        EXPECT_EQ(error.code(), Errc::bad_value);
        EXPECT_NE(std::string{error.what()}.find("batch that was made for a U-Net"), std::string::npos);
    }
}

TEST(Family, SmallNeedsNoFiles) {
    torch::manual_seed(1);
    const auto family = families::make_family({});
    EXPECT_EQ(family->name(), "small");
    const auto model = family->make_model();
    strata::make_whole(*model);
    torch::manual_seed(1);
    const models::SmallFlux plain;
    for (const auto& parameter : plain.named_parameters())
        EXPECT_TRUE(at::equal(parameter.value(), model->named_parameters()[parameter.key()])) << parameter.key();
}

TEST(Family, FromScratchNeedsNoWeightsOfTheDenoiserAndIsRandom) {
    strata_test::TemporaryFolder folder;
    fs::copy(pipeline(PipelineKind::sdxl), folder.path(), fs::copy_options::recursive);
    fs::remove(folder.path() / "unet/diffusion_pytorch_model.safetensors");
    config::ModelSettings settings = settings_of(PipelineKind::sdxl);
    settings.path = folder.path().string();
    EXPECT_TRUE(refusal(settings).says("unet"));
    settings.from_scratch = true;
    const auto family = families::make_family(settings);
    torch::manual_seed(1);
    const auto one = family->make_model();
    torch::manual_seed(2);
    const auto other = family->make_model();
    strata::make_whole(*one);
    strata::make_whole(*other);
    EXPECT_FALSE(at::equal(one->named_parameters()["conv_in.weight"], other->named_parameters()["conv_in.weight"]));
}

TEST(Family, PartsMayLieElsewhere) {
    strata_test::TemporaryFolder folder;
    for (const char* part : {"vae", "transformer", "text_encoder_2"})
        fs::copy(pipeline(PipelineKind::flux) / part, folder.path() / part, fs::copy_options::recursive);
    strata_test::TemporaryFolder rest;
    fs::copy(pipeline(PipelineKind::flux), rest.path(), fs::copy_options::recursive);
    for (const char* part : {"vae", "transformer", "text_encoder_2"}) fs::remove_all(rest.path() / part);
    config::ModelSettings settings = settings_of(PipelineKind::flux);
    settings.path = rest.path().string();
    const Refusal missing = refusal(settings);
    EXPECT_EQ(missing.code, Errc::bad_model_folder);
    for (const char* part : {"/vae is missing", "/transformer is missing", "/text_encoder_2 is missing"})
        EXPECT_TRUE(missing.says(part)) << missing.what;
    settings.vae = folder.path() / "vae";
    settings.transformer = folder.path();  // a whole model, whose transformer is meant
    settings.t5 = folder.path() / "text_encoder_2";
    EXPECT_EQ(refusal(settings).what, "");
    // Weights of a run, without a config.json: sizes are those of the model below pretrained_model_name_or_path.
    fs::copy(pipeline(PipelineKind::sd15) / "unet/diffusion_pytorch_model.safetensors",
             folder.path() / "trained.safetensors");
    config::ModelSettings trained = settings_of(PipelineKind::sd15);
    trained.unet = folder.path() / "trained.safetensors";
    EXPECT_EQ(refusal(trained).what, "");
}

TEST(Family, EverythingThatIsWrongIsOneError) {
    strata_test::TemporaryFolder folder;
    fs::copy(pipeline(PipelineKind::flux), folder.path(), fs::copy_options::recursive);
    fs::remove(folder.path() / "tokenizer/merges.txt");
    fs::remove_all(folder.path() / "tokenizer_2");
    strata_test::made::write_json(folder.path() / "vae/config.json", {{"_class_name", "AutoencoderDC"}});
    fs::remove(folder.path() / "text_encoder/model.safetensors");
    config::ModelSettings settings = settings_of(PipelineKind::flux);
    settings.path = folder.path().string();
    const Refusal all = refusal(settings);
    EXPECT_EQ(all.code, Errc::bad_model_folder);
    for (const char* what : {"merges.txt is missing", "tokenizer_2 is missing", "AutoencoderDC"})
        EXPECT_TRUE(all.says(what)) << what << " in " << all.what;
    settings = settings_of(PipelineKind::flux);
    settings.vae = pipeline(PipelineKind::sdxl) / "vae";
    settings.t5 = pipeline(PipelineKind::sdxl) / "text_encoder_2";
    EXPECT_TRUE(refusal(settings).says("config.json")) << "another model's encoder";
    settings = settings_of(PipelineKind::sdxl);
    settings.family = "flux";
    EXPECT_TRUE(refusal(settings).says("'model_family' is flux")) << refusal(settings).what;
    settings.family = "wan";
    EXPECT_EQ(refusal(settings).code, Errc::bad_value);
}

TEST(Family, ANameOfAHubSaysThatNothingIsFetched) {
    config::ModelSettings settings;
    settings.family = "flux";
    settings.path = "black-forest-labs/FLUX.1-dev";
    const Refusal hub = refusal(settings);
    EXPECT_EQ(hub.code, Errc::bad_model_folder);
    EXPECT_TRUE(hub.says("does not fetch models of a hub")) << hub.what;
    EXPECT_TRUE(
        hub.says("transformer/, vae/, text_encoder/, text_encoder_2/, tokenizer/, tokenizer_2/ and scheduler/"));
}

TEST(Family, KeysOfTheObjectiveReachTheModel) {
    config::ModelSettings flux = settings_of(PipelineKind::flux);
    flux.flow_sigmoid_scale = 2;
    flux.flow_schedule_shift = 3;
    flux.flux_guidance_mode = config::FluxGuidanceMode::random_range;
    flux.flux_attention_masked_training = true;
    flux.offset_noise = true;
    const auto model = families::make_family(flux)->make_model();
    const models::FluxTraining& training = model->as<models::Flux>()->training_options();
    EXPECT_EQ(training.flow.density.deviation, 2);
    EXPECT_EQ(training.flow.shift, 3);
    EXPECT_EQ(training.least_guidance, 0);
    EXPECT_EQ(training.most_guidance, 4);
    EXPECT_TRUE(training.masks_text);
    EXPECT_EQ(training.flow.noise.offset, 0.1);

    config::ModelSettings sdxl = settings_of(PipelineKind::sdxl);
    sdxl.snr_gamma = 5;
    sdxl.rescale_betas_zero_snr = true;
    EXPECT_TRUE(refusal(sdxl).says("v_prediction"));
    sdxl.prediction_type = config::PredictionType::v_prediction;
    const auto unet = families::make_family(sdxl)->make_model();
    const auto& objective = unet->as<models::SdxlUnet>()->objective();
    EXPECT_EQ(objective.options().min_snr_gamma, 5);
    EXPECT_EQ(objective.options().prediction, strata::diffusion::Prediction::v);
    EXPECT_TRUE(objective.schedule().ends_in_noise());
}

TEST(Family, CachesAreNamedAfterWhatTheFilesHold) {
    strata_test::TemporaryFolder folder;
    const auto write = [&](const char* name, float first) {
        strata_test::write_weights(folder.path() / name, {{"small", {7}}, {"large", {300, 200}}}, first);
        return families::weights_id(strata::weights::WeightFiles{folder.path() / name});
    };
    const std::string id = write("a.safetensors", 1);
    EXPECT_EQ(id.size(), 32U);
    EXPECT_EQ(write("copy.safetensors", 1), id);
    EXPECT_NE(write("other.safetensors", 2), id);

    const auto recipe = families::make_family(settings_of(PipelineKind::flux))->recipe();
    config::ModelSettings wide = settings_of(PipelineKind::flux);
    wide.vae_dtype = wide.text_encoder_dtype = config::EncoderFormat::fp32;
    const auto in_fp32 = families::make_family(wide)->recipe();
    EXPECT_NE(recipe->picture_id(), in_fp32->picture_id());
    EXPECT_NE(recipe->caption_id(), in_fp32->caption_id());
    config::ModelSettings longer = settings_of(PipelineKind::flux);
    longer.tokenizer_max_length = 20;
    EXPECT_NE(recipe->caption_id(), families::make_family(longer)->recipe()->caption_id());
    EXPECT_EQ(recipe->picture_id(), families::make_family(longer)->recipe()->picture_id());
}

/// In bf16 pictures and captions are what they are in fp32, but for bf16's digits; an autoencoder is in its type, whole.
TEST(Family, EncodersComputeInTheTypeThatIsAsked) {
    for (const PipelineKind kind : kinds) {
        config::ModelSettings wide = settings_of(kind);
        wide.vae_dtype = wide.text_encoder_dtype = config::EncoderFormat::fp32;
        const auto exact = batch_of(*families::make_family(wide)->recipe());
        const auto rounded = batch_of(*families::make_family(settings_of(kind))->recipe());
        const auto latents_of = [](const families::AnyBatch& batch) {
            return std::visit([](const auto& one) { return one.latents_BCHW; }, batch.of);
        };
        const at::Tensor a = latents_of(exact), b = latents_of(rounded);
        EXPECT_LT((a - b).norm().item<double>(), 0.1 * a.norm().item<double>());
        EXPECT_FALSE(at::equal(a, b));
    }
    const families::ModelPart part{pipeline(PipelineKind::flux) / "vae",
                                   pipeline(PipelineKind::flux) / "vae/config.json"};
    const auto loader = families::autoencoder_loader(part, at::kBFloat16);
    EXPECT_EQ(loader.load(at::kCPU).id(), loader.id());
}

TEST(Family, AutoencodersOfOldFilesHaveTheirAttention) {
    strata_test::TemporaryFolder folder;
    fs::copy(pipeline(PipelineKind::sd15) / "vae", folder.path() / "vae", fs::copy_options::recursive);
    const fs::path file = folder.path() / "vae/diffusion_pytorch_model.safetensors";
    std::string bytes;
    {
        std::ifstream in{file, std::ios::binary};
        bytes.assign(std::istreambuf_iterator<char>{in}, {});
    }
    for (const auto& [now, then] : {std::pair<std::string, std::string>{".to_q.", ".query."}}) {
        // The header says its length in front; names may get longer where spaces behind it make room.
        const std::uint64_t length = *reinterpret_cast<const std::uint64_t*>(bytes.data());
        std::string header = bytes.substr(8, length);
        std::size_t renamed = 0;
        for (std::size_t at = 0; (at = header.find(now, at)) != std::string::npos; ++renamed)
            header.replace(at, now.size(), then);
        EXPECT_EQ(renamed, 4U) << "weight and bias of both halves";
        while (header.size() % 8 != 0) header += ' ';
        const auto size = static_cast<std::uint64_t>(header.size());
        bytes = std::string{reinterpret_cast<const char*>(&size), 8} + header + bytes.substr(8 + length);
    }
    strata::storage::write_file(file, bytes);
    const families::ModelPart part{folder.path() / "vae", folder.path() / "vae/config.json"};
    const families::ModelPart plain{pipeline(PipelineKind::sd15) / "vae", part.config};
    const at::Tensor picture = at::rand({1, 3, 16, 16});
    EXPECT_TRUE(at::equal(families::autoencoder_loader(part, at::kFloat).load(at::kCPU).encode(picture),
                          families::autoencoder_loader(plain, at::kFloat).load(at::kCPU).encode(picture)));
}

}  // namespace
