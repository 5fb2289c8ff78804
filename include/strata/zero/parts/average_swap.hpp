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
        const auto exchange = [this, in](const typename Pass::HostPart& run) { in ? put_in(run) : put_back(run); };
        // The pass is over the parameters as a whole; where every rank has all of the state, the other ranks' part comes
        // from them below.
        const bool whole = buckets_.replicates_state() || !Pass::has_master;
        pass_.on_host(offload::Access::read, whole ? ParameterUse::update : ParameterUse::write, exchange,
                      [this, in](const typename Pass::Run& run) {
                          if (!run.last) return;
                          if (!in) set_aside_[run.bucket].reset();
                          buckets_.replicates_state() ? weights_.gather(run.bucket) : weights_.next();
                      });
        weights_.finish();
    }
    void done() noexcept { in_ = !in_; }

    /// Makes the average that of the weights as they are.
    void restart() {
        const auto copy = [this](const typename Pass::HostPart& run) {
            const std::span<const Kept> weight = pass_.own_part(run, run.weight);
            Staging staging{pool_};
            const std::span<float> average =
                staging.take(average_of(run, weight.size()), memory(), Place::host, false, true);
            std::transform(weight.begin(), weight.end(), average.begin(), [](Kept value) { return to_float(value); });
            staging.put_back();
        };
        pass_.on_host(offload::Access::read, Pass::has_master ? ParameterUse::none : ParameterUse::read, copy);
    }

private:
    using Element = typename Pass::Element;
    using Kept = typename Pass::Kept;
    using Run = typename Pass::Run;

    void put_in(const typename Pass::HostPart& run) {
        const std::span<Element> parameters = pass_.own_part(run, run.parameters);
        Staging staging{pool_};
        const std::span<const float> average =
            staging.take(std::span<const float>{average_of(run, parameters.size())}, memory(), Place::host, true);
        if constexpr (!Pass::has_master) {
            const std::span<Element> kept = aside_of(run, parameters.size());
            std::copy(parameters.begin(), parameters.end(), kept.begin());
        }
        std::transform(average.begin(), average.end(), parameters.begin(), rounded<float>);
    }
    void put_back(const typename Pass::HostPart& run) {
        const std::span<Element> parameters = pass_.own_part(run, run.parameters);
        if constexpr (Pass::has_master) {
            const std::span<Kept> weight = pass_.own_part(run, run.weight);
            std::transform(weight.begin(), weight.end(), parameters.begin(), rounded<Kept>);
        } else {
            const std::span<Element> kept = aside_of(run, parameters.size());
            std::copy(kept.begin(), kept.end(), parameters.begin());
        }
    }

    template <class Value>
    static Element rounded(Value value) noexcept {
        return to_element<Element>(to_float(value));
    }
    [[nodiscard]] Place memory() const { return memory_of<typename Pass::Device>(average_.memory()); }
    [[nodiscard]] std::span<float> average_of(const Run& run, std::size_t numel) const {
        return average_.values(run.bucket).subspan(pass_.own_begin(run), numel);
    }
    /// Room for a run's weights while the average is in their place.
    [[nodiscard]] std::span<Element> aside_of(const Run& run, std::size_t numel) {
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
