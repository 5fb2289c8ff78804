#pragma once
// strata/models/detail/unet_loops.hpp - the loops of models/unet_kernels.hpp, for vectors of any width.
//
// Lanes is a core::Lanes<n>. All are inlined into what core::run_in_lanes() compiles for each instruction set.

#include <cstdint>

#include <strata/core/elements.hpp>
#include <strata/core/lanes.hpp>
#include <strata/models/detail/group_norm_shape.hpp>

namespace strata::models::kernels::detail {

template <class Lanes>
[[gnu::always_inline]] inline Lanes sigmoid(const Lanes& z) {
    return 1.0f / (exp(Lanes{} - z) + 1.0f);
}

/// Gradient for z of silu(z), times grad.
template <class Lanes>
[[gnu::always_inline]] inline Lanes silu_gradient(const Lanes& z, const Lanes& grad) {
    const Lanes s = sigmoid(z);
    return grad * s * (z * (1.0f - s) + 1.0f);
}

/// Mean and 1/sqrt(var + eps) of `channels` channels of N; a channel's sum is fp32, that over channels fp64.
template <class Lanes, class T>
[[gnu::always_inline]] inline void group_statistics(float* statistics, const T* x, std::int64_t channels,
                                                    std::int64_t N, float eps) {
    const double count = static_cast<double>(channels * N);
    double total = 0.0;
    for (std::int64_t c = 0; c < channels; ++c) {
        Lanes part{};
        for (std::int64_t i = 0; i < N; i += Lanes::width) part += Lanes::load(x + c * N + i);
        total += static_cast<double>(sum(part));
    }
    const auto mean = static_cast<float>(total / count);
    double squares = 0.0;
    for (std::int64_t c = 0; c < channels; ++c) {
        Lanes part{};
        for (std::int64_t i = 0; i < N; i += Lanes::width) {
            const Lanes d = Lanes::load(x + c * N + i) - mean;
            part += d * d;
        }
        squares += static_cast<double>(sum(part));
    }
    statistics[0] = mean;
    statistics[1] = 1.0f / __builtin_sqrtf(static_cast<float>(squares / count) + eps);
}

template <class Lanes, class T>
[[gnu::always_inline]] inline void group_norm(T* y, float* statistics, const T* x, const T* weight, const T* bias,
                                              const GroupNormShape& shape) {
    const std::int64_t N = shape.N, channels = shape.C / shape.G;
    for (std::int64_t group = 0; group < shape.B * shape.G; ++group, statistics += 2) {
        group_statistics<Lanes>(statistics, x, channels, N, shape.eps);
        for (std::int64_t c = 0; c < channels; ++c, x += N, y += N) {
            const std::int64_t channel = group % shape.G * channels + c;
            const float slope = statistics[1] * to_float(weight[channel]);
            const float mean = statistics[0], shift = to_float(bias[channel]);
            if (shape.with_silu) {
                for (std::int64_t i = 0; i < N; i += Lanes::width) {
                    const Lanes z = (Lanes::load(x + i) - mean) * slope + shift;
                    store(y + i, z * sigmoid(z));
                }
            } else {
                for (std::int64_t i = 0; i < N; i += Lanes::width)
                    store(y + i, (Lanes::load(x + i) - mean) * slope + shift);
            }
        }
    }
}

/// The gradient of what a channel's norm gave, n * weight + bias, before silu if there is one.
template <class Lanes, class T>
[[gnu::always_inline]] inline Lanes before_silu(const Lanes& grad, const Lanes& n, float weight, float bias,
                                                bool with_silu) {
    return with_silu ? silu_gradient(n * weight + bias, grad) : grad;
}

template <class Lanes, class T>
[[gnu::always_inline]] inline void group_norm_backward(T* grad_x, float* grad_weight, float* grad_bias, const T* grad_y,
                                                       const T* x, const float* statistics, const T* weight,
                                                       const T* bias, const GroupNormShape& shape) {
    const std::int64_t N = shape.N, channels = shape.C / shape.G;
    const double count = static_cast<double>(channels * N);
    for (std::int64_t c = 0; c < shape.C; ++c) grad_weight[c] = grad_bias[c] = 0.0f;
    for (std::int64_t group = 0; group < shape.B * shape.G; ++group, statistics += 2) {
        const float mean = statistics[0], inverse = statistics[1];
        const std::int64_t first = group % shape.G * channels;
        double total = 0.0, product = 0.0;  // of weight * gradient, and of that times the norm
        for (std::int64_t c = 0; c < channels; ++c) {
            const float w = to_float(weight[first + c]), shift = to_float(bias[first + c]);
            Lanes of_bias{}, of_weight{};
            for (std::int64_t i = c * N; i < (c + 1) * N; i += Lanes::width) {
                const Lanes n = (Lanes::load(x + i) - mean) * inverse;
                const Lanes g = before_silu<Lanes, T>(Lanes::load(grad_y + i), n, w, shift, shape.with_silu);
                of_bias += g;
                of_weight += g * n;
            }
            const float b_sum = sum(of_bias), w_sum = sum(of_weight);
            grad_bias[first + c] += b_sum;
            grad_weight[first + c] += w_sum;
            total += static_cast<double>(w) * static_cast<double>(b_sum);
            product += static_cast<double>(w) * static_cast<double>(w_sum);
        }
        const auto mean_grad = static_cast<float>(total / count);
        const auto along_n = static_cast<float>(product / count);
        for (std::int64_t c = 0; c < channels; ++c, x += N, grad_y += N, grad_x += N) {
            const float w = to_float(weight[first + c]), shift = to_float(bias[first + c]);
            for (std::int64_t i = 0; i < N; i += Lanes::width) {
                const Lanes n = (Lanes::load(x + i) - mean) * inverse;
                const Lanes g = before_silu<Lanes, T>(Lanes::load(grad_y + i), n, w, shift, shape.with_silu);
                const Lanes rest = n * along_n + mean_grad;
                store(grad_x + i, (g * w - rest) * inverse);
            }
        }
    }
}

template <class Lanes, class T>
[[gnu::always_inline]] inline void layer_norm(T* y, float* statistics, const T* x, const T* weight, const T* bias,
                                              std::int64_t M, std::int64_t D, float eps) {
    for (std::int64_t m = 0; m < M; ++m, x += D, y += D, statistics += 2) {
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
            store(y + i, (Lanes::load(x + i) - mean) * inverse * Lanes::load(weight + i) + Lanes::load(bias + i));
        statistics[0] = mean;
        statistics[1] = inverse;
    }
}

template <class Lanes, class T>
[[gnu::always_inline]] inline void layer_norm_backward(T* grad_x, float* grad_weight, float* grad_bias, const T* grad_y,
                                                       const T* x, const float* statistics, const T* weight,
                                                       std::int64_t M, std::int64_t D) {
    for (std::int64_t i = 0; i < D; ++i) grad_weight[i] = grad_bias[i] = 0.0f;
    for (std::int64_t m = 0; m < M; ++m, x += D, grad_x += D, grad_y += D, statistics += 2) {
        const float mean = statistics[0], inverse = statistics[1];
        Lanes total{};
        Lanes product{};
        for (std::int64_t i = 0; i < D; i += Lanes::width) {
            const Lanes g = Lanes::load(grad_y + i);
            const Lanes n = (Lanes::load(x + i) - mean) * inverse;
            store(grad_weight + i, Lanes::load(grad_weight + i) + g * n);
            store(grad_bias + i, Lanes::load(grad_bias + i) + g);
            const Lanes h = g * Lanes::load(weight + i);
            total += h;
            product += h * n;
        }
        const float mean_grad = sum(total) / static_cast<float>(D);
        const float along_n = sum(product) / static_cast<float>(D);
        for (std::int64_t i = 0; i < D; i += Lanes::width) {
            const Lanes n = (Lanes::load(x + i) - mean) * inverse;
            const Lanes h = Lanes::load(grad_y + i) * Lanes::load(weight + i);
            store(grad_x + i, (h - mean_grad - n * along_n) * inverse);
        }
    }
}

/// A number's share of a normal distribution below it, and its density.
template <class Lanes>
struct Normal {
    Lanes below;
    Lanes density;
};

/// By Abramowitz & Stegun 1964, 7.1.26: the error function within 1.5e-7.
template <class Lanes>
[[gnu::always_inline]] inline Normal<Lanes> normal_at(const Lanes& x) {
    const Lanes e = exp(x * x * -0.5f);
    const Lanes u = max(x, Lanes{} - x) * 0.707106781f;
    const Lanes t = 1.0f / (u * 0.3275911f + 1.0f);
    Lanes p = t * 1.061405429f + -1.453152027f;
    p = p * t + 1.421413741f;
    p = p * t + -0.284496736f;
    p = p * t + 0.254829592f;
    const Lanes beyond = p * t * e * 0.5f;  // above |x|
    const Lanes rest = 1.0f - beyond;
    return {{x.values >= 0.0f ? rest.values : beyond.values}, e * 0.398942280f};
}

template <class Lanes, class T>
[[gnu::always_inline]] inline void geglu(T* y, const T* x, std::int64_t M, std::int64_t D) {
    for (std::int64_t m = 0; m < M; ++m, x += 2 * D, y += D)
        for (std::int64_t i = 0; i < D; i += Lanes::width) {
            const Lanes gate = Lanes::load(x + D + i);
            store(y + i, Lanes::load(x + i) * (gate * normal_at(gate).below));
        }
}

template <class Lanes, class T>
[[gnu::always_inline]] inline void geglu_backward(T* grad_x, const T* grad_y, const T* x, std::int64_t M,
                                                  std::int64_t D) {
    for (std::int64_t m = 0; m < M; ++m, x += 2 * D, grad_x += 2 * D, grad_y += D)
        for (std::int64_t i = 0; i < D; i += Lanes::width) {
            const Lanes gate = Lanes::load(x + D + i);
            const Lanes g = Lanes::load(grad_y + i);
            const Normal<Lanes> normal = normal_at(gate);
            store(grad_x + i, g * (gate * normal.below));
            store(grad_x + D + i, g * Lanes::load(x + i) * (gate * normal.density + normal.below));
        }
}

}  // namespace strata::models::kernels::detail
