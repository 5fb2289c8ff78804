#pragma once
// strata/zero/tiers/device.hpp - what the tier Device brings: state and shards in memory, where the model computes.

#include <cstddef>

#include <strata/policy/place.hpp>
#include <strata/policy/tier.hpp>
#include <strata/zero/tiers/in_memory.hpp>

namespace strata {

template <class Kept, std::size_t states, bool has_master>
class Device::state : public zero::detail::StateInMemory<Place::device, Kept, states, has_master> {};

template <class Element>
class Device::shards : public zero::detail::ShardsInMemory<Place::device, Element> {};

}  // namespace strata
