#pragma once
// strata/zero/parts/gradient_tier.hpp - GradientTier: what a tier brings for sums of gradients, as bytes and as a store.

#include <concepts>
#include <cstddef>
#include <memory>
#include <vector>

#include <strata/policy/place.hpp>
#include <strata/policy/tier.hpp>
#include <strata/zero/detail/buffer_pool.hpp>
#include <strata/zero/parts/buckets.hpp>
#include <strata/zero/parts/formats.hpp>
#include <strata/zero/parts/gradient_reduction.hpp>
#include <strata/zero/parts/shard_store.hpp>
#include <strata/zero/tier.hpp>

namespace strata::zero {

/// The classes `shards` of a tier that keep the sums of a composition. Which of the two is known when the options are: several
/// micro-batches add up in fp32, one has sums of what gradients are collected in.
///
///   Tier      of OffloadTarget<Tier, Gradients>; with Device sums stay where they are made, and none of this is used
///   Numerics  a Precision
template <class Tier, class Numerics>
struct GradientTier {
    using Collected = gradient_element_t<typename Numerics::element>;
    using Excepted = gradient_element_t<typename FormatsOf<Numerics>::Other::element>;
    template <class Element>
    using SumsIn = detail::shards_on_t<Tier, Element>;
    template <class Element>
    using StoreOf = ShardsOf<SumsIn<Element>, Element>;
    static constexpr bool fails_alone =
        SumsIn<float>::fails_alone || SumsIn<Collected>::fails_alone || SumsIn<Excepted>::fails_alone;
    static constexpr bool wants_folder =
        SumsIn<float>::wants_folder || SumsIn<Collected>::wants_folder || SumsIn<Excepted>::wants_folder;

    ///   micro_batches  a step
    ///   pool           outlives it
    [[nodiscard]] static std::unique_ptr<ShardStore> store(int micro_batches, const Buckets& buckets,
                                                           const detail::BufferPool& pool) {
        if constexpr (std::same_as<Tier, Device>) {
            return nullptr;
        } else {
            if constexpr (!std::same_as<Collected, Excepted>) {
                if (micro_batches == 1) {
                    auto both = std::make_unique<ShardsInFormats<StoreOf<Collected>, StoreOf<Excepted>>>(pool);
                    std::vector<char> excepted;
                    for (std::size_t i = 0; i < buckets.size(); ++i) excepted.push_back(buckets.excepted(i) ? 1 : 0);
                    both->set_excepted(excepted);
                    return both;
                }
            } else if constexpr (!std::same_as<Collected, float>) {
                if (micro_batches == 1) return std::make_unique<StoreOf<Collected>>(pool);
            }
            return std::make_unique<StoreOf<float>>(pool);
        }
    }
};

}  // namespace strata::zero
