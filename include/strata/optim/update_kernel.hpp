#pragma once
// strata/optim/update_kernel.hpp - the CPU update: one fused pass over gradients, states and weights.
//
// What is done to one element is shared with the GPU: optim/device_kernels.hpp.

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>

#include <strata/core/bf16.hpp>
#include <strata/core/host_device.hpp>
#include <strata/core/independent_loop.hpp>
#include <strata/core/simd.hpp>
#include <strata/optim/elements.hpp>
#include <strata/optim/stochastic_rounding.hpp>
#include <strata/optim/update_rule.hpp>

namespace strata::optim {

namespace detail {

/// The step of element i, of runs in memory (the loop below) or of the few that a thread of a GPU holds in registers.
///
///   index   of the element in its block of random bits
///   state   one run for each of Rule::state_names
///   copy    not looked at without with_copy
template <ElementwiseRule Rule, bool with_copy, GradientElement G, KeptElement W, CopyElement C>
[[gnu::always_inline]] STRATA_HOST_DEVICE inline void update_element(const typename Rule::Scalars& scalars,
                                                                     const GradientTransform& transform,
                                                                     const RandomBlock& random, std::uint32_t index,
                                                                     const G* gradient, W* weight, W* const* state,
                                                                     C* copy, std::int64_t i) {
    constexpr std::size_t states = state_count_v<Rule>;
    float value[states + 1];  // one more, because a rule may have no state
    for (std::size_t k = 0; k < states; ++k) value[k] = to_float(state[k][i]);
    float updated = to_float(weight[i]);
    Rule::apply(updated, transform(to_float(gradient[i])), value, scalars);
    weight[i] = kept<W>(updated, random, 0, index);
    for (std::size_t k = 0; k < states; ++k) {
        state[k][i] = kept<W>(value[k], random, static_cast<std::uint32_t>(k) + 1, index);
    }
    if constexpr (with_copy) copy[i] = to_element<C>(updated);
}

/// The loop over one chunk. Copies of the pointers live in the object so that the compiler sees locals.
///
///   W  what weights and states are kept in; bf16 is rounded by chance
///   C  what the rounded copy is kept in; used with with_copy
template <ElementwiseRule Rule, GradientElement G, KeptElement W, CopyElement C, bool with_copy>
struct UpdateLoop {
    static constexpr std::size_t states = state_count_v<Rule>;
    typename Rule::Scalars scalars;
    GradientTransform transform;
    std::int64_t numel;
    const G* gradient;
    W* weight;
    std::array<W*, states> state;
    C* copy;
    RandomBlock random;         // of the chunk, which lies within one block
    std::uint32_t block_index;  // of element 0, in that block

