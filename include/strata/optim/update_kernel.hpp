#pragma once
// strata/optim/update_kernel.hpp - the CPU update: one fused pass over gradients, states and weights.

#include <algorithm>
#include <array>
#include <cassert>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

#include <strata/core/bf16.hpp>
#include <strata/optim/simd.hpp>
#include <strata/optim/update_rule.hpp>

namespace strata::optim {

/// What gradients are kept in.
template <class G>
concept GradientElement = std::same_as<G, float> || std::same_as<G, bf16>;

namespace detail {

[[gnu::always_inline]] inline float load(float value) noexcept { return value; }
[[gnu::always_inline]] inline float load(bf16 value) noexcept { return to_float(value); }

// Elements a thread takes at a time: large enough to hide the start of a thread, small enough to share out evenly.
inline constexpr std::int64_t chunk_numel = std::int64_t{1} << 16;

/// The loop over one chunk. Copies of the pointers live in the object so that the compiler sees locals.
template <UpdateRule Rule, GradientElement G, bool with_copy>
struct UpdateLoop {
    static constexpr std::size_t states = state_count_v<Rule>;
    typename Rule::Scalars scalars;
    float scale;
    std::int64_t numel;
    const G* gradient;
    float* weight;
    std::array<float*, states> state;
    bf16* copy;

    [[gnu::always_inline]] void operator()() const {
        const typename Rule::Scalars s = scalars;
        const float gradient_scale = scale;
        const G* const g = gradient;
        float* const w = weight;
        bf16* const c = copy;
        float* moments[states + 1];  // one more, because a rule may have no state
        for (std::size_t k = 0; k < states; ++k) moments[k] = state.data()[k];
#pragma GCC ivdep
        for (std::int64_t i = 0; i < numel; ++i) {
            float value[states + 1];
            for (std::size_t k = 0; k < states; ++k) value[k] = moments[k][i];
            float updated = w[i];
            Rule::apply(updated, load(g[i]) * gradient_scale, value, s);
            w[i] = updated;
            for (std::size_t k = 0; k < states; ++k) moments[k][i] = value[k];
            if constexpr (with_copy) c[i] = to_bf16(updated);
        }
    }
};

}  // namespace detail

/// One optimizer step over a contiguous run of elements; local, and the only pass over this memory.
///
///   Rule            AdamW, Lion, ...; given by the caller
///   scalars         Rule::scalars(options, lr, step)
///   gradient_scale  every gradient is multiplied by it first: clipping and the mean over ranks cost no extra pass
///   gradient        N elements, fp32 or bf16; unchanged
///   weight          N fp32 elements: the parameters themselves, or their master copy
///   state           one run of N fp32 elements for each of Rule::state_names
///   copy            empty, or N bf16 elements that become the rounded weights
///   level           for tests; the result is the same bits at every level and with any number of threads
///
/// The runs must not overlap. Threads: OpenMP, where the program is compiled with it.
template <UpdateRule Rule, GradientElement G>
void update(const typename Rule::Scalars& scalars, float gradient_scale, std::span<const G> gradient,
            std::span<float> weight, const std::array<std::span<float>, state_count_v<Rule>>& state,
            std::span<bf16> copy = {}, SimdLevel level = simd_level()) {
    const auto numel = static_cast<std::int64_t>(weight.size());
    assert(gradient.size() == weight.size());
    assert(copy.empty() || copy.size() == weight.size());
    const std::int64_t chunks = (numel + detail::chunk_numel - 1) / detail::chunk_numel;

    const auto run_chunk = [&]<bool with_copy>(std::int64_t chunk) {
        const std::int64_t begin = chunk * detail::chunk_numel;
        detail::UpdateLoop<Rule, G, with_copy> loop{
            .scalars = scalars,
            .scale = gradient_scale,
            .numel = std::min(detail::chunk_numel, numel - begin),
            .gradient = gradient.data() + begin,
            .weight = weight.data() + begin,
            .state = {},
            .copy = with_copy ? copy.data() + begin : nullptr,
        };
        for (std::size_t k = 0; k < state_count_v<Rule>; ++k) {
            assert(state[k].size() == weight.size());
            loop.state[k] = state[k].data() + begin;
        }
        detail::run_at(level, loop);
    };
#ifdef _OPENMP
#pragma omp parallel for schedule(static) if (chunks > 1)
#endif
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
        if (copy.empty()) {
            run_chunk.template operator()<false>(chunk);
        } else {
            run_chunk.template operator()<true>(chunk);
        }
    }
}

}  // namespace strata::optim
