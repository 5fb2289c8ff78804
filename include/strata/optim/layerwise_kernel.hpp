#pragma once
// strata/optim/layerwise_kernel.hpp - the CPU update in two passes, for rules that need norms of whole parameters.
//
// One step of an engine whose ranks own slices of parameters:
//
//   norms = vector<NormSquares>(parameters)                                     zeros
//   advance<Rule>(scalars, transform, gradient, weight, state, segments, norms)  first pass, over this rank's slices
//   every rank's norms -> all ranks; add them up in rank order                   16 bytes a parameter
//   ratios = trust_ratios<Rule>(options, norms)
//   apply_direction<Rule>(scalars, weight, state, segments, ratios, copy)        second pass
//
// The second pass forms the direction again from the new states: cheaper than keeping it, which takes 4 bytes an
// element.

#include <array>
#include <cassert>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <strata/core/bf16.hpp>
#include <strata/core/host_device.hpp>
#include <strata/core/independent_loop.hpp>
#include <strata/core/simd.hpp>
#include <strata/optim/elements.hpp>
#include <strata/optim/stochastic_rounding.hpp>
#include <strata/optim/update_rule.hpp>

namespace strata::optim {

/// The part of one parameter that lies in a run of elements: a rank's share of a bucket, say.
///
/// Sums are formed segment by segment. Cut segments where ranks meet, also where one rank holds what belongs to
/// several, and norms have the same bits at every stage.
struct Segment {
    std::int64_t begin = 0;  ///< its first element, in the run
    std::int64_t numel = 0;
    std::size_t parameter = 0;  ///< index into the norms and ratios
};

/// Sums of squares of a parameter's weights and of its direction; in double, so that they add up over ranks.
struct NormSquares {
    double weight = 0.0;
    double direction = 0.0;
    constexpr NormSquares& operator+=(const NormSquares& other) noexcept {
        weight += other.weight;
        direction += other.direction;
        return *this;
    }
};

namespace detail {

/// Where the chunks of a segment are counted from: with random bits, from the model's first element; otherwise from the
/// segment's own, so that its sums do not depend on what lies in front of it in the run.
template <KeptElement W>
constexpr std::int64_t chunk_phase(const Segment& segment, const StochasticRounding& rounding) noexcept {
    return std::same_as<W, float> ? 0 : rounding.first_element + segment.begin;
}

/// First pass over element i; runs and `index` as in update_element(). What it adds to the norms, beside the states.
struct NormTerms {
    float weight;
    float direction;
};
template <LayerwiseRule Rule, GradientElement G, KeptElement W>
[[gnu::always_inline]] STRATA_HOST_DEVICE inline NormTerms advance_element(
    const typename Rule::Scalars& scalars, const GradientTransform& transform, const RandomBlock& random,
    std::uint32_t index, const G* gradient, const W* weight, W* const* state, std::int64_t i) {
    constexpr std::size_t states = state_count_v<Rule>;
    const float w = to_float(weight[i]);
    float value[states + 1];
    for (std::size_t k = 0; k < states; ++k) value[k] = to_float(state[k][i]);
    Rule::advance(transform(to_float(gradient[i])), w, value, scalars);
    for (std::size_t k = 0; k < states; ++k) {
        const W stored = kept<W>(value[k], random, static_cast<std::uint32_t>(k) + 1, index);
        state[k][i] = stored;
        value[k] = to_float(stored);  // what the second pass will see
    }
    return {w, Rule::direction(w, value, scalars)};
}

/// Second pass over element i.
template <LayerwiseRule Rule, bool with_copy, KeptElement W, CopyElement C>
[[gnu::always_inline]] STRATA_HOST_DEVICE inline void apply_element(const typename Rule::Scalars& scalars, float ratio,
                                                                    const RandomBlock& random, std::uint32_t index,
                                                                    W* weight, const W* const* state, C* copy,
                                                                    std::int64_t i) {
    constexpr std::size_t states = state_count_v<Rule>;
    float value[states + 1];
    for (std::size_t k = 0; k < states; ++k) value[k] = to_float(state[k][i]);
    float updated = to_float(weight[i]);
    Rule::apply(updated, Rule::direction(updated, value, scalars), ratio, scalars);
    weight[i] = kept<W>(updated, random, 0, index);
    if constexpr (with_copy) copy[i] = to_element<C>(updated);
}

/// First pass over one chunk of a segment. Sixteen running sums, whatever the vectors' width, in one fixed order.
template <LayerwiseRule Rule, GradientElement G, KeptElement W>
struct AdvanceLoop {
    static constexpr std::size_t states = state_count_v<Rule>;
    static constexpr std::int64_t lanes = 16;
    typename Rule::Scalars scalars;
    GradientTransform transform;
    std::int64_t numel;
    const G* gradient;
    const W* weight;
    std::array<W*, states> state;
    RandomBlock random;
    std::uint32_t block_index;
    NormSquares* result;

