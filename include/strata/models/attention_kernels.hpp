#pragma once
// strata/models/attention_kernels.hpp - what attention in tiles does between its products of matrices, on a CPU.
//
// Plain pointers, no libtorch, one thread; as models/kernels.hpp. K, the width of a head, is a multiple of 16. Rows of
// tiles are dense; sums, exponentials and what is kept of a row are fp32.

#include <cstdint>

#include <strata/core/bf16.hpp>
#include <strata/core/inline.hpp>
#include <strata/models/score_tile.hpp>

namespace strata::models::kernels {

/// One step of a softmax whose rows come tile by tile (Milakov & Gimelshein 2018, arXiv:1805.02867): scores become
/// exp(logit - peak), 0 where a key is not seen.
///
///   peak, total  (queries): largest logit and sum of exponentials by now; -3e38 and 0 before the first tile
///   correction   (queries): written; what sums over earlier tiles are multiplied by
void running_softmax(float* s, const ScoreTile& tile, float* peak, float* total, float* correction);
void running_softmax(bf16* s, const ScoreTile& tile, float* peak, float* total, float* correction);

/// acc = acc * correction + part; (rows, K), correction (rows) or nullptr for 1.
void add_part(float* acc, const float* part, const float* correction, std::int64_t rows, std::int64_t K);
void add_part(float* acc, const bf16* part, const float* correction, std::int64_t rows, std::int64_t K);

/// y = acc / total, rows of y `y_stride` apart, and logsum = peak + log(total).
void divide_rows(float* y, std::int64_t y_stride, float* logsum, const float* acc, const float* peak,
                 const float* total, std::int64_t rows, std::int64_t K);
void divide_rows(bf16* y, std::int64_t y_stride, float* logsum, const float* acc, const float* peak, const float* total,
                 std::int64_t rows, std::int64_t K);

/// dots[r] = a[r] . b[r] over K; rows of both `stride` apart.
void row_dots(float* dots, const float* a, const float* b, std::int64_t rows, std::int64_t K, std::int64_t stride);
void row_dots(float* dots, const bf16* a, const bf16* b, std::int64_t rows, std::int64_t K, std::int64_t stride);

/// Gradient of a tile's logits from that of its probabilities (Dao et al. 2022, arXiv:2205.14135, section B.2): scores
/// become probabilities p = exp(logit - logsum), and grad becomes p * (grad - dots), dots = output . its gradient.
void score_gradient(float* s, float* grad, const ScoreTile& tile, const float* logsum, const float* dots);
void score_gradient(bf16* s, bf16* grad, const ScoreTile& tile, const float* logsum, const float* dots);

/// y = scale * x, n a multiple of 16; y may be x.
void scaled_copy(float* y, const float* x, std::int64_t n, float scale);
void scaled_copy(bf16* y, const float* x, std::int64_t n, float scale);

}  // namespace strata::models::kernels

#ifndef STRATA_COMPILED
#include <strata/models/impl/attention_kernels.ipp>
#endif
