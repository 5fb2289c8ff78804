#pragma once
// strata/zero/averages/ema.hpp - the class that Ema<Tier> brings: an exponential moving average of the weights.

#include <cstdint>

#include <strata/options/ema_options.hpp>
#include <strata/policy/ema.hpp>
#include <strata/zero/average.hpp>

namespace strata {

/// zero::WeightAverage. Its decay is diffusers' (optim::EmaOptions).
template <class Tier>
template <class Kept>
class Ema<Tier>::average : public zero::AverageInMemory<Tier::place> {
public:
    explicit average(const optim::EmaOptions& options) : options_{options} {}
    [[nodiscard]] bool due(std::int64_t step) const noexcept { return step % options_.interval == 0; }
    [[nodiscard]] double decay(std::int64_t step) const noexcept { return options_.at(step); }

private:
    optim::EmaOptions options_;
};

}  // namespace strata
