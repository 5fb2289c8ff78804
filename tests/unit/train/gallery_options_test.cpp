// What a gallery draws and when, of the keys validation_... of a configuration.

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <strata/config/document.hpp>
#include <strata/config/trainer_config.hpp>
#include <strata/core/error.hpp>
#include <strata/train/gallery_options.hpp>

namespace {

using namespace strata;
using train::GalleryOptions;
using Sizes = std::vector<pictures::PictureSize>;

GalleryOptions options_of(std::string_view json) {
    return GalleryOptions::from(
        config::look_at_trainer_config(config::parse_json(json, "config.json", config::JsonDialect::relaxed)));
}

TEST(GalleryOptions, EveryKeyOfAConfigurationActs) {
    const GalleryOptions silent = options_of("{}");
    EXPECT_TRUE(silent.prompts.empty());
    EXPECT_EQ(silent.sizes, (Sizes{{256, 256}}));
    EXPECT_EQ(silent.sampler.method, std::nullopt);
    EXPECT_EQ(silent.sampler.real_guidance, 1);
    const GalleryOptions options = options_of(R"({"validation_prompts": ["a cat", "a dog"],
        "validation_negative_prompt": "blurry", "validation_resolution": "64x32,48", "num_validation_images": 2,
        "validation_num_inference_steps": 7, "validation_guidance": 5, "validation_seed": 9,
        "validation_noise_scheduler": "unipc", "validation_guidance_rescale": 0.5, "validation_guidance_real": 4,
        "ema_validation": "ema_only", "validation_step_interval": 20, "validation_epoch_interval": 3,
        "validation_on_startup": true, "disable_benchmark": true})");
    EXPECT_EQ(options.prompts, (std::vector<std::string>{"a cat", "a dog"}));
    EXPECT_EQ(options.negative_prompt, "blurry");
    EXPECT_EQ(options.sizes, (Sizes{{64, 32}, {48, 48}}));
    EXPECT_EQ(options.images, 2);
    EXPECT_EQ(options.sampler.steps, 7);
    EXPECT_EQ(options.sampler.guidance, 5);
    EXPECT_EQ(options.sampler.seed, 9U);
    EXPECT_EQ(options.sampler.method, SamplingMethod::unipc);
    EXPECT_EQ(options.sampler.rescale, 0.5);
    EXPECT_EQ(options.sampler.real_guidance, 4);
    EXPECT_EQ(options.average, config::EmaValidation::ema_only);
    EXPECT_EQ(options.every_steps, 20);
    EXPECT_EQ(options.every_epochs, 3);
    EXPECT_TRUE(options.at_start);
    EXPECT_TRUE(silent.without_adapter);
    EXPECT_FALSE(options.without_adapter);
}

TEST(GalleryOptions, WhatCannotBeDrawnIsRefused) {
    const auto code_of = [](const GalleryOptions& options) {
        try {
            train::check_gallery(options, 16);
        } catch (const Error& error) {
            return error.code();
        }
        return Errc{};
    };
    EXPECT_EQ(code_of({.sizes = {{64, 32}, {48, 16}}}), Errc{});
    EXPECT_EQ(code_of({.sizes = {{64, 32}, {40, 16}}}), Errc::bad_value);
    EXPECT_EQ(code_of({.sizes = {{16, 0}}}), Errc::bad_value);
    EXPECT_EQ(code_of({.sizes = {}}), Errc::bad_value);
    EXPECT_EQ(code_of({.images = 0}), Errc::bad_value);
}

TEST(GalleryOptions, PicturesOfAPromptStayInOneRow) {
    GalleryOptions options{.prompts = std::vector<std::string>(8)};
    EXPECT_EQ(train::prompts_in_a_row(options, 1), 4);
    EXPECT_EQ(train::prompts_in_a_row(options, 2), 2) << "with the average beside each";
    options.images = 3;
    EXPECT_EQ(train::prompts_in_a_row(options, 2), 1);
    options = {.prompts = {"one", "two"}};
    EXPECT_EQ(train::prompts_in_a_row(options, 1), 2) << "no empty columns";
}

TEST(GalleryOptions, TheReportSaysWhichPictureIsWhich) {
    GalleryOptions options{.prompts = {"a cat"}};
    EXPECT_EQ(train::sample_note(options, {"trained"}), "");
    options.sizes = {{64, 32}, {32, 64}};
    options.images = 2;
    EXPECT_EQ(
        train::sample_note(options, {"trained", "average"}),
        "Of every prompt, from left to right: sizes 64 x 32, 32 x 64; 2 images of each; of each the trained weights, "
        "their moving average");
    options = {.prompts = {"a cat"}};
    EXPECT_EQ(train::sample_note(options, {"without adapter", "trained"}),
              "Of every prompt, from left to right: of each without adapter, the trained weights");
}

TEST(GalleryOptions, AnEpochEndsWithTheStepThatCompletesIt) {
    const auto ends = [](std::int64_t step, std::int64_t steps_an_epoch, std::int64_t every) {
        return train::ends_epochs(
            {.step = step, .epoch = static_cast<double>(step) / static_cast<double>(steps_an_epoch)}, every);
    };
    for (const std::int64_t steps_an_epoch : {1, 3, 7, 10, 49})
        for (std::int64_t step = 1; step <= 200; ++step) {
            EXPECT_EQ(ends(step, steps_an_epoch, 1), step % steps_an_epoch == 0) << step << " of " << steps_an_epoch;
            EXPECT_EQ(ends(step, steps_an_epoch, 2), step % (2 * steps_an_epoch) == 0)
                << step << " of " << steps_an_epoch;
        }
    EXPECT_TRUE(train::ends_epochs({.step = 2, .epoch = 1.25}, 1)) << "an epoch is no whole number of steps";
    EXPECT_FALSE(train::ends_epochs({.step = 3, .epoch = 1.875}, 1));
}

}  // namespace
