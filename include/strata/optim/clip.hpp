#pragma once
// strata/optim/clip.hpp - the global gradient norm, and the factor that clips to it.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <strata/optim/simd.hpp>
#include <strata/optim/update_kernel.hpp>

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
                const double value = static_cast<double>(load(values[i + lane]));
                sums[lane] += value * value;
            }
        }
        for (std::int64_t i = whole; i < numel; ++i) {
            const double value = static_cast<double>(load(values[i]));
            sums[i - whole] += value * value;
        }
        double total = 0.0;
        for (const double sum : sums) total += sum;
        *result = total;
    }
};

}  // namespace detail

/// Sum of squares in double, in one fixed order: the same bits at every level and with any number of threads.
/// It cannot overflow for finite fp32 values, so it is finite exactly when all values are. Local.
template <GradientElement G>
double sum_of_squares(std::span<const G> values, SimdLevel level = simd_level()) {
    const auto numel = static_cast<std::int64_t>(values.size());
    const std::int64_t chunks = (numel + detail::chunk_numel - 1) / detail::chunk_numel;
    std::vector<double> partial(static_cast<std::size_t>(chunks));
#ifdef _OPENMP
#pragma omp parallel for schedule(static) if (chunks > 1)
#endif
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
        const std::int64_t begin = chunk * detail::chunk_numel;
        detail::run_at(level, detail::SquareLoop<G>{values.data() + begin, std::min(detail::chunk_numel, numel - begin),
                                                    &partial[static_cast<std::size_t>(chunk)]});
    }
    double total = 0.0;
    for (const double sum : partial) total += sum;
    return total;
}

/// What gradients are multiplied by so that their norm is at most `max_norm`, as torch.nn.utils.clip_grad_norm_
/// has it: min(1, max_norm / (norm + 1e-6)). A `max_norm` of 0 or less means no clipping.
constexpr double clip_coefficient(double norm, double max_norm) noexcept {
    return max_norm > 0.0 ? std::min(1.0, max_norm / (norm + 1e-6)) : 1.0;
}
static_assert(clip_coefficient(0.5, 1.0) == 1.0);
static_assert(clip_coefficient(3.0, 0.0) == 1.0);

}  // namespace strata::optim
