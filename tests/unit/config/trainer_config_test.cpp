#include <chrono>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <strata/config/sample_size.hpp>
#include <strata/config/trainer_config.hpp>
#include <strata/core/sampling_method.hpp>
#include <strata/storage/atomic_file.hpp>

#include "../../support/temporary_folder.hpp"
#include "temporary_json.hpp"

namespace {

using namespace strata::config;
using strata::Errc;
using strata::ScheduleShape;
using strata_test::TemporaryJson;
using strata_test::thrown_by;

TrainerConfig load(const char* json) { return load_trainer_config(TemporaryJson{json}.path()); }
strata_test::Thrown refused(const char* json) {
    return thrown_by([&] { (void)load(json); });
}

TEST(TrainerConfig, AnEmptyFileTrainsOneEpochWithTheDefaults) {
    const TrainerConfig config = load("{}");
    EXPECT_EQ(config.num_train_epochs, 1);
    EXPECT_EQ(config.max_train_steps, 0);
    EXPECT_EQ(config.train_batch_size, 4);
    EXPECT_TRUE(config.optimizer.all().empty());
}

TEST(TrainerConfig, ReadsKeysWithAndWithoutDashes) {
    const TrainerConfig config = load(R"({"--max_train_steps": 100, "learning_rate": "3e-4", "lr_scheduler": "cosine",
        "adam_beta1": 0.9, "adam_beta2": 0.95, "validation_prompts": ["a red star", "a blue car"], "num_train_epochs": 0})");
    EXPECT_EQ(config.max_train_steps, 100);
    EXPECT_EQ(config.num_train_epochs, 0);
    EXPECT_EQ(config.options.schedule.lr, 3e-4);
    EXPECT_EQ(config.options.schedule.shape, ScheduleShape::cosine);
    ASSERT_NE(config.optimizer.find("optimizer_beta2"), nullptr) << "by its other name";
    EXPECT_EQ(config.optimizer.find("optimizer_beta2")->json, "0.95");
    EXPECT_EQ(config.validation_prompts.size(), 2U);
}

TEST(TrainerConfig, ContradictionsAreRefused) {
    for (const char* json :
         {R"({"max_train_steps": 10, "num_train_epochs": 1})", R"({"train_batch_size": 0})",
          R"({"gradient_accumulation_steps": 0})", R"({"train_batch_size": 2.5})", R"({"seed": 1.5})",
          R"({"adam_beta1": 0.9})", R"({"adam_beta1": 0.9, "optimizer_beta1": 0.8, "adam_beta2": 0.9})",
          R"({"learning_rate": 1e-4, "lr_end": 1e-3})", R"({"learning_rate": -1})",
          R"({"aspect_bucket_alignment": 48})", R"({"max_train_steps": 5, "lr_warmup_steps": 6})",
          R"({"seed": 1, "--seed": 1})", R"({"caption_dropout_probability": 1.5})", "[]"})
        EXPECT_EQ(refused(json).code, Errc::bad_value) << json;
}

TEST(TrainerConfig, TypingErrorsAndForeignKeysAreToldApart) {
    const auto typo = refused(R"({"--learing_rate": 1})");
    EXPECT_EQ(typo.code, Errc::unknown_key);
    EXPECT_TRUE(typo.says("did you mean 'learning_rate'")) << typo.message;
    EXPECT_EQ(refused(R"({"optimizer": "prodigy"})").code, Errc::unsupported_key);
    EXPECT_TRUE(refused(R"({"optimizer": "prodigy"})").says("use the nearest that it has, adamw"));
    EXPECT_EQ(refused(R"({"controlnet": true})").code, Errc::unsupported_key);
    EXPECT_NO_THROW((void)load(R"({"controlnet": "false", "ema_cpu_only": true})"));
    EXPECT_TRUE(refused(R"({"modle_family": "flux"})").says("did you mean 'model_family'"))
        << "of SimpleTuner's keys, too";
    EXPECT_EQ(refused(R"({"lr_scheduler": "polynomal"})").code, Errc::bad_value);
}

