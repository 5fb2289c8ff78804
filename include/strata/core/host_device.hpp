#pragma once
// strata/core/host_device.hpp - what stands in front of functions that a CPU loop and a CUDA kernel share.

/// In front of a function for both; nothing without nvcc, which also wants --expt-relaxed-constexpr.
#ifdef __CUDACC__
#define STRATA_HOST_DEVICE __host__ __device__
#else
#define STRATA_HOST_DEVICE
#endif

/// In front of a loop whose arrays a GPU is to hold in registers, which it can only where indices are constants.
#ifdef __CUDA_ARCH__
#define STRATA_UNROLL _Pragma("unroll")
#else
#define STRATA_UNROLL
#endif
