#pragma once
// strata/train/turns.hpp - fit_in_turns(): several trainers of one session whose steps alternate.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <strata/core/rule.hpp>
#include <strata/train/fit_result.hpp>
#include <strata/train/session.hpp>
#include <strata/train/trainable.hpp>
#include <strata/train/turn_taker.hpp>
#include <strata/train/validate.hpp>

namespace strata {

/// One trainer's part of a round.
template <class AnyTrainer, class Source>
struct Turn {
    ///   source  this rank's batches; both outlive it
    ///   steps   optimizer steps in a round, >= 1
    Turn(AnyTrainer& its_trainer, Source& its_source, std::int64_t its_steps = 1)
        : trainer{its_trainer}, source{its_source}, steps{its_steps} {}

    AnyTrainer& trainer;
    Source& source;
    std::int64_t steps;
};

namespace train {

/// A Turn as TakenTurns sees it.
///
///   Run  the trainer's TrainerRun
template <class Run, class Source>
class TurnOf final : public TurnTaker {
public:
    TurnOf(Run& run, Source& source, std::int64_t steps) : run_{run}, source_{source}, steps_{steps} {}

    [[nodiscard]] std::string name() const override {
        return run_.name().empty() ? "the trainer without a name" : run_.name();
    }
    [[nodiscard]] std::int64_t steps_a_turn() const override { return steps_; }
    [[nodiscard]] std::int64_t steps_in_all() const override { return run_.settings().max_steps; }
    void prepare() override { run_.prepare(source_); }
    [[nodiscard]] std::vector<std::int64_t> saved_steps() override { return run_.checkpoints().steps(); }
    [[nodiscard]] std::optional<std::string> damage_at(std::int64_t step) override {
        return run_.checkpoints().damage_at(run_.manifest(), step);
    }
    void set_aside(std::int64_t step, std::string_view prefix, const std::string& why) override {
        run_.checkpoints().set_aside(step, prefix, why);
    }
    void resume_at(std::int64_t step) override { run_.resume_at(step); }
    void begin_here() override { run_.begin_here(source_); }
    void reserve() override { run_.reserve(); }
    [[nodiscard]] StepEnd step() override { return run_.step(source_, run_.settings().max_steps); }
    void save() override { run_.save(source_); }
    void end() override { run_.end(source_); }
    void release_room() override { run_.release_room(); }
    [[nodiscard]] Rescuable& state() override { return run_; }
    [[nodiscard]] bool are_together() const override { return run_.are_together(); }
    [[nodiscard]] std::string who() const override { return run_.who(); }

private:
    Run& run_;
    Source& source_;
    std::int64_t steps_;
};

/// One sentence for what is no source of this trainer's batches.
template <class AnyTrainer, class Source>
constexpr void require_source() {
    using Wrong = rule::first_broken_t<rule::SourceCanBeRead<Source>,
                                       rule::SourceMakesTheModelsBatch<Source, typename AnyTrainer::Batch>>;
    if constexpr (rule::Broken<Wrong>) static_assert(sizeof(typename Wrong::Report) > 0);
}

}  // namespace train

/// Trains several models whose steps alternate: a generator and its critic, or models that teach one another. A round is every
/// trainer's turn, in the order given; there are as many rounds as every trainer's max_steps hold turns.
///
///   fit_in_turns(Turn{critic, real_pictures, 5}, Turn{generator, noise});
///
/// Each trainer works in its own folder (TrainOptions::name) as in Trainer::fit(), with its log, its report and its actions.
/// Checkpoints are of one moment: all save at the end of a round in which one's checkpoint_every is due, at the end, on a stop
/// signal, and when a step fails. A run resumes at the newest moment that all have a whole checkpoint of, with the bits of one
/// that was never stopped; what one of them saved later is set aside as alone_step_NNNNNNNN.
///
/// A loss may go through another trainer's model: gradients that reach its parameters are dropped, and its own steps do not see
/// them. Where it does, register only the trainer's own model in it.
///
/// Collective. Throws Error: bad_value where numbers of turns differ, turns_out_of_step, and what Trainer::fit() throws, its
/// sentence going on with what became of every trainer.
///
///   returns  in the order of the turns
template <class... Trainers, class... Sources>
std::array<FitResult, sizeof...(Trainers)> fit_in_turns(Turn<Trainers, Sources>... turns) {
    static_assert(sizeof...(Trainers) > 0);
    if constexpr ((Trainers::is_rejected || ...)) {
        return {};
    } else {
        (train::require_source<Trainers, Sources>(), ...);
        Session& session = std::get<0>(std::tie(turns...)).trainer.run().session();
        (train::check_sources(session.comm(), turns.source), ...);
        std::tuple takers{train::TurnOf<std::remove_reference_t<decltype(turns.trainer.run())>, Sources>{
            turns.trainer.run(), turns.source, turns.steps}...};
        std::vector<train::TurnTaker*> list;
        std::apply([&](auto&... taker) { (list.push_back(&taker), ...); }, takers);
        const bool stopped =
            train::TakenTurns{std::move(list), [&](const std::string& line) { session.progress().note(line); }}.run();
        return {FitResult{turns.trainer.run().step(), turns.trainer.run().last_loss(), stopped}...};
    }
}

}  // namespace strata
