#pragma once
// strata/zero/non_finite.hpp - what becomes of a step whose loss or gradients are not finite.

#include <cstdint>
#include <string_view>

#include <strata/core/inline.hpp>
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
    void met(std::int64_t step, std::string_view what);
    void passed() noexcept { in_a_row_ = 0; }

private:
    OnNonFinite on_;
    std::int64_t limit_;
    std::int64_t in_a_row_ = 0;
};

}  // namespace strata::zero

#ifndef STRATA_COMPILED
#include <strata/zero/impl/non_finite.ipp>
#endif