TEST(TrainerConfig, ReadsHowBucketsAreChosen) {
    EXPECT_EQ(load("{}").bucket_mode, BucketMode::nearest);
    EXPECT_EQ(load(R"({"bucket_mode": "default"})").bucket_mode, BucketMode::nearest);
    const TrainerConfig config = load(R"({"bucket_mode": "simpletuner", "--aspect_bucket_rounding": 3})");
    EXPECT_EQ(config.bucket_mode, BucketMode::simpletuner);
    EXPECT_EQ(config.aspect_bucket_rounding, 3);
    EXPECT_EQ(refused(R"({"bucket_mode": "kohya"})").code, Errc::bad_value);
    EXPECT_EQ(refused(R"({"aspect_bucket_rounding": 0})").code, Errc::bad_value);
    EXPECT_TRUE(load(R"({"vae_cache_ondemand": true})").image_defaults().vae_cache_ondemand);
}

TEST(TrainerConfig, ReadsTheShapeOfASchedule) {
    const TrainerConfig config = load(R"({"lr_scheduler": "polynomial", "lr_power": 2, "lr_num_cycles": 3})");
    EXPECT_EQ(config.options.schedule.shape, ScheduleShape::polynomial);
    EXPECT_EQ(config.options.schedule.power, 2.0);
    EXPECT_EQ(config.options.schedule.cycles, 3);
    for (const auto& [name, shape] : strata::schedule_shapes)
        EXPECT_EQ(load((R"({"lr_scheduler": ")" + std::string{name} + "\"}").c_str()).options.schedule.shape, shape)
            << name;
    EXPECT_EQ(refused(R"({"lr_power": 0})").code, Errc::bad_value);
}

TEST(TrainerConfig, AMovingAverageIsLeftToTheProgramUnlessTheFileNamesIt) {
    const TrainerConfig silent = load("{}");
    EXPECT_FALSE(silent.use_ema.has_value());
    EXPECT_FALSE(silent.ema_device.has_value());
    EXPECT_EQ(silent.ema_validation, EmaValidation::comparison);
    const TrainerConfig config =
        load(R"({"use_ema": true, "ema_decay": 0.9, "ema_warmup_steps": 5, "ema_update_interval": 100,
        "ema_device": "accelerator", "ema_validation": "ema_only"})");
    EXPECT_EQ(config.use_ema, true);
    EXPECT_EQ(config.options.engine.ema.decay, 0.9);
    EXPECT_EQ(config.ema_warmup_steps, 5);
    EXPECT_EQ(config.options.engine.ema.interval, 100);
    EXPECT_EQ(config.ema_device, EmaDevice::accelerator);
    EXPECT_EQ(config.ema_validation, EmaValidation::ema_only);
    EXPECT_EQ(load(R"({"use_ema": "false"})").use_ema, false);
    EXPECT_FALSE(load(R"({"use_ema": null, "ema_device": null})").use_ema.has_value());
    for (const char* json : {R"({"ema_decay": 1})", R"({"ema_decay": -0.1})", R"({"ema_update_interval": 0})",
                             R"({"ema_device": "gpu"})", R"({"ema_validation": "both"})", R"({"use_ema": 1})"})
        EXPECT_EQ(refused(json).code, Errc::bad_value) << json;
}

TEST(TrainerConfig, ReadsClippingMomentumStageThreeAndWaiting) {
    const TrainerConfig defaults = load("{}");
    EXPECT_EQ(defaults.grad_clip_method, GradClipMethod::norm);
    EXPECT_EQ(defaults.options.collective_timeout, std::chrono::seconds{600});
    EXPECT_EQ(defaults.options.engine.max_live_parameters, 0);
    EXPECT_EQ(defaults.options.engine.prefetch_bucket_bytes, -1);
    const TrainerConfig config =
        load(R"({"grad_clip_method": "value", "optimizer_momentum": 0.5, "prefetch_bucket_bytes": 0,
        "stage3_max_live_parameters": 1e9, "collective_timeout": 5400})");
    EXPECT_EQ(config.grad_clip_method, GradClipMethod::value);
    ASSERT_NE(config.optimizer.find("optimizer_momentum"), nullptr);
    EXPECT_EQ(config.optimizer.find("optimizer_momentum")->json, "0.5");
    EXPECT_EQ(config.options.engine.prefetch_bucket_bytes, 0);
    EXPECT_EQ(config.options.engine.max_live_parameters, 1'000'000'000);
    EXPECT_EQ(config.options.collective_timeout, std::chrono::seconds{5400});
    for (const char* json :
         {R"({"grad_clip_method": "agc"})", R"({"optimizer_momentum": 1})", R"({"prefetch_bucket_bytes": -2})",
          R"({"max_live_parameters": -1})", R"({"collective_timeout": 0})", R"({"collective_timeout": 1.5})",
          R"({"max_live_parameters": 1, "stage3_max_live_parameters": 2})"})
        EXPECT_EQ(refused(json).code, Errc::bad_value) << json;
}

