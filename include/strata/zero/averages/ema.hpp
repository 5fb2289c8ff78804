#pragma once
// strata/zero/averages/ema.hpp - the class that Ema<Tier> brings: an exponential moving average of the weights.

#include <cstdint>

#include <strata/optim/ema.hpp>
#include <strata/policy/ema.hpp>
#include <strata/zero/average.hpp>

namespace strata {

/// zero::WeightAverage. Its decay is diffusers' (optim::EmaSchedule).
template <class Tier>
template <class Kept>
class Ema<Tier>::average : public zero::AverageInMemory<Tier::place> {
public:
    using Options = optim::EmaOptions;
    explicit average(const Options& options) : options_{options} {}
    [[nodiscard]] bool due(std::int64_t step) const noexcept { return step % options_.interval == 0; }
    [[nodiscard]] double decay(std::int64_t step) const noexcept { return options_.schedule.at(step); }

private:
    Options options_;
};

}  // namespace strata
