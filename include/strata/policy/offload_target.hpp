#pragma once
// strata/policy/offload_target.hpp - slot::Offload, and OffloadTarget<Tier, What...>: where sharded state lives.

#include <concepts>

#include <strata/core/policy.hpp>
#include <strata/core/rule.hpp>
#include <strata/policy/place.hpp>
#include <strata/policy/split.hpp>
#include <strata/policy/tier.hpp>

namespace strata {

struct OptimizerState {};  ///< the update rule's states and the fp32 master weights
struct Parameters {};      ///< parameter shards between the uses of a unit; from ZeroStage<3> on
struct Gradients {};       ///< sums of gradients between their reduction and the update; from ZeroStage<2> on

namespace detail {

/// A `template <class State> static constexpr bool moves`, or none at all.
template <class P>
inline constexpr bool moves_is_constant = !requires {
    P::template moves<OptimizerState>;
}
|| requires {
    typename Constant<static_cast<bool>(P::template moves<OptimizerState>)>;
    typename Constant<static_cast<bool>(P::template moves<Parameters>)>;
    typename Constant<static_cast<bool>(P::template moves<Gradients>)>;
};

}  // namespace detail

namespace rule {

template <class Tier>
struct FirstIsATier {
    static constexpr bool holds = OffloadTier<Tier>;
    struct Report {
        static_assert(
            holds,
            "[ST0103] OffloadTarget<Tier, What...> is given something first that is no tier. Fix: type Device, "
            "Cpu, Nvme or a split such as Split<Cpu, Nvme, 30> first, as in OffloadTarget<Nvme, Parameters>; a "
            "tier of your own says `static constexpr strata::Place place` and brings `template <class Kept, "
            "std::size_t states, bool has_master> class state;` and `template <class Element> class shards;` "
            "(docs/write-a-tier.md).");
    };
};

template <class... What>
struct OffloadsKnownState {
    static constexpr bool holds =
        ((std::same_as<What, OptimizerState> || std::same_as<What, Parameters> || std::same_as<What, Gradients>)&&...);
    struct Report {
        static_assert(
            holds,
            "[ST0102] OffloadTarget<Tier, What...> knows What = OptimizerState, Parameters and Gradients. Fix: "
            "type one tier first and then these, as in OffloadTarget<Nvme, OptimizerState, Parameters>.");
    };
};

/// Of an offload policy of a user's own; OffloadTarget checks its tier itself.
template <class Offload>
struct OffloadNamesATier {
    static constexpr bool holds = requires { requires OffloadTier<typename Offload::tier>; }
    &&strata::detail::moves_is_constant<Offload>;
    struct Report {
        static_assert(
            holds,
            "[ST0121] An offload policy of your own names no tier, or has a `moves` that is not constexpr. Fix: let it "
            "say `using tier = strata::Cpu;`, with Cpu, Nvme or a tier of your own, and `template <class State> static "
            "constexpr bool moves` or no `moves` at all (docs/write-a-tier.md).");
    };
};

}  // namespace rule

template <class Tier, class... What>
struct OffloadTarget;
template <class State, class Default, class... Ps>
struct SelectOffload;
template <class State, class... Ps>
constexpr bool offloads_at_most_once();

namespace slot {

/// Where sharded state lives. One policy for each kind of state acts.
struct Offload {
    static constexpr const char* name = "Offload";
    static constexpr const char* policy = "OffloadTarget<Cpu>";
    template <class... Ps>
    struct Members {
        using offload = typename SelectOffload<OptimizerState, OffloadTarget<Device>, Ps...>::type;
        using parameter_offload = typename SelectOffload<Parameters, OffloadTarget<Device, Parameters>, Ps...>::type;
        using gradient_offload = typename SelectOffload<Gradients, OffloadTarget<Device, Gradients>, Ps...>::type;
    };
    template <class... Ps>
    static constexpr bool at_most_one =
        offloads_at_most_once<OptimizerState, Ps...>() && offloads_at_most_once<Parameters, Ps...>() &&
        offloads_at_most_once<Gradients, Ps...>();
    template <class P>
    using broken = rule::first_broken_t<rule::OffloadNamesATier<P>>;
};

}  // namespace slot

/// Moves sharded state off the compute device.
///
/// ZeRO-Offload (Ren et al. 2021, arXiv:2101.06840): the update runs where the state lives. ZeRO-Infinity (Rajbhandari
/// et al. 2021, arXiv:2104.07857): state, parameters and gradients on disk. When the compute device is the CPU itself,
/// Cpu and Device are the same memory.
///
///   Tier   Device, Cpu, Nvme, Split<...> of two, or a tier of your own (policy/tier.hpp, docs/write-a-tier.md)
///   What   some of OptimizerState, Parameters and Gradients; without any: OptimizerState
///
/// A composition may have one for each kind of state: OffloadTarget<Cpu>, OffloadTarget<Nvme, Parameters>.
template <class Tier, class... What>
struct OffloadTarget {
    using slot = slot::Offload;
    using broken =
        rule::first_broken_t<rule::FirstIsATier<Tier>, rule::broken_alone_t<Tier>, rule::OffloadsKnownState<What...>>;
    using tier = typename detail::TierOrDevice<Tier>::type;
    static constexpr bool enabled = tier::place != Place::device;

    /// True when this policy says where `State` lives.
    template <class State>
    static constexpr bool moves = (std::same_as<What, State> || ...);
};
template <class Tier>
struct OffloadTarget<Tier> : OffloadTarget<Tier, OptimizerState> {};

/// True when the policy P says where State lives. An offload policy of a user's own without a member `moves` is about
/// OptimizerState.
template <class P, class State>
inline constexpr bool offloads_v = false;
template <PolicyFor<slot::Offload> P, class State>
inline constexpr bool offloads_v<P, State> = [] {
    if constexpr (requires { typename detail::Constant<static_cast<bool>(P::template moves<State>)>; }) {
        return P::template moves<State>;
    } else {
        return std::same_as<State, OptimizerState>;
    }
}();

/// The first policy of Ps... that says where State lives, else Default.
template <class State, class Default, class... Ps>
struct SelectOffload {
    using type = Default;
};
template <class State, class Default, class P, class... Ps>
struct SelectOffload<State, Default, P, Ps...> : SelectOffload<State, Default, Ps...> {};
template <class State, class Default, class P, class... Ps>
requires offloads_v<P, State>
struct SelectOffload<State, Default, P, Ps...> {
    using type = P;
};
template <class State, class Default, class... Ps>
using select_offload_t = typename SelectOffload<State, Default, Ps...>::type;

/// How many of Ps... say where State lives.
template <class State, class... Ps>
inline constexpr int count_of_offloads_v = (0 + ... + static_cast<int>(offloads_v<Ps, State>));
template <class State, class... Ps>
constexpr bool offloads_at_most_once() {
    return count_of_offloads_v<State, Ps...> <= 1;
}

}  // namespace strata