    [[gnu::always_inline]] void operator()() const {
        double weights[lanes] = {};
        double directions[lanes] = {};
        const std::int64_t whole = numel / lanes * lanes;
        for (std::int64_t i = 0; i < whole; i += lanes) block(i, lanes, weights, directions);
        block(whole, numel - whole, weights, directions);
        NormSquares total;
        for (const double sum : weights) total.weight += sum;
        for (const double sum : directions) total.direction += sum;
        *result = total;
    }

    [[gnu::always_inline]] void block(std::int64_t begin, std::int64_t count, double* weights,
                                      double* directions) const {
        const typename Rule::Scalars s = scalars;
        STRATA_INDEPENDENT_LOOP
        for (std::int64_t lane = 0; lane < count; ++lane) {
            const std::int64_t i = begin + lane;
            const NormTerms terms = advance_element<Rule>(
                s, transform, random, block_index + static_cast<std::uint32_t>(i), gradient, weight, state.data(), i);
            const auto w = static_cast<double>(terms.weight);
            const auto direction = static_cast<double>(terms.direction);
            weights[lane] += w * w;
            directions[lane] += direction * direction;
        }
    }
};

/// Second pass over one chunk of a segment.
template <LayerwiseRule Rule, KeptElement W, CopyElement C, bool with_copy>
struct ApplyLoop {
    static constexpr std::size_t states = state_count_v<Rule>;
    typename Rule::Scalars scalars;
    float ratio;
    std::int64_t numel;
    W* weight;
    std::array<const W*, states> state;
    C* copy;
    RandomBlock random;
    std::uint32_t block_index;

