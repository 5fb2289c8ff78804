#pragma once
// strata/optim/square_root.hpp - the square root of update rules: one instruction, the same bits at every level.

#include <cmath>

#include <strata/core/host_device.hpp>

#ifndef __CUDACC__
// Only its errno keeps gcc from making sqrtf a vector instruction, and whether it has one was settled on the command
// line: an attribute on a function comes too late. Declared const, once more, it is free of errno.
extern "C" [[gnu::const]] float sqrtf(float) noexcept;
#endif

namespace strata::optim {

/// The square root for update rules: one instruction, correctly rounded at every level.
[[gnu::always_inline]] STRATA_HOST_DEVICE inline float square_root(float value) noexcept { return ::sqrtf(value); }

}  // namespace strata::optim
