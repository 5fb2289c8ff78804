#pragma once
// strata/core/sampling_method.hpp - the methods that draw pictures, by the names that configurations have.

#include <array>
#include <cstdint>

#include <strata/core/option_description.hpp>

namespace strata {

/// How noise becomes a picture. diffusion::with_method() has what each is made of.
enum class SamplingMethod : std::uint8_t {
    euler,
    euler_ancestral,  ///< Euler's steps, with noise added on the way
    ddim,
    ddpm,  ///< DDIM's steps, with as much noise added on the way as the model was trained with
    dpm_solver_2m,
    unipc,
};

/// Every method once, by the name that configuration files and command lines have.
inline constexpr std::array<NamedValue<SamplingMethod>, 6> sampling_methods{{
    {"euler", SamplingMethod::euler},
    {"euler-a", SamplingMethod::euler_ancestral},
    {"ddim", SamplingMethod::ddim},
    {"ddpm", SamplingMethod::ddpm},
    {"dpm++", SamplingMethod::dpm_solver_2m},
    {"unipc", SamplingMethod::unipc},
}};

}  // namespace strata
