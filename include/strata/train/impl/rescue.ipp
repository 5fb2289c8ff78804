#pragma once
// strata/train/impl/rescue.ipp - the last checkpoint of a run that fails, and the words about it.

#include <strata/train/rescue.hpp>
#include <strata/train/step_failure.hpp>

namespace strata::train {

STRATA_INLINE std::string rescued(Rescuable& run, Errc code, bool together) {
    const std::string name = "step " + std::to_string(run.step());
    if (run.is_saved()) return name + " is saved in " + run.newest().string();
    if (run.has_failed()) return name + " is not saved, and " + run.newest_text();
    std::string reason;
    if (run.world() > 1 && (!together || parts_ranks(code))) {
        reason = "the ranks are not at the same place any more";
    } else if (!run.state_is_whole()) {
        reason = "the update of its weights broke off half way";
    } else {
        try {
            run.undo_step();
            if (run.step() == 0) return "no step was done before, so nothing is lost";
            run.write();
            run.complete_log();
            return name + " is saved in " + run.newest().string();
        } catch (const std::exception&) {
            reason = as_error(std::current_exception(), "saving it").problem();
        }
    }
    return name + " could not be saved (" + reason + "), and " + run.newest_text();
}

STRATA_INLINE void throw_rescued(const std::exception_ptr& failure, const std::string& who, const std::string& became) {
    const Error error = as_error(failure, who);
    const Error ended{error.code(), error.problem() + "; " + became, error.fix()};
    try {
        std::rethrow_exception(failure);
    } catch (...) {
        std::throw_with_nested(ended);
    }
}

}  // namespace strata::train
