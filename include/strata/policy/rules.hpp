#pragma once
// strata/policy/rules.hpp - what cannot be composed, and the sentence a user gets instead.

#include <concepts>

#include <strata/core/policy.hpp>
#include <strata/core/rule.hpp>
#include <strata/policy/offload_target.hpp>
#include <strata/policy/place.hpp>
#include <strata/policy/tier.hpp>
#include <strata/policy/zero_stage.hpp>

namespace strata::rule {

namespace detail {
template <class P>
inline constexpr bool fills_known_slot_v = false;
template <Policy P>
inline constexpr bool fills_known_slot_v<P> = is_known_slot_v<typename P::slot>;
}  // namespace detail

template <class... Ps>
struct OnlyPolicies {
    static constexpr bool holds = (detail::fills_known_slot_v<Ps> && ...);
    struct Report {
        static_assert(holds,
                      "[ST0001] One template argument is not a policy that strata knows. Fix: pass ZeroStage<N>, OffloadTarget<Cpu>, "
                      "Backend<Local>, Optimizer<AdamW>, Precision<Bf16>, Recompute<Blocks> or Ema<>; a model goes "
                      "first, and a policy of your own says `using slot = strata::slot::X;` with X one of Sharding, "
                      "Offload, Storage, Update, Numerics, Activations and Averaging.");
    };
};

template <class... Ps>
struct OneOfEachKind {
    static constexpr bool holds = count_of_v<slot::Sharding, Ps...> <= 1 &&
                                  count_of_offloads_v<OptimizerState, Ps...> <= 1 &&
                                  count_of_offloads_v<Parameters, Ps...> <= 1 &&
                                  count_of_v<slot::Storage, Ps...> <= 1 && count_of_v<slot::Update, Ps...> <= 1 &&
                                  count_of_v<slot::Numerics, Ps...> <= 1 &&
                                  count_of_v<slot::Activations, Ps...> <= 1 && count_of_v<slot::Averaging, Ps...> <= 1;
    struct Report {
        static_assert(holds,
                      "[ST0002] Two policies of the same kind are given, and only one of each kind can act. "
                      "Fix: keep one ZeroStage, one Backend, one Optimizer, one Precision, one Recompute and one Ema, and "
                      "one OffloadTarget for each of OptimizerState and Parameters.");
    };
};

/// Of an offload policy of a user's own; OffloadTarget checks its tier itself.
template <class Offload>
struct OffloadNamesATier {
    static constexpr bool holds = requires { requires OffloadTier<typename Offload::tier>; };
    struct Report {
        static_assert(holds,
                      "[ST0121] An offload policy of your own names no tier. Fix: let it say `using tier = strata::Cpu;`, with "
                      "Cpu, Nvme or a tier of your own (docs/write-a-tier.md).");
    };
};

/// What every rank has in whole stays where it is: on Device, or a tier that derives from it.
template <class Sharding, class Offload>
struct OffloadNeedsShardedState {
    static constexpr bool holds = std::derived_from<typename Offload::tier, Device> || Sharding::stage >= 1;
    struct Report {
        static_assert(holds,
                      "[ST0003] OffloadTarget<...> moves sharded optimizer state, but ZeroStage<0> replicates it. "
                      "Fix: use ZeroStage<1> or higher, or drop OffloadTarget.");
    };
};

template <class Sharding, class ParameterOffload>
struct ParameterOffloadNeedsShardedParameters {
    static constexpr bool holds = ParameterOffload::tier::place == Place::device || Sharding::stage >= 3;
    struct Report {
        static_assert(holds,
                      "[ST0008] OffloadTarget<..., Parameters> moves parameter shards, but only ZeroStage<3> shards "
                      "parameters. Fix: use ZeroStage<3>, or drop Parameters from OffloadTarget.");
    };
};

}  // namespace strata::rule
