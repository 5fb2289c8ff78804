#pragma once
// strata/policy/ema.hpp - Ema<Tier>: a moving average of the weights, and where it is kept.

#include <concepts>

#include <strata/core/policy.hpp>
#include <strata/core/rule.hpp>
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

}  // namespace rule

/// Keeps an exponential moving average of the weights, in fp32 whatever they are kept in themselves. It is sharded at
/// every stage, ZeroStage<0> included: 4 bytes a parameter over all ranks together. optim::EmaOptions says how fast it
/// moves.
///
///   Tier  Cpu or Device; the same memory when the compute device is the CPU itself
template <class Tier = Cpu>
struct Ema {
    using slot = slot::Averaging;
    using broken = rule::first_broken_t<rule::AverageIsInMemory<Tier>>;
    using tier = Tier;
    static constexpr bool enabled = true;
};

/// No moving average: the default.
struct NoEma {
    using slot = slot::Averaging;
    static constexpr bool enabled = false;
};

}  // namespace strata
