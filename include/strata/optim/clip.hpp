#pragma once
// strata/optim/clip.hpp - the global gradient norm, and clipping by norm and by value.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <strata/core/independent_loop.hpp>
#include <strata/core/simd.hpp>
#include <strata/optim/elements.hpp>

namespace strata::optim {

namespace detail {

/// Sixteen running sums, whatever the vectors' width: the order of additions is part of the result.
template <GradientElement G>
struct SquareLoop {
    static constexpr std::int64_t lanes = 16;
    const G* values;
    std::int64_t numel;
    double* result;

    [[gnu::always_inline]] void operator()() const {
        double sums[lanes] = {};
        const std::int64_t whole = numel / lanes * lanes;
        for (std::int64_t i = 0; i < whole; i += lanes) {
            for (std::int64_t lane = 0; lane < lanes; ++lane) {
                const double value = static_cast<double>(to_float(values[i + lane]));
                sums[lane] += value * value;
            }
        }
        for (std::int64_t i = whole; i < numel; ++i) {
            const double value = static_cast<double>(to_float(values[i]));
            sums[i - whole] += value * value;
        }
        double total = 0.0;
        for (const double sum : sums) total += sum;
        *result = total;
    }
};

template <GradientElement G>
struct ClampLoop {
    GradientTransform transform;
    G* values;
    std::int64_t numel;

    [[gnu::always_inline]] void operator()() const {
        const GradientTransform t = transform;
        G* const v = values;
        STRATA_INDEPENDENT_LOOP
        for (std::int64_t i = 0; i < numel; ++i) v[i] = to_element<G>(t(to_float(v[i])));
    }
};

}  // namespace detail

/// Sum of squares in double, in one fixed order: the same bits at every level and with any number of threads. Local.
///
/// It is the search for overflow too: double cannot overflow on squares of finite fp32 values, so the sum is finite
/// exactly when all values are (overflowed() below), and so is a sum of such sums over buckets and ranks.
template <GradientElement G>
double sum_of_squares(std::span<const G> values, core::SimdLevel level = core::simd_level()) {
    const auto numel = static_cast<std::int64_t>(values.size());
    std::vector<double> partial(static_cast<std::size_t>((numel + detail::chunk_numel - 1) / detail::chunk_numel));
    detail::for_chunks(numel, [&](std::int64_t chunk, std::int64_t begin, std::int64_t count) {
        core::run_at(level,
                     detail::SquareLoop<G>{values.data() + begin, count, &partial[static_cast<std::size_t>(chunk)]});
    });
    double total = 0.0;
    for (const double sum : partial) total += sum;
    return total;
}

/// Whether a gradient somewhere is infinite or NaN, from sum_of_squares() of all of them.
inline bool overflowed(double sum) noexcept { return !std::isfinite(sum); }

/// What gradients are multiplied by so that their norm is at most `max_norm`, as torch.nn.utils.clip_grad_norm_
/// has it: min(1, max_norm / (norm + 1e-6)). A `max_norm` of 0 or less means no clipping.
constexpr double clip_coefficient(double norm, double max_norm) noexcept {
    return max_norm > 0.0 ? std::min(1.0, max_norm / (norm + 1e-6)) : 1.0;
}
static_assert(clip_coefficient(0.5, 1.0) == 1.0);
static_assert(clip_coefficient(3.0, 0.0) == 1.0);

/// Clamps every gradient into -limit .. limit, in place, as torch.nn.utils.clip_grad_value_ does; NaN stays NaN. Local.
///
///   limit  above 0, and a number that G has; an update does the same without a pass: GradientTransform::limit
template <GradientElement G>
void clip_by_value(std::span<G> values, float limit, core::SimdLevel level = core::simd_level()) {
    detail::for_chunks(static_cast<std::int64_t>(values.size()),
                       [&](std::int64_t, std::int64_t begin, std::int64_t count) {
                           core::run_at(level, detail::ClampLoop<G>{{1.0F, limit}, values.data() + begin, count});
                       });
}

}  // namespace strata::optim
