#pragma once
// strata/core/policy.hpp - what a policy is, and how a pack of them in any order is read.
//
// A policy is an empty type that says which slot it fills (`using slot = slot::Sharding;`) and
// carries constants that rules read. A composition takes policies in any order, at most one of each
// slot; a slot nobody fills has a default.

#include <concepts>
#include <type_traits>

namespace strata {

/// The kinds of policy there are. A composition holds at most one policy of each.
namespace slot {
struct Sharding {};     ///< which state is split over the ranks: ZeroStage<N>
struct Offload {};      ///< where sharded state lives: OffloadTarget<...>
struct Storage {};      ///< where data sets and caches live: Backend<...>
struct Update {};       ///< how a gradient changes a parameter: Optimizer<...>
struct Numerics {};     ///< which number formats compute and keep state: Precision<...>
struct Activations {};  ///< which activations are kept for backward: Recompute<...>
struct Averaging {};    ///< whether and where a moving average of the weights is kept: Ema<...>
}  // namespace slot

/// Nominal: a type is a policy because it says so, not because it happens to have the right members.
template <class P>
concept Policy = std::is_object_v<P> && requires { typename P::slot; };

/// True for the members of namespace slot: a policy of any other slot would be accepted and never read.
template <class Slot>
inline constexpr bool is_known_slot_v =
    std::same_as<Slot, slot::Sharding> || std::same_as<Slot, slot::Offload> || std::same_as<Slot, slot::Storage> ||
    std::same_as<Slot, slot::Update> || std::same_as<Slot, slot::Numerics> || std::same_as<Slot, slot::Activations> ||
    std::same_as<Slot, slot::Averaging>;

template <class P, class Slot>
concept PolicyFor = Policy<P> && std::same_as<typename P::slot, Slot>;

/// The first policy in Ps... that fills Slot, else Default.
///
/// Two policies of one slot are a mistake that rule::OneOfEachKind reports; Select alone takes the
/// first one, so that nothing else goes wrong before that sentence is printed.
template <class Slot, class Default, class... Ps>
struct Select {
    using type = Default;
};
template <class Slot, class Default, class P, class... Ps>
struct Select<Slot, Default, P, Ps...> : Select<Slot, Default, Ps...> {};
template <class Slot, class Default, PolicyFor<Slot> P, class... Ps>
struct Select<Slot, Default, P, Ps...> {
    using type = P;
};
template <class Slot, class Default, class... Ps>
using select_t = typename Select<Slot, Default, Ps...>::type;

/// How many of Ps... fill Slot.
template <class Slot, class... Ps>
inline constexpr int count_of_v = (0 + ... + static_cast<int>(PolicyFor<Ps, Slot>));

}  // namespace strata
