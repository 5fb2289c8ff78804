#pragma once
// strata/policy/zero_stage.hpp - slot::Sharding, and ZeroStage<N>: which parts of the model state are split over ranks.

#include <concepts>
#include <cstdint>

#include <strata/core/policy.hpp>
#include <strata/core/rule.hpp>

namespace strata {

/// Over which ranks something is sharded: each of them has an equal share, and all of them together have it once. Room
/// is left between the two for the ranks of one host.
enum class ShardedOver : std::uint8_t { nothing, world };

namespace rule {

template <int Stage>
struct StageExists {
    static constexpr bool holds = 0 <= Stage && Stage <= 3;
    struct Report {
        static_assert(holds, "[ST0101] ZeroStage<N> knows N = 0 (replicate), 1, 2 and 3. Fix: type one of these four.");
    };
};

/// A sharding policy says what is sharded, and over which ranks; an engine asks nothing else of it.
template <class P>
struct SaysWhatIsSharded {
    static constexpr bool holds = requires {
        requires std::same_as<decltype(P::shards_state), const ShardedOver>;
        requires std::same_as<decltype(P::shards_gradients), const ShardedOver>;
        requires std::same_as<decltype(P::shards_parameters), const ShardedOver>;
        typename strata::detail::Constant<P::shards_state>;
        typename strata::detail::Constant<P::shards_gradients>;
        typename strata::detail::Constant<P::shards_parameters>;
        requires P::shards_state <= ShardedOver::world&& P::shards_gradients <=
            ShardedOver::world&& P::shards_parameters <= ShardedOver::world;
    };
    struct Report {
        static_assert(holds,
                      "[ST0125] A sharding policy of your own does not say what is sharded. Fix: say `static constexpr "
                      "strata::ShardedOver shards_state = strata::ShardedOver::world;` in it, and the same of "
                      "shards_gradients and shards_parameters, with world or nothing (docs/write-a-sharding.md).");
    };
};

/// The update writes what it has the state of: a gradient or a parameter whose state is elsewhere would have to come
/// back.
template <class P>
struct ShardsStateFirst {
    static constexpr bool holds = [] {
        if constexpr (SaysWhatIsSharded<P>::holds) {
            return P::shards_gradients <= P::shards_state && P::shards_parameters <= P::shards_state;
        } else {
            return true;
        }
    }();
    struct Report {
        static_assert(
            holds,
            "[ST0126] A sharding policy shards gradients or parameters over ranks that each have all of the "
            "optimizer state. Fix: let shards_state name the most ranks of the three, as in `static constexpr "
            "strata::ShardedOver shards_state = strata::ShardedOver::world;`.");
    };
};

}  // namespace rule

template <int Stage>
struct ZeroStage;

namespace slot {

/// Which state is split over the ranks.
struct Sharding {
    static constexpr const char* name = "Sharding";
    static constexpr const char* policy = "ZeroStage<N>";
    template <class... Ps>
    struct Members {
        using sharding = select_t<Sharding, ZeroStage<0>, Ps...>;
    };
    template <class... Ps>
    static constexpr bool at_most_one = count_of_v<Sharding, Ps...> <= 1;
    template <class P>
    using broken = rule::first_broken_t<rule::SaysWhatIsSharded<P>, rule::ShardsStateFirst<P>>;
};

}  // namespace slot

/// What a sharding policy says: of each of the three, over which ranks it is sharded; gradients and parameters over no
/// more ranks than the state. Parameters are sharded unit by unit (zero/unit.hpp).
template <class P>
concept ShardingPolicy =
    PolicyFor<P, slot::Sharding> && rule::SaysWhatIsSharded<P>::holds && rule::ShardsStateFirst<P>::holds;

/// ZeRO partitioning (Rajbhandari et al. 2020, arXiv:1910.02054, section 5).
///
///   Stage  0 replicates everything, 1 shards optimizer state, 2 also gradients, 3 also parameters
/// `stage` is its name; what a trainer does follows from the three facts.
template <int Stage>
struct ZeroStage {
    using slot = slot::Sharding;
    using broken = rule::first_broken_t<rule::StageExists<Stage>>;
    static constexpr int stage = Stage;
    static constexpr ShardedOver shards_state = Stage >= 1 ? ShardedOver::world : ShardedOver::nothing;
    static constexpr ShardedOver shards_gradients = Stage >= 2 ? ShardedOver::world : ShardedOver::nothing;
    static constexpr ShardedOver shards_parameters = Stage >= 3 ? ShardedOver::world : ShardedOver::nothing;
};

static_assert(ShardingPolicy<ZeroStage<0>> && ShardingPolicy<ZeroStage<3>> && !ShardingPolicy<int>);

}  // namespace strata
