#pragma once
// strata/models/detail/pair_loops.hpp - packing of pairs, and the loop of 8 rows by 48 columns that multiplies them (AVX512_BF16).

#ifdef __x86_64__

#include <algorithm>
#include <cstdint>

#include <strata/core/bf16.hpp>
#include <strata/core/simd_avx512_bf16.hpp>

STRATA_AVX512_BF16_BEGIN

namespace strata::models::kernels::detail {

/// Two numbers of bf16 that are multiplied one after the other, the first in the lower half.
using Pair = std::uint32_t;
inline constexpr std::int64_t lanes = 16;     ///< pairs of a register
inline constexpr std::int64_t tile_rows = 8;  ///< with 3 registers of columns: 24 of sums, 3 of b and one of a
inline constexpr std::int64_t tile_registers = 3;
inline constexpr std::int64_t tile_columns = tile_registers * lanes;

/// What is fetched ahead of packing: of lines side by side pairs, each from two other pages, and of other lines terms.
inline constexpr std::int64_t pairs_ahead = 4, terms_ahead = 64;

/// Lines of a matrix: rows of a, columns of b.
struct PairLines {
    const bf16* numbers = nullptr;
    std::int64_t line_stride = 0, term_stride = 0;
    std::int64_t count = 0;
};

/// Where packed lines go: strips of 8 rows or 48 columns, one pair of terms after the other.
struct RowStrips {
    Pair* to = nullptr;
    /// Room of a strip; twice an odd number, lest all strips begin in the same sets of a cache.
    std::int64_t pairs = 0;
    static constexpr std::int64_t sweep = 256;  ///< lines that are read side by side
    STRATA_AVX512_BF16_INLINE void put(std::int64_t line, std::int64_t pair, __m512i values) const {
        Pair* at = to + line * pairs + pair * tile_rows;
        _mm256_store_si256(reinterpret_cast<__m256i*>(at), _mm512_castsi512_si256(values));
        _mm256_store_si256(reinterpret_cast<__m256i*>(at + tile_rows * pairs), _mm512_extracti64x4_epi64(values, 1));
    }
};
struct ColumnStrips {
    Pair* to = nullptr;
    std::int64_t pairs = 0;
    std::int64_t lines = 0;  ///< the last strip is as wide as it needs to be
    static constexpr std::int64_t sweep = 480;
    STRATA_AVX512_BF16_INLINE void put(std::int64_t line, std::int64_t pair, __m512i values) const {
        const std::int64_t strip = line / tile_columns * tile_columns;
        const std::int64_t width = std::min(tile_columns, (lines - strip + lanes - 1) / lanes * lanes);
        _mm512_store_si512(to + strip * pairs + pair * width + (line - strip), values);
    }
};

STRATA_AVX512_BF16_INLINE inline __mmask32 first_of(std::int64_t count) {
    return count >= 32 ? ~__mmask32{0} : (__mmask32{1} << count) - 1;
}

/// 16 rows of 16 become 16 columns.
STRATA_AVX512_BF16_INLINE inline void transpose(__m512i (&r)[16]) {
    __m512i t[16];
    for (int i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
    }
    for (int i = 0; i < 16; i += 4)
        for (int j = 0; j < 2; ++j) {
            r[i + 2 * j] = _mm512_unpacklo_epi64(t[i + j], t[i + 2 + j]);
            r[i + 2 * j + 1] = _mm512_unpackhi_epi64(t[i + j], t[i + 2 + j]);
        }
    for (int i = 0; i < 4; ++i) {
        t[i] = _mm512_shuffle_i32x4(r[i], r[4 + i], 0x88);
        t[4 + i] = _mm512_shuffle_i32x4(r[i], r[4 + i], 0xdd);
        t[8 + i] = _mm512_shuffle_i32x4(r[8 + i], r[12 + i], 0x88);
        t[12 + i] = _mm512_shuffle_i32x4(r[8 + i], r[12 + i], 0xdd);
    }
    for (int i = 0; i < 4; ++i) {
        r[i] = _mm512_shuffle_i32x4(t[i], t[8 + i], 0x88);
        r[8 + i] = _mm512_shuffle_i32x4(t[i], t[8 + i], 0xdd);
        r[4 + i] = _mm512_shuffle_i32x4(t[4 + i], t[12 + i], 0x88);
        r[12 + i] = _mm512_shuffle_i32x4(t[4 + i], t[12 + i], 0xdd);
    }
}

/// K terms of lines into strips; what is not there of 16 lines, or of a pair, is 0.
template <class Strips>
STRATA_AVX512_BF16 void pack(const Strips& strips, const PairLines& lines, std::int64_t K) {
    if (lines.line_stride == 1) {
        // A term's lines lie side by side: long stretches are read at once, because each may be on a page of its own.
        for (std::int64_t begin = 0; begin < lines.count; begin += Strips::sweep) {
            const std::int64_t end = std::min(begin + Strips::sweep, lines.count);
            const bf16* first = lines.numbers;
            for (std::int64_t k = 0; k < K; k += 2, first += 2 * lines.term_stride) {
                const bool has_second = k + 1 < K;
                const bf16* second = has_second ? first + lines.term_stride : first;
                const bf16* later = first + 2 * std::min(pairs_ahead, (K - k - 1) / 2) * lines.term_stride;
                for (std::int64_t line = begin; line < end; line += lanes) {
                    if (line % 32 == 0) {
                        _mm_prefetch(reinterpret_cast<const char*>(later + line), _MM_HINT_T0);
                        _mm_prefetch(reinterpret_cast<const char*>(later + lines.term_stride + line), _MM_HINT_T0);
                    }
                    const auto there = static_cast<__mmask16>(first_of(end - line));
                    const __m512i low = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(there, first + line));
                    const __m512i high = _mm512_cvtepu16_epi32(
                        _mm256_maskz_loadu_epi16(has_second ? there : __mmask16{0}, second + line));
                    strips.put(line, k / 2, _mm512_or_si512(low, _mm512_slli_epi32(high, 16)));
                }
            }
        }
        return;
    }
    for (std::int64_t line = 0; line < lines.count; line += lanes) {
        const bf16* from = lines.numbers + line * lines.line_stride;
        const std::int64_t count = std::min(lanes, lines.count - line);
        for (std::int64_t k = 0; k < K; k += 2 * lanes) {
            const __mmask32 there = first_of(K - k);
            __m512i r[16];
            // Of the next 16 lines' beginnings, where these end.
            const bf16* later =
                k + terms_ahead < K ? from + k + terms_ahead : from + lanes * lines.line_stride + (k + terms_ahead - K);
            if (k + terms_ahead < K || line + 2 * lanes <= lines.count)
                for (std::int64_t i = 0; i < count; ++i)
                    _mm_prefetch(reinterpret_cast<const char*>(later + i * lines.line_stride), _MM_HINT_T0);
            for (std::int64_t i = 0; i < lanes; ++i)
                r[i] = i < count ? _mm512_maskz_loadu_epi16(there, from + i * lines.line_stride + k)
                                 : _mm512_setzero_si512();
            transpose(r);
            const std::int64_t pairs = std::min(lanes, (K - k + 1) / 2);
            for (std::int64_t i = 0; i < pairs; ++i) strips.put(line, k / 2 + i, r[i]);
        }
    }
}

