#pragma once
// strata/train/impl/gallery_options.ipp - a configuration's keys as options of a gallery.

#include <algorithm>
#include <cmath>
#include <string_view>

#include <strata/core/error.hpp>
#include <strata/core/step_name.hpp>
#include <strata/train/gallery_options.hpp>

namespace strata::train {
namespace detail {

/// A name of DrawnSamples::weights.
inline std::string_view in_words(std::string_view weights) {
    if (weights == "trained") return "the trained weights";
    return weights == "average" ? "their moving average" : weights;
}

}  // namespace detail

STRATA_INLINE GalleryOptions GalleryOptions::from(const config::TrainerConfig& config) {
    GalleryOptions options;
    options.prompts = config.all_prompts();
    options.negative_prompt = config.validation_negative_prompt;
    options.sizes.clear();
    for (const config::SampleSize& size : config.validation_resolution)
        options.sizes.push_back({size.width, size.height});
    options.images = static_cast<int>(config.num_validation_images);
    options.sampler = {.steps = static_cast<int>(config.validation_num_inference_steps),
                       .guidance = config.validation_guidance,
                       .seed = static_cast<std::uint64_t>(config.validation_seed),
                       .method = config.validation_noise_scheduler,
                       .rescale = config.validation_guidance_rescale,
                       .real_guidance = config.validation_guidance_real};
    options.average = config.ema_validation;
    options.without_adapter = !config.disable_benchmark;
    options.every_steps = config.validation_step_interval;
    options.every_epochs = config.validation_epoch_interval;
    options.at_start = config.validation_on_startup;
    return options;
}

STRATA_INLINE void check_gallery(const GalleryOptions& options, std::int64_t alignment) {
    if (options.sizes.empty() || options.images < 1)
        throw Error{Errc::bad_value, "a gallery is to draw no picture of a prompt",
                    "give it a size, and one image or more"};
    for (const pictures::PictureSize& size : options.sizes) {
        if (size.width >= 1 && size.height >= 1 && size.width % alignment == 0 && size.height % alignment == 0)
            continue;
        throw Error{Errc::bad_value,
                    "samples cannot be " + std::to_string(size.width) + " x " + std::to_string(size.height) +
                        " pixels: this model needs multiples of " + std::to_string(alignment),
                    "set validation_resolution to multiples of " + std::to_string(alignment)};
    }
}

STRATA_INLINE int prompts_in_a_row(const GalleryOptions& options, std::size_t variants) {
    const auto of_a_prompt = options.sizes.size() * static_cast<std::size_t>(options.images) * variants;
    const auto in_a_row =
        static_cast<std::size_t>(std::max(1, options.columns)) / std::max<std::size_t>(1, of_a_prompt);
    return static_cast<int>(std::clamp<std::size_t>(in_a_row, 1, std::max<std::size_t>(1, options.prompts.size())));
}

STRATA_INLINE DrawnSamples drawn_samples(const GalleryOptions& options, std::int64_t step) {
    return {.step = step,
            .file = "samples/" + core::step_name(step) + ".png",
            .prompts = options.prompts,
            .negative_prompt = options.negative_prompt,
            .sizes = options.sizes,
            .images = options.images,
            .seed = options.sampler.seed,
            .steps = options.sampler.steps,
            .guidance = options.sampler.guidance};
}

STRATA_INLINE std::string sample_note(const GalleryOptions& options, const std::vector<std::string>& weights) {
    std::vector<std::string> parts;
    if (options.sizes.size() > 1) {
        std::string text;
        for (const pictures::PictureSize& size : options.sizes)
            text += (text.empty() ? "" : ", ") + std::to_string(size.width) + " x " + std::to_string(size.height);
        parts.push_back("sizes " + text);
    }
    if (options.images > 1) parts.push_back(std::to_string(options.images) + " images of each");
    if (weights.size() > 1) {
        std::string of_each;
        for (const std::string& one : weights)
            of_each += (of_each.empty() ? "of each " : ", ") + std::string{detail::in_words(one)};
        parts.push_back(of_each);
    }
    std::string note;
    for (const std::string& part : parts)
        note += (note.empty() ? "Of every prompt, from left to right: " : "; ") + part;
    return note;
}

STRATA_INLINE bool ends_epochs(const StepMetrics& now, std::int64_t epochs) {
    constexpr double rounding = 1e-9;
    const auto whole = [&](double epoch) { return std::floor(epoch / static_cast<double>(epochs) + rounding); };
    const double an_epoch = now.epoch / static_cast<double>(std::max<std::int64_t>(1, now.step));  // a step's share
    return whole(now.epoch) > whole(now.epoch - an_epoch);
}

}  // namespace strata::train
