#pragma once
// strata/train/validate.hpp - validate(): the numbers of a run, checked before anything is written or allocated.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <strata/core/option_check.hpp>
#include <strata/core/ranges.hpp>
#include <strata/options/run_length.hpp>
#include <strata/train/options.hpp>

namespace strata::train {

/// The options as a run uses them: a schedule whose length was left open has the run's, and the engine rounds with the
/// run's seed. Local. Throws bad_value, with everything that is wrong in one message.
///
///   names  of options that came from a file, as the file has them
template <class Rule, class Average>
[[nodiscard]] TrainOptions<Rule, Average> validate(TrainOptions<Rule, Average> options, OptionCheck::Names names = {},
                                                   const std::optional<optim::RunLength>& run = std::nullopt) {
    OptionCheck check{std::move(names)};
    const optim::RunLength length = run ? *run : optim::RunLength{options.max_steps};
    options.check(check, length);
    check.finish();
    options.schedule = options.schedule.for_run(length);
    options.engine.rounding_seed = options.seed;
    return options;
}

/// Looks at what a source says of itself, which a step's numbers are divided by. Local. Throws bad_value.
template <class Source>
void check_source(Source& source) {
    OptionCheck check;
    const auto look = [&check](const std::string& what, std::int64_t value, const Range& range) {
        if (!range.holds(static_cast<double>(value)))
            check.refuse("the source's " + what + " is " + std::to_string(value),
                         "use a source whose " + what + " is from 1 to " + OptionCheck::shown(range.most));
    };
    look("samples_per_micro_batch", source.samples_per_micro_batch(), {1, 1e9});
    look("micro_batches_per_epoch", source.micro_batches_per_epoch(), ranges::positive);
    check.finish();
}

}  // namespace strata::train
