#pragma once
// strata/optim/ema.hpp - exponential moving average of weights: the decay by step, and the update.

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <span>

#include <strata/core/independent_loop.hpp>
#include <strata/core/option_check.hpp>
#include <strata/core/ranges.hpp>
#include <strata/optim/elements.hpp>
#include <strata/optim/simd.hpp>
#include <strata/optim/stochastic_rounding.hpp>

namespace strata::optim {

/// The decay of every step, as diffusers' EMAModel has it; a pure function, so a run resumes at any step.
///
///   s = max(0, step - update_after_step - 1)
///   decay = 0                                   where s = 0: the average becomes the weights, min_decay or not
///           (1 + s) / (10 + s)                  without warm-up
///           1 - (1 + s / inv_gamma)^-power      with warm-up
///   clamped into min_decay .. decay otherwise
struct EmaSchedule {
    double decay = 0.9999;
    double min_decay = 0.0;
    std::int64_t update_after_step = 0;
    bool use_warmup = false;
    double inv_gamma = 1.0;
    double power = 2.0 / 3.0;

    void check(OptionCheck& check) const {
        if (check.number("decay", decay, ranges::average_decay)) check.number("min_decay", min_decay, {0, decay});
        check.number("update_after_step", update_after_step, {-1, ranges::count.most});
        check.number("inv_gamma", inv_gamma, {1e-9, 1e12});
        check.number("power", power, {1e-6, 100});
    }

    /// The decay of optimizer step `step`, counted from 1.
    [[nodiscard]] double at(std::int64_t step) const noexcept {
        const auto s = static_cast<double>(std::max<std::int64_t>(0, step - update_after_step - 1));
        if (s == 0.0) return 0.0;
        const double growing = use_warmup ? 1.0 - std::pow(1.0 + s / inv_gamma, -power) : (1.0 + s) / (10.0 + s);
        return std::max(min_decay, std::min(decay, growing));
    }
};

namespace detail {

/// One element of the average, on a CPU and on a GPU.
[[gnu::always_inline]] STRATA_HOST_DEVICE inline float averaged(float average, float weight, float share) noexcept {
    return average - share * (average - weight);
}

template <KeptElement W>
struct EmaLoop {
    float one_minus_decay;
    std::int64_t numel;
    const W* weight;
    float* average;

    [[gnu::always_inline]] void operator()() const {
        const float share = one_minus_decay;
        const W* const w = weight;
        float* const a = average;
        STRATA_INDEPENDENT_LOOP
        for (std::int64_t i = 0; i < numel; ++i) a[i] = averaged(a[i], load(w[i]), share);
    }
};

}  // namespace detail

/// average <- average - (1 - decay) (average - weight), in fp32. Local; 12 bytes of traffic an element.
///
///   decay    EmaSchedule::at(step)
///   weight   N fp32 elements, best the master weights, or bf16; unchanged
///   average  N elements; before the first update the weights the run starts from
///   level    for tests; the same bits at every level and with any number of threads
template <KeptElement W>
void update_average(double decay, std::span<const W> weight, std::span<float> average, SimdLevel level = simd_level()) {
    assert(weight.size() == average.size());
    const auto share = static_cast<float>(1.0 - decay);
    detail::for_chunks(static_cast<std::int64_t>(weight.size()),
                       [&](std::int64_t, std::int64_t begin, std::int64_t numel) {
                           detail::run_at(level, detail::EmaLoop<W>{share, numel, weight.data() + begin,
                                                                    average.data() + begin});
                       });
}

}  // namespace strata::optim
