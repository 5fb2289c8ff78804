#pragma once
// strata/zero/torch_version.hpp - what later libtorch has and 1.13 lacks, and since when; the one header that asks for its version.

#include <torch/version.h>

/// at::scaled_dot_product_attention() with a scale: since 2.1.
#define STRATA_TORCH_HAS_FUSED_ATTENTION \
    (TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 1))
