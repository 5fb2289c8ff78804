#pragma once
// strata/policy/setup.hpp - Setup<...>: policies in any order become one checked composition.

#include <strata/core/policy.hpp>
#include <strata/core/rule.hpp>
#include <strata/policy/backend.hpp>
#include <strata/policy/ema.hpp>
#include <strata/policy/offload_target.hpp>
#include <strata/policy/optimizer.hpp>
#include <strata/policy/precision.hpp>
#include <strata/policy/recompute.hpp>
#include <strata/policy/rules.hpp>
#include <strata/policy/zero_stage.hpp>

namespace strata {

namespace detail {

/// The members of a composition, whether or not its rules hold.
template <class... Ps>
struct SetupMembers {
    using sharding = select_t<slot::Sharding, ZeroStage<0>, Ps...>;
    using offload = select_offload_t<OptimizerState, OffloadTarget<Device>, Ps...>;
    using parameter_offload = select_offload_t<Parameters, OffloadTarget<Device, Parameters>, Ps...>;
    using backend = select_t<slot::Storage, Backend<Local>, Ps...>;
    using optimizer = select_t<slot::Update, Optimizer<AdamW>, Ps...>;
    using precision = select_t<slot::Numerics, Precision<Fp32>, Ps...>;
    using recompute = select_t<slot::Activations, Recompute<Nothing>, Ps...>;
    using averaging = select_t<slot::Averaging, NoEma, Ps...>;
};

/// Rules about one policy are formed only when every argument is a policy of its own kind, and pairwise rules, which read
/// members of the policies, only when those hold.
template <class M>
using broken_policy_t = rule::first_broken_t<rule::OffloadNamesATier<typename M::offload>,
                                             rule::OffloadNamesATier<typename M::parameter_offload>>;
template <class M>
using broken_pair_t = rule::first_broken_t<
    rule::OffloadNeedsShardedState<typename M::sharding, typename M::offload>,
    rule::ParameterOffloadNeedsShardedParameters<typename M::sharding, typename M::parameter_offload>>;

template <class BrokenOne, class M>
struct BrokenPair {
    using type = BrokenOne;
};
template <class M>
struct BrokenPair<rule::None, M> {
    using type = broken_pair_t<M>;
};

template <class BrokenArgument, class... Ps>
struct BrokenRule {
    using type = BrokenArgument;
};
template <class... Ps>
struct BrokenRule<rule::None, Ps...> : BrokenPair<broken_policy_t<SetupMembers<Ps...>>, SetupMembers<Ps...>> {};

}  // namespace detail

/// The first rule that Ps... break, or rule::None. Reading it prints nothing.
template <class... Ps>
using broken_rule_t = typename detail::BrokenRule<
    rule::first_broken_t<rule::OnlyPolicies<Ps...>, rule::broken_alone_t<Ps>..., rule::OneOfEachKind<Ps...>>, Ps...>::type;

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
/// once for each kind of state: `offload` is the policy for OptimizerState, `parameter_offload` the one for Parameters.
///
/// Defaults: ZeroStage<0>, OffloadTarget<Device> for both, Backend<Local>, Optimizer<AdamW>, Precision<Fp32>,
/// Recompute<Nothing>, NoEma.
/// A composition that cannot work is one compile error with a number and a fix; its members are then
/// those of Setup<>, so that no second error follows. Needs no libtorch.
template <class... Ps>
struct Setup : detail::CheckedSetup<broken_rule_t<Ps...>, Ps...> {};

static_assert(Setup<Optimizer<Lion>, ZeroStage<2>>::sharding::stage == 2);

}  // namespace strata
