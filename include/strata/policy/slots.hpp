#pragma once
// strata/policy/slots.hpp - all_slots: the one list of the kinds of policy there are, and the sentences that list them.

#include <strata/core/policy.hpp>
#include <strata/core/rule.hpp>
#include <strata/policy/adapter.hpp>
#include <strata/policy/backend.hpp>
#include <strata/policy/compute.hpp>
#include <strata/policy/ema.hpp>
#include <strata/policy/frozen_weights.hpp>
#include <strata/policy/offload_target.hpp>
#include <strata/policy/optimizer.hpp>
#include <strata/policy/precision.hpp>
#include <strata/policy/ranks.hpp>
#include <strata/policy/recompute.hpp>
#include <strata/policy/update.hpp>
#include <strata/policy/zero_stage.hpp>

namespace strata {

/// Every slot: what a composition has, what it checks and what its sentences say follow from this list. A new slot is a
/// file with its tag and policies, and its name here.
using all_slots = SlotList<slot::Sharding, slot::Offload, slot::Storage, slot::Update, slot::Timing, slot::Numerics,
                           slot::Activations, slot::Averaging, slot::Adaptation, slot::FrozenFormat,
                           slot::Communication, slot::Computation>;

/// True for the tags of all_slots: a policy of any other slot would be accepted and never read.
template <class S>
inline constexpr bool is_known_slot_v = all_slots::contains<S>;

template <class P>
concept KnownPolicy = Policy<P> && is_known_slot_v<typename P::slot>;

/// What a policy breaks by itself, or rule::None: the rules about its own arguments first, then those of its slot.
template <class P>
struct BrokenPolicy {
    using type = rule::None;
};
template <KnownPolicy P>
struct BrokenPolicy<P> {
    using type = rule::first_broken_t<rule::broken_alone_t<P>, typename P::slot::template broken<P>>;
};
template <class P>
using broken_policy_t = typename BrokenPolicy<P>::type;

namespace rule {

// static_assert takes nothing but a literal, so that the list cannot make these sentences;
// tests/compile_time/policy/slots.cpp holds them to it.
#define STRATA_ST0001                                                                                                              \
    "[ST0001] One template argument is not a policy that strata knows. Fix: pass ZeroStage<N>, OffloadTarget<Cpu>, "               \
    "Backend<Local>, Optimizer<AdamW>, Update<InBackward>, Precision<Bf16>, Recompute<Blocks>, Ema<>, "                            \
    "Adapter<Lora>, FrozenWeights<Nf4>, Ranks<MyComm> or Compute<Cuda>; a model goes first, and a policy of your own says `using " \
    "slot = strata::slot::X;` with X one of Sharding, Offload, Storage, Update, Timing, Numerics, Activations, "                   \
    "Averaging, Adaptation, FrozenFormat, Communication and Computation."
#define STRATA_ST0002                                                                                                               \
    "[ST0002] Two policies of the same kind are given, and only one of each kind can act. Fix: keep one ZeroStage, one "            \
    "Backend, one Optimizer, one Update, one Precision, one Recompute, one Ema, one Adapter, one FrozenWeights, one Ranks and one " \
    "Compute, and one OffloadTarget for each of OptimizerState, Parameters and Gradients."

template <class... Ps>
struct OnlyPolicies {
    static constexpr bool holds = (KnownPolicy<Ps> && ...);
    static constexpr const char* sentence = STRATA_ST0001;
    struct Report {
        static_assert(holds, STRATA_ST0001);
    };
};

template <class... Ps>
struct OneOfEachKind {
    static constexpr bool holds = all_slots::at_most_one_each<Ps...>;
    static constexpr const char* sentence = STRATA_ST0002;
    struct Report {
        static_assert(holds, STRATA_ST0002);
    };
};

#undef STRATA_ST0001
#undef STRATA_ST0002

}  // namespace rule
}  // namespace strata
