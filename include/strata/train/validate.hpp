#pragma once
// strata/train/validate.hpp - validate(): the numbers of a run, checked before anything is written or allocated.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <strata/core/option_check.hpp>
#include <strata/core/ranges.hpp>
#include <strata/optim/run_length.hpp>
#include <strata/train/options.hpp>
#include <strata/zero/option_checks.hpp>

namespace strata::train {

/// Looks at all options of a run: those given in C++, and those of a configuration file.
///
///   check  knows what a person calls the options
///   run    options.max_steps, and what a person calls it
/// Local.
template <class Rule>
void check_options(const TrainOptions<Rule>& options, OptionCheck& check, const optim::RunLength& run) {
    if (check.number("max_steps", options.max_steps, {1}))
        check.inside("schedule", [&] { options.schedule.check(check, run); });
    zero::check_shared_options(options, check);
    check.number("nvme_buffer_bytes", options.nvme_buffer_bytes, ranges::size, "0 chooses");
    check.number("bucket_numel", options.bucket_numel, ranges::size, "0 chooses");
    check.number("collective_timeout", options.collective_timeout.count(), ranges::timeout_s, "seconds");
    check.number("checkpoint_every", options.checkpoint_every, ranges::count, "0 saves at the end only");
    check.number("checkpoints_kept", options.checkpoints_kept, ranges::positive);
}

/// The options as a run uses them: a schedule whose length was left open has the run's. Local. Throws bad_value, with
/// everything that is wrong in one message.
///
///   names  of options that came from a file, as the file has them
template <class Rule>
[[nodiscard]] TrainOptions<Rule> validate(TrainOptions<Rule> options, OptionCheck::Names names = {},
                                          const std::optional<optim::RunLength>& run = std::nullopt) {
    OptionCheck check{std::move(names)};
    const optim::RunLength length = run ? *run : optim::RunLength{options.max_steps};
    check_options(options, check, length);
    check.finish();
    options.schedule = options.schedule.for_run(length);
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
