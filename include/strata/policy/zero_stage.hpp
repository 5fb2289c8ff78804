#pragma once
// strata/policy/zero_stage.hpp - ZeroStage<N>: which parts of the model state are split over ranks.

#include <strata/core/policy.hpp>
#include <strata/core/rule.hpp>

namespace strata {

/// Over which ranks a kind of model state is sharded.
enum class ShardedOver : unsigned char { nothing, world };

namespace rule {

template <int Stage>
struct StageExists {
    static constexpr bool holds = 0 <= Stage && Stage <= 3;
    struct Report {
        static_assert(holds, "[ST0101] ZeroStage<N> knows N = 0 (replicate), 1, 2 and 3. Fix: type one of these four.");
    };
};

}  // namespace rule

/// ZeRO partitioning (Rajbhandari et al. 2020, arXiv:1910.02054, section 5).
///
///   Stage  0 replicates everything, 1 shards optimizer state, 2 also gradients, 3 also parameters
template <int Stage>
struct ZeroStage {
    using slot = slot::Sharding;
    using broken = rule::first_broken_t<rule::StageExists<Stage>>;
    static constexpr int stage = Stage;
    static constexpr ShardedOver shards_state = Stage >= 1 ? ShardedOver::world : ShardedOver::nothing;
    static constexpr ShardedOver shards_gradients = Stage >= 2 ? ShardedOver::world : ShardedOver::nothing;
    static constexpr ShardedOver shards_parameters = Stage >= 3 ? ShardedOver::world : ShardedOver::nothing;
};

}  // namespace strata
