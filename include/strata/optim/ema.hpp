#pragma once
// strata/optim/ema.hpp - exponential moving average of weights: the update; EmaOptions has its decay.

#include <cassert>
#include <cstdint>
#include <span>

#include <strata/core/host_device.hpp>
#include <strata/core/independent_loop.hpp>
#include <strata/core/simd.hpp>
#include <strata/optim/elements.hpp>
#include <strata/optim/stochastic_rounding.hpp>
#include <strata/options/ema_options.hpp>

namespace strata::optim {

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
        for (std::int64_t i = 0; i < numel; ++i) a[i] = averaged(a[i], to_float(w[i]), share);
    }
};

}  // namespace detail

/// average <- average - (1 - decay) (average - weight), in fp32. Local; 12 bytes of traffic an element.
///
///   decay    EmaOptions::at(step)
///   weight   N fp32 elements, best the master weights, or bf16; unchanged
///   average  N elements; before the first update the weights the run starts from
///   level    for tests; the same bits at every level and with any number of threads
template <KeptElement W>
void update_average(double decay, std::span<const W> weight, std::span<float> average,
                    core::SimdLevel level = core::simd_level()) {
    assert(weight.size() == average.size());
    const auto share = static_cast<float>(1.0 - decay);
    detail::for_chunks(
        static_cast<std::int64_t>(weight.size()), [&](std::int64_t, std::int64_t begin, std::int64_t numel) {
            core::run_at(level, detail::EmaLoop<W>{share, numel, weight.data() + begin, average.data() + begin});
        });
}

}  // namespace strata::optim
