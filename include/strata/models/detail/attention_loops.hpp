#pragma once
// strata/models/detail/attention_loops.hpp - the loops of models/attention_kernels.hpp, for vectors of any width.
//
// Lanes is a core::Lanes<n>. All are inlined into what core::run_in_lanes() compiles for each instruction set.

#include <cstdint>

#include <strata/core/lanes.hpp>
#include <strata/models/score_tile.hpp>

namespace strata::models::kernels::detail {

/// scale * s + bias of the lanes from i on; the second of the first n < width of them.
template <class Lanes, bool has_bias, class T>
[[gnu::always_inline]] inline Lanes logits(const T* s, const float* bias, std::int64_t i, float scale) {
    if constexpr (has_bias) return Lanes::load(s + i) * scale + Lanes::load(bias + i);
    return Lanes::load(s + i) * scale;
}
template <class Lanes, bool has_bias, class T>
[[gnu::always_inline]] inline Lanes some_logits(const T* s, const float* bias, std::int64_t i, std::int64_t n,
                                                float scale) {
    if constexpr (has_bias) return Lanes::load_some(s + i, n, 0.0f) * scale + Lanes::load_some(bias + i, n, 0.0f);
    return Lanes::load_some(s + i, n, 0.0f) * scale;
}

[[gnu::always_inline]] inline std::int64_t seen_by(const ScoreTile& tile, std::int64_t row) {
    const std::int64_t seen = tile.seen_by_first + (tile.is_causal ? row : 0);
    return seen < 0 ? 0 : seen < tile.keys ? seen : tile.keys;
}

template <class Lanes, bool has_bias, class T>
[[gnu::always_inline]] inline void running_row(T* s, const float* bias, float scale, std::int64_t seen, float* peak,
                                               float* total, float* correction) {
    const float lowest = -3.0e38f;
    const std::int64_t whole = seen / Lanes::width * Lanes::width;
    Lanes top = Lanes{} + lowest;
    for (std::int64_t i = 0; i < whole; i += Lanes::width) top = max(top, logits<Lanes, has_bias>(s, bias, i, scale));
    Lanes rest{};
    float last = lowest;
    if (whole < seen) {
        rest = some_logits<Lanes, has_bias>(s, bias, whole, seen - whole, scale);
        for (std::int64_t i = 0; i < seen - whole; ++i) last = rest.values[i] > last ? rest.values[i] : last;
    }
    const float before = *peak;
    const float here = largest(max(top, Lanes{} + last));
    const float now = here > before ? here : before;
    Lanes sums{};
    for (std::int64_t i = 0; i < whole; i += Lanes::width) {
        const Lanes e = exp(logits<Lanes, has_bias>(s, bias, i, scale) - now);
        sums += e;
        store(s + i, e);
    }
    if (whole < seen) {
        const Lanes e = first_lanes(exp(rest - now), seen - whole);
        sums += e;
        store_some(s + whole, e, seen - whole);
    }
    *correction = __builtin_expf(before - now);
    *total = *total * *correction + sum(sums);
    *peak = now;
}

template <class Lanes, class T>
[[gnu::always_inline]] inline void running_softmax(T* s, const ScoreTile& tile, float* peak, float* total,
                                                   float* correction) {
    for (std::int64_t r = 0; r < tile.queries; ++r, s += tile.keys) {
        const std::int64_t seen = seen_by(tile, r);
        if (tile.bias == nullptr) {
            running_row<Lanes, false>(s, nullptr, tile.scale, seen, peak + r, total + r, correction + r);
        } else {
            running_row<Lanes, true>(s, tile.bias + r * tile.bias_stride, tile.scale, seen, peak + r, total + r,
                                     correction + r);
        }
        for (std::int64_t i = seen; i < tile.keys; ++i) s[i] = T{};
    }
}

template <class Lanes, class T>
[[gnu::always_inline]] inline void add_part(float* acc, const T* part, const float* correction, std::int64_t rows,
                                            std::int64_t K) {
    for (std::int64_t r = 0; r < rows; ++r, acc += K, part += K) {
        const float c = correction == nullptr ? 1.0f : correction[r];
        for (std::int64_t i = 0; i < K; i += Lanes::width)
            store(acc + i, Lanes::load(acc + i) * c + Lanes::load(part + i));
    }
}

template <class Lanes, class T>
[[gnu::always_inline]] inline void divide_rows(T* y, std::int64_t y_stride, float* logsum, const float* acc,
                                               const float* peak, const float* total, std::int64_t rows,
                                               std::int64_t K) {
    for (std::int64_t r = 0; r < rows; ++r, acc += K, y += y_stride) {
        const float inverse = 1.0f / total[r];
        for (std::int64_t i = 0; i < K; i += Lanes::width) store(y + i, Lanes::load(acc + i) * inverse);
        logsum[r] = peak[r] + __builtin_logf(total[r]);
    }
}

template <class Lanes, class T>
[[gnu::always_inline]] inline void row_dots(float* dots, const T* a, const T* b, std::int64_t rows, std::int64_t K,
                                            std::int64_t stride) {
    for (std::int64_t r = 0; r < rows; ++r, a += stride, b += stride) {
        Lanes product{};
        for (std::int64_t i = 0; i < K; i += Lanes::width) product += Lanes::load(a + i) * Lanes::load(b + i);
        dots[r] = sum(product);
    }
}

/// exp(logits - logsum), and nothing at all where a bias hides the key: exp() itself ends at 1e-38.
template <class Lanes, bool has_bias>
[[gnu::always_inline]] inline Lanes probability(const Lanes& logits, float logsum) {
    const Lanes p = exp(logits - logsum);
    if constexpr (has_bias) return {logits.values > -3.0e38f ? p.values : typename Lanes::Floats{}};
    return p;
}

template <class Lanes, bool has_bias, class T>
[[gnu::always_inline]] inline void gradient_row(T* s, T* grad, const float* bias, float scale, std::int64_t seen,
                                                float logsum, float dot) {
    const std::int64_t whole = seen / Lanes::width * Lanes::width;
    for (std::int64_t i = 0; i < whole; i += Lanes::width) {
        const Lanes p = probability<Lanes, has_bias>(logits<Lanes, has_bias>(s, bias, i, scale), logsum);
        store(s + i, p);
        store(grad + i, (Lanes::load(grad + i) - dot) * p);
    }
    if (whole == seen) return;
    const Lanes p =
        probability<Lanes, has_bias>(some_logits<Lanes, has_bias>(s, bias, whole, seen - whole, scale), logsum);
    const Lanes g = Lanes::load_some(grad + whole, seen - whole, 0.0f);
    store_some(s + whole, p, seen - whole);
    store_some(grad + whole, (g - dot) * p, seen - whole);
}

template <class Lanes, class T>
[[gnu::always_inline]] inline void score_gradient(T* s, T* grad, const ScoreTile& tile, const float* logsum,
                                                  const float* dots) {
    for (std::int64_t r = 0; r < tile.queries; ++r, s += tile.keys, grad += tile.keys) {
        const std::int64_t seen = seen_by(tile, r);
        if (tile.bias == nullptr) {
            gradient_row<Lanes, false>(s, grad, nullptr, tile.scale, seen, logsum[r], dots[r]);
        } else {
            gradient_row<Lanes, true>(s, grad, tile.bias + r * tile.bias_stride, tile.scale, seen, logsum[r], dots[r]);
        }
        for (std::int64_t i = seen; i < tile.keys; ++i) s[i] = grad[i] = T{};
    }
}

template <class Lanes, class T>
[[gnu::always_inline]] inline void scaled_copy(T* y, const float* x, std::int64_t n, float scale) {
    for (std::int64_t i = 0; i < n; i += Lanes::width) store(y + i, Lanes::load(x + i) * scale);
}

}  // namespace strata::models::kernels::detail
