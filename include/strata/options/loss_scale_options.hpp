#pragma once
// strata/options/loss_scale_options.hpp - LossScaleOptions: how fp16's loss is scaled.

#include <cstdint>
#include <string>

#include <strata/core/option_check.hpp>
#include <strata/core/option_description.hpp>
#include <strata/core/ranges.hpp>

namespace strata::optim {

/// Settings of a LossScale; DeepSpeed's names and defaults.
struct LossScaleOptions {
    double initial = 65536.0;             ///< a power of two costs no precision
    std::int64_t window = 1000;           ///< steps without overflow after which the scale doubles
    int hysteresis = 2;                   ///< overflows until the scale is halved
    bool consecutive_hysteresis = false;  ///< a step without overflow refills the hysteresis
    double minimum = 1.0;
    bool dynamic = true;  ///< false: the scale stays `initial`, overflows still skip their step

    static void describe(auto& option) {
        constexpr Range scale{1e-9, 1e30};
        option("initial", &LossScaleOptions::initial, scale,
               {.help = "`Precision<Fp16>`: what the loss is multiplied by at first",
                .special = "a power of two, for instance 65536"});
        option("window", &LossScaleOptions::window, ranges::positive,
               "Steps without overflow after which the loss scale doubles");
        option("hysteresis", &LossScaleOptions::hysteresis, {1, 1e6},
               {.help = "Overflows until the loss scale is halved", .alias = "hysteresis"});
        option(
            "consecutive_hysteresis", &LossScaleOptions::consecutive_hysteresis,
            {.help = "A step without overflow starts the count of overflows anew", .alias = "consecutive_hysteresis"});
        option("minimum", &LossScaleOptions::minimum, scale,
               {.help = "The loss scale falls no further: the next overflow ends the run", .alias = "min_loss_scale"});
        option("dynamic", &LossScaleOptions::dynamic,
               "`false`: the loss scale stays as it is at first, and an overflow only skips its step");
    }

    /// Beside the ranges: initial is not below minimum.
    void check(OptionCheck& check) const {
        if (check.described(*this) && dynamic && initial < minimum)
            check.refuse(check.name("initial") + " is " + OptionCheck::shown(initial) + ", below " +
                             check.name("minimum") + " = " + OptionCheck::shown(minimum),
                         "start with a larger scale, for instance 65536");
    }
};

}  // namespace strata::optim
