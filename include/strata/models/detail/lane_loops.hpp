#pragma once
// strata/models/detail/lane_loops.hpp - the loops of models/kernels.hpp, for vectors of any width.
//
// Lanes is a core::Lanes<n>. All are inlined into what core::run_in_lanes() compiles for each instruction set. Where
// two products are added, the first is the one that is fused, and so they have names: the order of operands is nobody's
// promise.

#include <cstdint>

#include <strata/core/lanes.hpp>
#include <strata/models/kernel_rows.hpp>

namespace strata::models::kernels::detail {

template <class Lanes, class T>
[[gnu::always_inline]] inline void modulated_norm(T* y, float* statistics, const T* x, Rows<T> scale, Rows<T> shift,
                                                  std::int64_t B, std::int64_t L, std::int64_t D, float eps) {
    for (std::int64_t b = 0; b < B; ++b) {
        const T* a = scale.data + b * scale.stride;
        const T* c = shift.data + b * shift.stride;
        for (std::int64_t l = 0; l < L; ++l, x += D, y += D, statistics += 2) {
            Lanes total{};
            for (std::int64_t i = 0; i < D; i += Lanes::width) total += Lanes::load(x + i);
            const float mean = sum(total) / static_cast<float>(D);
            Lanes squares{};
            for (std::int64_t i = 0; i < D; i += Lanes::width) {
                const Lanes d = Lanes::load(x + i) - mean;
                squares += d * d;
            }
            const float inverse = 1.0f / __builtin_sqrtf(sum(squares) / static_cast<float>(D) + eps);
            for (std::int64_t i = 0; i < D; i += Lanes::width)
                store(y + i, (Lanes::load(x + i) - mean) * inverse * (Lanes::load(a + i) + 1.0f) + Lanes::load(c + i));
            statistics[0] = mean;
            statistics[1] = inverse;
        }
    }
}

template <class Lanes, class T>
[[gnu::always_inline]] inline void modulated_norm_backward(T* grad_x, float* grad_scale, float* grad_shift,
                                                           const T* grad_y, const T* x, const float* statistics,
                                                           Rows<T> scale, std::int64_t B, std::int64_t L,
                                                           std::int64_t D) {
    for (std::int64_t b = 0; b < B; ++b, grad_scale += D, grad_shift += D) {
        const T* a = scale.data + b * scale.stride;
        for (std::int64_t i = 0; i < D; ++i) grad_scale[i] = grad_shift[i] = 0.0f;
        for (std::int64_t l = 0; l < L; ++l, x += D, grad_x += D, grad_y += D, statistics += 2) {
            const float mean = statistics[0];
            const float inverse = statistics[1];
            Lanes total{};
            Lanes product{};
            for (std::int64_t i = 0; i < D; i += Lanes::width) {
                const Lanes g = Lanes::load(grad_y + i);
                const Lanes n = (Lanes::load(x + i) - mean) * inverse;
                store(grad_scale + i, Lanes::load(grad_scale + i) + g * n);
                store(grad_shift + i, Lanes::load(grad_shift + i) + g);
                const Lanes h = g * (Lanes::load(a + i) + 1.0f);
                total += h;
                product += h * n;
            }
            const float m = sum(total) / static_cast<float>(D);
            const float c = sum(product) / static_cast<float>(D);
            for (std::int64_t i = 0; i < D; i += Lanes::width) {
                const Lanes n = (Lanes::load(x + i) - mean) * inverse;
                const Lanes h = Lanes::load(grad_y + i) * (Lanes::load(a + i) + 1.0f);
                store(grad_x + i, (h - m - n * c) * inverse);
            }
        }
    }
}

template <class Lanes, class T>
[[gnu::always_inline]] inline void gated_add(T* y, const T* x, Rows<T> gate, const T* h, std::int64_t B, std::int64_t L,
                                             std::int64_t D) {
    for (std::int64_t b = 0; b < B; ++b) {
        const T* a = gate.data + b * gate.stride;
        for (std::int64_t l = 0; l < L; ++l, x += D, h += D, y += D)
            for (std::int64_t i = 0; i < D; i += Lanes::width)
                store(y + i, Lanes::load(x + i) + Lanes::load(a + i) * Lanes::load(h + i));
    }
}

template <class Lanes, class T>
[[gnu::always_inline]] inline void gated_add_backward(T* grad_h, float* grad_gate, const T* grad_y, Rows<T> gate,
                                                      const T* h, std::int64_t B, std::int64_t L, std::int64_t D) {
    for (std::int64_t b = 0; b < B; ++b, grad_gate += D) {
        const T* a = gate.data + b * gate.stride;
        for (std::int64_t i = 0; i < D; ++i) grad_gate[i] = 0.0f;
        for (std::int64_t l = 0; l < L; ++l, h += D, grad_h += D, grad_y += D)
            for (std::int64_t i = 0; i < D; i += Lanes::width) {
                const Lanes g = Lanes::load(grad_y + i);
                store(grad_gate + i, Lanes::load(grad_gate + i) + g * Lanes::load(h + i));
                store(grad_h + i, g * Lanes::load(a + i));
            }
    }
}

template <class Lanes, class T>
[[gnu::always_inline]] inline float inverse_rms(const T* x, std::int64_t K, float eps) {
    Lanes squares{};
    for (std::int64_t i = 0; i < K; i += Lanes::width) {
        const Lanes v = Lanes::load(x + i);
        squares += v * v;
    }
    return 1.0f / __builtin_sqrtf(sum(squares) / static_cast<float>(K) + eps);
}

template <class Lanes, class T>
[[gnu::always_inline]] inline void rms_norm_rotate(T* y, const T* x, const T* weight, const float* cosine,
                                                   const float* sine, std::int64_t B, std::int64_t L, std::int64_t H,
                                                   std::int64_t K, float eps) {
    for (std::int64_t b = 0; b < B; ++b)
        for (std::int64_t l = 0; l < L; ++l)
            for (std::int64_t h = 0; h < H; ++h, x += K) {
                T* out = y + ((b * H + h) * L + l) * K;
                const float inverse = inverse_rms<Lanes>(x, K, eps);
                for (std::int64_t i = 0; i < K; i += Lanes::width) {
                    const Lanes n = Lanes::load(x + i) * inverse * Lanes::load(weight + i);
                    const Lanes along = n * Lanes::load(cosine + l * K + i);
                    const Lanes across = swap_pairs(n) * Lanes::load(sine + l * K + i);
                    store(out + i, along + across);
                }
            }
}

template <class Lanes, class T>
[[gnu::always_inline]] inline void rms_norm_rotate_backward(T* grad_x, float* grad_weight, const T* grad_y, const T* x,
                                                            const T* weight, const float* cosine, const float* sine,
                                                            std::int64_t B, std::int64_t L, std::int64_t H,
                                                            std::int64_t K, float eps) {
    for (std::int64_t i = 0; i < K; ++i) grad_weight[i] = 0.0f;
    for (std::int64_t b = 0; b < B; ++b)
        for (std::int64_t l = 0; l < L; ++l)
            for (std::int64_t h = 0; h < H; ++h, x += K, grad_x += K) {
                const T* g = grad_y + ((b * H + h) * L + l) * K;
                const float inverse = inverse_rms<Lanes>(x, K, eps);
                Lanes product{};
                for (std::int64_t i = 0; i < K; i += Lanes::width) {
                    const Lanes out = Lanes::load(g + i);
                    // The transpose of a rotation turns back.
                    const Lanes n =
                        out * Lanes::load(cosine + l * K + i) + swap_pairs(out * Lanes::load(sine + l * K + i));
                    const Lanes v = Lanes::load(x + i);
                    store(grad_weight + i, Lanes::load(grad_weight + i) + n * v * inverse);
                    product += n * Lanes::load(weight + i) * v;
                }
                const float c = sum(product) / static_cast<float>(K) * inverse * inverse;
                for (std::int64_t i = 0; i < K; i += Lanes::width) {
                    const Lanes out = Lanes::load(g + i);
                    const Lanes n =
                        out * Lanes::load(cosine + l * K + i) + swap_pairs(out * Lanes::load(sine + l * K + i));
                    const Lanes weighted = n * Lanes::load(weight + i);
                    const Lanes along_x = Lanes::load(x + i) * c;
                    store(grad_x + i, (weighted - along_x) * inverse);
                }
            }
}

template <class Lanes, class T>
[[gnu::always_inline]] inline void softmax(T* s, std::int64_t rows, std::int64_t n, float scale) {
    const std::int64_t whole = n / Lanes::width * Lanes::width;
    const float lowest = -3.0e38f;
    for (std::int64_t r = 0; r < rows; ++r, s += n) {
        Lanes top = Lanes{} + lowest;
        for (std::int64_t i = 0; i < whole; i += Lanes::width) top = max(top, Lanes::load(s + i));
        if (whole < n) top = max(top, Lanes::load_some(s + whole, n - whole, lowest));
        const float peak = largest(top);
        // Unnormalised probabilities pass through T; their sum is of the unrounded ones.
        Lanes total{};
        for (std::int64_t i = 0; i < whole; i += Lanes::width) {
            const Lanes e = exp((Lanes::load(s + i) - peak) * scale);
            total += e;
            store(s + i, e);
        }
        if (whole < n) {
            const Lanes e =
                first_lanes(exp((Lanes::load_some(s + whole, n - whole, lowest) - peak) * scale), n - whole);
            total += e;
            store_some(s + whole, e, n - whole);
        }
        const float inverse = 1.0f / sum(total);
        for (std::int64_t i = 0; i < whole; i += Lanes::width) store(s + i, Lanes::load(s + i) * inverse);
        if (whole < n) store_some(s + whole, Lanes::load_some(s + whole, n - whole, 0.0f) * inverse, n - whole);
    }
}

template <class Lanes, class T>
[[gnu::always_inline]] inline void softmax_backward(T* grad, const T* p, std::int64_t rows, std::int64_t n,
                                                    float scale) {
    const std::int64_t whole = n / Lanes::width * Lanes::width;
    for (std::int64_t r = 0; r < rows; ++r, grad += n, p += n) {
        Lanes product{};
        for (std::int64_t i = 0; i < whole; i += Lanes::width) product += Lanes::load(grad + i) * Lanes::load(p + i);
        if (whole < n)
            product += Lanes::load_some(grad + whole, n - whole, 0.0f) * Lanes::load_some(p + whole, n - whole, 0.0f);
        const float c = sum(product);
        for (std::int64_t i = 0; i < whole; i += Lanes::width)
            store(grad + i, (Lanes::load(grad + i) - c) * Lanes::load(p + i) * scale);
        if (whole < n) {
            const Lanes g = Lanes::load_some(grad + whole, n - whole, 0.0f);
            store_some(grad + whole, (g - c) * Lanes::load_some(p + whole, n - whole, 0.0f) * scale, n - whole);
        }
    }
}

/// tanh(sqrt(2/pi) (x + 0.044715 x^3)) = 1 - 2 / (e^{2z} + 1).
template <class Lanes>
[[gnu::always_inline]] inline Lanes gelu_tanh(const Lanes& x) {
    const Lanes z2 = x * (x * x * 0.0713548163f + 1.59576912f);
    return 1.0f - 2.0f / (exp(z2) + 1.0f);
}
template <class Lanes>
[[gnu::always_inline]] inline Lanes gelu_of(const Lanes& x) {
    return x * 0.5f * (gelu_tanh(x) + 1.0f);
}
template <class Lanes>
[[gnu::always_inline]] inline Lanes gelu_slope(const Lanes& x) {
    const Lanes t = gelu_tanh(x);
    const Lanes dz = x * x * 0.107032224f + 0.797884561f;
    const Lanes flat = 0.5f * (t + 1.0f);
    const Lanes bent = 0.5f * x * (1.0f - t * t) * dz;
    return flat + bent;
}

template <class Lanes, class T>
[[gnu::always_inline]] inline void gelu(T* y, const T* x, std::int64_t n) {
    const std::int64_t whole = n / Lanes::width * Lanes::width;
    for (std::int64_t i = 0; i < whole; i += Lanes::width) store(y + i, gelu_of(Lanes::load(x + i)));
    if (whole < n) store_some(y + whole, gelu_of(Lanes::load_some(x + whole, n - whole, 0.0f)), n - whole);
}

template <class Lanes, class T>
[[gnu::always_inline]] inline void gelu_backward(T* grad_x, const T* grad_y, const T* x, std::int64_t n) {
    const std::int64_t whole = n / Lanes::width * Lanes::width;
    for (std::int64_t i = 0; i < whole; i += Lanes::width)
        store(grad_x + i, Lanes::load(grad_y + i) * gelu_slope(Lanes::load(x + i)));
    if (whole < n)
        store_some(grad_x + whole,
                   Lanes::load_some(grad_y + whole, n - whole, 0.0f) *
                       gelu_slope(Lanes::load_some(x + whole, n - whole, 0.0f)),
                   n - whole);
}

}  // namespace strata::models::kernels::detail
