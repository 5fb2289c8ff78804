#pragma once
// strata/optim/simd.hpp - one loop compiled for several instruction sets, chosen when the program runs.

#include <cmath>
#include <cstdint>

/// In front of what a CPU loop and a CUDA kernel share; nothing without nvcc, which also wants
/// --expt-relaxed-constexpr.
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

#ifndef __CUDACC__
// Only its errno keeps gcc from making sqrtf a vector instruction, and whether it has one was settled on the command
// line: an attribute on a function comes too late. Declared const, once more, it is free of errno.
extern "C" [[gnu::const]] float sqrtf(float) noexcept;
#endif

namespace strata::optim {

/// The square root for update rules: one instruction, correctly rounded at every level.
[[gnu::always_inline]] STRATA_HOST_DEVICE inline float square_root(float value) noexcept { return ::sqrtf(value); }

/// Instruction sets that strata's loops are compiled for. A loop gives the same bits at each of them.
enum class SimdLevel : std::uint8_t {
    baseline,  ///< what the compiler was told for the whole program (x86-64: SSE2)
    avx2,      ///< 8 floats at once; AVX2 and FMA
    avx512,    ///< 16 floats at once; F, BW, DQ and VL, and FMA
};

/// What a CPU says of itself, as far as the levels ask. A virtual machine may hide any of it.
struct CpuFeatures {
    bool avx2 = false;
    bool fma = false;     ///< three-operand fused multiply-add, which kernels of the levels above baseline use
    bool avx512 = false;  ///< F, BW, DQ and VL
};

/// The highest level that such a CPU runs.
constexpr SimdLevel level_for(const CpuFeatures& cpu) noexcept {
    if (!cpu.fma) return SimdLevel::baseline;
    return cpu.avx512 ? SimdLevel::avx512 : cpu.avx2 ? SimdLevel::avx2 : SimdLevel::baseline;
}

/// The highest level that this CPU runs; on other machines than x86-64 always baseline.
inline SimdLevel simd_level() noexcept {
#ifdef __x86_64__
    static const SimdLevel level = level_for(
        {.avx2 = __builtin_cpu_supports("avx2") != 0,
         .fma = __builtin_cpu_supports("fma") != 0,
         .avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                   __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")});
    return level;
#else
    return SimdLevel::baseline;
#endif
}

namespace detail {

// The flags belong to these loops, not to the program: vectors even at -O0, and never a fused multiply-add, which
// baseline lacks and whose other rounding would tell the levels apart.
#ifdef __clang__
#define STRATA_LOOP_FLAGS
#else
#define STRATA_LOOP_FLAGS [[gnu::optimize("O3", "no-math-errno", "no-trapping-math", "fp-contract=off")]]
#endif

template <class Loop>
STRATA_LOOP_FLAGS void run_baseline(const Loop& loop) {
    loop();
}

#ifdef __x86_64__
template <class Loop>
STRATA_LOOP_FLAGS [[gnu::target("avx2")]] void run_avx2(const Loop& loop) {
    loop();
}
#ifdef __clang__  // which knows no such preference
#define STRATA_AVX512 "avx512f,avx512bw,avx512dq,avx512vl"
#else
#define STRATA_AVX512 "avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512"
#endif
template <class Loop>
STRATA_LOOP_FLAGS [[gnu::target(STRATA_AVX512)]] void run_avx512(const Loop& loop) {
    loop();
}
#endif

#undef STRATA_AVX512
#undef STRATA_LOOP_FLAGS

/// Runs `loop()`, whose call operator must be always_inline: it is compiled once into each level.
template <class Loop>
void run_at(SimdLevel level, const Loop& loop) {
#ifdef __x86_64__
    switch (level) {
        case SimdLevel::avx512: return run_avx512(loop);
        case SimdLevel::avx2: return run_avx2(loop);
        case SimdLevel::baseline: break;
    }
#else
    static_cast<void>(level);
#endif
    run_baseline(loop);
}

}  // namespace detail

}  // namespace strata::optim