    [[gnu::always_inline]] void operator()() const {
        const typename Rule::Scalars s = scalars;
        const RandomBlock r = random;
        const float trust = ratio;
        const std::uint32_t first = block_index;
        W* const w = weight;
        C* const c = copy;
        const W* moments[states + 1];
        for (std::size_t k = 0; k < states; ++k) moments[k] = state.data()[k];
        STRATA_INDEPENDENT_LOOP
        for (std::int64_t i = 0; i < numel; ++i) {
            apply_element<Rule, with_copy>(s, trust, r, first + static_cast<std::uint32_t>(i), w, moments, c, i);
        }
    }
};

template <LayerwiseRule Rule, bool with_copy, KeptElement W, CopyElement C>
void apply_chunks(const typename Rule::Scalars& scalars, std::span<W> weight,
                  const std::array<std::span<W>, state_count_v<Rule>>& state, std::span<const Segment> segments,
                  std::span<const float> ratios, std::span<C> copy, const StochasticRounding& rounding,
                  core::SimdLevel level) {
    for (const Segment& segment : segments) {
        assert(segment.begin + segment.numel <= static_cast<std::int64_t>(weight.size()));
        const std::int64_t first = detail::chunk_phase<W>(segment, rounding);
        const auto run_chunk = [&](std::int64_t, std::int64_t begin, std::int64_t numel) {
            const std::int64_t at = segment.begin + begin;
            ApplyLoop<Rule, W, C, with_copy> loop{
                .scalars = scalars,
                .ratio = ratios[segment.parameter],
                .numel = numel,
                .weight = weight.data() + at,
                .state = {},
                .copy = with_copy ? copy.data() + at : nullptr,
                .random = RandomBlock{rounding, (first + begin) / chunk_numel},
                .block_index = static_cast<std::uint32_t>((first + begin) % chunk_numel),
            };
            for (std::size_t k = 0; k < state_count_v<Rule>; ++k) loop.state[k] = state[k].data() + at;
            core::run_at(level, loop);
        };
        for_chunks(segment.numel, run_chunk, first);
    }
}

}  // namespace detail

/// First pass: new states, and every segment's share of its parameter's norms. Local.
///
///   Rule      Lamb, ...; given by the caller
///   weight    N elements of fp32 or bf16, as they were before the step; unchanged
///   state     one run of N such elements for each of Rule::state_names; bf16 is rounded by chance
///   segments  parts of 0 .. N-1 that do not overlap; what is in none of them (padding) stays as it is
///   norms     one a parameter; segments add to theirs in their order
///   rounding  as in update(); what it names does not matter for fp32
///
/// The same bits at every level and with any number of threads; also of other cuts, but for the last bits of the norms.
template <LayerwiseRule Rule, GradientElement G, KeptElement W>
void advance(const typename Rule::Scalars& scalars, GradientTransform transform, std::span<const G> gradient,
             std::span<const W> weight, const std::array<std::span<W>, state_count_v<Rule>>& state,
             std::span<const Segment> segments, std::span<NormSquares> norms, const StochasticRounding& rounding = {},
             core::SimdLevel level = core::simd_level()) {
    assert(gradient.size() == weight.size());
    std::vector<NormSquares> partial;
    for (const Segment& segment : segments) {
        assert(segment.begin + segment.numel <= static_cast<std::int64_t>(weight.size()));
        const std::int64_t first = detail::chunk_phase<W>(segment, rounding);
        partial.assign(static_cast<std::size_t>(segment.numel / detail::chunk_numel + 2), {});
        const auto run_chunk = [&](std::int64_t chunk, std::int64_t begin, std::int64_t numel) {
            const std::int64_t at = segment.begin + begin;
            detail::AdvanceLoop<Rule, G, W> loop{
                .scalars = scalars,
                .transform = transform,
                .numel = numel,
                .gradient = gradient.data() + at,
                .weight = weight.data() + at,
                .state = {},
                .random = detail::RandomBlock{rounding, (first + begin) / detail::chunk_numel},
                .block_index = static_cast<std::uint32_t>((first + begin) % detail::chunk_numel),
                .result = &partial[static_cast<std::size_t>(chunk)],
            };
            for (std::size_t k = 0; k < state_count_v<Rule>; ++k) loop.state[k] = state[k].data() + at;
            core::run_at(level, loop);
        };
        detail::for_chunks(segment.numel, run_chunk, first);
        for (const NormSquares& sum : partial) norms[segment.parameter] += sum;
    }
}

/// Every parameter's ratio from the sums over all ranks. Local.
template <LayerwiseRule Rule>
[[nodiscard]] std::vector<float> trust_ratios(const typename Rule::Options& options,
                                              std::span<const NormSquares> norms) {
    std::vector<float> ratios;
    ratios.reserve(norms.size());
    for (const NormSquares& sum : norms) {
        ratios.push_back(
            static_cast<float>(Rule::trust_ratio(options, std::sqrt(sum.weight), std::sqrt(sum.direction))));
    }
    return ratios;
}

/// Second pass: the weights' update, and their copy where there is one. Local. Arguments as in advance().
///
///   ratios  trust_ratios() of the sums over all ranks, one a parameter
///   copy    N bf16 or fp16 elements that become the rounded weights; in apply_direction(), or empty
template <LayerwiseRule Rule>
void apply_direction(const typename Rule::Scalars& scalars, std::span<float> weight,
                     const std::array<std::span<float>, state_count_v<Rule>>& state, std::span<const Segment> segments,
                     std::span<const float> ratios, core::SimdLevel level = core::simd_level()) {
    detail::apply_chunks<Rule, false>(scalars, weight, state, segments, ratios, std::span<bf16>{}, {}, level);
}
template <LayerwiseRule Rule, CopyElement C>
void apply_direction_with_copy(const typename Rule::Scalars& scalars, std::span<float> weight,
                               const std::array<std::span<float>, state_count_v<Rule>>& state,
                               std::span<const Segment> segments, std::span<const float> ratios, std::span<C> copy,
                               core::SimdLevel level = core::simd_level()) {
    assert(copy.size() == weight.size());
    detail::apply_chunks<Rule, true>(scalars, weight, state, segments, ratios, copy, {}, level);
}
template <LayerwiseRule Rule, CopyElement C = bf16>
void apply_direction(const typename Rule::Scalars& scalars, std::span<float> weight,
                     const std::array<std::span<float>, state_count_v<Rule>>& state, std::span<const Segment> segments,
                     std::span<const float> ratios, std::span<C> copy, core::SimdLevel level = core::simd_level()) {
    if (copy.empty()) {
        apply_direction<Rule>(scalars, weight, state, segments, ratios, level);
    } else {
        apply_direction_with_copy<Rule, C>(scalars, weight, state, segments, ratios, copy, level);
    }
}

/// The same for weights and states that are bf16 themselves; `rounding` must be that of the first pass.
template <LayerwiseRule Rule>
void apply_direction(const typename Rule::Scalars& scalars, std::span<bf16> weight,
                     const std::array<std::span<bf16>, state_count_v<Rule>>& state, std::span<const Segment> segments,
                     std::span<const float> ratios, const StochasticRounding& rounding,
                     core::SimdLevel level = core::simd_level()) {
    detail::apply_chunks<Rule, false>(scalars, weight, state, segments, ratios, std::span<bf16>{}, rounding, level);
}

}  // namespace strata::optim
