#pragma once
// strata/zero/parts/memory_plan.hpp - MemoryPlan: what an engine is going to allocate, before any of it is.

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <strata/core/inline.hpp>
#include <strata/policy/place.hpp>
#include <strata/zero/parameters.hpp>
#include <strata/zero/parts/buckets.hpp>
#include <strata/zero/parts/gradient_reduction.hpp>

namespace strata::zero {

/// Bytes that this rank is going to have beyond what the model gives back. An upper bound. Local.
struct MemoryPlan {
    bool device_is_host = true;                  ///< the CPU is the device: there is one memory
    at::ScalarType dtype = at::kFloat;           ///< parameters are kept in
    at::ScalarType excepted_dtype = at::kFloat;  ///< those are that keep the other number format
    GradientReduction::Options gradients{};
    PlaceBytes state{};  ///< masters and states, on every tier
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

}  // namespace strata::zero

#ifndef STRATA_COMPILED
#include <strata/zero/impl/memory_plan.ipp>
#endif