/// What is done with a tile's sums: begun at 0 or gone on with, kept, or rounded.
struct TileEnds {
    float* sums = nullptr;  ///< (rows, columns), rows `sums_stride` apart
    std::int64_t sums_stride = 0;
    bool begins = true;
    bf16* y = nullptr;  ///< nullptr: the sums are kept
    std::int64_t y_stride = 0;
    const bf16* of_columns = nullptr;
};

/// A strip of a times L registers of one of b.
template <int L>
STRATA_AVX512_BF16 void multiply_tile(const TileEnds& ends, const Pair* a, const Pair* b, std::int64_t pairs,
                                      std::int64_t rows, std::int64_t columns) {
    __mmask16 there[L];
    for (int l = 0; l < L; ++l)
        there[l] = static_cast<__mmask16>(first_of(std::clamp(columns - l * lanes, std::int64_t{0}, lanes)));
    __m512 sum[tile_rows][L];
#pragma GCC unroll 8
    for (int r = 0; r < tile_rows; ++r)
#pragma GCC unroll 3
        for (int l = 0; l < L; ++l)
            sum[r][l] = !ends.begins && r < rows
                            ? _mm512_maskz_loadu_ps(there[l], ends.sums + r * ends.sums_stride + l * lanes)
                            : _mm512_setzero_ps();
    for (std::int64_t p = 0; p < pairs; ++p, a += tile_rows, b += L * lanes) {
        __m512bh of_columns[L];
#pragma GCC unroll 3
        for (int l = 0; l < L; ++l) {
            of_columns[l] = reinterpret_cast<__m512bh>(_mm512_load_si512(b + l * lanes));
            _mm_prefetch(reinterpret_cast<const char*>(b + (8 * L + l) * lanes), _MM_HINT_T0);
        }
#pragma GCC unroll 8
        for (int r = 0; r < tile_rows; ++r) {
            const auto of_row = reinterpret_cast<__m512bh>(_mm512_set1_epi32(static_cast<int>(a[r])));
#pragma GCC unroll 3
            for (int l = 0; l < L; ++l) sum[r][l] = _mm512_dpbf16_ps(sum[r][l], of_row, of_columns[l]);
        }
    }
    if (ends.y == nullptr) {
#pragma GCC unroll 8
        for (int r = 0; r < tile_rows; ++r)
            if (r < rows)
#pragma GCC unroll 3
                for (int l = 0; l < L; ++l)
                    _mm512_mask_storeu_ps(ends.sums + r * ends.sums_stride + l * lanes, there[l], sum[r][l]);
        return;
    }
#pragma GCC unroll 3
    for (int l = 0; l < L; ++l) {
        const __m512 more =
            ends.of_columns == nullptr
                ? _mm512_setzero_ps()
                : _mm512_castsi512_ps(_mm512_slli_epi32(
                      _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(there[l], ends.of_columns + l * lanes)), 16));
#pragma GCC unroll 8
        for (int r = 0; r < tile_rows; ++r)
            if (r < rows)
                _mm256_mask_storeu_epi16(ends.y + r * ends.y_stride + l * lanes, there[l],
                                         reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(_mm512_add_ps(sum[r][l], more))));
    }
}

}  // namespace strata::models::kernels::detail

STRATA_AVX512_BF16_END

#endif
