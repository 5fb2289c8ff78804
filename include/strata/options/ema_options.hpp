#pragma once
// strata/options/ema_options.hpp - EmaOptions: how fast a moving average follows the weights, and how often.

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <strata/core/option_check.hpp>
#include <strata/core/option_description.hpp>
#include <strata/core/ranges.hpp>

namespace strata::optim {

/// The decay of every step, as diffusers' EMAModel has it; a pure function, so a run resumes at any step.
///
///   s = max(0, step - update_after_step - 1)
///   decay = 0                                   where s = 0: the average becomes the weights, min_decay or not
///           (1 + s) / (10 + s)                  without warm-up
///           1 - (1 + s / inv_gamma)^-power      with warm-up
///   clamped into min_decay .. decay otherwise
struct EmaOptions {
    double decay = 0.9999;
    double min_decay = 0.0;
    std::int64_t update_after_step = 0;
    bool use_warmup = false;
    double inv_gamma = 1.0;
    double power = 2.0 / 3.0;
    std::int64_t interval = 1;  ///< optimizer steps from one update of the average to the next

    static void describe(auto& option) {
        option("decay", &EmaOptions::decay, ranges::average_decay,
               "Largest decay of the average: the share of it that a step keeps");
        option("min_decay", &EmaOptions::min_decay, {0, 1}, "Smallest decay, once there is one");
        option("update_after_step", &EmaOptions::update_after_step, {-1, ranges::count.most},
               "Up to the step after this one the average is a copy of the weights");
        option(
            "use_warmup", &EmaOptions::use_warmup,
            {.help =
                 "The decay of step s grows as 1 - (1 + s / `ema_inv_gamma`)^-`ema_power`, not as (1 + s) / (10 + s)",
             .alias = "use_ema_warmup"});
        option("inv_gamma", &EmaOptions::inv_gamma, {1e-9, 1e12}, "Of `ema_use_warmup`: larger is slower");
        option("power", &EmaOptions::power, {1e-6, 100}, "Of `ema_use_warmup`: larger is faster");
        option("interval", &EmaOptions::interval, ranges::positive,
               {.help = "Optimizer steps between updates of the average", .key = "ema_update_interval"});
    }
    /// Beside the ranges: min_decay is not above decay.
    void check(OptionCheck& check) const {
        if (check.described(*this)) check.number("min_decay", min_decay, {0, decay});
    }

    friend bool operator==(const EmaOptions&, const EmaOptions&) = default;

    /// The decay of optimizer step `step`, counted from 1.
    [[nodiscard]] double at(std::int64_t step) const noexcept {
        const auto s = static_cast<double>(std::max<std::int64_t>(0, step - update_after_step - 1));
        if (s == 0.0) return 0.0;
        const double growing = use_warmup ? 1.0 - std::pow(1.0 + s / inv_gamma, -power) : (1.0 + s) / (10.0 + s);
        return std::max(min_decay, std::min(decay, growing));
    }
};

}  // namespace strata::optim
