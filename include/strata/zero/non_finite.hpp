#pragma once
// strata/zero/non_finite.hpp - what becomes of a step whose loss or gradients are not finite.

#include <cstdint>
#include <string>
#include <string_view>

#include <strata/core/error.hpp>
#include <strata/options/on_non_finite.hpp>

namespace strata::zero {

/// Counts steps that were skipped in a row. Its answers are the same on all ranks, because what it is told is.
class NonFiniteSteps {
public:
    ///   limit  of steps in a row that are skipped; >= 1
    NonFiniteSteps(OnNonFinite on, std::int64_t limit) : on_{on}, limit_{limit} {}

    /// A step's numbers are not finite. Returns where it is to be skipped. Throws non_finite where the run is to end, and counts
    /// anew from there.
    ///
    ///   what  "loss", "gradient norm"
    void met(std::int64_t step, std::string_view what) {
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
    void passed() noexcept { in_a_row_ = 0; }

private:
    OnNonFinite on_;
    std::int64_t limit_;
    std::int64_t in_a_row_ = 0;
};

}  // namespace strata::zero