TEST(TrainerConfig, AllThatIsWrongIsSaidAtOnceWithItsPlace) {
    const auto error = refused(
        "{\n  \"learing_rate\": 1,\n  \"--train_batch_size\": 0,\n  \"lr_scheduler\": \"polynomal\",\n"
        "  \"max_train_steps\": 10, \"num_train_epochs\": 1\n}");
    EXPECT_TRUE(error.says("4 problems")) << error.message;
    EXPECT_TRUE(error.says("config.json:2:19: /learing_rate is unknown")) << error.message;
    EXPECT_TRUE(error.says("config.json:3:25: /--train_batch_size is 0, out of its range")) << error.message;
    EXPECT_TRUE(error.says("config.json:4:19: /lr_scheduler is \"polynomal\", which is none of its values"))
        << error.message;
    EXPECT_TRUE(error.says("'max_train_steps' and 'num_train_epochs' are both given")) << error.message;
    EXPECT_TRUE(error.says("did you mean 'learning_rate'")) << error.message;
}

TEST(TrainerConfig, KeysOfDataSetsAreTheirDefaults) {
    const ImageDataset defaults = load(R"({"minimum_image_size": 256, "instance_prompt": "a cat", "crop": true,
        "skip_file_discovery": false, "vae_cache_clear_each_epoch": true, "resolution": 512})")
                                      .image_defaults();
    EXPECT_EQ(defaults.minimum_image_size, 256);
    EXPECT_EQ(defaults.instance_prompt, "a cat");
    EXPECT_TRUE(defaults.crop);
    EXPECT_TRUE(defaults.vae_cache_clear_each_epoch);
    EXPECT_EQ(defaults.resolution, 512);
    EXPECT_TRUE(refused(R"({"crop_style": "centr"})").says("/crop_style is \"centr\""));
}

TEST(TrainerConfig, SamplesAreDrawnAsTheirKeysSay) {
    const TrainerConfig silent = load("{}");
    EXPECT_EQ(silent.validation_resolution, (std::vector<SampleSize>{{256, 256}}));
    EXPECT_FALSE(silent.validation_noise_scheduler.has_value());
    EXPECT_TRUE(silent.all_prompts().empty());
    const TrainerConfig config = load(R"({"validation_resolution": "1024x768, 512", "num_validation_images": 3,
        "validation_negative_prompt": "blurry", "validation_noise_scheduler": "euler-a", "validation_guidance_real": 3.5,
        "validation_guidance_rescale": 0.7, "validation_on_startup": true, "validation_epoch_interval": 2})");
    EXPECT_EQ(config.validation_resolution, (std::vector<SampleSize>{{1024, 768}, {512, 512}}));
    EXPECT_EQ(config.num_validation_images, 3);
    EXPECT_EQ(config.validation_negative_prompt, "blurry");
    EXPECT_EQ(config.validation_noise_scheduler, strata::SamplingMethod::euler_ancestral);
    EXPECT_EQ(config.validation_guidance_real, 3.5);
    EXPECT_EQ(config.validation_guidance_rescale, 0.7);
    EXPECT_TRUE(config.validation_on_startup);
    EXPECT_EQ(config.validation_epoch_interval, 2);
    for (const char* json : {R"({"num_validation_images": 0})", R"({"num_validation_images": 1.5})",
                             R"({"validation_guidance_rescale": 1.1})", R"({"validation_guidance_real": -1})",
                             R"({"validation_on_startup": 1})", R"({"validation_epoch_interval": -1})",
                             R"({"validation_negative_prompt": 5})", R"({"validation_prompt_file": 5})"})
        EXPECT_EQ(refused(json).code, Errc::bad_value) << json;
}

