#pragma once
// strata/train/gallery_options.hpp - GalleryOptions: which pictures a Gallery draws, of which weights, and when.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <strata/config/trainer_config.hpp>
#include <strata/core/inline.hpp>
#include <strata/models/sampler_options.hpp>
#include <strata/pictures/picture.hpp>
#include <strata/train/drawn_samples.hpp>
#include <strata/train/metrics.hpp>

namespace strata::train {

struct GalleryOptions {
    std::vector<std::string> prompts{};
    std::string negative_prompt{};  ///< what guidance leads away from; empty: as models::negative_caption() says
    std::vector<pictures::PictureSize> sizes{{128, 128}};  ///< multiples of the recipe's alignment()
    int images = 1;                                        ///< of each prompt and size, each from noise of its own
    int columns = 4;  ///< pictures in a row of the grid; all of one prompt stay in one
    models::SamplerOptions sampler{};
    /// Of a trainer with Ema<>: whose pictures; `comparison` draws both, side by side.
    config::EmaValidation average = config::EmaValidation::comparison;
    /// Of a trainer with Adapter<>: what the model draws without it stands left of the others.
    bool without_adapter = true;

    // When Gallery::follow() draws. After the last step it does in any case.
    std::int64_t every_steps = 100;
    std::int64_t every_epochs = 0;  ///< 0: no matter of epochs
    bool at_start = false;          ///< before the first step as well

    /// What the keys validation_... say. Throws as TrainerConfig::all_prompts() does.
    [[nodiscard]] static GalleryOptions from(const config::TrainerConfig& config);
};

/// Throws Errc::bad_value for no size, one that is no multiple of `alignment` pixels, and fewer images than 1.
void check_gallery(const GalleryOptions& options, std::int64_t alignment);

/// Whole prompts in a row of the grid, at least one.
///
///   variants  weights that every picture is drawn with
[[nodiscard]] int prompts_in_a_row(const GalleryOptions& options, std::size_t variants);

/// What the log says of pictures of these options; weights, file and seconds are whose draws them.
[[nodiscard]] DrawnSamples drawn_samples(const GalleryOptions& options, std::int64_t step);

/// A sentence on what the pictures of a prompt are, from left to right; empty where it is one.
[[nodiscard]] std::string sample_note(const GalleryOptions& options, const std::vector<std::string>& weights);

/// Whether a multiple of `epochs` ends with this step.
[[nodiscard]] bool ends_epochs(const StepMetrics& now, std::int64_t epochs);

}  // namespace strata::train

#ifndef STRATA_COMPILED
#include <strata/train/impl/gallery_options.ipp>
#endif
