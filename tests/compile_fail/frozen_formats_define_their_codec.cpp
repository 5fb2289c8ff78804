// tests/compile_fail/frozen_formats_define_their_codec.cpp - an engine with a format whose codec is nowhere defined gets ST0157.

#include <strata/comm/self_comm.hpp>
#include <strata/optim/adamw.hpp>
#include <strata/policy/setup.hpp>
#include <strata/zero/engine.hpp>

using namespace strata;

struct Mine {
    static constexpr const char* name = "mine";
    class codec;
};
#ifndef STRATA_BAD
class Mine::codec : public Int8::codec {};
#endif

using Engine = zero::Engine<Setup<ZeroStage<3>, FrozenWeights<Mine>, Adapter<Lora>>, comm::SelfComm>;

int main() { return sizeof(Engine) > 0 ? 0 : 1; }
