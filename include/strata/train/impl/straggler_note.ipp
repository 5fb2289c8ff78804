#pragma once
// strata/train/impl/straggler_note.ipp - a straggler as a sentence and as a line of JSON.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include <nlohmann/json.hpp>

#include <strata/core/host_name.hpp>
#include <strata/health/gpu_reading.hpp>
#include <strata/train/impl/line_apart.ipp>
#include <strata/train/straggler_note.hpp>

namespace strata::train {
namespace detail {

/// What lowers clocks below those of other GPUs. An idle GPU, and one that is set as its owner wants it, have reasons of their own.
inline constexpr std::uint64_t slowing_bits =
    health::throttle::sw_power_cap | health::throttle::hw_slowdown | health::throttle::sw_thermal_slowdown |
    health::throttle::hw_thermal_slowdown | health::throttle::hw_power_brake_slowdown;

inline std::string seconds_text(double seconds) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.3g s", seconds);
    return text.data();
}

/// "sw_power_cap, hw_slowdown"
inline std::string slowing_text(std::uint64_t throttle) {
    std::string text;
    for (const std::string_view reason : health::throttle_reasons(throttle)) {
        if (!text.empty()) text += ", ";
        text += reason;
    }
    return text;
}

}  // namespace detail

STRATA_INLINE RankCondition RankCondition::here(const health::HealthMonitor* monitor) {
    RankCondition condition{.host = core::host_name()};
    if (monitor == nullptr) return condition;
    const health::HealthMonitor::Recent recent = monitor->snapshot().recent;
    condition.throttle = recent.throttle & detail::slowing_bits;
    condition.disk_wait_percent = recent.disk_wait_percent;
    return condition;
}

STRATA_INLINE std::string RankCondition::text() const {
    return detail::as_line({{"host", host}, {"throttle", throttle}, {"disk_wait_percent", disk_wait_percent}});
}

STRATA_INLINE RankCondition RankCondition::of_text(std::string_view text) {
    const auto json = nlohmann::json::parse(text.begin(), text.end());
    return {
        .host = json.at("host"), .throttle = json.at("throttle"), .disk_wait_percent = json.at("disk_wait_percent")};
}

STRATA_INLINE std::vector<std::string_view> StragglerNote::reasons() const {
    std::vector<std::string_view> reasons;
    if (!found.is_slow) return reasons;
    if (found.waits_for_data()) reasons.emplace_back("data_wait");
    if (condition.disk_wait_percent >= busy_disks_percent) reasons.emplace_back("disk");
    if (condition.throttle != 0) reasons.emplace_back("clocks");
    return reasons;
}

STRATA_INLINE std::string StragglerNote::line() const {
    const std::string& host = condition.host;
    const std::string who = "rank " + std::to_string(found.rank) + "/" + std::to_string(world) + " on " + host;
    const std::string times = "over " + std::to_string(found.steps) + " steps its own work takes " +
                              detail::seconds_text(found.work) + " a step, that of the others " +
                              detail::seconds_text(found.others);
    if (!found.is_slow) return who + " keeps up with the others again: " + times;
    std::string why, fix;
    const auto add = [&](const std::string& reason, const std::string& mend) {
        why += (why.empty() ? "" : ", and ") + reason;
        if (fix.empty()) fix = mend;
    };
    for (const std::string_view reason : reasons()) {
        if (reason == "data_wait")
            add("it waits for its batches " + detail::seconds_text(found.data_wait) + " a step, the others " +
                    detail::seconds_text(found.others_data_wait),
                "look what keeps " + host + " from making batches: its disks, its network, its processor (top)");
        else if (reason == "disk")
            add("tasks of its host wait for disks " + std::to_string(std::lround(condition.disk_wait_percent)) +
                    " % of the time",
                "look what else uses the disks of " + host + " (iostat -x 5)");
        else
            add("its GPU lowers its clocks (" + detail::slowing_text(condition.throttle) + ")",
                "see to cooling and power of " + host + " (nvidia-smi -q -d PERFORMANCE)");
    }
    if (why.empty())
        add("it computes slower",
            "compare processor, clocks and other programs (top) of " + host + " with those of the other hosts");
    return "warning: " + who + " is slower than the others: " + times + "; likely because " + why + ". Fix: " + fix;
}

STRATA_INLINE std::string StragglerNote::log_line() const {
    const auto rounded = [](double seconds) { return std::round(seconds * 1e6) / 1e6; };
    nlohmann::ordered_json straggler{{"rank", found.rank},
                                     {"host", condition.host},
                                     {"is_slow", found.is_slow},
                                     {"work", rounded(found.work)},
                                     {"others", rounded(found.others)},
                                     {"data_wait", rounded(found.data_wait)},
                                     {"others_data_wait", rounded(found.others_data_wait)},
                                     {"steps", found.steps}};
    if (found.is_slow) straggler["reasons"] = reasons();
    if (found.is_slow && condition.throttle != 0) straggler["throttle"] = health::throttle_reasons(condition.throttle);
    return detail::as_line({{"step", step}, {"straggler", straggler}}) + "\n";
}

STRATA_INLINE std::optional<std::int64_t> step_of_straggler_line(std::string_view line) {
    return detail::step_of_line_about("straggler", line);
}

}  // namespace strata::train
