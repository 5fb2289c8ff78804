#pragma once
// strata/models/sampler_options.hpp - SamplerOptions: how a recipe draws pictures of prompts.

#include <cstdint>
#include <optional>

#include <strata/core/sampling_method.hpp>

namespace strata::models {

/// How pictures are drawn. What a model does not have is not looked at.
struct SamplerOptions {
    int steps = 24;
    /// 1 follows the prompt alone; more leads away from the negative one, by classifier-free guidance (Ho & Salimans 2022,
    /// arXiv:2207.12598). A model with a guidance embedding is told it instead.
    double guidance = 3.0;
    std::uint64_t seed = 0;
    std::optional<SamplingMethod> method = std::nullopt;  ///< nullopt: that of the model's authors
    /// 0 to 1: share of what guidance predicts that gets the deviation of the prompt's own prediction (Lin et al. 2023,
    /// arXiv:2305.08891, section 3.4).
    double rescale = 0;
    /// Of a model with a guidance embedding: classifier-free guidance besides, which takes two passes; 1 is none.
    double real_guidance = 1;
};

}  // namespace strata::models
