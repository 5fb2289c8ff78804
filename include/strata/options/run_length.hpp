#pragma once
// strata/options/run_length.hpp - RunLength: how long a run is, for what has to fit into it.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <strata/core/option_check.hpp>
#include <strata/core/ranges.hpp>

namespace strata::optim {

/// The optimizer steps of a run, and how messages speak of them.
struct RunLength {
    std::int64_t steps = 1;
    std::string text;  ///< "max_steps = 600"

    explicit RunLength(std::int64_t all_steps) : steps{all_steps}, text{"max_steps = " + std::to_string(all_steps)} {}
    RunLength(std::int64_t all_steps, std::string said) : steps{all_steps}, text{std::move(said)} {}

    /// A warm-up in its range that ends within the run.
    void check_warmup(OptionCheck& check, std::string_view option, std::int64_t warmup, const Range& range) const {
        if (check.number(option, warmup, range) && warmup > steps)
            check.refuse(check.name(option) + " is " + std::to_string(warmup) + ", above " + text,
                         "use a shorter warm-up, or train longer");
    }

    /// A total that is not used up by the warm-up and, where going on beyond it would harm, not by the run.
    ///
    ///   total   0: it becomes the run's
    ///   beyond  what would happen after the total; empty where a rate simply stays at its lowest
    void check_total(OptionCheck& check, std::string_view option, std::int64_t total, std::int64_t warmup,
                     std::string_view beyond) const {
        if (total == 0) return;
        if (total < steps && !beyond.empty()) {
            check.refuse(check.name(option) + " is " + std::to_string(total) + ", below " + text + ": from step " +
                             std::to_string(total) + " on " + std::string{beyond},
                         "leave " + check.name(option) + " out, then it is the run's, or give at least " +
                             std::to_string(steps));
        } else if (warmup > total) {
            check.refuse(check.name(option) + " is " + std::to_string(total) + ", and the warm-up has " +
                             std::to_string(warmup) + " steps",
                         "leave " + check.name(option) + " out, then it is the run's, or use a shorter warm-up");
        }
    }
};

}  // namespace strata::optim
