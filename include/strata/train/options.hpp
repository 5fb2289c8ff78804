#pragma once
// strata/train/options.hpp - train_options_t<Setup>: the options of a composition's trainer.

#include <strata/options/adapter_options.hpp>
#include <strata/options/engine_options.hpp>
#include <strata/options/train_options.hpp>

namespace strata {

using zero::OnNonFinite;

/// TrainOptions with the composition's update rule and the options of its policies about averages and adapters.
///
///   Setup  Setup<Policies...>
template <class Setup>
using train_options_t =
    TrainOptions<typename Setup::optimizer::rule, zero::average_options_t<typename Setup::averaging>,
                 train::adapter_options_t<typename Setup::adaptation>>;

}  // namespace strata
