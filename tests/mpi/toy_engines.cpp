// The engines of toy_engines.hpp.

#include "toy_engines.hpp"

namespace strata::zero {

template class Engine<Setup<ZeroStage<0>>, comm::MpiComm>;
template class Engine<Setup<ZeroStage<1>>, comm::MpiComm>;
template class Engine<Setup<ZeroStage<2>>, comm::MpiComm>;
template class Engine<Setup<ZeroStage<3>>, comm::MpiComm>;
template class Engine<Setup<ZeroStage<0>, Precision<Bf16>>, comm::MpiComm>;
template class Engine<Setup<ZeroStage<1>, Precision<Bf16>>, comm::MpiComm>;
template class Engine<Setup<ZeroStage<2>, Precision<Bf16>>, comm::MpiComm>;
template class Engine<Setup<ZeroStage<3>, Precision<Bf16>>, comm::MpiComm>;
template class Engine<Setup<ZeroStage<1>, OffloadTarget<Nvme>>, comm::MpiComm>;
template class Engine<Setup<ZeroStage<2>, OffloadTarget<Nvme>>, comm::MpiComm>;
template class Engine<Setup<ZeroStage<3>, OffloadTarget<Nvme>>, comm::MpiComm>;
template class Engine<Setup<ZeroStage<3>, OffloadTarget<Nvme, OptimizerState, Parameters>>, comm::MpiComm>;
template class Engine<Setup<ZeroStage<0>, Optimizer<Adagrad>>, comm::MpiComm>;
template class Engine<Setup<ZeroStage<3>, Optimizer<Adagrad>>, comm::MpiComm>;
template class Engine<Setup<ZeroStage<0>, Optimizer<Lamb>>, comm::MpiComm>;
template class Engine<Setup<ZeroStage<3>, Optimizer<Lamb>>, comm::MpiComm>;
template class Engine<Setup<ZeroStage<0>, Ema<Cpu>>, comm::MpiComm>;
template class Engine<Setup<ZeroStage<1>, Ema<Cpu>>, comm::MpiComm>;
template class Engine<Setup<ZeroStage<2>, Ema<Device>>, comm::MpiComm>;
template class Engine<Setup<ZeroStage<3>, Ema<Cpu>>, comm::MpiComm>;
template class Engine<Setup<ZeroStage<3>, Ema<Device>>, comm::MpiComm>;
template class Engine<Setup<ZeroStage<3>, Recompute<Blocks>>, comm::MpiComm>;

}  // namespace strata::zero
