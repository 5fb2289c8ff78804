// What is said of a straggler, and why it may be one.

#include <strata/train/straggler_note.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace {

using strata::health::GpuReading;
using strata::health::HealthMonitor;
using strata::health::HealthSources;
using strata::health::HostReading;
using strata::train::RankCondition;
using strata::train::StragglerNote;
namespace throttle = strata::health::throttle;
using Reasons = std::vector<std::string_view>;

StragglerNote slow(RankCondition condition, double data_wait = 0.01) {
    condition.host = "node3";
    return {
        .step = 100,
        .world = 4,
        .found =
            {.rank = 2, .work = 0.8, .others = 0.512, .data_wait = data_wait, .others_data_wait = 0.01, .steps = 50},
        .condition = condition};
}

TEST(StragglerNote, ARankThatComputesSlowerIsNamedWithItsHost) {
    const StragglerNote note = slow({});
    EXPECT_EQ(note.reasons(), Reasons{});
    EXPECT_EQ(
        note.line(),
        "warning: rank 2/4 on node3 is slower than the others: over 50 steps its own work takes 0.8 s a step, that "
        "of the others 0.512 s; likely because it computes slower. Fix: compare processor, clocks and other "
        "programs (top) of node3 with those of the other hosts");
}

TEST(StragglerNote, BatchesExplainIt) {
    const StragglerNote note = slow({}, 0.3);
    EXPECT_EQ(note.reasons(), Reasons{"data_wait"});
    EXPECT_NE(note.line().find("; likely because it waits for its batches 0.3 s a step, the others 0.01 s. Fix: look "
                               "what keeps node3 from making batches"),
              std::string::npos)
        << note.line();
}

TEST(StragglerNote, DisksAndClocksExplainItToo) {
    EXPECT_EQ(slow({.disk_wait_percent = 19}).reasons(), Reasons{});
    EXPECT_EQ(slow({.disk_wait_percent = 45}, 0.3).reasons(), (Reasons{"data_wait", "disk"}));
    const StragglerNote note = slow({.throttle = throttle::hw_thermal_slowdown, .disk_wait_percent = 45.4});
    EXPECT_EQ(note.reasons(), (Reasons{"disk", "clocks"}));
    EXPECT_NE(
        note.line().find("likely because tasks of its host wait for disks 45 % of the time, and its GPU lowers its "
                         "clocks (hw_thermal_slowdown). Fix: look what else uses the disks of node3"),
        std::string::npos)
        << note.line();
}

TEST(StragglerNote, OneThatKeepsUpAgainHasNoReasons) {
    StragglerNote note = slow({.throttle = throttle::hw_slowdown}, 0.3);
    note.found.is_slow = false;
    EXPECT_EQ(note.reasons(), Reasons{});
    EXPECT_TRUE(note.line().starts_with("rank 2/4 on node3 keeps up with the others again: over 50 steps"));
    EXPECT_FALSE(nlohmann::json::parse(note.log_line())["straggler"].contains("reasons"));
}

TEST(StragglerNote, TheLogHasItsNumbers) {
    const std::string line = slow({.throttle = throttle::sw_power_cap}, 0.3).log_line();
    EXPECT_EQ(line.back(), '\n');
    EXPECT_EQ(nlohmann::json::parse(line), nlohmann::json::parse(R"({"step": 100, "straggler": {
        "rank": 2, "host": "node3", "is_slow": true, "work": 0.8, "others": 0.512, "data_wait": 0.3,
        "others_data_wait": 0.01, "steps": 50, "reasons": ["data_wait", "clocks"], "throttle": ["sw_power_cap"]}})"));
}

TEST(RankCondition, IsWhatTheMonitorFoundLately) {
    EXPECT_FALSE(RankCondition::here(nullptr).host.empty());
    HealthSources sources;
    sources.gpu = [] {
        GpuReading gpu;
        gpu.throttle = throttle::gpu_idle | throttle::applications_clocks_setting | throttle::hw_slowdown;
        return std::optional{gpu};
    };
    sources.host = [] {
        HostReading host;
        host.disk_wait_percent = 12.5;
        return host;
    };
    HealthMonitor monitor{{}, std::move(sources)};
    monitor.poll();
    const RankCondition here = RankCondition::here(&monitor);
    const RankCondition there = RankCondition::of_text(here.text());
    EXPECT_EQ(there.host, RankCondition::here(nullptr).host);
    EXPECT_EQ(there.throttle, throttle::hw_slowdown) << "of an idle GPU it is no clue";
    EXPECT_EQ(there.disk_wait_percent, 12.5);
}

}  // namespace
