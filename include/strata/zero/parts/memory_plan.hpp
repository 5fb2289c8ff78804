#pragma once
// strata/zero/parts/memory_plan.hpp - MemoryPlan: what an engine is going to allocate, before any of it is.

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <strata/core/inline.hpp>
#include <strata/policy/place.hpp>
#include <strata/zero/compute_device.hpp>
#include <strata/zero/detail/preparation.hpp>
#include <strata/zero/frozen_codec.hpp>
#include <strata/zero/parameters.hpp>
#include <strata/zero/parts/buckets.hpp>
#include <strata/zero/parts/exchange.hpp>
#include <strata/zero/parts/gradient_reduction.hpp>

namespace strata::zero {

/// Bytes that this rank is going to have beyond what the model gives back. An upper bound. Local.
struct MemoryPlan {
    bool device_is_host = true;                  ///< the CPU is the device: there is one memory
    at::ScalarType dtype = at::kFloat;           ///< parameters are kept in
    at::ScalarType excepted_dtype = at::kFloat;  ///< those are that keep the other number format
    const FrozenFormat* quantised = nullptr;     ///< what frozen matrices of units are kept in
    GradientReduction::Options gradients{};
    std::int64_t beside = 0;  ///< of host memory, while a unit is made that has none yet
    PlaceBytes state{};       ///< masters and states, on every tier
    PlaceBytes average{};
    PlaceBytes sums{};  ///< of gradients, where a tier has them
    PlaceBytes trained_shards{};
    PlaceBytes frozen_shards{};

    /// In host memory and in the device's; without a second memory all of it is the host's.
    struct Need {
        std::int64_t host = 0;
        std::int64_t device = 0;
    };
    [[nodiscard]] Need need(const Buckets& buckets, const std::vector<Parameter>& frozen) const;
    /// What a message tells to do where there is not enough.
    [[nodiscard]] std::string fix(const Sharded& sharded) const;
};

/// Compares a plan with what this node and the device have free. Collective. Throws not_enough_memory on all ranks.
template <ComputeDevice Compute>
void require_room(const MemoryPlan::Need& need, const std::string& fix, Exchange& exchange, Compute& compute) {
    detail::require_node_memory(exchange.all_gather_texts(detail::memory_need(static_cast<std::uint64_t>(need.host))),
                                fix);
    if constexpr (!Compute::is_host) {
        compute.release_cached();
        exchange.agree([&] {
            detail::require_device_memory(compute.device(), static_cast<std::uint64_t>(need.device),
                                          compute.free_memory(), fix);
        });
    }
}

}  // namespace strata::zero

#ifndef STRATA_COMPILED
#include <strata/zero/impl/memory_plan.ipp>
#endif
