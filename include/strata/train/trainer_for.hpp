#pragma once
// strata/train/trainer_for.hpp - trainer_for_t<Model, Setup>: the trainer of a composition that has a name of its own.

#include <strata/policy/setup.hpp>
#include <strata/train/trainer.hpp>

namespace strata {

namespace detail {

template <class Model, class Composition>
struct TrainerFor;
template <class Model, class... Policies>
struct TrainerFor<Model, Setup<Policies...>> {
    using type = Trainer<Model, Policies...>;
};

}  // namespace detail

/// Trainer<Model, Policies...> of Setup<Policies...>: of one that config::dispatch() chose, or that a configuration was
/// made into (strata_add_setup).
template <class Model, class Composition>
using trainer_for_t = typename detail::TrainerFor<Model, Composition>::type;

}  // namespace strata
