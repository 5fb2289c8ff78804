#pragma once
// tools/train/compositions.hpp - the trainers that `strata train` has, as types; each costs a second or two to compile.

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

/// Where state and parameters are. The first that does what a configuration says is taken, so that one that says nothing
/// has its state split over the ranks, in device memory.
using Places = AnyOf<Policies<ZeroStage<2>>, Policies<ZeroStage<2>, OffloadTarget<Cpu>>, Policies<ZeroStage<3>>,
                     Policies<ZeroStage<3>, OffloadTarget<Cpu>>,
                     Policies<ZeroStage<3>, OffloadTarget<Cpu, OptimizerState, Parameters>>, Policies<ZeroStage<1>>,
                     Policies<ZeroStage<0>>, Policies<ZeroStage<1>, OffloadTarget<Cpu>>,
                     Policies<ZeroStage<2>, OffloadTarget<Nvme>>, Policies<ZeroStage<3>, OffloadTarget<Nvme>>,
                     Policies<ZeroStage<3>, OffloadTarget<Nvme, OptimizerState, Parameters>>,
                     Policies<ZeroStage<3>, OffloadTarget<Nvme>, OffloadTarget<Cpu, Parameters>>,
                     Policies<ZeroStage<3>, OffloadTarget<Cpu, Parameters>>>;
/// Of rules, formats and averages that fewer people use.
using UsualPlaces = AnyOf<Policies<ZeroStage<2>>, Policies<ZeroStage<2>, OffloadTarget<Cpu>>, Policies<ZeroStage<3>>,
                          Policies<ZeroStage<3>, OffloadTarget<Cpu, OptimizerState, Parameters>>,
                          Policies<ZeroStage<0>>>;

template <class... Choices>
using Recomputing = Each<Choices..., Recompute<AsConfigured>>;

// One list a file that is compiled, so that they are made side by side. Bf16 comes first: it is what is meant where
// nothing is said.
using AdamWBf16 = Recomputing<Places, Optimizer<AdamW>, Precision<Bf16>>;
using AdamWFp32 = Combinations<Recomputing<Places, Optimizer<AdamW>, Precision<Fp32>>,
                               Recomputing<UsualPlaces, Optimizer<AdamW>, Precision<Fp32>, Ema<Cpu>>>;
using AdamWFp16 = Recomputing<Places, Optimizer<AdamW>, Precision<Fp16>>;
using AdamWPureBf16 = Combinations<Recomputing<Places, Optimizer<AdamW>, Precision<PureBf16>>,
                                   Recomputing<UsualPlaces, Optimizer<AdamW>, Precision<PureBf16>, Ema<Cpu>>>;
using OtherRules = Combinations<
    Recomputing<UsualPlaces, Optimizer<AdamW>, Precision<Bf16>, Ema<Cpu>>,
    Recomputing<UsualPlaces, AnyOf<Optimizer<Lion>, Optimizer<Adam>, Optimizer<Sgd>, Optimizer<Adagrad>, Optimizer<Lamb>>,
                Precision<Bf16>>,
    Recomputing<UsualPlaces, Optimizer<Lion>, Precision<PureBf16>>>;

using TrainCompositions = Combinations<AdamWBf16, AdamWPureBf16, AdamWFp16, AdamWFp32, OtherRules>;

}  // namespace strata::tools
