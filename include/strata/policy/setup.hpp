#pragma once
// strata/policy/setup.hpp - Setup<...>: policies in any order become one checked composition.

#include <strata/core/policy.hpp>
#include <strata/core/rule.hpp>
#include <strata/policy/rules.hpp>
#include <strata/policy/slots.hpp>

namespace strata {

namespace detail {

/// The members of a composition, whether or not its rules hold.
template <class... Ps>
using SetupMembers = all_slots::Members<Ps...>;

/// Pairwise rules, which read members of the policies, are formed only when every argument is a policy that holds by
/// itself and the only one of its kind.
template <class BrokenArgument, class... Ps>
struct BrokenRule {
    using type = BrokenArgument;
};
template <class... Ps>
struct BrokenRule<rule::None, Ps...> {
    using members = SetupMembers<Ps...>;
    using type = rule::first_broken_t<
        rule::OffloadNeedsShardedState<typename members::sharding, typename members::offload>,
        rule::ParameterOffloadNeedsShardedParameters<typename members::sharding, typename members::parameter_offload>,
        rule::GradientOffloadNeedsShardedGradients<typename members::sharding, typename members::gradient_offload>,
        rule::OffloadedGradientsWait<typename members::timing, typename members::gradient_offload>,
        rule::ScaledStepsAreUpdatedAsAWhole<typename members::timing, typename members::precision>,
        rule::QuantisedWeightsAreUnderAnAdapter<typename members::frozen_weights, typename members::adaptation>,
        rule::QuantisedWeightsAreSharded<typename members::frozen_weights, typename members::sharding>>;
};

}  // namespace detail

/// The first rule that Ps... break, or rule::None. Reading it prints nothing.
template <class... Ps>
using broken_rule_t = typename detail::BrokenRule<
    rule::first_broken_t<rule::OnlyPolicies<Ps...>, broken_policy_t<Ps>..., rule::OneOfEachKind<Ps...>>, Ps...>::type;

namespace detail {

template <class Broken, class... Ps>
struct CheckedSetup : SetupMembers<> {
    // No base: a class with a base whose assertion failed has no members for clang, and each use is one error more.
    static_assert(sizeof(typename Broken::Report) > 0);
};
template <class... Ps>
struct CheckedSetup<rule::None, Ps...> : SetupMembers<Ps...> {};

}  // namespace detail

/// A training composition: policies in any order, at most one of each kind, defaults for the rest. OffloadTarget counts
/// once for each kind of state: `offload` is the policy for OptimizerState, `parameter_offload` the one for Parameters,
/// `gradient_offload` the one for Gradients.
///
/// Defaults: ZeroStage<0>, OffloadTarget<Device> for all three, Backend<Local>, Optimizer<AdamW>, Update<AfterBackward>,
/// Precision<Fp32>, Recompute<Nothing>, NoEma, and the communicator and device that the build is for. Kinds, members and
/// defaults are those of policy/slots.hpp. A composition that cannot work is one compile error with a number and a fix; its members
/// are then those of Setup<>, so that no second error follows. Needs no libtorch.
template <class... Ps>
struct Setup : detail::CheckedSetup<broken_rule_t<Ps...>, Ps...> {};

static_assert(Setup<Optimizer<Lion>, ZeroStage<2>>::sharding::shards_gradients == ShardedOver::world);

}  // namespace strata
