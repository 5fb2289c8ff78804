#pragma once
// strata/core/simd.hpp - a loop compiled for several instruction sets, one of which is chosen when the program runs.
//
// The one place that names instruction sets, beside core/simd_avx512_bf16.hpp for one that is not for loops. A loop is a functor whose call operator is always_inline; the functions
// below have the targets, so it is compiled once into each of them. Why not Highway: docs/decisions/017.

#include <cstdint>
#include <type_traits>

namespace strata::core {

/// Instruction sets that strata's loops are compiled for.
enum class SimdLevel : std::uint8_t {
    baseline,  ///< what the compiler was told for the whole program (x86-64: SSE2)
    avx2,      ///< 8 floats at once; AVX2 and FMA
    avx512,    ///< 16 floats at once; F, BW, DQ and VL, and FMA
};

/// What a CPU says of itself, as far as strata asks. A virtual machine may hide any of it.
struct CpuFeatures {
    bool avx2 = false;
    bool fma = false;          ///< three-operand fused multiply-add, which kernels of the levels above baseline use
    bool avx512 = false;       ///< F, BW, DQ and VL
    bool avx512_bf16 = false;  ///< avx512, and products of pairs of bf16
    bool crc32 = false;        ///< the instruction of CRC32C, which came with SSE4.2
};

/// This CPU's; nothing of it on other machines than x86-64.
inline const CpuFeatures& cpu_features() noexcept {
#ifdef __x86_64__
    static const CpuFeatures features{
        .avx2 = __builtin_cpu_supports("avx2") != 0,
        .fma = __builtin_cpu_supports("fma") != 0,
        .avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"),
        .avx512_bf16 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                       __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                       __builtin_cpu_supports("avx512bf16"),
        .crc32 = __builtin_cpu_supports("sse4.2") != 0};
#else
    static const CpuFeatures features;
#endif
    return features;
}

/// The highest level that such a CPU runs.
constexpr SimdLevel level_for(const CpuFeatures& cpu) noexcept {
    if (!cpu.fma) return SimdLevel::baseline;
    return cpu.avx512 ? SimdLevel::avx512 : cpu.avx2 ? SimdLevel::avx2 : SimdLevel::baseline;
}

/// The highest level that this CPU runs.
inline SimdLevel simd_level() noexcept {
    static const SimdLevel level = level_for(cpu_features());
    return level;
}

namespace detail {

// The flags belong to these loops, not to the program: vectors even at -O0, and never a fused multiply-add, which
// baseline lacks and whose other rounding would tell the levels apart.
#ifdef __clang__
#define STRATA_LOOP_FLAGS
#define STRATA_CRC_FLAGS
#else
#define STRATA_LOOP_FLAGS [[gnu::optimize("O3", "no-math-errno", "no-trapping-math", "fp-contract=off")]]
#define STRATA_CRC_FLAGS [[gnu::optimize("O2")]]
#endif

#ifdef __x86_64__
#define STRATA_AVX2 "avx2"
#define STRATA_AVX512 "avx512f,avx512bw,avx512dq,avx512vl"
#ifdef __clang__
// It has settled what may be fused where a loop's text stands, and its AVX-512 brings FMA: loops of equal bits do
// without.
#define STRATA_AVX512_OF_EQUAL_BITS STRATA_AVX2
#define STRATA_AVX512_FUSED STRATA_AVX512
#else
#define STRATA_AVX512_OF_EQUAL_BITS STRATA_AVX512 ",prefer-vector-width=512"
#define STRATA_AVX512_FUSED STRATA_AVX512 ",fma,prefer-vector-width=512"
#endif

template <class Loop>
STRATA_LOOP_FLAGS [[gnu::target(STRATA_AVX2)]] void run_avx2(const Loop& loop) {
    loop();
}
template <class Loop>
STRATA_LOOP_FLAGS [[gnu::target(STRATA_AVX512_OF_EQUAL_BITS)]] void run_avx512(const Loop& loop) {
    loop();
}
template <class Loop>
[[gnu::target(STRATA_AVX2 ",fma")]] void run_fused_avx2(const Loop& loop) {
    loop(std::integral_constant<int, 8>{});
}
template <class Loop>
[[gnu::target(STRATA_AVX512_FUSED)]] void run_fused_avx512(const Loop& loop) {
    loop(std::integral_constant<int, 16>{});
}
template <class Loop>
STRATA_CRC_FLAGS [[gnu::target("sse4.2")]] void run_crc32(const Loop& loop) {
    loop();
}

#undef STRATA_AVX2
#undef STRATA_AVX512
#undef STRATA_AVX512_OF_EQUAL_BITS
#undef STRATA_AVX512_FUSED
#endif

template <class Loop>
STRATA_LOOP_FLAGS void run_baseline(const Loop& loop) {
    loop();
}

#undef STRATA_LOOP_FLAGS
#undef STRATA_CRC_FLAGS

}  // namespace detail

/// Runs `loop()` as compiled for the level, with the same bits at each. Local.
///
///   level  at most simd_level()
///   loop   its call operator is [[gnu::always_inline]]; for arrays of plain numbers, which the compiler makes vectors
///   of
template <class Loop>
void run_at(SimdLevel level, const Loop& loop) {
#ifdef __x86_64__
    switch (level) {
        case SimdLevel::avx512:
            return detail::run_avx512(loop);
        case SimdLevel::avx2:
            return detail::run_avx2(loop);
        case SimdLevel::baseline:
            break;
    }
#else
    static_cast<void>(level);
#endif
    detail::run_baseline(loop);
}

/// Runs `loop(std::integral_constant<int, lanes>{})` as compiled for the level, where `lanes` fp32 numbers fill a
/// register: 4, 8 or 16. Local. For loops over core/lanes.hpp. Multiplications and additions may be fused above
/// baseline, and sums go by lanes: levels differ in rounding.
template <class Loop>
void run_in_lanes(SimdLevel level, const Loop& loop) {
#ifdef __x86_64__
    switch (level) {
        case SimdLevel::avx512:
            return detail::run_fused_avx512(loop);
        case SimdLevel::avx2:
            return detail::run_fused_avx2(loop);
        case SimdLevel::baseline:
            break;
    }
#else
    static_cast<void>(level);
#endif
    loop(std::integral_constant<int, 4>{});
}

#ifdef __x86_64__
/// The CPU's crc32 instruction: the state after 8 more bytes. For loops that run_with_crc32() runs.
[[gnu::target("sse4.2")]] inline std::uint64_t crc32_step(std::uint64_t state, std::uint64_t bytes) noexcept {
    return __builtin_ia32_crc32di(state, bytes);
}

/// Runs `loop()`, compiled for CPUs that have crc32_step(), if this one has it. Local.
///
///   returns  whether it ran
template <class Loop>
bool run_with_crc32(const Loop& loop) {
    if (!cpu_features().crc32) return false;
    detail::run_crc32(loop);
    return true;
}
#else
inline std::uint64_t crc32_step(std::uint64_t state, std::uint64_t) noexcept { return state; }
template <class Loop>
bool run_with_crc32(const Loop&) {
    return false;
}
#endif

}  // namespace strata::core
