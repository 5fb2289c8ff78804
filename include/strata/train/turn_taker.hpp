#pragma once
// strata/train/turn_taker.hpp - TurnTaker: one of several trainers that take turns, and TakenTurns, which lets them.

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <strata/core/inline.hpp>
#include <strata/train/rescue.hpp>
#include <strata/train/step_end.hpp>
#include <strata/train/turn_plan.hpp>

namespace strata::train {

/// A trainer with its source. Calls are collective, but for what is asked of options and counts.
class TurnTaker {
public:
    [[nodiscard]] virtual std::string name() const = 0;  ///< for messages
    [[nodiscard]] virtual std::int64_t steps_a_turn() const = 0;
    [[nodiscard]] virtual std::int64_t steps_in_all() const = 0;
    virtual void prepare() = 0;
    [[nodiscard]] virtual std::vector<std::int64_t> saved_steps() = 0;  ///< ascending
    [[nodiscard]] virtual std::optional<std::string> damage_at(std::int64_t step) = 0;
    virtual void set_aside(std::int64_t step, std::string_view prefix, const std::string& why) = 0;
    virtual void resume_at(std::int64_t step) = 0;
    virtual void begin_here() = 0;
    virtual void reserve() = 0;
    [[nodiscard]] virtual StepEnd step() = 0;
    virtual void save() = 0;
    virtual void end() = 0;
    virtual void release_room() = 0;
    [[nodiscard]] virtual Rescuable& state() = 0;
    [[nodiscard]] virtual bool are_together() const = 0;
    [[nodiscard]] virtual std::string who() const = 0;  ///< what a failure is of

protected:
    ~TurnTaker() = default;
};

/// Trainers that take turns, save together and resume together: their checkpoints are of one moment.
class TakenTurns {
public:
    using Say = std::function<void(const std::string&)>;

    ///   takers  in the order of their turns; outlive it
    ///   say     shows a line on rank 0
    /// Throws bad_value for steps that do not make the same number of rounds. Local; the same on every rank.
    TakenTurns(std::vector<TurnTaker*> takers, Say say);

    /// All rounds that are left. Returns whether a stop signal ended it. Collective. Throws what a trainer throws, with what became of
    /// each; turns_out_of_step.
    bool run();

private:
    void check_rounds() const;
    void resume();
    [[nodiscard]] bool all_whole_at(std::int64_t position, std::vector<std::vector<std::int64_t>>& saved);
    void resume_at(std::int64_t position, const std::vector<std::vector<std::int64_t>>& saved);
    [[nodiscard]] bool take_step();
    void save_all();
    [[noreturn]] void end_with(const std::exception_ptr& failure);

    std::vector<TurnTaker*> takers_;
    Say say_;
    TurnPlan plan_;
    std::int64_t last_position_ = 0;
    std::int64_t position_ = 0;
    std::size_t current_ = 0;  // whose step it is
    bool due_ = false;         // a checkpoint is, at the end of this round
};

}  // namespace strata::train

#ifndef STRATA_COMPILED
#include <strata/train/impl/turn_taker.ipp>
#endif
