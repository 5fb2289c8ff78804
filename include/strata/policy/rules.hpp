#pragma once
// strata/policy/rules.hpp - which policies cannot be composed with one another, and the sentence a user gets instead.

#include <concepts>

#include <strata/core/rule.hpp>
#include <strata/policy/place.hpp>
#include <strata/policy/tier.hpp>
#include <strata/policy/zero_stage.hpp>

namespace strata::rule {

/// What every rank has in whole stays where it is: on Device, or a tier that derives from it.
template <class Sharding, class Offload>
struct OffloadNeedsShardedState {
    static constexpr bool holds =
        std::derived_from<typename Offload::tier, Device> || Sharding::shards_state != ShardedOver::nothing;
    struct Report {
        static_assert(holds,
                      "[ST0003] OffloadTarget<...> moves sharded optimizer state, but ZeroStage<0> replicates it. "
                      "Fix: use ZeroStage<1> or higher, or drop OffloadTarget.");
    };
};

template <class Sharding, class ParameterOffload>
struct ParameterOffloadNeedsShardedParameters {
    static constexpr bool holds =
        ParameterOffload::tier::place == Place::device || Sharding::shards_parameters != ShardedOver::nothing;
    struct Report {
        static_assert(holds,
                      "[ST0008] OffloadTarget<..., Parameters> moves parameter shards, but only ZeroStage<3> shards "
                      "parameters. Fix: use ZeroStage<3>, or drop Parameters from OffloadTarget.");
    };
};

/// Below that every rank has the whole gradient between reduction and update, and sums are a part of it.
template <class Sharding, class GradientOffload>
struct GradientOffloadNeedsShardedGradients {
    static constexpr bool holds =
        std::same_as<typename GradientOffload::tier, Device> || Sharding::shards_gradients != ShardedOver::nothing;
    struct Report {
        static_assert(
            holds,
            "[ST0020] OffloadTarget<..., Gradients> moves a rank's share of the reduced gradient, but below "
            "ZeroStage<2> every rank keeps all of it. Fix: use ZeroStage<2> or ZeroStage<3>, or drop Gradients "
            "from OffloadTarget.");
    };
};

/// Gradients that are used at once wait nowhere.
template <class Timing, class GradientOffload>
struct OffloadedGradientsWait {
    static constexpr bool holds = !Timing::in_backward || std::same_as<typename GradientOffload::tier, Device>;
    struct Report {
        static_assert(
            holds,
            "[ST0021] Update<InBackward> frees gradients as soon as they are reduced, so that OffloadTarget<..., "
            "Gradients> has nothing to keep. Fix: drop one of the two.");
    };
};

/// Whether a step overflows is known when all of its gradients are.
template <class Timing, class Numerics>
struct ScaledStepsAreUpdatedAsAWhole {
    static constexpr bool holds = !(Timing::in_backward && Numerics::scales_loss);
    struct Report {
        static_assert(
            holds,
            "[ST0022] Update<InBackward> changes weights before all gradients of a step are known, and a "
            "Precision with loss scaling skips steps whose gradients overflow. Fix: use Precision<Bf16>, or drop "
            "Update<InBackward>.");
    };
};

/// What is quantised is not updated.
template <class FrozenWeights, class Adaptation>
struct QuantisedWeightsAreUnderAnAdapter {
    static constexpr bool holds = !FrozenWeights::quantises || Adaptation::enabled;
    struct Report {
        static_assert(holds,
                      "[ST0151] FrozenWeights<...> quantises weights that are not trained, and this composition trains "
                      "them all. Fix: train an adapter over them with Adapter<Lora>, or drop FrozenWeights.");
    };
};

/// Whole ones are made of quantised ones where units are gathered.
template <class FrozenWeights, class Sharding>
struct QuantisedWeightsAreSharded {
    static constexpr bool holds = !FrozenWeights::quantises || Sharding::shards_parameters != ShardedOver::nothing;
    struct Report {
        static_assert(holds,
                      "[ST0152] FrozenWeights<...> dequantises a unit when it is gathered, and below ZeroStage<3> "
                      "units are whole all the time. Fix: use ZeroStage<3>, on one rank too, or drop FrozenWeights.");
    };
};

}  // namespace strata::rule
