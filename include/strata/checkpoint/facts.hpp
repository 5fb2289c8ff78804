#pragma once
// strata/checkpoint/facts.hpp - Facts: what a run is made of, as names and texts that a resumed run compares.

#include <string>
#include <utility>
#include <vector>

#include <strata/core/inline.hpp>

namespace strata::checkpoint {

/// Names and values in order; every name once.
using Facts = std::vector<std::pair<std::string, std::string>>;

/// A fact that is another now. Where there is none it says "none".
struct FactChange {
    std::string name, then, now;
    /// "ranks: 2 in the checkpoint, 3 now"
    [[nodiscard]] std::string text() const { return name + ": " + then + " in the checkpoint, " + now + " now"; }
};

/// What differs, in the order of `now`, then what is gone.
[[nodiscard]] std::vector<FactChange> changes(const Facts& then, const Facts& now);

}  // namespace strata::checkpoint

#ifndef STRATA_COMPILED
#include <strata/checkpoint/impl/facts.ipp>
#endif
