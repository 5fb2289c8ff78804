#pragma once
// strata/config/disagreements.hpp - disagreements(): where two configurations say different things about the same.

#include <string>
#include <vector>

#include <strata/config/intent.hpp>
#include <strata/core/inline.hpp>

namespace strata::config {

/// One thing that two intents say differently.
struct Disagreement {
    std::string counts;   ///< what the one says that goes before: "ZeroStage<3>", "schedule.lr = 0.001"
    std::string instead;  ///< what the other says: "ZeroStage<2>", "0.01"
};

/// What both say, and not alike: policies, numbers that somebody wrote, samples, ranks, schedules.
///
///   above  the one that goes before, as in overlay()
[[nodiscard]] std::vector<Disagreement> disagreements(const Intent& base, const Intent& above);

/// "ZeroStage<3> and not ZeroStage<2>; schedule.lr = 0.001 and not 0.01".
[[nodiscard]] std::string sentence(const std::vector<Disagreement>& all);

}  // namespace strata::config

#ifndef STRATA_COMPILED
#include <strata/config/impl/disagreements.ipp>
#endif
