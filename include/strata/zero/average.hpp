#pragma once
// strata/zero/average.hpp - WeightAverage: what the class `average` of an averaging policy does, and memory for one.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include <strata/options/engine_options.hpp>
#include <strata/policy/place.hpp>
#include <strata/zero/detail/preparation.hpp>
#include <strata/zero/memory_meter.hpp>
#include <strata/zero/tier.hpp>

namespace strata::zero {

/// What `average<Kept>` of an averaging policy does: Ema<Tier>'s, or one of your own. It keeps this rank's share of an
/// average of the weights, in fp32 whatever they are kept in, and says how fast it moves:
///
///   average <- decay(step) average + (1 - decay(step)) weight      after every step that is due
///
///   memory         where its values are: Place::host or Place::device
///   A{options}     one for each engine. Options is what the policy names so, or optim::EmaOptions (options/)
///   bytes(numels)  what it is going to keep in every place, for shares of these sizes
///   make(context, numels)
///                  this rank's share of every bucket has so many elements. Once, before the others
///   values(bucket) of its elements; the same memory at every call
///   due(step), decay(step)
///                  of optimizer step `step`, counted from 1. Functions of the step and the options alone: a run resumes at
///                  any step, and every rank says the same
template <class A, class Options>
concept WeightAverage = detail::Complete<A> && std::constructible_from<A, const Options&> &&
    requires(A& average, const A& constant, const TierContext& context, std::vector<std::int64_t> numels,
             std::size_t bucket, std::int64_t step) {
    typename strata::detail::Constant<A::memory>;
    requires A::memory == Place::host || A::memory == Place::device;
    { A::bytes(std::span<const std::int64_t>{numels}) } -> std::same_as<PlaceBytes>;
    average.make(context, std::move(numels));
    { average.values(bucket) } -> std::same_as<std::span<float>>;
    { constant.due(step) } -> std::convertible_to<bool>;
    { constant.decay(step) } -> std::convertible_to<double>;
};

/// The memory of an average, for one to derive from: it adds a constructor, due() and decay().
template <Place place>
class AverageInMemory {
public:
    static constexpr Place memory = place;
    static PlaceBytes bytes(std::span<const std::int64_t> numels) {
        return PlaceBytes::at(place, sum_of(numels) * static_cast<std::int64_t>(sizeof(float)));
    }
    void make(const TierContext& context, const std::vector<std::int64_t>& numels) {
        for (const std::int64_t numel : numels)
            values_.push_back(context.empty<float>(numel, MemoryKind::state, place));
    }
    [[nodiscard]] std::span<float> values(std::size_t bucket) { return detail::elements<float>(values_[bucket]); }

private:
    std::vector<at::Tensor> values_;
};

namespace detail {

/// The class that keeps the average of an averaging policy. Where there is none, nothing is made of it after the sentence.
template <class Averaging, class Kept>
struct AverageOn {
    using type = typename Averaging::template average<Kept>;
    static constexpr bool holds = [] {
        if constexpr (WeightAverage<type, average_options_t<Averaging>>) return type::memory == Averaging::place;
        return false;
    }();
    static_assert(
        holds,
        "[ST0140] The class average<Kept> of an averaging policy is not defined here, or lacks one of memory (equal to the policy's place), "
        "a constructor from the options, bytes(), make(), values(), due() and decay(). Fix: include the header "
        "that defines it, and write what zero::WeightAverage asks for (docs/write-an-average.md).");
};

}  // namespace detail

}  // namespace strata::zero
