#pragma once
// strata/models/detail/group_norm_shape.hpp - GroupNormShape: what a group norm's loops and its callers both know.

#include <cstdint>

namespace strata::models::kernels {

/// Sizes of a group norm.
struct GroupNormShape {
    std::int64_t B, C, N, G;
    float eps;
    bool with_silu;  ///< y is silu of the norm
};

}  // namespace strata::models::kernels
