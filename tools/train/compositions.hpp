#pragma once
// tools/train/compositions.hpp - the trainers that `strata train` has, as types; each takes the compiler a second or two.

#include <cstdint>

#include <strata/config/combinations.hpp>
#include <strata/policy/setup.hpp>

namespace strata::tools {

using config::AnyOf;
using config::Combinations;
using config::Each;
using config::Policies;

/// Units are computed again as the configuration says, which is known when the program runs: one of `every`, or none.
struct AsConfigured {
    static inline std::int32_t every = 0;  ///< 0: none; 1: all; set before a trainer is made
    static bool recomputes(std::int32_t unit, std::int32_t) noexcept { return every > 0 && unit % every == 0; }
};

/// Where state and parameters are, in the order in which a configuration that leaves it open is answered: one that says
/// nothing has its state split over the ranks, in device memory.
using UsualPlaces =
    AnyOf<Policies<ZeroStage<2>>, Policies<ZeroStage<2>, OffloadTarget<Cpu>>, Policies<ZeroStage<3>>,
          Policies<ZeroStage<3>, OffloadTarget<Cpu, OptimizerState, Parameters>>,
          Policies<ZeroStage<3>, OffloadTarget<Nvme, OptimizerState, Parameters>>, Policies<ZeroStage<0>>>;

#ifdef STRATA_ALL_TRAINERS  // as a package has them
using Places =
    AnyOf<UsualPlaces, Policies<ZeroStage<1>>, Policies<ZeroStage<1>, OffloadTarget<Cpu>>,
          Policies<ZeroStage<1>, OffloadTarget<Nvme>>, Policies<ZeroStage<2>, OffloadTarget<Nvme>>,
          Policies<ZeroStage<3>, OffloadTarget<Cpu>>, Policies<ZeroStage<3>, OffloadTarget<Cpu, Parameters>>,
          Policies<ZeroStage<3>, OffloadTarget<Nvme>>, Policies<ZeroStage<3>, OffloadTarget<Nvme, Parameters>>,
          Policies<ZeroStage<3>, OffloadTarget<Nvme>, OffloadTarget<Cpu, Parameters>>,
          Policies<ZeroStage<3>, OffloadTarget<Cpu>, OffloadTarget<Nvme, Parameters>>>;
using AveragedPlaces = Places;
using PlacesOfOtherRules = UsualPlaces;
using OtherRules = AnyOf<Optimizer<Lion>, Optimizer<Adam>, Optimizer<Sgd>, Optimizer<Adagrad>, Optimizer<Lamb>>;
#else
using Places = AnyOf<UsualPlaces, Policies<ZeroStage<1>>, Policies<ZeroStage<3>, OffloadTarget<Cpu>>>;
using AveragedPlaces = AnyOf<Policies<ZeroStage<2>>, Policies<ZeroStage<2>, OffloadTarget<Cpu>>>;
using PlacesOfOtherRules = AveragedPlaces;
using OtherRules = AnyOf<Optimizer<Lion>, Optimizer<Adam>>;
#endif

/// Of what is under an adapter. State and gradients are the adapter's, and small.
using AdapterPlaces = AnyOf<Policies<ZeroStage<2>>, Policies<ZeroStage<3>>, Policies<ZeroStage<3>, FrozenWeights<Int8>>,
                            Policies<ZeroStage<3>, FrozenWeights<Nf4>>, Policies<ZeroStage<1>>, Policies<ZeroStage<0>>>;
using AdapterFormats = AnyOf<Precision<Bf16>, Precision<PureBf16>>;

template <class... Choices>
using Recomputing = Each<Choices..., Recompute<AsConfigured>>;
template <class Format>
using WithAdamW = Combinations<Recomputing<Places, Optimizer<AdamW>, Precision<Format>>,
                               Recomputing<AveragedPlaces, Optimizer<AdamW>, Precision<Format>, Ema<Cpu>>>;
template <class Format>
using WithOtherRules = Recomputing<PlacesOfOtherRules, OtherRules, Precision<Format>>;

// One list a file that is compiled, so that they are made side by side.
using AdamWBf16 = WithAdamW<Bf16>;
using AdamWPureBf16 = WithAdamW<PureBf16>;
using AdamWFp16 = WithAdamW<Fp16>;
using AdamWFp32 = WithAdamW<Fp32>;
using OthersBf16 = WithOtherRules<Bf16>;
using OthersPureBf16 = WithOtherRules<PureBf16>;

/// An average is the adapter's as well, so that it has room wherever that has.
template <class Kind>
using WithAdapter =
    Recomputing<Adapter<Kind>, AnyOf<Policies<>, Ema<Cpu>>, AdapterPlaces, Optimizer<AdamW>, AdapterFormats>;
using LoraTrainers = WithAdapter<Lora>;
using LokrTrainers = WithAdapter<Lokr>;

/// What is meant where a configuration leaves rule or format open comes first: AdamW in bf16, with fp32 master weights.
using TrainCompositions = Combinations<AdamWBf16, AdamWPureBf16, AdamWFp16, AdamWFp32, OthersBf16, OthersPureBf16,
                                       LoraTrainers, LokrTrainers>;

}  // namespace strata::tools
