#pragma once
// strata/zero/parts/pass_peaks.hpp - pass_peaks(): what passes of a step have at most beside what an engine keeps.

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include <strata/core/inline.hpp>
#include <strata/zero/parameters.hpp>
#include <strata/zero/parts/buckets.hpp>
#include <strata/zero/parts/gradient_reduction.hpp>
#include <strata/zero/parts/take_over.hpp>

namespace strata::zero {

/// Bytes on the device, by MemoryKind.
struct PassPeaks {
    std::int64_t gradients =
        0;                      ///< buckets that are filled or wait for their reduction, and one's sum of a micro-batch
    std::int64_t gathered = 0;  ///< units that are whole
    std::int64_t buffers = 0;   ///< sums of all ranks, where every rank has all of the state
};

struct PassFacts {
    GradientReduction::Options gradients{};
    at::ScalarType dtype = at::kFloat;  ///< parameters are kept in
    at::ScalarType excepted_dtype = at::kFloat;
    bool device_is_host = true;
    std::int64_t prefetch_bytes = -1;  ///< UnitGathering::Options
    std::int64_t max_live_numel = 0;
    std::vector<Parameter> model{};  ///< all parameters as the model registered them
};

/// Follows a forward and a backward pass through the rules of GradientReduction and UnitGathering: units are called once each in the order of
/// their registration, gradients come in the opposite one, and all that is posted to the channel ends only where somebody waits for it. So
/// it is what passes of such a model have where reductions are slower than backward, and less where they are not. Local.
///
///   frozen  of the model, by unit, where units are sharded
[[nodiscard]] PassPeaks pass_peaks(const Buckets& buckets, const std::vector<FrozenUnit>& frozen,
                                   const PassFacts& facts);

}  // namespace strata::zero

#ifndef STRATA_COMPILED
#include <strata/zero/impl/pass_peaks.ipp>
#endif
