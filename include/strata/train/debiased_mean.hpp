#pragma once
// strata/train/debiased_mean.hpp - an exponential moving average that is right from its first value on.

#include <cmath>
#include <limits>

namespace strata::train {

/// Weights fall by `decay` a step and are divided by their sum: with one value it is that value, with n values
///
///     (1 - decay) / (1 - decay^n) * sum of decay^(n - i) x_i
///
/// which is Adam's correction of its moments (Kingma and Ba 2015, section 3). An average that starts from 0, or from the
/// first value with full weight, lags behind for 1 / (1 - decay) steps.
class DebiasedMean {
public:
    explicit DebiasedMean(double decay) noexcept : decay_{decay} {}

    ///   steps  since the last value
    void add(double value, double steps = 1) noexcept {
        const double kept = std::pow(decay_, steps);
        sum_ = sum_ * kept + value;
        weight_ = weight_ * kept + 1;
    }
    /// NaN before the first value.
    [[nodiscard]] double value() const noexcept {
        return weight_ > 0 ? sum_ / weight_ : std::numeric_limits<double>::quiet_NaN();
    }

private:
    double decay_;
    double sum_ = 0;
    double weight_ = 0;
};

}  // namespace strata::train
