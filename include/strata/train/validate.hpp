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
#include <strata/options/run_length.hpp>
#include <strata/train/options.hpp>
#include <strata/train/run_folders.hpp>

namespace strata::train {

/// The options as a run uses them: a schedule whose length was left open has the run's, and the engine rounds with the
/// run's seed and has its name. Local. Throws bad_value, with everything that is wrong in one message.
///
///   names  of options that came from a file, as the file has them
template <class Rule, class Average>
[[nodiscard]] TrainOptions<Rule, Average> validate(TrainOptions<Rule, Average> options, OptionCheck::Names names = {},
                                                   const std::optional<optim::RunLength>& run = std::nullopt) {
    OptionCheck check{std::move(names)};
    const optim::RunLength length = run ? *run : optim::RunLength{options.max_steps};
    options.check(check, length);
    if (!RunFolders::is_name(options.name))
        check.refuse(
            check.name("name") + " cannot be a trainer's folder: " + options.name.substr(0, RunFolders::longest_name),
            std::string{RunFolders::names_are});
    check.finish();
    options.schedule = options.schedule.for_run(length);
    options.engine.rounding_seed = options.seed;
    if (options.engine.name.empty()) options.engine.name = options.name;
    return options;
}

/// Looks at what fit(source, steps) asks for. Local. Throws bad_value.
///
///   last_step  the one it would end with
template <class Rule, class Average>
void check_more_steps(const TrainOptions<Rule, Average>& options, std::int64_t steps, std::int64_t last_step) {
    if (steps < 1)
        throw Error{Errc::bad_value, "fit(source, steps) was given " + std::to_string(steps) + " steps",
                    "ask for 1 step or more"};
    OptionCheck check;
    check.inside("schedule", [&] {
        options.schedule.check(check, optim::RunLength{std::max(last_step, options.max_steps),
                                                       "step " + std::to_string(last_step) + " of fit(source, steps)"});
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
