#pragma once
// strata/zero/parts/average_swap.hpp - AverageSwap: the average of the weights in their place, and back.

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include <strata/core/elements.hpp>
#include <strata/offload/window_pipeline.hpp>
#include <strata/policy/place.hpp>
#include <strata/zero/detail/buffer_pool.hpp>
#include <strata/zero/detail/preparation.hpp>
#include <strata/zero/memory_meter.hpp>
#include <strata/zero/parts/buckets.hpp>
#include <strata/zero/parts/sharded_average.hpp>
#include <strata/zero/parts/staging.hpp>
#include <strata/zero/parts/state_pass.hpp>
#include <strata/zero/parts/weight_gathering.hpp>

namespace strata::zero {

///   Pass   a StatePass
///   aside  where weights without a master are kept meanwhile
template <class Pass, Place aside>
class AverageSwap {
public:
    /// All of it outlives this object.
    AverageSwap(Pass& pass, ShardedAverage& average, WeightGathering& weights, const Buckets& buckets,
                detail::BufferPool& pool)
        : pass_{pass},
          average_{average},
          weights_{weights},
          buckets_{buckets},
          pool_{pool},
          set_aside_(buckets.size()) {}

    [[nodiscard]] bool is_in() const noexcept { return in_; }

    /// Collective. What a disk meets on this rank is with the pass's LocalFailure; done() when all ranks know there was none.
    void swap() {
        const bool in = !in_;
        const auto exchange = [this, in](const auto& run) { in ? this->put_in(run) : this->put_back(run); };
        // The pass is over the parameters as a whole; where every rank has all of the state, the other ranks' part comes
        // from them below.
        const ParameterUse with_master = buckets_.replicates_state() ? ParameterUse::update : ParameterUse::write;
        pass_.on_host(offload::Access::read, {with_master, ParameterUse::update}, exchange,
                      [this, in](std::size_t bucket) {
                          if (!in) set_aside_[bucket].reset();
                          buckets_.replicates_state() ? weights_.gather(bucket) : weights_.next();
                      });
        weights_.finish();
    }
    void done() noexcept { in_ = !in_; }

    /// Makes the average that of the weights as they are.
    void restart() {
        const auto copy = [this]<class Part>(const Part& run) {
            using Kept = typename Part::Kept;
            const std::span<const Kept> weight = pass_.own_part(run, run.weight);
            Staging staging{pool_};
            const std::span<float> average =
                staging.take(average_of(run, weight.size()), memory(), Place::host, false, true);
            std::transform(weight.begin(), weight.end(), average.begin(), [](Kept value) { return to_float(value); });
            staging.put_back();
        };
        pass_.on_host(offload::Access::read, {ParameterUse::none, ParameterUse::read}, copy);
    }

private:
    template <class Part>
    void put_in(const Part& run) {
        using Element = typename Part::Element;
        const std::span<Element> parameters = pass_.own_part(run, run.parameters);
        Staging staging{pool_};
        const std::span<const float> average =
            staging.take(std::span<const float>{average_of(run, parameters.size())}, memory(), Place::host, true);
        if constexpr (!Part::has_master) {
            const std::span<Element> kept = aside_of(run, parameters.size());
            std::copy(parameters.begin(), parameters.end(), kept.begin());
        }
        std::transform(average.begin(), average.end(), parameters.begin(), rounded<Element, float>);
    }
    template <class Part>
    void put_back(const Part& run) {
        using Element = typename Part::Element;
        const std::span<Element> parameters = pass_.own_part(run, run.parameters);
        if constexpr (Part::has_master) {
            using Kept = typename Part::Kept;
            const std::span<Kept> weight = pass_.own_part(run, run.weight);
            std::transform(weight.begin(), weight.end(), parameters.begin(), rounded<Element, Kept>);
        } else {
            const std::span<Element> kept = aside_of(run, parameters.size());
            std::copy(kept.begin(), kept.end(), parameters.begin());
        }
    }

    template <class Element, class Value>
    static Element rounded(Value value) noexcept {
        return to_element<Element>(to_float(value));
    }
    [[nodiscard]] Place memory() const { return memory_of<typename Pass::Device>(average_.memory()); }
    template <class Part>
    [[nodiscard]] std::span<float> average_of(const Part& run, std::size_t numel) const {
        return average_.values(run.bucket).subspan(pass_.own_begin(run), numel);
    }
    /// Room for a run's weights while the average is in their place.
    template <class Part>
    [[nodiscard]] std::span<typename Part::Element> aside_of(const Part& run, std::size_t numel) {
        using Element = typename Part::Element;
        at::Tensor& values_S = set_aside_[run.bucket];
        if (!values_S.defined())
            values_S = pool_.empty(buckets_.share_of(run.bucket), detail::dtype_v<Element>, MemoryKind::state, aside);
        return detail::elements<Element>(values_S).subspan(pass_.own_begin(run), numel);
    }

    Pass& pass_;
    ShardedAverage& average_;
    WeightGathering& weights_;
    const Buckets& buckets_;
    detail::BufferPool& pool_;
    std::vector<at::Tensor> set_aside_;  // weights without a master, by bucket
    bool in_ = false;
};

}  // namespace strata::zero
