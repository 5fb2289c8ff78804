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

}  // namespace strata::zero
