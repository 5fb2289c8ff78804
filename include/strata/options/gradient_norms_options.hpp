#pragma once
// strata/options/gradient_norms_options.hpp - GradientNormsOptions: how often metrics have the gradient norms of a model's layers.

#include <array>
#include <cstdint>

#include <strata/core/option_description.hpp>
#include <strata/core/ranges.hpp>

namespace strata::train {

/// Whose gradient makes one norm.
enum class GradientNormsOf : std::uint8_t {
    unit,       ///< a Unit's parameters; of those outside of units, a layer's
    layer,      ///< the parameters of one module: its weight and its bias
    parameter,  ///< each
};

/// Each once, by the name that configuration files have.
inline constexpr std::array<NamedValue<GradientNormsOf>, 3> gradient_norms_of_names{{
    {"unit", GradientNormsOf::unit},
    {"layer", GradientNormsOf::layer},
    {"parameter", GradientNormsOf::parameter},
}};

/// They are 2-norms of the mean gradient before clipping, and their squares add up to that of the whole gradient's.
///
/// A step that has them reads this rank's share of the gradient once more, in fp64 a parameter at a time, and exchanges 8 bytes a
/// parameter and rank. No bit of the run changes.
struct GradientNormsOptions {
    std::int64_t every = 0;  ///< steps; 0: never
    GradientNormsOf of = GradientNormsOf::layer;

    static void describe(auto& option) {
        using T = GradientNormsOptions;
        option(
            "every", &T::every, ranges::count,
            {.help =
                 "Optimizer steps between lines of `metrics.jsonl` that have the gradient norms of the model's layers",
             .special = "0 writes none"});
        option("of", &T::of, gradient_norms_of_names,
               {.help = "Whose gradients make one of these norms: a unit's, those of one module, or each parameter's"});
    }
};

}  // namespace strata::train
