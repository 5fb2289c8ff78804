// tests/compile_fail/tiers_define_their_shards.cpp - an engine over a tier whose class shards is declared and nowhere defined gets ST0123.

#include <cstddef>

#include <strata/comm/self_comm.hpp>
#include <strata/optim/adamw.hpp>
#include <strata/policy/setup.hpp>
#include <strata/zero/engine.hpp>

using namespace strata;

struct Shelf : Cpu {
    template <class Element>
    class shards;
};
#ifndef STRATA_BAD
template <class Element>
class Shelf::shards : public Cpu::shards<Element> {};
#endif

using Engine = zero::Engine<Setup<ZeroStage<3>, OffloadTarget<Shelf, Parameters>>, comm::SelfComm>;

int main() { return sizeof(Engine) > 0 ? 0 : 1; }
