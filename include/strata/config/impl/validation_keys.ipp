#pragma once
// strata/config/impl/validation_keys.ipp - the keys of a trainer's configuration that are about samples.

#include <strata/config/impl/sample_size.ipp>
#include <strata/config/trainer_config.hpp>
#include <strata/core/ranges.hpp>
#include <strata/core/sampling_method.hpp>

namespace strata::config::detail {

/// The names of core/sampling_method.hpp, and those of other trainers.
inline std::vector<Choice<SamplingMethod>> method_choices() {
    std::vector<Choice<SamplingMethod>> choices;
    for (const auto& [name, method] : sampling_methods) choices.push_back({name, method});
    choices.push_back({"flow_matching", SamplingMethod::euler});  // of SimpleTuner: along a flow that is Euler's step
    choices.push_back({"pndm", SamplingMethod::ddim, "PNDM is not here, and ddim takes the same timesteps"});
    choices.push_back({"perflow", SamplingMethod::euler, "it draws with models that were distilled for it alone"});
    return choices;
}

inline void add_validation_keys(Schema<TrainerConfig>& s) {
    using C = TrainerConfig;
    s.choice<EmaValidation>("ema_validation", &C::ema_validation,
                            {{"none", EmaValidation::none},
                             {"ema_only", EmaValidation::ema_only},
                             {"comparison", EmaValidation::comparison}},
                            "Sample grids of a trainer with an average: of the trained weights, of the average, or of "
                            "both side by side");
    s.flag("disable_benchmark", &C::disable_benchmark,
           "Sample grids of a run with an adapter: without what the model draws without it, which stands on the left");
    s.integer("validation_step_interval", &C::validation_step_interval, ranges::positive,
              "Optimizer steps between sample grids");
    s.integer("validation_epoch_interval", &C::validation_epoch_interval, ranges::count,
              "Epochs between sample grids that are drawn besides; 0: none");
    s.flag("validation_on_startup", &C::validation_on_startup,
           "Draw a sample grid before the first step of a run, to compare with");
    s.texts("validation_prompts", &C::validation_prompts, "Captions that sample grids are made for; none = no grids");
    s.text("validation_prompt_file", &C::validation_prompt_file,
           "A text file of more such captions, one a line; empty: none");
    s.text("validation_negative_prompt", &C::validation_negative_prompt,
           "What guidance leads away from; empty: what the model learnt in place of a dropped caption");
    s.integer("num_validation_images", &C::num_validation_images, {1, 64}, "Samples of each prompt and size");
    s.number("validation_guidance", &C::validation_guidance, {0, 100},
             "Strength of classifier-free guidance, 1 = off; a model with a guidance embedding is told it instead");
    s.number(
        "validation_guidance_real", &C::validation_guidance_real, {0, 100},
        "Of a model with a guidance embedding: strength of classifier-free guidance besides, which takes twice the "
        "time; 1 = off");
    s.number("validation_guidance_rescale", &C::validation_guidance_rescale, {0, 1},
             "Share of a guided prediction that gets the deviation of the prompt's own (Lin et al. 2023); 0 = off, "
             "0.7 is usual where the last noise level has no signal");
    s.choice<SamplingMethod>("validation_noise_scheduler", &C::validation_noise_scheduler, method_choices(),
                             "How samples are drawn; null is the way of the model's authors");
    s.integer("validation_num_inference_steps", &C::validation_num_inference_steps, {1, 10000}, "Steps of the sampler");
    s.custom("validation_resolution", "size, or list of sizes", "256",
             "Sizes of samples in pixels: the edge of a square, `\"1024x768\"` (width and height), several with commas "
             "between; a number up to 20 is megapixels",
             [](C& config, const Value& value) { config.validation_resolution = sample_sizes_of(value); });
    s.integer("validation_seed", &C::validation_seed, {0, 9e15}, "Start of the noise of the samples");
    s.integer("eval_steps_interval", &C::eval_steps_interval, ranges::count,
              "Optimizer steps between losses of data sets with `dataset_type` eval; 0: `validation_step_interval`");
}

}  // namespace strata::config::detail
