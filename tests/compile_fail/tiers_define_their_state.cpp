// tests/compile_fail/tiers_define_their_state.cpp - an engine over a tier whose class state is declared and nowhere defined gets ST0122.

#include <cstddef>

#include <strata/comm/self_comm.hpp>
#include <strata/optim/adamw.hpp>
#include <strata/policy/setup.hpp>
#include <strata/zero/engine.hpp>

using namespace strata;

struct Shelf : Cpu {
    template <class Kept, std::size_t states, bool has_master>
    class state;
};
#ifndef STRATA_BAD
template <class Kept, std::size_t states, bool has_master>
class Shelf::state : public Cpu::state<Kept, states, has_master> {};
#endif

using Engine = zero::Engine<Setup<ZeroStage<3>, OffloadTarget<Shelf>>, comm::SelfComm>;

int main() { return sizeof(Engine) > 0 ? 0 : 1; }
