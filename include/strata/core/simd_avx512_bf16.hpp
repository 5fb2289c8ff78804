#pragma once
// strata/core/simd_avx512_bf16.hpp - intrinsics of AVX512_BF16 and the attributes of functions that call them; nothing on other machines.
//
// For what the compiler makes no vectors of (core/simd.hpp is for all else). Such functions run only where
// core::cpu_features().avx512_bf16.

#ifdef __x86_64__

#include <immintrin.h>

/// Around all such functions of a file: gcc 12 takes what its own _mm512_undefined() returns for a mistake (its bug 105593) where that
/// is inlined.
#if defined(__GNUC__) && !defined(__clang__)
#define STRATA_AVX512_BF16_BEGIN                                                               \
    _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wmaybe-uninitialized\"") \
        _Pragma("GCC diagnostic ignored \"-Wuninitialized\"")
#define STRATA_AVX512_BF16_END _Pragma("GCC diagnostic pop")
#else
#define STRATA_AVX512_BF16_BEGIN
#define STRATA_AVX512_BF16_END
#endif

/// Among other attributes.
#define STRATA_AVX512_BF16_TARGET gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")
/// In front of a function, a template too. Optimized at any level of the program's.
#ifdef __clang__
#define STRATA_AVX512_BF16 [[STRATA_AVX512_BF16_TARGET]]
#else
// In this order: of a template, gcc 14 forgets a target that stands before.
#define STRATA_AVX512_BF16 [[gnu::optimize("O3")]] [[STRATA_AVX512_BF16_TARGET]]
#endif
/// In front of one that is inlined into those; it needs their target to be.
#define STRATA_AVX512_BF16_INLINE [[gnu::always_inline, STRATA_AVX512_BF16_TARGET]]

#endif
