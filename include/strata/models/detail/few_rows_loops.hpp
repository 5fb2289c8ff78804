#pragma once
// strata/models/detail/few_rows_loops.hpp - the loops of models/few_rows.hpp, for vectors of any width.
//
// Lanes is a core::Lanes<n>. All are inlined into what core::run_in_lanes() compiles for each instruction set.

#include <cstdint>

#include <strata/core/elements.hpp>
#include <strata/core/lanes.hpp>

namespace strata::models::kernels::detail {

/// a . b over n, a multiple of Lanes::width; in four sums, so that one need not wait for another.
template <class Lanes, class T>
[[gnu::always_inline]] inline float dot(const T* a, const T* b, std::int64_t n) {
    constexpr std::int64_t w = Lanes::width;
    Lanes s0{}, s1{}, s2{}, s3{};
    std::int64_t i = 0;
    for (; i + 4 * w <= n; i += 4 * w) {
        s0 += Lanes::load(a + i) * Lanes::load(b + i);
        s1 += Lanes::load(a + i + w) * Lanes::load(b + i + w);
        s2 += Lanes::load(a + i + 2 * w) * Lanes::load(b + i + 2 * w);
        s3 += Lanes::load(a + i + 3 * w) * Lanes::load(b + i + 3 * w);
    }
    for (; i < n; i += w) s0 += Lanes::load(a + i) * Lanes::load(b + i);
    return sum((s0 + s1) + (s2 + s3));
}

template <class Lanes, class T>
[[gnu::always_inline]] inline void few_rows(T* y, const T* x, const T* weight, const T* bias, std::int64_t R,
                                            std::int64_t I, std::int64_t O) {
    for (std::int64_t o = 0; o < O; ++o, weight += I)
        for (std::int64_t r = 0; r < R; ++r) {
            const float product = dot<Lanes>(x + r * I, weight, I);
            y[r * O + o] = to_element<T>(bias == nullptr ? product : product + to_float(bias[o]));
        }
}

/// grad_x is summed in fp32 in its place: a row of it stays in the caches while weights pass, four rows at a time.
template <class Lanes, class T>
[[gnu::always_inline]] inline void few_rows_grad_x(float* grad_x, const T* grad_y, const T* weight, std::int64_t R,
                                                   std::int64_t I, std::int64_t O) {
    for (std::int64_t i = 0; i < R * I; ++i) grad_x[i] = 0.0f;
    std::int64_t o = 0;
    for (; o + 4 <= O; o += 4, weight += 4 * I)
        for (std::int64_t r = 0; r < R; ++r) {
            const T* g = grad_y + r * O + o;
            const float g0 = to_float(g[0]), g1 = to_float(g[1]), g2 = to_float(g[2]), g3 = to_float(g[3]);
            float* sums = grad_x + r * I;
            for (std::int64_t i = 0; i < I; i += Lanes::width) {
                const Lanes a = Lanes::load(weight + i) * g0 + Lanes::load(weight + I + i) * g1;
                const Lanes b = Lanes::load(weight + 2 * I + i) * g2 + Lanes::load(weight + 3 * I + i) * g3;
                store(sums + i, Lanes::load(sums + i) + (a + b));
            }
        }
    for (; o < O; ++o, weight += I)
        for (std::int64_t r = 0; r < R; ++r) {
            const float g = to_float(grad_y[r * O + o]);
            float* sums = grad_x + r * I;
            for (std::int64_t i = 0; i < I; i += Lanes::width)
                store(sums + i, Lanes::load(sums + i) + Lanes::load(weight + i) * g);
        }
}

template <class Lanes, class T>
[[gnu::always_inline]] inline void few_rows_grad_weight(T* grad_weight, const T* grad_y, const T* x, std::int64_t R,
                                                        std::int64_t I, std::int64_t O) {
    for (std::int64_t o = 0; o < O; ++o, grad_weight += I) {
        const float first = to_float(grad_y[o]);
        for (std::int64_t i = 0; i < I; i += Lanes::width) {
            Lanes total = Lanes::load(x + i) * first;
            for (std::int64_t r = 1; r < R; ++r) total += Lanes::load(x + r * I + i) * to_float(grad_y[r * O + o]);
            store(grad_weight + i, total);
        }
    }
}

}  // namespace strata::models::kernels::detail
