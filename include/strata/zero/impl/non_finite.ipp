#pragma once
// strata/zero/impl/non_finite.ipp - the sentence that a run ends with.

#include <string>

#include <strata/core/error.hpp>
#include <strata/zero/non_finite.hpp>

namespace strata::zero {

STRATA_INLINE void NonFiniteSteps::met(std::int64_t step, std::string_view what) {
    if (on_ == OnNonFinite::skip && in_a_row_ < limit_) {
        ++in_a_row_;
        return;
    }
    std::string problem = "the " + std::string{what} + " of step " + std::to_string(step) + " is not finite";
    if (in_a_row_ > 0)
        problem += ", after " + std::to_string(in_a_row_) + " tries that were skipped for the same reason";
    const bool stops_at_once = in_a_row_ == 0;
    in_a_row_ = 0;
    throw Error{Errc::non_finite, problem,
                stops_at_once
                    ? "lower the learning rate, clip gradients with max_grad_norm, and look for broken samples"
                    : "lower the learning rate, clip gradients with max_grad_norm, and look for broken samples; "
                      "non_finite_limit is how many tries are skipped"};
}

}  // namespace strata::zero
