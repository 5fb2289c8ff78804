#pragma once
// strata/diffusion/impl/flow_schedule.ipp - bodies of FlowSchedule.

#include <string>

#include <strata/diffusion/flow_schedule.hpp>
#include <strata/diffusion/impl/ddpm_schedule.ipp>

namespace strata::diffusion {

STRATA_INLINE FlowSchedule::FlowSchedule(const FlowScheduleOptions& options) : options_{options} {
    config::Problems problems;
    if (options.timesteps < 1 || options.timesteps > 1'000'000)
        problems.add(detail::bad_options("a flow schedule has " + std::to_string(options.timesteps) + " timesteps",
                                         "give 1 to 1000000; models are trained with 1000"));
    const auto positive = [&](const char* name, double value) {
        if (!(value > 0) || !std::isfinite(value))
            problems.add(detail::bad_options(std::string{name} + " of a flow schedule is " + OptionCheck::shown(value),
                                             "give a number above 0; 1 shifts nothing"));
    };
    const auto finite = [&](const char* name, double value) {
        if (!std::isfinite(value))
            problems.add(detail::bad_options(std::string{name} + " of a flow schedule is " + OptionCheck::shown(value),
                                             "give a finite number; Flux.1-dev has base_shift 0.5 and max_shift 1.15"));
    };
    if (!options.dynamic) {
        positive("shift", options.shift);
    } else {
        (options.kind == TimeShift::linear ? static_cast<void>(positive("base_shift", options.base_shift))
                                           : finite("base_shift", options.base_shift));
        (options.kind == TimeShift::linear ? static_cast<void>(positive("max_shift", options.max_shift))
                                           : finite("max_shift", options.max_shift));
        if (options.base_tokens < 1 || options.max_tokens <= options.base_tokens)
            problems.add(detail::bad_options("base_tokens and max_tokens of a flow schedule are " +
                                                 std::to_string(options.base_tokens) + " and " +
                                                 std::to_string(options.max_tokens),
                                             "give two sizes of pictures, the smaller one first, as 256 and 4096"));
    }
    problems.finish();
}

STRATA_INLINE double FlowSchedule::training_sigma(std::int64_t index) const {
    if (index < 0 || index >= options_.timesteps)
        throw detail::bad_options("entry " + std::to_string(index) + " is not one of a flow schedule with " +
                                      std::to_string(options_.timesteps),
                                  "give one from 0 to " + std::to_string(options_.timesteps - 1));
    const auto even = static_cast<float>(static_cast<double>(options_.timesteps - index) / options_.timesteps);
    return options_.dynamic ? even : static_cast<float>(shifted(even, options_.shift));
}

STRATA_INLINE double FlowSchedule::mu(std::int64_t picture_tokens) const noexcept {
    const double slope = (options_.max_shift - options_.base_shift) / (options_.max_tokens - options_.base_tokens);
    return options_.base_shift + slope * static_cast<double>(picture_tokens - options_.base_tokens);
}

STRATA_INLINE double FlowSchedule::sigma(double unshifted, std::int64_t picture_tokens) const noexcept {
    return options_.dynamic ? time_shifted(unshifted, mu(picture_tokens), options_.kind)
                            : shifted(unshifted, options_.shift);
}

}  // namespace strata::diffusion
