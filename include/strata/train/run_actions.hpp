#pragma once
// strata/train/run_actions.hpp - RunActions: what a program wants done every so many steps.

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <strata/comm/communicator.hpp>
#include <strata/train/metrics.hpp>
#include <strata/train/ranks_together.hpp>
#include <strata/train/step_failure.hpp>

namespace strata::train {

/// Whether what is done every `steps` steps is due after `step`; 0: after the last one only. It always is after that.
[[nodiscard]] constexpr bool is_due(std::int64_t steps, std::int64_t step, std::int64_t last_step) noexcept {
    return step == last_step || (steps > 0 && step % steps == 0);
}
static_assert(is_due(5, 10, 12) && !is_due(5, 11, 12) && is_due(0, 12, 12));

/// Functions and how often they are called.
class RunActions {
public:
    using Call = std::function<void(const StepMetrics&)>;

    /// Local.
    void add(std::int64_t steps, Call call) { actions_.push_back({steps, std::move(call)}); }

    /// Calls what is due, in the order of add(). Collective. Throws on all ranks what a call threw on one.
    ///
    ///   who  what failed then: "what follows step 7"
    template <comm::Communicator Comm>
    void call_due(Comm& comm, RanksTogether& together, const std::string& who, const StepMetrics& metrics,
                  std::int64_t last_step) const {
        for (const Action& action : actions_) {
            if (!is_due(action.steps, metrics.step, last_step)) continue;
            StepFailure failure{who};
            failure.guard([&] { action.call(metrics); });
            end_if_shared(comm, together, failure);
        }
    }

private:
    struct Action {
        std::int64_t steps;
        Call call;
    };
    std::vector<Action> actions_;
};

}  // namespace strata::train
