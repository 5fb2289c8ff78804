#pragma once
// strata/models/kernel_rows.hpp - Rows: a matrix as the kernels take it, whose rows may lie apart.

#include <cstdint>

namespace strata::models::kernels {

/// Rows of (B, D) that may lie `stride` elements apart, as the chunks of a modulation projection do.
template <class T>
struct Rows {
    const T* data;
    std::int64_t stride;
};

}  // namespace strata::models::kernels
