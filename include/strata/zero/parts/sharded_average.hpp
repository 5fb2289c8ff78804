#pragma once
// strata/zero/parts/sharded_average.hpp - ShardedAverage: an engine's average of the weights, whatever policy brought it.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include <strata/policy/place.hpp>
#include <strata/zero/average.hpp>
#include <strata/zero/detail/buffer_pool.hpp>
#include <strata/zero/detail/preparation.hpp>
#include <strata/zero/tier.hpp>

namespace strata::zero {

/// A WeightAverage for parts that are no templates on its policy.
class ShardedAverage {
public:
    ShardedAverage(const ShardedAverage&) = delete;
    ShardedAverage& operator=(const ShardedAverage&) = delete;
    virtual ~ShardedAverage() = default;

    [[nodiscard]] virtual Place memory() const = 0;
    [[nodiscard]] virtual PlaceBytes bytes(std::span<const std::int64_t> numels) const = 0;
    virtual void make(const TierContext& context, std::vector<std::int64_t> numels) = 0;
    [[nodiscard]] virtual std::span<float> values(std::size_t bucket) = 0;
    [[nodiscard]] virtual bool due(std::int64_t step) const = 0;
    [[nodiscard]] virtual double decay(std::int64_t step) const = 0;

protected:
    ShardedAverage() = default;
};

template <class Average>
class AverageOf final : public ShardedAverage {
public:
    template <class Options>
    explicit AverageOf(const Options& options) : average_{options} {}

    [[nodiscard]] Place memory() const override { return Average::memory; }
    [[nodiscard]] PlaceBytes bytes(std::span<const std::int64_t> numels) const override {
        return Average::bytes(numels);
    }
    void make(const TierContext& context, std::vector<std::int64_t> numels) override {
        average_.make(context, std::move(numels));
    }
    [[nodiscard]] std::span<float> values(std::size_t bucket) override { return average_.values(bucket); }
    [[nodiscard]] bool due(std::int64_t step) const override { return average_.due(step); }
    [[nodiscard]] double decay(std::int64_t step) const override { return average_.decay(step); }

private:
    Average average_;
};

/// What an averaging policy keeps; nullptr where it keeps nothing.
///
///   Kept  what weights are kept in where they are updated
template <class Averaging, class Kept, class EngineOptions>
[[nodiscard]] std::unique_ptr<ShardedAverage> made_average(const EngineOptions& options) {
    if constexpr (Averaging::enabled) {
        using Average = detail::AverageOn<Averaging, Kept>;
        if constexpr (Average::holds) return std::make_unique<AverageOf<typename Average::type>>(options.ema);
    }
    return nullptr;
}

}  // namespace strata::zero