    [[gnu::always_inline]] void operator()() const {
        const typename Rule::Scalars s = scalars;
        const GradientTransform t = transform;
        const RandomBlock r = random;
        const std::uint32_t first = block_index;
        const G* const g = gradient;
        W* const w = weight;
        C* const c = copy;
        W* moments[states + 1];
        for (std::size_t k = 0; k < states; ++k) moments[k] = state.data()[k];
        STRATA_INDEPENDENT_LOOP
        for (std::int64_t i = 0; i < numel; ++i) {
            update_element<Rule, with_copy>(s, t, r, first + static_cast<std::uint32_t>(i), g, w, moments, c, i);
        }
    }
};

template <ElementwiseRule Rule, bool with_copy, GradientElement G, KeptElement W, CopyElement C>
void update_chunks(const typename Rule::Scalars& scalars, GradientTransform transform, std::span<const G> gradient,
                   std::span<W> weight, const std::array<std::span<W>, state_count_v<Rule>>& state, std::span<C> copy,
                   const StochasticRounding& rounding, core::SimdLevel level) {
    assert(gradient.size() == weight.size());
    for (std::size_t k = 0; k < state_count_v<Rule>; ++k) assert(state[k].size() == weight.size());
    const auto run_chunk = [&](std::int64_t, std::int64_t begin, std::int64_t numel) {
        const std::int64_t element = rounding.first_element + begin;
        UpdateLoop<Rule, G, W, C, with_copy> loop{
            .scalars = scalars,
            .transform = transform,
            .numel = numel,
            .gradient = gradient.data() + begin,
            .weight = weight.data() + begin,
            .state = {},
            .copy = with_copy ? copy.data() + begin : nullptr,
            .random = RandomBlock{rounding, element / chunk_numel},
            .block_index = static_cast<std::uint32_t>(element % chunk_numel),
        };
        for (std::size_t k = 0; k < state_count_v<Rule>; ++k) loop.state[k] = state[k].data() + begin;
        core::run_at(level, loop);
    };
    for_chunks(static_cast<std::int64_t>(weight.size()), run_chunk, rounding.first_element);
}

}  // namespace detail

/// One optimizer step over a contiguous run of elements; local, and the only pass over this memory.
///
///   Rule       AdamW, Lion, ...; given by the caller
///   scalars    Rule::scalars(options, lr, step)
///   transform  every gradient goes through it first: clipping, loss scale and the mean over ranks cost no extra pass
///   gradient   N elements, fp32, bf16 or fp16; unchanged
///   weight     N fp32 elements: the parameters themselves, or their master copy
///   state      one run of N fp32 elements for each of Rule::state_names
///   copy       N bf16 or fp16 elements that become the rounded weights; in update(), or empty
///   level      for tests; the result is the same bits at every level and with any number of threads
///
/// The runs must not overlap. Threads: OpenMP, where the program is compiled with it.
template <ElementwiseRule Rule, GradientElement G>
void update(const typename Rule::Scalars& scalars, GradientTransform transform, std::span<const G> gradient,
            std::span<float> weight, const std::array<std::span<float>, state_count_v<Rule>>& state,
            core::SimdLevel level = core::simd_level()) {
    detail::update_chunks<Rule, false>(scalars, transform, gradient, weight, state, std::span<bf16>{}, {}, level);
}
template <ElementwiseRule Rule, GradientElement G, CopyElement C>
void update_with_copy(const typename Rule::Scalars& scalars, GradientTransform transform, std::span<const G> gradient,
                      std::span<float> weight, const std::array<std::span<float>, state_count_v<Rule>>& state,
                      std::span<C> copy, core::SimdLevel level = core::simd_level()) {
    assert(copy.size() == weight.size());
    detail::update_chunks<Rule, true>(scalars, transform, gradient, weight, state, copy, {}, level);
}
template <ElementwiseRule Rule, GradientElement G, CopyElement C = bf16>
void update(const typename Rule::Scalars& scalars, GradientTransform transform, std::span<const G> gradient,
            std::span<float> weight, const std::array<std::span<float>, state_count_v<Rule>>& state, std::span<C> copy,
            core::SimdLevel level = core::simd_level()) {
    if (copy.empty()) {
        update<Rule, G>(scalars, transform, gradient, weight, state, level);
    } else {
        update_with_copy<Rule, G, C>(scalars, transform, gradient, weight, state, copy, level);
    }
}

/// The same for weights and states that are bf16 themselves, without a master: they are rounded by chance.
///
///   rounding  names the random bits. Equal (seed, step, number of the element) round alike, however the elements are
///             spread over calls, ranks and threads.
template <ElementwiseRule Rule, GradientElement G>
void update(const typename Rule::Scalars& scalars, GradientTransform transform, std::span<const G> gradient,
            std::span<bf16> weight, const std::array<std::span<bf16>, state_count_v<Rule>>& state,
            const StochasticRounding& rounding, core::SimdLevel level = core::simd_level()) {
    detail::update_chunks<Rule, false>(scalars, transform, gradient, weight, state, std::span<bf16>{}, rounding, level);
}

}  // namespace strata::optim
