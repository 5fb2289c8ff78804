#pragma once
// strata/train/impl/validate.ipp - numbers that cannot be used, and sources that do not go together.

#include <algorithm>

#include <strata/core/error.hpp>
#include <strata/core/ranges.hpp>
#include <strata/train/validate.hpp>

namespace strata::train {

STRATA_INLINE void check_name(OptionCheck& check, const std::string& name) {
    if (!RunFolders::is_name(name))
        check.refuse(check.name("name") + " cannot be a trainer's folder: " + name.substr(0, RunFolders::longest_name),
                     std::string{RunFolders::names_are});
}

STRATA_INLINE void check_more_steps(const optim::Schedule& schedule, std::int64_t max_steps, std::int64_t steps,
                                    std::int64_t last_step) {
    if (steps < 1)
        throw Error{Errc::bad_value, "fit(source, steps) was given " + std::to_string(steps) + " steps",
                    "ask for 1 step or more"};
    OptionCheck check;
    check.inside("schedule", [&] {
        schedule.check(check, optim::RunLength{std::max(last_step, max_steps),
                                               "step " + std::to_string(last_step) + " of fit(source, steps)"});
    });
    check.finish();
}

STRATA_INLINE void refuse_gradient_norms(const GradientNormsOptions& wanted) {
    if (wanted.every > 0)
        throw Error{Errc::bad_value,
                    "gradient_norms.every is " + std::to_string(wanted.every) +
                        ", and Update<InBackward> keeps no gradients that could be looked at after backward",
                    "set gradient_norms.every to 0, or leave Update<InBackward> out"};
}

STRATA_INLINE void detail::check_source(std::int64_t samples_per_micro_batch, std::int64_t micro_batches_per_epoch) {
    OptionCheck check;
    const auto look = [&check](const std::string& what, std::int64_t value, const Range& range) {
        if (!range.holds(static_cast<double>(value)))
            check.refuse("the source's " + what + " is " + std::to_string(value),
                         "use a source whose " + what + " is from 1 to " + OptionCheck::shown(range.most));
    };
    look("samples_per_micro_batch", samples_per_micro_batch, {1, 1e9});
    look("micro_batches_per_epoch", micro_batches_per_epoch, ranges::positive);
    check.finish();
}

STRATA_INLINE void refuse_uneven(std::span<const std::int64_t> all) {
    constexpr std::array<const char*, 2> names{"samples_per_micro_batch", "micro_batches_per_epoch"};
    constexpr std::array<const char*, 2> because{": every micro-batch counts the same in the mean of a step",
                                                 ": ranks go through an epoch together"};
    for (std::size_t i = 2; i < all.size(); ++i) {
        if (all[i] == all[i % 2]) continue;
        throw Error{Errc::uneven_batches,
                    "the source's " + std::string{names[i % 2]} + " is " + std::to_string(all[i]) + " on rank " +
                        std::to_string(i / 2) + " and " + std::to_string(all[i % 2]) + " on rank 0" + because[i % 2],
                    "give every rank's source the same " + std::string{names[i % 2]}};
    }
}

}  // namespace strata::train
