#pragma once
// strata/train/gradient_norms.hpp - GradientNorms: the gradient norms of parameters become those of layers, with names.

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <strata/core/inline.hpp>
#include <strata/options/gradient_norms_options.hpp>
#include <strata/train/any_engine.hpp>
#include <strata/train/any_model.hpp>
#include <strata/train/named_norm.hpp>
#include <strata/zero/parameters.hpp>
#include <strata/zero/state.hpp>

namespace strata::train {

/// Which parameters' gradients make one norm. Local, all of it.
class GradientNorms {
public:
    GradientNorms() = default;
    ///   parameters  of the model, frozen ones included
    ///   trained     those that have a gradient, in the order of their norms
    GradientNorms(const std::vector<zero::Parameter>& parameters, const std::vector<zero::ParameterInfo>& trained,
                  GradientNormsOf of);

    /// norms  one a parameter that is trained
    /// Returns one a part, in the order in which parts begin.
    [[nodiscard]] std::vector<NamedNorm> of_parts(std::span<const double> norms) const;

private:
    std::vector<std::string> names_;
    std::vector<std::size_t> part_of_;  // of each parameter that is trained
};

/// Those of the step that is about to be made, where it is to have them; else none. Collective then.
///
///   engine  between the last backward() of a step and step()
[[nodiscard]] std::vector<NamedNorm> norms_of_step(AnyEngine& engine, const AnyModel& model,
                                                   const GradientNormsOptions& wanted);

}  // namespace strata::train

#ifndef STRATA_COMPILED
#include <strata/train/impl/gradient_norms.ipp>
#endif
