// tests/compile_time/policy/setup.cpp - compositions that work in any order, and which rule the others break.

#include <strata/policy/setup.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace strata {
namespace {

// Defaults.
static_assert(Setup<>::sharding::shards_state == ShardedOver::nothing);
static_assert(!Setup<>::offload::enabled);
static_assert(std::same_as<Setup<>::backend::store, Local>);
static_assert(std::same_as<Setup<>::optimizer::rule, AdamW>);
static_assert(!Setup<>::precision::has_master, "fp32");
static_assert(!Setup<>::recompute::any);
static_assert(!Setup<>::averaging::enabled && !Setup<>::timing::in_backward);
static_assert(std::same_as<Setup<>::ranks::comm, comm::OfTheBuild> &&
              std::same_as<Setup<>::compute::device, DeviceOfTheBuild>);
static_assert(std::same_as<Setup<Ranks<comm::SelfComm>, Compute<Cuda>>::ranks, Ranks<comm::SelfComm>>,
              "named, and seen by no one here");
static_assert(std::same_as<Setup<Ranks<comm::SelfComm>, Compute<Cuda>>::compute, Compute<Cuda>>);

// Order does not matter, and a slot that is filled leaves the others alone.
using OneOrder = Setup<ZeroStage<2>, OffloadTarget<Cpu>, Backend<Local>, Optimizer<Lion>, Precision<Bf16>,
                       Recompute<Blocks>, Ema<Device>>;
using OtherOrder = Setup<Ema<Device>, Recompute<Blocks>, Precision<Bf16>, Optimizer<Lion>, Backend<Local>,
                         OffloadTarget<Cpu>, ZeroStage<2>>;
static_assert(std::same_as<OneOrder::sharding, OtherOrder::sharding> && std::same_as<OneOrder::sharding, ZeroStage<2>>);
static_assert(std::same_as<OneOrder::offload::tier, Cpu> && std::same_as<OtherOrder::offload::tier, Cpu>);
static_assert(std::same_as<OneOrder::optimizer::rule, Lion> && std::same_as<OtherOrder::optimizer::rule, Lion>);
static_assert(OneOrder::precision::has_master && OtherOrder::precision::has_master);
static_assert(OneOrder::recompute::any && OtherOrder::recompute::any);
static_assert(OneOrder::averaging::enabled && std::same_as<OneOrder::averaging, OtherOrder::averaging>);
static_assert(std::is_empty_v<OneOrder>, "a composition costs nothing");

// Offload counts once for each kind of state.
static_assert(!Setup<>::parameter_offload::enabled);
static_assert(!Setup<>::gradient_offload::enabled);
static_assert(OffloadTarget<Nvme>::moves<OptimizerState> && !OffloadTarget<Nvme>::moves<Parameters> &&
              !OffloadTarget<Nvme>::moves<Gradients>);
static_assert(!OffloadTarget<Nvme, Parameters>::moves<OptimizerState> &&
              OffloadTarget<Nvme, Parameters>::moves<Parameters>);
using Both = Setup<OffloadTarget<Nvme, OptimizerState, Parameters>, ZeroStage<3>>;
static_assert(std::same_as<Both::offload::tier, Nvme> && std::same_as<Both::parameter_offload, Both::offload>);
using Apart = Setup<OffloadTarget<Nvme, Parameters>, ZeroStage<3>, OffloadTarget<Cpu>>;
static_assert(std::same_as<Apart::offload::tier, Cpu> && std::same_as<Apart::parameter_offload::tier, Nvme>);
using OneOnly = Setup<OffloadTarget<Cpu, Parameters>, ZeroStage<3>>;
static_assert(!OneOnly::offload::enabled && OneOnly::parameter_offload::enabled);
using Three = Setup<ZeroStage<2>, OffloadTarget<Nvme, OptimizerState, Gradients>>;
static_assert(std::same_as<Three::gradient_offload::tier, Nvme> && !Three::parameter_offload::enabled);
static_assert(rule::OneOfEachKind<OffloadTarget<Cpu>, OffloadTarget<Nvme, Parameters>>::holds);
static_assert(!rule::OneOfEachKind<OffloadTarget<Cpu, Gradients>, OffloadTarget<Nvme, Gradients>>::holds);
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
static_assert(OffloadTier<Shelf> && OffloadTier<Drawer> && !OffloadTier<Nowhere> && !OffloadTier<Place> &&
              !OffloadTier<Parameters>);
static_assert(OffloadTarget<Shelf>::enabled && !OffloadTarget<Drawer>::enabled);

// A split of two tiers is a tier, as far away as the farther one.
static_assert(
    std::same_as<Setup<ZeroStage<1>, OffloadTarget<Split<Cpu, Nvme, 30>>>::offload::tier, Split<Cpu, Nvme, 30>>);
static_assert(Split<Device, Cpu, 20>::place == Place::host && Split<Shelf, Nvme, 0>::place == Place::disk);
static_assert(Split<Device, Split<Cpu, Nvme, 50>, 20>::place == Place::disk &&
              !OffloadTarget<Split<Device, Drawer, 1>>::enabled);

// The average is kept in host memory unless something else is said; to recompute nothing may be said, too.
static_assert(std::same_as<Setup<Ema<>>::averaging::tier, Cpu> &&
              std::same_as<Setup<Ema<Device>>::averaging::tier, Device>);
static_assert(!Setup<Recompute<Nothing>>::recompute::any && !Setup<NoEma>::averaging::enabled);

// A policy of a user's own for the activations: a predicate in Recompute, or a policy as a whole. mpi/engine_recompute
// trains both.
struct FirstHalf {
    static bool recomputes(std::int32_t unit, std::int32_t units) { return 2 * unit < units; }
};
struct AllButTheLast {
    using slot = slot::Activations;
    static constexpr bool any = true;
    static constexpr bool recomputes(std::int32_t unit, std::int32_t units) { return unit + 1 < units; }
};
static_assert(Setup<Recompute<FirstHalf>>::recompute::any && UnitPredicate<FirstHalf> && !UnitPredicate<int>);
static_assert(std::same_as<Setup<AllButTheLast>::recompute, AllButTheLast> && RecomputePolicy<AllButTheLast>);
static_assert(Setup<Recompute<EveryOther<2>>>::recompute::recomputes(2, 3) &&
              !Setup<Recompute<EveryOther<2>>>::recompute::recomputes(1, 3));
static_assert(Setup<Recompute<Blocks>>::recompute::recomputes(1, 3) && !Setup<>::recompute::recomputes(0, 3));

// One for the average brings the class that keeps it. One that keeps none is no average, however it calls itself.
struct Swa : Ema<Device> {
    template <class Kept>
    class average;
};
struct OnlyItsName {
    using slot = slot::Averaging;
    static constexpr bool enabled = true;
};
static_assert(std::same_as<Setup<Swa>::averaging, Swa> && AveragingPolicy<Swa> && Swa::place == Place::device);
static_assert(!AveragingPolicy<OnlyItsName>);

// A store and an update rule of a user's own, without changing a line of strata.
struct Tape;
struct MyRule;
static_assert(std::same_as<Setup<Backend<Tape>>::backend::store, Tape>);
static_assert(std::same_as<Setup<Optimizer<MyRule>>::optimizer::rule, MyRule>);

// A sharding policy of a user's own says three facts; mpi/engine trains some. A stage alone is none of them.
template <ShardedOver state, ShardedOver gradients, ShardedOver parameters>
struct Shards {
    using slot = slot::Sharding;
    static constexpr ShardedOver shards_state = state;
    static constexpr ShardedOver shards_gradients = gradients;
    static constexpr ShardedOver shards_parameters = parameters;
};
constexpr auto nothing = ShardedOver::nothing, world = ShardedOver::world;
using StateOnly = Shards<world, nothing, nothing>;
using WithoutState = Shards<nothing, world, nothing>;
using ParametersOnly = Shards<nothing, nothing, world>;
struct StageOfItsOwn {
    using slot = slot::Sharding;
    static constexpr int stage = 7;
};
struct BoolsForFacts {
    using slot = slot::Sharding;
    static constexpr bool shards_state = true, shards_gradients = false, shards_parameters = false;
};
static_assert(std::same_as<Setup<OffloadTarget<Cpu>, StateOnly>::sharding, StateOnly>);
static_assert(ShardingPolicy<StateOnly> && ShardingPolicy<Shards<world, nothing, world>> &&
              !ShardingPolicy<WithoutState>);
static_assert(ZeroStage<2>::shards_state == world && ZeroStage<2>::shards_gradients == world &&
              ZeroStage<2>::shards_parameters == nothing);

// A number format of a user's own says four types; mpi/engine trains one. What no kernel is there for is refused.
template <class Element, class Kept, class Master, class Scaler>
struct Format {
    using element = Element;
    using kept = Kept;
    using master = Master;
    using scaler = Scaler;
};
using ScaledBf16 = Format<bf16, float, float, LossScaling>;
static_assert(Setup<Precision<ScaledBf16>>::precision::has_master &&
              Setup<Precision<ScaledBf16>>::precision::scales_loss);
static_assert(std::same_as<Setup<Precision<ScaledBf16>>::precision::format, ScaledBf16>);
using NormsInFp32 = Setup<Precision<Bf16, Except<Fp32>>>::precision;
static_assert(NormsInFp32::has_master && !NormsInFp32::excepted::has_master &&
              std::same_as<NormsInFp32::excepted::element, float> && detail::has_exceptions_v<NormsInFp32> &&
              !detail::has_exceptions_v<Precision<Bf16>>);
static_assert(rule::ExceptionIsAFormat<Except<Bf16>>::holds && !rule::ExceptionIsAFormat<Except<Fp16>>::holds &&
                  !rule::ExceptionIsAFormat<Fp32>::holds && !rule::ExceptionIsAFormat<Except<int>>::holds,
              "one loss has one scale");
template <class... Types>
inline constexpr bool is_trained = rule::FormatCanBeTrained<Format<Types...>>::holds;
static_assert(is_trained<float, float, NoMaster, LossScaling> && is_trained<fp16, float, float, NoScaler>);
static_assert(!is_trained<double, float, float, NoScaler> && !is_trained<float, double, NoMaster, NoScaler>);
static_assert(!is_trained<float, float, float, NoScaler>, "fp32 weights beside fp32 parameters would never be copied");
static_assert(!is_trained<bf16, bf16, bf16, NoScaler> && !is_trained<bf16, bf16, float, NoScaler>);
static_assert(!is_trained<fp16, fp16, NoMaster, LossScaling> && !is_trained<bf16, float, NoMaster, NoScaler>);
static_assert(!is_trained<bf16, float, double, NoScaler> && !is_trained<bf16, float, float, int>);
struct OwnPrecision {
    using slot = slot::Numerics;
    using element = bf16;
    using kept = float;
    static constexpr bool has_master = true;
    static constexpr bool scales_loss = false;
};
struct InDouble : OwnPrecision {
    using kept = double;
};
static_assert(PrecisionPolicy<OwnPrecision> && !PrecisionPolicy<InDouble> &&
              std::same_as<Setup<OwnPrecision>::precision, OwnPrecision>);

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
static_assert(breaks<rule::GradientOffloadNeedsShardedGradients<ZeroStage<1>, OffloadTarget<Cpu, Gradients>>,
                     OffloadTarget<Cpu, Gradients>, ZeroStage<1>>);
static_assert(breaks<rule::None, OffloadTarget<Cpu, Gradients>, ZeroStage<2>> &&
              breaks<rule::None, OffloadTarget<Device, Gradients>>);
using Drawered = OffloadTarget<Drawer, Gradients>;
static_assert(breaks<rule::GradientOffloadNeedsShardedGradients<ZeroStage<0>, Drawered>, Drawered>,
              "a tier near the device acts as well");
using AtOnce = Update<InBackward>;
static_assert(breaks<rule::OffloadedGradientsWait<AtOnce, OffloadTarget<Cpu, Gradients>>, AtOnce,
                     OffloadTarget<Cpu, Gradients>, ZeroStage<2>>);
static_assert(breaks<rule::ScaledStepsAreUpdatedAsAWhole<AtOnce, Precision<Fp16>>, AtOnce, Precision<Fp16>>);
static_assert(breaks<rule::None, AtOnce> && breaks<rule::None, AtOnce, ZeroStage<3>, OffloadTarget<Nvme>> &&
              breaks<rule::None, Update<AfterBackward>, Precision<Fp16>>);
static_assert(breaks<rule::OneOfEachKind<AtOnce, Update<AfterBackward>>, AtOnce, Update<AfterBackward>>);
static_assert(breaks<rule::UpdatesAtAKnownMoment<Adam>, Update<Adam>>);
struct Whenever {
    using slot = slot::Timing;
};
static_assert(breaks<rule::TimingSaysWhen<Whenever>, Whenever>);
struct NoTier {
    using slot = slot::Offload;
};
struct NotATier {
    using slot = slot::Offload;
    using tier = int;
};
static_assert(breaks<rule::OffloadNamesATier<NoTier>, NoTier, ZeroStage<1>> &&
              breaks<rule::OffloadNamesATier<NotATier>, NotATier>);
static_assert(breaks<rule::OffloadNeedsShardedState<ZeroStage<0>, OffloadTarget<Shelf>>, OffloadTarget<Shelf>>);
static_assert(breaks<rule::None, OffloadTarget<Drawer>>);
using InTwoDrawers = OffloadTarget<Split<Device, Drawer, 50>>;
static_assert(breaks<rule::OffloadNeedsShardedState<ZeroStage<0>, InTwoDrawers>, InTwoDrawers>,
              "a bucket is not cut at stage 0");
static_assert(breaks<rule::None, InTwoDrawers, ZeroStage<1>>);
static_assert(breaks<rule::None, ZeroStage<3>, OffloadTarget<Nvme, Parameters>>);
static_assert(breaks<rule::None, ZeroStage<3>, OffloadTarget<Cpu>, OffloadTarget<Nvme, Parameters>>);
static_assert(breaks<rule::None, ZeroStage<3>, OffloadTarget<Nvme>>);
static_assert(breaks<rule::None, ZeroStage<1>, OffloadTarget<Nvme>>);
static_assert(breaks<rule::None, Backend<S3>> && std::same_as<Setup<Backend<S3>>::backend::store, s3::FolderOrBucket>);
static_assert(breaks<rule::None, Recompute<Blocks>, Ema<>>, "neither needs sharded state");
static_assert(breaks<rule::OneOfEachKind<Ema<>, NoEma>, Ema<>, NoEma>);
static_assert(
    breaks<rule::OneOfEachKind<Recompute<Blocks>, Recompute<Nothing>>, Recompute<Blocks>, Recompute<Nothing>>);
static_assert(breaks<rule::OnlyPolicies<Blocks>, Blocks>, "what a policy is about is not the policy");

// What is wrong with a policy by itself comes before what it does to others, however many rules it would break there.
static_assert(breaks<rule::StageExists<4>, ZeroStage<4>, OffloadTarget<Cpu>>);
static_assert(breaks<rule::StageExists<-1>, OffloadTarget<Cpu, Parameters>, ZeroStage<-1>>);
static_assert(breaks<rule::FirstIsATier<Parameters>, ZeroStage<3>, OffloadTarget<Parameters, Nvme>>);
static_assert(breaks<rule::OffloadsKnownState<Nvme>, ZeroStage<3>, OffloadTarget<Cpu, Nvme>>);
static_assert(breaks<rule::AverageIsInMemory<Nvme>, Ema<Nvme>, Ema<Nvme>>);
static_assert(breaks<rule::RecomputesKnownUnits<int>, Recompute<int>>);
static_assert(breaks<rule::OneOfSome<0>, Recompute<EveryOther<0>>> && breaks<rule::None, Recompute<EveryOther<1>>>);
static_assert(breaks<rule::FormatCanBeTrained<int>, Precision<int>>);
static_assert(breaks<rule::PrecisionCanBeTrained<InDouble>, InDouble, ZeroStage<2>>);
static_assert(breaks<rule::SaysWhatIsSharded<StageOfItsOwn>, StageOfItsOwn>);
static_assert(breaks<rule::SaysWhatIsSharded<BoolsForFacts>, BoolsForFacts, OffloadTarget<Cpu>>);
static_assert(breaks<rule::ShardsStateFirst<WithoutState>, WithoutState> &&
              breaks<rule::ShardsStateFirst<ParametersOnly>, ParametersOnly>);
static_assert(breaks<rule::AveragingBringsItsClass<OnlyItsName>, OnlyItsName>);
static_assert(breaks<rule::FrozenFormatBringsItsCodec<Bf16>, ZeroStage<3>, FrozenWeights<Bf16>>);
struct FrozenSomehow {
    using slot = slot::FrozenFormat;
};
static_assert(breaks<rule::FrozenPolicySaysWhether<FrozenSomehow>, FrozenSomehow>);
struct OnlySomeBlocks {
    using slot = slot::Activations;
    static constexpr bool blocks = true;
};
static_assert(breaks<rule::RecomputeSaysWhich<OnlySomeBlocks>, OnlySomeBlocks>);
struct NoStore {
    using slot = slot::Storage;
};
struct NoRule {
    using slot = slot::Update;
};
struct NoComm {
    using slot = slot::Communication;
};
struct NoDevice {
    using slot = slot::Computation;
};
static_assert(breaks<rule::RanksNameACommunicator<NoComm>, NoComm> &&
              breaks<rule::ComputeNamesADevice<NoDevice>, NoDevice>);
static_assert(breaks<rule::OneOfEachKind<Compute<Host>, Compute<Cuda>>, Compute<Host>, Compute<Cuda>>);
static_assert(breaks<rule::BackendNamesAStore<NoStore>, NoStore> && breaks<rule::UpdateNamesARule<NoRule>, NoRule>);
static_assert(breaks<rule::OnlyPolicies<ZeroStage<4>, int>, ZeroStage<4>, int>);

// A policy of a user's own may bring a rule of its own.
struct NeverHolds {
    static constexpr bool holds = false;
    struct Report {};
};
struct Impossible : StateOnly {
    using broken = NeverHolds;
};
static_assert(breaks<NeverHolds, Impossible, OffloadTarget<Cpu>>);
struct Unreadable : StateOnly {
    using broken = int;
};
static_assert(breaks<rule::BrokenIsARule<int>, Unreadable, OffloadTarget<Cpu>>);

// Arguments are looked at before pairs: one mistake at a time.
static_assert(breaks<rule::OnlyPolicies<int, ZeroStage<3>, ZeroStage<3>>, int, ZeroStage<3>, ZeroStage<3>>);
static_assert(breaks<rule::OneOfEachKind<ZeroStage<3>, ZeroStage<0>>, ZeroStage<3>, ZeroStage<0>>);

}  // namespace
}  // namespace strata
