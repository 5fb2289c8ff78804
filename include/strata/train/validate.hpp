#pragma once
// strata/train/validate.hpp - validate(): the numbers of a run, checked before anything is written or allocated.

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
#include <strata/core/inline.hpp>
#include <strata/core/option_check.hpp>
#include <strata/options/gradient_norms_options.hpp>
#include <strata/options/run_length.hpp>
#include <strata/options/schedule.hpp>
#include <strata/train/options.hpp>
#include <strata/train/run_folders.hpp>

namespace strata::train {

/// A trainer's name, which is a folder's. Local.
void check_name(OptionCheck& check, const std::string& name);

/// Makes options those that a run uses: a schedule whose length was left open has the run's, and the engine rounds with the
/// run's seed and has its name. Local. Throws bad_value, with everything that is wrong in one message.
///
///   names  of options that came from a file, as the file has them
template <class Rule, class Average, class Adapter>
void complete(TrainOptions<Rule, Average, Adapter>& options, OptionCheck::Names names = {},
              const std::optional<optim::RunLength>& run = std::nullopt) {
    OptionCheck check{std::move(names)};
    const optim::RunLength length = run ? *run : optim::RunLength{options.max_steps};
    options.check(check, length);
    check_name(check, options.name);
    check.finish();
    options.schedule = options.schedule.for_run(length);
    options.engine.rounding_seed = options.seed;
    if (options.engine.name.empty()) options.engine.name = options.name;
}
/// The same of a copy.
template <class Rule, class Average, class Adapter>
[[nodiscard]] TrainOptions<Rule, Average, Adapter> validate(TrainOptions<Rule, Average, Adapter> options,
                                                            OptionCheck::Names names = {},
                                                            const std::optional<optim::RunLength>& run = std::nullopt) {
    complete(options, std::move(names), run);
    return options;
}

/// Looks at what fit(source, steps) asks for. Local. Throws bad_value.
///
///   last_step  the one it would end with
void check_more_steps(const optim::Schedule& schedule, std::int64_t max_steps, std::int64_t steps,
                      std::int64_t last_step);

/// Throws bad_value where gradient norms are wanted of an engine that has no gradients to look at: Update<InBackward>. Local.
void refuse_gradient_norms(const GradientNormsOptions& wanted);

namespace detail {

void check_source(std::int64_t samples_per_micro_batch, std::int64_t micro_batches_per_epoch);

}  // namespace detail

/// Looks at what a source says of itself, which a step's numbers are divided by. Local. Throws bad_value.
template <class Source>
void check_source(Source& source) {
    detail::check_source(source.samples_per_micro_batch(), source.micro_batches_per_epoch());
}

/// Throws uneven_batches where a rank's numbers are others than rank 0's. Local; the same on every rank.
///
///   all  samples_per_micro_batch and micro_batches_per_epoch of every rank
void refuse_uneven(std::span<const std::int64_t> all);

/// check_source() on all ranks, and whether they have sources that go together: every micro-batch counts the same in the mean
/// of a step. A source that has a prepare() and was not prepared yet is by then. Collective. Throws bad_value, uneven_batches on
/// all ranks, and what prepare() throws.
template <comm::Communicator Comm, class Source>
void check_sources(Comm& comm, Source& source) {
    if constexpr (requires { source.prepare(); }) source.prepare();
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
