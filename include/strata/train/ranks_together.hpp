#pragma once
// strata/train/ranks_together.hpp - RanksTogether: whether all ranks are at the same place, so that they can still save.

#include <concepts>
#include <utility>

#include <strata/comm/communicator.hpp>
#include <strata/train/step_failure.hpp>

namespace strata::train {

/// What a rank knows of where the others are. Ranks that part can do nothing together any more: what failed on this rank
/// the others may not know, and may wait for it in another collective. Local, all of it.
class RanksTogether {
public:
    explicit operator bool() const noexcept { return together_; }
    /// What follows may fail on this rank alone.
    void part() noexcept { together_ = false; }
    /// All ranks have done it.
    void meet() noexcept { together_ = true; }

    /// Calls `work`, in which ranks meet: they are together after it, and apart where it throws.
    template <std::invocable Work>
    void through(Work&& work) {
        part();
        std::forward<Work>(work)();
        meet();
    }

private:
    bool together_ = true;
};

/// Throws on all ranks what failed on one. Collective, unless ranks no longer come together.
template <comm::Communicator Comm>
void end_if_shared(Comm& comm, RanksTogether& together, const StepFailure& failure) {
    together.part();
    const auto error = failure.shared(comm);
    together.meet();
    if (error) failure.throw_as(*error);
}

}  // namespace strata::train
