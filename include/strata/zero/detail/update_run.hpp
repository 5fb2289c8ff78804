#pragma once
// strata/zero/detail/update_run.hpp - what is updated by one call of a kernel: runs of a bucket, cut where parameters and groups meet.

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <strata/core/bf16.hpp>
#include <strata/core/fp16.hpp>
#include <strata/optim/compiled_kernels.hpp>
#include <strata/optim/layerwise_kernel.hpp>
#include <strata/optim/update_kernel.hpp>
#include <strata/zero/layout.hpp>
#include <strata/zero/tier.hpp>

namespace strata::zero::detail {

/// The parts of a bucket's parameters that lie in elements begin .. begin + numel - 1 of the bucket, as places in that
/// run. Cut where ranks' shares meet, so that norms have the same bits at every stage.
///
///   offsets  of the bucket's parameters in the bucket, and its end
///   first    number of the first of them
inline std::vector<optim::Segment> segments_of(std::span<const std::int64_t> offsets, std::size_t first,
                                               std::int64_t share, std::int64_t begin, std::int64_t numel) {
    std::vector<optim::Segment> segments;
    for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
        const std::int64_t end = std::min(offsets[i + 1], begin + numel);
        for (std::int64_t at = std::max(offsets[i], begin); at < end;) {
            const std::int64_t stop = std::min(end, (at / share + 1) * share);
            segments.push_back({at - begin, stop - at, first + i});
            at = stop;
        }
    }
    return segments;
}

/// One step of an elementwise rule over a run.
///
///   copy      the run's parameters where there is a master; else not looked at
///   rounding  looked at where weights are kept in bf16
template <class Rule, class Gradient, class Element, class Kept, std::size_t states>
void update_run(const typename Rule::Scalars& scalars, const optim::GradientTransform& transform,
                std::span<const Gradient> gradient, const StateRun<Kept, states>& run, std::span<Element> copy,
                const optim::StochasticRounding& rounding) {
    if constexpr (std::same_as<Kept, bf16>) {
        optim::update<Rule, Gradient>(scalars, transform, gradient, run.weight, run.state, rounding);
    } else if constexpr (std::same_as<Element, float>) {
        optim::update<Rule, Gradient>(scalars, transform, gradient, run.weight, run.state);
    } else {
        optim::update_with_copy<Rule, Gradient, Element>(scalars, transform, gradient, run.weight, run.state, copy);
    }
}

/// The second pass of a layerwise rule over a run; arguments as in update_run().
template <class Rule, class Element, class Kept, std::size_t states>
void apply_direction_run(const typename Rule::Scalars& scalars, const StateRun<Kept, states>& run,
                         std::span<const optim::Segment> segments, std::span<const float> ratios,
                         std::span<Element> copy, const optim::StochasticRounding& rounding) {
    if constexpr (std::same_as<Kept, bf16>) {
        optim::apply_direction<Rule>(scalars, run.weight, run.state, segments, ratios, rounding);
    } else if constexpr (std::same_as<Element, float>) {
        optim::apply_direction<Rule>(scalars, run.weight, run.state, segments, ratios);
    } else {
        optim::apply_direction_with_copy<Rule, Element>(scalars, run.weight, run.state, segments, ratios, copy);
    }
}

}  // namespace strata::zero::detail
