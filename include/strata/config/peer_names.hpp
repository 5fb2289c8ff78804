#pragma once
// strata/config/peer_names.hpp - names of update rules and schedules as other trainers write them, and what strata has.

#include <optional>
#include <string>
#include <string_view>

#include <strata/config/intent.hpp>
#include <strata/core/inline.hpp>

namespace strata::config {

/// What a name of an update rule means.
struct PeerRule {
    std::optional<RuleName> rule{};  ///< none: strata does not have it
    std::string words{};             ///< with a rule: how it differs; without: what it is, and the nearest there is
    std::string fix{};               ///< without a rule: what to type
};

/// A name as people write it, in any case: "AdamW", "cpuadam", "adamw_torch", "torch.optim.Adam", "OneBitAdam". A typing
/// error has no rule and a fix with the nearest name; so has a name that is like none.
[[nodiscard]] PeerRule peer_rule(std::string_view name);

/// The same of a schedule by one of DeepSpeed's types or of strata's shapes: "WarmupLR", "cosine".
enum class PeerSchedule : std::uint8_t {
    unknown,
    warmup,
    warmup_decay,
    warmup_cosine,
    one_cycle,
    range_test,
    cosine_annealing,  ///< torch's
    shape,             ///< one of strata's, whose name is in `shape`
};
struct PeerScheduleName {
    PeerSchedule schedule = PeerSchedule::unknown;
    std::string shape{};
    std::string words{};
    std::string fix{};
};
[[nodiscard]] PeerScheduleName peer_schedule(std::string_view name);

}  // namespace strata::config

#ifndef STRATA_COMPILED
#include <strata/config/impl/peer_names.ipp>
#endif
