// tests/compile_time/policy/setup.cpp - compositions that work in any order, and which rule the others break.

#include <strata/policy/setup.hpp>

#include <concepts>
#include <cstddef>
#include <type_traits>

namespace strata {
namespace {

// Defaults.
static_assert(Setup<>::sharding::stage == 0);
static_assert(!Setup<>::offload::enabled);
static_assert(std::same_as<Setup<>::backend::store, Local>);
static_assert(std::same_as<Setup<>::optimizer::rule, AdamW>);
static_assert(!Setup<>::precision::has_master, "fp32");
static_assert(!Setup<>::recompute::blocks);
static_assert(!Setup<>::averaging::enabled);

// Order does not matter, and a slot that is filled leaves the others alone.
using OneOrder = Setup<ZeroStage<2>, OffloadTarget<Cpu>, Backend<Local>, Optimizer<Lion>, Precision<Bf16>,
                       Recompute<Blocks>, Ema<Device>>;
using OtherOrder = Setup<Ema<Device>, Recompute<Blocks>, Precision<Bf16>, Optimizer<Lion>, Backend<Local>,
                         OffloadTarget<Cpu>, ZeroStage<2>>;
static_assert(std::same_as<OneOrder::sharding, OtherOrder::sharding> && OneOrder::sharding::stage == 2);
static_assert(std::same_as<OneOrder::offload::tier, Cpu> && std::same_as<OtherOrder::offload::tier, Cpu>);
static_assert(std::same_as<OneOrder::optimizer::rule, Lion> && std::same_as<OtherOrder::optimizer::rule, Lion>);
static_assert(OneOrder::precision::has_master && OtherOrder::precision::has_master);
static_assert(OneOrder::recompute::blocks && OtherOrder::recompute::blocks);
static_assert(OneOrder::averaging::enabled && std::same_as<OneOrder::averaging, OtherOrder::averaging>);
static_assert(std::is_empty_v<OneOrder>, "a composition costs nothing");

// Offload counts once for each kind of state.
static_assert(!Setup<>::parameter_offload::enabled);
static_assert(OffloadTarget<Nvme>::moves<OptimizerState> && !OffloadTarget<Nvme>::moves<Parameters>);
static_assert(!OffloadTarget<Nvme, Parameters>::moves<OptimizerState> && OffloadTarget<Nvme, Parameters>::moves<Parameters>);
using Both = Setup<OffloadTarget<Nvme, OptimizerState, Parameters>, ZeroStage<3>>;
static_assert(std::same_as<Both::offload::tier, Nvme> && std::same_as<Both::parameter_offload, Both::offload>);
using Apart = Setup<OffloadTarget<Nvme, Parameters>, ZeroStage<3>, OffloadTarget<Cpu>>;
static_assert(std::same_as<Apart::offload::tier, Cpu> && std::same_as<Apart::parameter_offload::tier, Nvme>);
using OneOnly = Setup<OffloadTarget<Cpu, Parameters>, ZeroStage<3>>;
static_assert(!OneOnly::offload::enabled && OneOnly::parameter_offload::enabled);
static_assert(rule::OneOfEachKind<OffloadTarget<Cpu>, OffloadTarget<Nvme, Parameters>>::holds);
static_assert(!rule::OneOfEachKind<OffloadTarget<Cpu>, OffloadTarget<Nvme>>::holds);
static_assert(!rule::OneOfEachKind<OffloadTarget<Cpu>, OffloadTarget<Nvme, Parameters, OptimizerState>>::holds);
static_assert(!rule::OneOfEachKind<OffloadTarget<Cpu, Parameters>, OffloadTarget<Nvme, Parameters>>::holds);

// An offload policy of a user's own that says nothing of kinds is about the optimizer's state. mpi/engine_tiers trains one.
struct BesideTheHost {
    using slot = slot::Offload;
    using tier = Cpu;
};
static_assert(std::same_as<Setup<ZeroStage<1>, BesideTheHost>::offload, BesideTheHost> &&
              !Setup<ZeroStage<1>, BesideTheHost>::parameter_offload::enabled);

// A tier of a user's own brings classes; one that is near the device is no offload. mpi/engine_tiers trains others.
struct Shelf {
    static constexpr Place place = Place::host;
    template <class Kept, std::size_t states, bool has_master>
    class state;
    template <class Element>
    class shards;
};
struct Drawer : Device {};
struct Nowhere {
    static constexpr Place place = Place::host;
};
static_assert(OffloadTier<Shelf> && OffloadTier<Drawer> && !OffloadTier<Nowhere> && !OffloadTier<Place> && !OffloadTier<Parameters>);
static_assert(OffloadTarget<Shelf>::enabled && !OffloadTarget<Drawer>::enabled);

// A split of two tiers is a tier, as far away as the farther one.
static_assert(std::same_as<Setup<ZeroStage<1>, OffloadTarget<Split<Cpu, Nvme, 30>>>::offload::tier, Split<Cpu, Nvme, 30>>);
static_assert(Split<Device, Cpu, 20>::place == Place::host && Split<Shelf, Nvme, 0>::place == Place::disk);
static_assert(Split<Device, Split<Cpu, Nvme, 50>, 20>::place == Place::disk && !OffloadTarget<Split<Device, Drawer, 1>>::enabled);

// The average is kept in host memory unless something else is said; to recompute nothing may be said, too.
static_assert(std::same_as<Setup<Ema<>>::averaging::tier, Cpu> && std::same_as<Setup<Ema<Device>>::averaging::tier, Device>);
static_assert(!Setup<Recompute<Nothing>>::recompute::blocks && !Setup<NoEma>::averaging::enabled);

// Policies of a user's own for the activations and the average.
struct EveryOtherBlock {
    using slot = slot::Activations;
    static constexpr bool blocks = true;
};
struct Swa {
    using slot = slot::Averaging;
    static constexpr bool enabled = true;
};
static_assert(std::same_as<Setup<Swa, EveryOtherBlock>::recompute, EveryOtherBlock>);
static_assert(std::same_as<Setup<Swa, EveryOtherBlock>::averaging, Swa>);

// A store and an update rule of a user's own, without changing a line of strata.
struct Tape;
struct MyRule;
static_assert(std::same_as<Setup<Backend<Tape>>::backend::store, Tape>);
static_assert(std::same_as<Setup<Optimizer<MyRule>>::optimizer::rule, MyRule>);

// A sharding policy of a user's own.
struct EveryOther {
    using slot = slot::Sharding;
    static constexpr int stage = 1;
};
static_assert(std::same_as<Setup<OffloadTarget<Cpu>, EveryOther>::sharding, EveryOther>);

// Which rule a composition breaks is a type, and asking prints nothing.
template <class Rule, class... Ps>
inline constexpr bool breaks = std::same_as<broken_rule_t<Ps...>, Rule>;

struct OfAnotherHouse {
    struct slot {};
};
struct Model {};
static_assert(breaks<rule::None, ZeroStage<2>, OffloadTarget<Cpu>>);
static_assert(breaks<rule::None, OffloadTarget<Device>>, "state beside the parameters is no offload");
static_assert(breaks<rule::OnlyPolicies<Model>, Model>);
static_assert(breaks<rule::OnlyPolicies<ZeroStage<1>, int>, ZeroStage<1>, int>);
static_assert(breaks<rule::OnlyPolicies<OfAnotherHouse>, OfAnotherHouse>, "a slot nobody reads");
static_assert(breaks<rule::OneOfEachKind<ZeroStage<1>, ZeroStage<2>>, ZeroStage<1>, ZeroStage<2>>);
static_assert(breaks<rule::OneOfEachKind<Optimizer<Lion>, Optimizer<Lion>>, Optimizer<Lion>, Optimizer<Lion>>);
static_assert(breaks<rule::OffloadNeedsShardedState<ZeroStage<0>, OffloadTarget<Cpu>>, OffloadTarget<Cpu>>);
static_assert(breaks<rule::ParameterOffloadNeedsShardedParameters<ZeroStage<2>, OffloadTarget<Cpu, Parameters>>,
                     OffloadTarget<Cpu, Parameters>, ZeroStage<2>>);
static_assert(rule::ParameterOffloadNeedsShardedParameters<ZeroStage<3>, OffloadTarget<Cpu, Parameters>>::holds);
struct NoTier {
    using slot = slot::Offload;
};
struct NotATier {
    using slot = slot::Offload;
    using tier = int;
};
static_assert(breaks<rule::OffloadNamesATier<NoTier>, NoTier, ZeroStage<1>> && breaks<rule::OffloadNamesATier<NotATier>, NotATier>);
static_assert(breaks<rule::OffloadNeedsShardedState<ZeroStage<0>, OffloadTarget<Shelf>>, OffloadTarget<Shelf>>);
static_assert(breaks<rule::None, OffloadTarget<Drawer>>);
using InTwoDrawers = OffloadTarget<Split<Device, Drawer, 50>>;
static_assert(breaks<rule::OffloadNeedsShardedState<ZeroStage<0>, InTwoDrawers>, InTwoDrawers>, "a bucket is not cut at stage 0");
static_assert(breaks<rule::None, InTwoDrawers, ZeroStage<1>>);
static_assert(breaks<rule::None, ZeroStage<3>, OffloadTarget<Nvme, Parameters>>);
static_assert(breaks<rule::None, ZeroStage<3>, OffloadTarget<Cpu>, OffloadTarget<Nvme, Parameters>>);
static_assert(breaks<rule::None, ZeroStage<3>, OffloadTarget<Nvme>>);
static_assert(breaks<rule::None, ZeroStage<1>, OffloadTarget<Nvme>>);
static_assert(breaks<rule::None, Backend<S3>> && std::same_as<Setup<Backend<S3>>::backend::store, storage::FolderOrBucket>);
static_assert(breaks<rule::None, Recompute<Blocks>, Ema<>>, "neither needs sharded state");
static_assert(breaks<rule::OneOfEachKind<Ema<>, NoEma>, Ema<>, NoEma>);
static_assert(breaks<rule::OneOfEachKind<Recompute<Blocks>, Recompute<Nothing>>, Recompute<Blocks>, Recompute<Nothing>>);
static_assert(breaks<rule::OnlyPolicies<Blocks>, Blocks>, "what a policy is about is not the policy");

// What is wrong with a policy by itself comes before what it does to others, however many rules it would break there.
static_assert(breaks<rule::StageExists<4>, ZeroStage<4>, OffloadTarget<Cpu>>);
static_assert(breaks<rule::StageExists<-1>, OffloadTarget<Cpu, Parameters>, ZeroStage<-1>>);
static_assert(breaks<rule::FirstIsATier<Parameters>, ZeroStage<3>, OffloadTarget<Parameters, Nvme>>);
static_assert(breaks<rule::OffloadsKnownState<Nvme>, ZeroStage<3>, OffloadTarget<Cpu, Nvme>>);
static_assert(breaks<rule::AverageIsInMemory<Nvme>, Ema<Nvme>, Ema<Nvme>>);
static_assert(breaks<rule::RecomputesBlocksOrNothing<int>, Recompute<int>>);
static_assert(breaks<rule::OnlyPolicies<ZeroStage<4>, int>, ZeroStage<4>, int>);

// A policy of a user's own may bring a rule of its own.
struct NeverHolds {
    static constexpr bool holds = false;
    struct Report {};
};
struct Impossible {
    using slot = slot::Sharding;
    using broken = NeverHolds;
    static constexpr int stage = 1;
};
static_assert(breaks<NeverHolds, Impossible, OffloadTarget<Cpu>>);

// Arguments are looked at before pairs: one mistake at a time.
static_assert(breaks<rule::OnlyPolicies<int, ZeroStage<3>, ZeroStage<3>>, int, ZeroStage<3>, ZeroStage<3>>);
static_assert(breaks<rule::OneOfEachKind<ZeroStage<3>, ZeroStage<0>>, ZeroStage<3>, ZeroStage<0>>);

}  // namespace
}  // namespace strata
