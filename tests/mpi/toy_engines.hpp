#pragma once
// tests/mpi/toy_engines.hpp - the engines that many tests use; toy_engines.cpp compiles them for all.

#include <strata/comm/mpi_comm.hpp>
#include <strata/optim/adagrad.hpp>
#include <strata/optim/adamw.hpp>
#include <strata/optim/lamb.hpp>
#include <strata/policy/ema.hpp>
#include <strata/policy/recompute.hpp>
#include <strata/policy/setup.hpp>
#include <strata/zero/engine.hpp>

namespace strata_test {

template <class... Policies>
using EngineOf = strata::zero::Engine<strata::Setup<Policies...>, strata::comm::MpiComm>;

using strata::Bf16;
using strata::Precision;
using strata::ZeroStage;
using StateOnDisk = strata::OffloadTarget<strata::Nvme>;
using AllOnDisk = strata::OffloadTarget<strata::Nvme, strata::OptimizerState, strata::Parameters>;

}  // namespace strata_test

namespace strata::zero {

extern template class Engine<Setup<ZeroStage<0>>, comm::MpiComm>;
extern template class Engine<Setup<ZeroStage<1>>, comm::MpiComm>;
extern template class Engine<Setup<ZeroStage<2>>, comm::MpiComm>;
extern template class Engine<Setup<ZeroStage<3>>, comm::MpiComm>;
extern template class Engine<Setup<ZeroStage<0>, Precision<Bf16>>, comm::MpiComm>;
extern template class Engine<Setup<ZeroStage<1>, Precision<Bf16>>, comm::MpiComm>;
extern template class Engine<Setup<ZeroStage<2>, Precision<Bf16>>, comm::MpiComm>;
extern template class Engine<Setup<ZeroStage<3>, Precision<Bf16>>, comm::MpiComm>;
extern template class Engine<Setup<ZeroStage<1>, OffloadTarget<Nvme>>, comm::MpiComm>;
extern template class Engine<Setup<ZeroStage<2>, OffloadTarget<Nvme>>, comm::MpiComm>;
extern template class Engine<Setup<ZeroStage<3>, OffloadTarget<Nvme>>, comm::MpiComm>;
extern template class Engine<Setup<ZeroStage<3>, OffloadTarget<Nvme, OptimizerState, Parameters>>, comm::MpiComm>;
extern template class Engine<Setup<ZeroStage<0>, Optimizer<Adagrad>>, comm::MpiComm>;
extern template class Engine<Setup<ZeroStage<3>, Optimizer<Adagrad>>, comm::MpiComm>;
extern template class Engine<Setup<ZeroStage<0>, Optimizer<Lamb>>, comm::MpiComm>;
extern template class Engine<Setup<ZeroStage<3>, Optimizer<Lamb>>, comm::MpiComm>;
extern template class Engine<Setup<ZeroStage<0>, Ema<Cpu>>, comm::MpiComm>;
extern template class Engine<Setup<ZeroStage<1>, Ema<Cpu>>, comm::MpiComm>;
extern template class Engine<Setup<ZeroStage<2>, Ema<Device>>, comm::MpiComm>;
extern template class Engine<Setup<ZeroStage<3>, Ema<Cpu>>, comm::MpiComm>;
extern template class Engine<Setup<ZeroStage<3>, Ema<Device>>, comm::MpiComm>;
extern template class Engine<Setup<ZeroStage<3>, Recompute<Blocks>>, comm::MpiComm>;

}  // namespace strata::zero