TEST(TrainerConfig, SizesOfSamplesHaveManySpellings) {
    const auto sizes = [](const std::string& value) {
        return load(("{\"validation_resolution\": " + value + "}").c_str()).validation_resolution;
    };
    EXPECT_EQ(sizes("96"), (std::vector<SampleSize>{{96, 96}}));
    EXPECT_EQ(sizes("\"1280X768\""), (std::vector<SampleSize>{{1280, 768}}));
    EXPECT_EQ(sizes("1.0"), (std::vector<SampleSize>{{1024, 1024}})) << "megapixels";
    EXPECT_EQ(sizes("0.25"), (std::vector<SampleSize>{{512, 512}}));
    EXPECT_EQ(sizes("[64, \"64x32,0.25\"]"), (std::vector<SampleSize>{{64, 64}, {64, 32}, {512, 512}}));
    for (const char* value :
         {"\"\"", "\"1024x\"", "\"x768\"", "\"1024x768,\"", "\"wide\"", "\"1024x7\"", "\"100x100.5\"", "20000", "0",
          "-64", "true", "{}", "[]", "[[64]]", "\"nanxnan\"", "\"inf\""})
        EXPECT_EQ(refused(("{\"validation_resolution\": " + std::string{value} + "}").c_str()).code, Errc::bad_value)
            << value;
    EXPECT_TRUE(refused(R"({"validation_resolution": "wide"})").says("no size of a picture"));
}

TEST(TrainerConfig, AWayToDrawThatIsNotThereNamesThoseThatAre) {
    const auto unknown = refused(R"({"validation_noise_scheduler": "heun"})");
    EXPECT_EQ(unknown.code, Errc::bad_value);
    for (const char* name : {"`euler`", "`euler-a`", "`ddim`", "`ddpm`", "`dpm++`", "`unipc`", "`flow_matching`"})
        EXPECT_TRUE(unknown.says(name)) << name << ": " << unknown.message;
    const auto other = refused(R"({"validation_noise_scheduler": "perflow"})");
    EXPECT_EQ(other.code, Errc::unsupported_key);
    EXPECT_FALSE(other.says("`perflow`,")) << other.message;
    EXPECT_EQ(load(R"({"validation_noise_scheduler": "flow_matching"})").validation_noise_scheduler,
              strata::SamplingMethod::euler);
}

TEST(TrainerConfig, PromptsMayStandInAFileOneALine) {
    const strata_test::TemporaryFolder folder;
    const auto file = folder.path() / "prompts.txt";
    strata::storage::write_file(file, std::string_view{"\xEF\xBB\xBF"
                                                       "a red star\r\n\n  a blue car \n#1 of a series"});
    const auto config_of = [](const std::filesystem::path& named) {
        return load(
            ("{\"validation_prompts\": [\"first\"], \"validation_prompt_file\": \"" + named.string() + "\"}").c_str());
    };
    EXPECT_EQ(config_of(file).all_prompts(),
              (std::vector<std::string>{"first", "a red star", "a blue car", "#1 of a series"}));
    const auto absent = thrown_by([&] { (void)config_of(folder.path() / "absent.txt").all_prompts(); });
    EXPECT_EQ(absent.code, Errc::unreadable_config);
    EXPECT_TRUE(absent.says("absent.txt")) << absent.message;
    EXPECT_EQ(thrown_by([&] { (void)config_of(folder.path()).all_prompts(); }).code, Errc::unreadable_config);
    strata::storage::write_file(file, std::string_view{" \n\n"});
    EXPECT_EQ(thrown_by([&] { (void)config_of(file).all_prompts(); }).code, Errc::bad_value);
}

}  // namespace
