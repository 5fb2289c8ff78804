#pragma once
// strata/zero/tiers/cpu.hpp - what the tier Cpu brings: state and shards in memory, host memory.

#include <cstddef>

#include <strata/policy/place.hpp>
#include <strata/policy/tier.hpp>
#include <strata/zero/tiers/in_memory.hpp>

namespace strata {

template <class Kept, std::size_t states, bool has_master>
class Cpu::state : public zero::detail::StateInMemory<Place::host, Kept, states, has_master> {};

template <class Element>
class Cpu::shards : public zero::detail::ShardsInMemory<Place::host, Element> {};

}  // namespace strata
