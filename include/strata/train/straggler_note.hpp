#pragma once
// strata/train/straggler_note.hpp - StragglerNote: what is said of a rank that is slower than the others, and why it may be.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <strata/core/inline.hpp>
#include <strata/health/health_monitor.hpp>
#include <strata/train/stragglers.hpp>

namespace strata::train {

/// What a rank knows of itself that the others do not.
struct RankCondition {
    std::string host{};
    std::uint64_t throttle = 0;    ///< bits of health::GpuReading::throttle that its GPU has shown lately
    double disk_wait_percent = 0;  ///< of the time, in which tasks of its host waited for disks lately

    /// Of the calling rank.
    ///
    ///   monitor  nullptr: nothing is known but the host
    [[nodiscard]] static RankCondition here(const health::HealthMonitor* monitor);

    /// For the other ranks, and back.
    [[nodiscard]] std::string text() const;
    [[nodiscard]] static RankCondition of_text(std::string_view text);
};

/// One straggler, or one that is none any more.
struct StragglerNote {
    static constexpr double busy_disks_percent = 20;  ///< from which on disks are a reason

    std::int64_t step = 0;  ///< that was done last
    int world = 1;
    Straggler found{};
    RankCondition condition{};

    /// What likely makes it slow: "data_wait", "disk", "clocks". None: it computes slower.
    [[nodiscard]] std::vector<std::string_view> reasons() const;
    /// "warning: rank 2/4 on node3 is slower than the others: ... Fix: ..."
    [[nodiscard]] std::string line() const;
    /// In metrics.jsonl: {"step":100,"straggler":{"rank":2,"host":"node3","is_slow":true,...,"reasons":["data_wait"]}}
    [[nodiscard]] std::string log_line() const;
};

/// The step of a line of metrics.jsonl that is about a straggler and nothing else; nullopt of any other.
[[nodiscard]] std::optional<std::int64_t> step_of_straggler_line(std::string_view line);

}  // namespace strata::train

#ifndef STRATA_COMPILED
#include <strata/train/impl/straggler_note.ipp>
#endif
