#pragma once
// strata/train/validate.hpp - validate(): the numbers of a run, checked before anything is written or allocated.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <strata/comm/agree.hpp>
#include <strata/comm/communicator.hpp>
#include <strata/core/error.hpp>
#include <strata/core/inline.hpp>
#include <strata/core/option_check.hpp>
#include <strata/core/ranges.hpp>
#include <strata/optim/run_length.hpp>
#include <strata/train/options.hpp>
#include <strata/train/run_folders.hpp>
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
    if (!RunFolders::is_name(options.name))
        check.refuse(check.name("name") + " cannot be a trainer's folder: " + options.name.substr(0, RunFolders::longest_name),
                     std::string{RunFolders::names_are});
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

/// Looks at what fit(source, steps) asks for. Local. Throws bad_value.
///
///   last_step  the one it would end with
template <class Rule>
void check_more_steps(const TrainOptions<Rule>& options, std::int64_t steps, std::int64_t last_step) {
    if (steps < 1)
        throw Error{Errc::bad_value, "fit(source, steps) was given " + std::to_string(steps) + " steps", "ask for 1 step or more"};
    OptionCheck check;
    check.inside("schedule", [&] {
        options.schedule.check(check, optim::RunLength{std::max(last_step, options.max_steps), "step " + std::to_string(last_step) + " of fit(source, steps)"});
    });
    check.finish();
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

/// Throws uneven_batches where a rank's numbers are others than rank 0's. Local; the same on every rank.
///
///   all  samples_per_micro_batch and micro_batches_per_epoch of every rank
void refuse_uneven(std::span<const std::int64_t> all);

/// check_source() on all ranks, and whether they have sources that go together: every micro-batch counts the same in the mean
/// of a step. Collective. Throws bad_value, uneven_batches on all ranks.
template <comm::Communicator Comm, class Source>
void check_sources(Comm& comm, Source& source) {
    comm::agree(comm, [&] { check_source(source); });
    const std::array<std::int64_t, 2> mine{source.samples_per_micro_batch(), source.micro_batches_per_epoch()};
    std::vector<std::int64_t> all(2 * static_cast<std::size_t>(comm.world()));
    comm.all_gather(std::as_bytes(std::span{mine}), std::as_writable_bytes(std::span{all}));
    refuse_uneven(all);
}

}  // namespace strata::train

#ifndef STRATA_COMPILED
#include <strata/train/impl/validate.ipp>
#endif
