// Policies of one's own, each the code of a page in docs/: engines train with them, and the kit finds nothing wrong.

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <strata/comm/mpi_comm.hpp>
#include <strata/policy/setup.hpp>
#include <strata/testing/training_conformance.hpp>

#include "../../examples/own_precision.hpp"
#include "../../examples/own_recompute.hpp"
#include "../../examples/own_sharding.hpp"
#include "output_folder.hpp"

namespace {

using namespace strata;
using strata::testing::training_failures;
using Failures = std::vector<std::string>;
using OwnPolicies = strata_test::OutputFolder;  // whose `comm` is the build's

//! [sharding]
TEST_F(OwnPolicies, AShardingConforms) { EXPECT_EQ(training_failures<my::WholeGradients>(comm), Failures{}); }
//! [sharding]

/// The other sets of facts that hold together, none of them ZeroStage's by name.
template <ShardedOver gradients, ShardedOver parameters>
struct Shards {
    using slot = slot::Sharding;
    static constexpr ShardedOver shards_state = ShardedOver::world;
    static constexpr ShardedOver shards_gradients = gradients;
    static constexpr ShardedOver shards_parameters = parameters;
};
TEST_F(OwnPolicies, EveryConsistentShardingConforms) {
    constexpr auto world = ShardedOver::world, nothing = ShardedOver::nothing;
    EXPECT_EQ((training_failures<Shards<nothing, nothing>>(comm)), Failures{});
    EXPECT_EQ((training_failures<Shards<world, nothing>, OffloadTarget<Cpu>>(comm)), Failures{});
    EXPECT_EQ((training_failures<Shards<world, world>, Recompute<Blocks>>(comm)), Failures{});
}

//! [precision]
TEST_F(OwnPolicies, ANumberFormatConforms) {
    EXPECT_EQ((training_failures<Precision<my::ScaledBf16>, ZeroStage<2>>(comm)), Failures{});
}
//! [precision]

/// fp16 whose gradients are those of the loss as it is.
struct UnscaledFp16 : Fp16 {
    using scaler = NoScaler;
};
/// A policy of its own, without Precision.
struct HalfWithAMaster {
    using slot = slot::Numerics;
    using element = bf16;
    using kept = float;
    static constexpr bool has_master = true;
    static constexpr bool scales_loss = false;
};
TEST_F(OwnPolicies, OtherNumberFormatsConform) {
    EXPECT_EQ((training_failures<Precision<UnscaledFp16>, ZeroStage<3>>(comm)), Failures{});
    EXPECT_EQ((training_failures<HalfWithAMaster, ZeroStage<1>>(comm)), Failures{});
    EXPECT_EQ((training_failures<Precision<PureBf16>, ZeroStage<2>>(comm)), Failures{});
}

// A scale is a power of two: it moves exponents, and no bit of a gradient.
TEST_F(OwnPolicies, AScaledLossHasTheBitsOfOneThatIsNot) {
    using strata::testing::small_run;
    const auto plain = small_run<strata::Setup<Precision<Bf16>, ZeroStage<2>>>(comm);
    EXPECT_TRUE((plain == small_run<strata::Setup<HalfWithAMaster, ZeroStage<2>>>(comm)));
    EXPECT_TRUE((plain == small_run<strata::Setup<Precision<my::ScaledBf16>, ZeroStage<2>>>(comm)));
}

//! [recompute]
TEST_F(OwnPolicies, APredicateOverUnitsConforms) {
    EXPECT_EQ((training_failures<Recompute<my::FirstHalf>, ZeroStage<3>>(comm)), Failures{});
}
//! [recompute]

}  // namespace
