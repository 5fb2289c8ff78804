#pragma once
// strata/policy/ema.hpp - slot::Averaging, and Ema<Tier>: a moving average of the weights, and where it is kept.

#include <concepts>

#include <strata/core/policy.hpp>
#include <strata/core/rule.hpp>
#include <strata/policy/place.hpp>
#include <strata/policy/tier.hpp>

namespace strata {

namespace rule {

template <class Tier>
struct AverageIsInMemory {
    static constexpr bool holds = std::same_as<Tier, Cpu> || std::same_as<Tier, Device>;
    struct Report {
        static_assert(holds,
                      "[ST0105] Ema<Tier> keeps the moving average in host memory or on the compute device. Fix: use "
                      "Ema<Cpu> or Ema<Device>.");
    };
};

/// An averaging policy says whether there is an average and where, and brings the class that forms it.
template <class P>
struct AveragingBringsItsClass {
    static constexpr bool holds = requires {
        { P::enabled } -> std::convertible_to<bool>;
        { P::place } -> std::convertible_to<Place>;
        typename strata::detail::Constant<static_cast<bool>(P::enabled)>;
        typename strata::detail::Constant<static_cast<Place>(P::place)>;
        typename P::template average<float>;
    };
    struct Report {
        static_assert(
            holds,
            "[ST0128] An averaging policy of your own does not bring what keeps the average. Fix: say `static "
            "constexpr bool enabled = true;` and `static constexpr strata::Place place = strata::Place::host;` in "
            "it, with host or device, and bring `template <class Kept> class average;` (docs/write-an-average.md), or derive from Ema<>.");
    };
};

}  // namespace rule

struct NoEma;

namespace slot {

/// Whether and where a moving average of the weights is kept.
struct Averaging {
    static constexpr const char* name = "Averaging";
    static constexpr const char* policy = "Ema<>";
    template <class... Ps>
    struct Members {
        using averaging = select_t<Averaging, NoEma, Ps...>;
    };
    template <class... Ps>
    static constexpr bool at_most_one = count_of_v<Averaging, Ps...> <= 1;
    template <class P>
    using broken = rule::first_broken_t<rule::AveragingBringsItsClass<P>>;
};

}  // namespace slot

/// What an averaging policy says and brings:
///
///   enabled   false: there is none, and `average` is an empty class with the same calls
///   place     where the average is kept: Place::host or Place::device
///   average   keeps this rank's share of it; Kept is what weights are kept in where they are updated
/// The class may be incomplete here. What it does is zero's to say, and checked where a trainer is made.
template <class P>
concept AveragingPolicy = PolicyFor<P, slot::Averaging> && rule::AveragingBringsItsClass<P>::holds;

/// Keeps an exponential moving average of the weights, in fp32 whatever they are kept in themselves. It is sharded at
/// every stage, ZeroStage<0> included: 4 bytes a parameter over all ranks together. optim::EmaOptions says how fast it
/// moves.
///
///   Tier  Cpu or Device; the same memory when the compute device is the CPU itself
template <class Tier = Cpu>
struct Ema {
    using slot = slot::Averaging;
    using broken = rule::first_broken_t<rule::AverageIsInMemory<Tier>>;
    using tier = typename detail::TierOrDevice<Tier>::type;
    static constexpr bool enabled = true;
    static constexpr Place place = tier::place;
    template <class Kept>
    class average;
};

/// No moving average: the default.
struct NoEma {
    using slot = slot::Averaging;
    static constexpr bool enabled = false;
    static constexpr Place place = Place::host;
    template <class Kept>
    class average;
};

static_assert(AveragingPolicy<Ema<>> && AveragingPolicy<NoEma> && !AveragingPolicy<Cpu>);

}  // namespace strata
