#pragma once
// strata/zero/tiers/in_memory.hpp - state and shards in memory of the host or of the device: what Device and Cpu bring.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include <strata/offload/window_pipeline.hpp>
#include <strata/policy/place.hpp>
#include <strata/zero/detail/preparation.hpp>
#include <strata/zero/memory_meter.hpp>
#include <strata/zero/tier.hpp>
#include <strata/zero/tier_bytes.hpp>

namespace strata::zero::detail {

/// One run a bucket.
template <Place place, class Kept, std::size_t states, bool has_master>
class StateInMemory {
public:
    static constexpr Place memory = place;
    static constexpr bool fails_alone = false;
    static constexpr bool wants_folder = false;
    static PlaceBytes bytes(std::span<const std::int64_t> numels) {
        constexpr std::size_t of_element = (states + (has_master ? 1 : 0)) * sizeof(Kept);
        return PlaceBytes::at(place, sum_of(numels) * static_cast<std::int64_t>(of_element));
    }
    static TierBytes takes(std::span<const std::int64_t> numels, const TierRoom&) { return {bytes(numels)}; }

    void make(const TierContext& context, std::vector<std::int64_t> numels) {
        context_ = context;
        numels_ = std::move(numels);
    }
    template <class WeightOf>
    void fill(const std::array<float, states>& initial, WeightOf&& weight_of) {
        for (std::size_t i = 0; i < numels_.size(); ++i) {
            const at::Tensor weight = weight_of(i);
            Arrays& arrays = buckets_.emplace_back();
            if constexpr (has_master) arrays.master = empty(i).copy_(weight);
            for (std::size_t k = 0; k < states; ++k) arrays.state[k] = empty(i).fill_(initial[k]);
        }
    }
    template <class Call>
    void run(offload::Access, Call&& call) {
        for (std::size_t i = 0; i < buckets_.size(); ++i) call(view(i));
    }
    void prefetch() noexcept {}
    template <class Call>
    void run_bucket(std::size_t bucket, offload::Access, Call&& call) {
        if (bucket < buckets_.size()) call(view(bucket));  // else a class that derives keeps them, and has not said how
    }
    void prefetch_bucket(std::size_t) noexcept {}

private:
    using Run = std::conditional_t<place == Place::device, DeviceRun<Kept, states>, StateRun<Kept, states>>;
    struct Arrays {
        at::Tensor master;
        std::array<at::Tensor, states> state;
    };
    [[nodiscard]] Run view(std::size_t bucket) const {
        const Arrays& arrays = buckets_[bucket];
        Run found;
        found.bucket = bucket;
        found.numel = numels_[bucket];
        if constexpr (has_master) found.weight = elements<Kept>(arrays.master);
        for (std::size_t k = 0; k < states; ++k) found.state[k] = elements<Kept>(arrays.state[k]);
        return found;
    }
    [[nodiscard]] at::Tensor empty(std::size_t bucket) const {
        return context_->template empty<Kept>(numels_[bucket], context_->kind(), place);
    }

    std::optional<TierContext> context_;
    std::vector<std::int64_t> numels_;
    std::vector<Arrays> buckets_;
};

/// Shards that need no opening.
template <Place place, class Element>
class ShardsInMemory {
public:
    static constexpr bool fails_alone = false;
    static constexpr bool wants_folder = false;
    static constexpr bool gathers_alone = false;
    static PlaceBytes bytes(std::span<const std::int64_t> numels) {
        return PlaceBytes::at(place, sum_of(numels) * static_cast<std::int64_t>(sizeof(Element)));
    }
    static TierBytes takes(std::span<const std::int64_t> numels, const TierRoom&) { return {bytes(numels)}; }

    void make(const TierContext& context, std::span<const std::int64_t> numels) {
        for (const std::int64_t numel : numels)
            shards_.push_back(context.template empty<Element>(numel, context.kind(), place));
    }
    [[nodiscard]] std::span<Element> open(std::size_t shard, offload::Access) {
        return elements<Element>(shards_[shard]);
    }
    void close(std::size_t, offload::Access) {}
    void read_ahead(std::size_t, offload::Access) noexcept {}
    [[nodiscard]] std::size_t count() const noexcept { return shards_.size(); }
    [[nodiscard]] std::size_t reads_ahead() const noexcept { return 0; }
    [[nodiscard]] Place memory_of(std::size_t) const noexcept { return place; }

private:
    std::vector<at::Tensor> shards_;
};

}  // namespace strata::zero::detail
