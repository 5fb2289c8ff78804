#pragma once
// tools/sample/usual_sampling.hpp - how people draw with a model where they do not say.

#include <cstdint>
#include <string_view>

namespace strata::tools {

struct UsualSampling {
    std::int64_t steps;
    double guidance;
    std::int64_t edge;  ///< pixels of a square
};

/// As the pipelines of these models draw in diffusers, but for fewer steps of SDXL and SD 1.5, whose solvers need no 50; SmallFlux as the
/// quickstart does.
///
///   family   Family::name()
///   flavour  `model_flavour`: "schnell" is a Flux that was distilled to a few steps, and has no guidance
[[nodiscard]] constexpr UsualSampling usual_sampling(std::string_view family, std::string_view flavour) noexcept {
    if (family == "flux") return flavour == "schnell" ? UsualSampling{4, 1, 1024} : UsualSampling{28, 3.5, 1024};
    if (family == "sdxl") return {30, 5, 1024};
    if (family == "sd15") return {30, 7.5, 512};
    return {24, 2.5, 96};
}

}  // namespace strata::tools
