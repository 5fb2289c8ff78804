#pragma once
// strata/train/impl/turn_taker.ipp - rounds of several trainers, and the one moment their checkpoints are of.

#include <algorithm>
#include <limits>
#include <utility>

#include <strata/core/error.hpp>
#include <strata/train/step_failure.hpp>
#include <strata/train/turn_taker.hpp>

namespace strata::train {
namespace detail {

inline std::vector<std::int64_t> steps_of(const std::vector<TurnTaker*>& takers) {
    std::vector<std::int64_t> steps;
    for (const TurnTaker* taker : takers) {
        if (taker->steps_a_turn() < 1)
            throw Error{Errc::bad_value,
                        taker->name() + " has " + std::to_string(taker->steps_a_turn()) + " steps a turn",
                        "give its Turn 1 step or more"};
        steps.push_back(taker->steps_a_turn());
    }
    return steps;
}

}  // namespace detail

STRATA_INLINE TakenTurns::TakenTurns(std::vector<TurnTaker*> takers, Say say)
    : takers_{std::move(takers)}, say_{std::move(say)}, plan_{detail::steps_of(takers_)} {
    check_rounds();
    last_position_ = takers_.front()->steps_in_all() / takers_.front()->steps_a_turn() * plan_.steps_a_round();
}

STRATA_INLINE void TakenTurns::check_rounds() const {
    const TurnTaker& first = *takers_.front();
    const auto says = [](const TurnTaker& taker) {
        return taker.name() + " has max_steps = " + std::to_string(taker.steps_in_all()) + " and " +
               std::to_string(taker.steps_a_turn()) + " a turn";
    };
    for (const TurnTaker* taker : takers_) {
        const bool whole = taker->steps_in_all() % taker->steps_a_turn() == 0;
        if (whole && taker->steps_in_all() / taker->steps_a_turn() == first.steps_in_all() / first.steps_a_turn())
            continue;
        throw Error{
            Errc::bad_value,
            "trainers that take turns have as many turns each, and " + (whole ? says(first) + ", " : "") + says(*taker),
            "let max_steps be the number of rounds times the steps of a turn"};
    }
}

STRATA_INLINE bool TakenTurns::run() {
    for (TurnTaker* taker : takers_) taker->prepare();
    resume();
    for (std::size_t i = 0; i < takers_.size(); ++i) {
        if (takers_[i]->state().step() != plan_.done(i, position_))
            throw Error{Errc::wrong_call_order,
                        takers_[i]->name() +
                            " has done steps before that no checkpoint has, and cannot go back to where the turns are",
                        "make new trainers"};
        takers_[i]->begin_here();
    }
    if (position_ >= last_position_)
        say_("all turns are already done: ask for more steps, or start over with --fresh");
    else
        for (TurnTaker* taker : takers_) taker->reserve();
    bool stopped = false;
    try {
        while (position_ < last_position_ && !stopped) stopped = take_step();
        for (TurnTaker* taker : takers_) taker->end();
    } catch (...) {
        end_with(std::current_exception());
    }
    for (TurnTaker* taker : takers_) taker->release_room();
    return stopped;
}

/// The newest moment that all have a whole checkpoint of.
STRATA_INLINE void TakenTurns::resume() {
    std::vector<std::vector<std::int64_t>> saved;
    bool any = false;
    for (TurnTaker* taker : takers_) {
        saved.push_back(taker->saved_steps());
        any = any || !saved.back().empty();
    }
    position_ = 0;
    if (!any) return;
    std::int64_t before = std::numeric_limits<std::int64_t>::max();
    while (const auto found = plan_.newest_common(saved, before)) {
        if (all_whole_at(*found, saved)) return resume_at(*found, saved);
        before = *found;
    }
    std::string counts;
    for (std::size_t i = 0; i < takers_.size(); ++i) {
        counts += (i == 0 ? "" : ", ") + takers_[i]->name() +
                  (saved[i].empty() ? " has none" : " has one of step " + std::to_string(saved[i].back()));
    }
    throw Error{Errc::turns_out_of_step, "no moment has a whole checkpoint of every trainer: " + counts,
                "put back the checkpoints that lack, or start over with --fresh"};
}

/// Looks at the checkpoints of a position, and forgets those that are damaged, which are set aside.
STRATA_INLINE bool TakenTurns::all_whole_at(std::int64_t position, std::vector<std::vector<std::int64_t>>& saved) {
    bool whole = true;
    for (std::size_t i = 0; i < takers_.size(); ++i) {
        const std::int64_t step = plan_.done(i, position);
        if (step == 0) continue;
        if (const auto damage = takers_[i]->damage_at(step)) {
            whole = false;
            say_(takers_[i]->name() + ": " + *damage);
            std::erase(saved[i], step);
        }
    }
    return whole;
}

/// What a trainer has saved of later moments, in which another one was killed, would be taken for a checkpoint of this run.
STRATA_INLINE void TakenTurns::resume_at(std::int64_t position, const std::vector<std::vector<std::int64_t>>& saved) {
    position_ = position;
    for (std::size_t i = 0; i < takers_.size(); ++i) {
        const std::int64_t step = plan_.done(i, position);
        for (const std::int64_t later : takers_[i]->saved_steps()) {
            if (later <= step) continue;
            const bool damaged = !std::binary_search(saved[i].begin(), saved[i].end(), later);
            takers_[i]->set_aside(later, damaged ? "damaged_" : "alone_",
                                  damaged ? "it is damaged" : "the other trainers have no checkpoint of its moment");
        }
        if (step > 0) takers_[i]->resume_at(step);
    }
}

STRATA_INLINE bool TakenTurns::take_step() {
    current_ = plan_.whose(position_);
    const StepEnd end = takers_[current_]->step();
    due_ = due_ || end.due;
    if (end.done) ++position_;
    const bool round_ends = end.done && position_ % plan_.steps_a_round() == 0;
    if (end.keep && (end.stop || (due_ && round_ends))) save_all();
    return end.stop;
}

STRATA_INLINE void TakenTurns::save_all() {
    due_ = false;
    for (std::size_t i = 0; i < takers_.size(); ++i) {
        current_ = i;
        if (takers_[i]->state().step() > 0) takers_[i]->save();
    }
}

STRATA_INLINE void TakenTurns::end_with(const std::exception_ptr& failure) {
    TurnTaker& failed = *takers_[current_];
    const Error error = as_error(failure, failed.who());
    const bool together = failed.are_together();
    std::string became;
    for (TurnTaker* taker : takers_)
        became += (became.empty() ? "" : "; ") + taker->name() + ": " + rescued(taker->state(), error.code(), together);
    for (TurnTaker* taker : takers_) taker->release_room();
    throw_rescued(failure, failed.name() + ", " + failed.who(), became);
}

}  // namespace strata::train
