#pragma once
// strata/train/trainer.hpp - Trainer<Model, Policies...>: batches in, a trained model out.

#include <strata/core/rule.hpp>
#include <strata/optim/adamw.hpp>
#include <strata/policy/setup.hpp>
#include <strata/train/compute.hpp>
#include <strata/train/detail/rejected_trainer.hpp>
#include <strata/train/detail/trainer_body.hpp>
#include <strata/train/trainable.hpp>
#include <strata/train/unit_rules.hpp>

namespace strata {
namespace detail {

template <class Broken, class Model, class... Policies>
struct TrainerOrRejected {
    using type = RejectedTrainer<Broken, Model, TrainerBody<RejectedSetup<Policies...>, StandInModel>>;
};
template <class Model, class... Policies>
struct TrainerOrRejected<rule::None, Model, Policies...> {
    using type = TrainerBody<Setup<Policies...>, Model>;
};

/// What policies name is looked at only when the composition itself holds.
template <class Model, class BrokenSetup, class... Policies>
struct BrokenArgument {
    using type = BrokenSetup;
};
template <class Model, class... Policies>
struct BrokenArgument<Model, rule::None, Policies...> {
    using setup = Setup<Policies...>;
    using type = rule::first_broken_t<
        rule::OptimizerHasUpdateRule<typename setup::optimizer::rule>,
        rule::RuleNamesItsStates<typename setup::optimizer::rule>,
        rule::OptionsAreRead<typename setup::optimizer::rule, zero::average_options_t<typename setup::averaging>>,
        rule::ElementsAreUpdatedAlone<typename setup::timing, typename setup::optimizer::rule>,
        rule::AdapterIsComplete<typename setup::adaptation>,
        rule::BackendHasObjectStore<typename setup::backend::store>,
        rule::RanksAreACommunicator<typename setup::ranks::comm>,
        rule::DeviceIsInThisBuild<typename setup::compute::device>,
        rule::DeviceHasKernels<typename setup::compute::device, setup>,
        rule::ModelHasUnits<typename setup::sharding, Model>,
        rule::RecomputedModelHasUnits<typename setup::recompute, Model>>;
};

template <class Model, class... Policies>
using broken_trainer_rule_t =
    rule::first_broken_t<rule::LossIsATensor<Model>, rule::ModelIsTrainable<Model>,
                         typename BrokenArgument<Model, broken_rule_t<Policies...>, Policies...>::type>;

}  // namespace detail

/// Trains a model with the composition that its policies describe (see Setup for kinds and defaults).
///
///   Model     satisfies Trainable
///   Policies  in any order, at most one of each kind
/// Members are documented at detail::TrainerBody: a constructor from Session, model and Options; fit(source);
/// fit(source, steps); every(steps, action); model(); folder(); report(). A composition that cannot work is one compile error with a fix.
template <class Model, class... Policies>
class Trainer
    : public detail::TrainerOrRejected<detail::broken_trainer_rule_t<Model, Policies...>, Model, Policies...>::type {
    using Body =
        typename detail::TrainerOrRejected<detail::broken_trainer_rule_t<Model, Policies...>, Model, Policies...>::type;

public:
    using Body::Body;
};

}  // namespace strata
