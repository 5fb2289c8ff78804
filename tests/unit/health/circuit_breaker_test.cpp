// tests/unit/health/circuit_breaker_test.cpp - thresholds, and how a breaker opens and closes.

#include <strata/core/option_check.hpp>
#include <strata/health/circuit_breaker.hpp>

#include <gtest/gtest.h>

namespace {

using namespace strata::health;
using std::chrono::seconds;

/// A breaker that is given one reading every five seconds.
struct Watched {
    explicit Watched(HealthOptions given = {}) : breaker{given} {}
    std::vector<Fault> look() { return breaker.look(&gpu, host, now += seconds{5}); }
    [[nodiscard]] bool closed() const { return breaker.status().state == BreakerState::closed; }

    CircuitBreaker breaker;
    GpuReading gpu;
    HostReading host;
    CircuitBreaker::Time now{seconds{1000}};
};

HealthOptions warning() {
    HealthOptions options;
    options.breaker = BreakerPolicy::warn;
    return options;
}

TEST(CircuitBreaker, BeginsClosedAndStaysSoWhileNothingCanBeRead) {
    Watched run;
    EXPECT_TRUE(run.look().empty());
    EXPECT_TRUE(run.closed());
    EXPECT_EQ(run.breaker.status().failure_count, 0);
    EXPECT_FALSE(run.breaker.status().opened_at);
}

TEST(CircuitBreaker, OldErrorsOfACardAreNotTheRuns) {
    Watched run;
    run.gpu.ecc_volatile.uncorrected = 3;
    run.gpu.ecc_aggregate.uncorrected = 5000;
    EXPECT_TRUE(run.look().empty());
    run.gpu.ecc_volatile.uncorrected = 12;  // 9 more
    run.gpu.ecc_aggregate.uncorrected = 5009;
    const auto faults = run.look();
    ASSERT_EQ(faults.size(), 1U);
    EXPECT_FALSE(faults[0].critical);
    EXPECT_TRUE(run.closed());
    run.gpu.ecc_volatile.uncorrected = 13;  // the tenth: volatile is not weighed against 5003 at the beginning
    const auto opened = run.look();
    ASSERT_EQ(opened.size(), 1U);
    EXPECT_TRUE(opened[0].critical);
    EXPECT_EQ(opened[0].kind, FaultKind::ecc_error);
    EXPECT_TRUE(run.breaker.ends_run());
    EXPECT_EQ(run.breaker.status().opened_at, run.now);
}

TEST(CircuitBreaker, ACounterThatBeginsAnewIsFollowed) {
    Watched run;
    run.gpu.ecc_volatile.uncorrected = 100;
    run.look();
    run.gpu.ecc_volatile.uncorrected = 0;
    EXPECT_TRUE(run.look().empty());
    run.gpu.ecc_volatile.uncorrected = 10;
    run.look();
    EXPECT_TRUE(run.breaker.is_open());
}

TEST(CircuitBreaker, AReadingThatIsMissingOnceMovesNoBaseline) {
    Watched run;
    run.gpu.ecc_volatile.uncorrected = 0;
    run.look();
    run.gpu.ecc_volatile.uncorrected.reset();
    run.look();
    run.gpu.ecc_volatile.uncorrected = 10;
    run.look();
    EXPECT_TRUE(run.breaker.is_open());
}

TEST(CircuitBreaker, SlowdownOfTheHardwareCountsInTwoReadingsInARow) {
    for (const auto bit : {throttle::hw_slowdown, throttle::hw_slowdown | throttle::hw_power_brake_slowdown}) {
        Watched run;
        run.gpu.throttle = bit;
        EXPECT_TRUE(run.look().empty());
        run.gpu.throttle = throttle::gpu_idle;
        run.look();
        run.gpu.throttle = bit;
        EXPECT_TRUE(run.look().empty());
        const auto faults = run.look();
        ASSERT_EQ(faults.size(), 1U);
        EXPECT_EQ(faults[0].kind, bit == throttle::hw_slowdown ? FaultKind::hw_slowdown : FaultKind::power_brake);
        EXPECT_TRUE(run.breaker.is_open());
    }
}

TEST(CircuitBreaker, HeatAloneIsAWarningUntilShutdownIsNear) {
    Watched run;
    run.gpu.throttle = throttle::hw_slowdown | throttle::hw_thermal_slowdown;
    run.gpu.below_shutdown = 5;
    EXPECT_EQ(run.look().size(), 1U);
    for (int i = 0; i < 10; ++i) EXPECT_TRUE(run.look().empty());  // said once
    EXPECT_TRUE(run.closed());
    run.gpu.below_shutdown = 4;
    EXPECT_TRUE(run.look().empty());  // a sensor's mistake, perhaps
    run.gpu.below_shutdown = 40;
    EXPECT_TRUE(run.look().empty());
    run.gpu.below_shutdown = 4;
    EXPECT_TRUE(run.look().empty());
    const auto faults = run.look();
    ASSERT_EQ(faults.size(), 1U);
    EXPECT_EQ(faults[0].kind, FaultKind::thermal);
    EXPECT_TRUE(faults[0].critical);
}

TEST(CircuitBreaker, CardsWithoutABitForHeatShowItOtherwise) {
    for (const bool by_driver : {true, false}) {
        Watched run;
        run.gpu.throttle = throttle::hw_slowdown | (by_driver ? throttle::sw_thermal_slowdown : 0);
        run.gpu.below_slowdown = by_driver ? 9 : 2;
        const auto faults = run.look();
        ASSERT_EQ(faults.size(), 1U);
        EXPECT_EQ(faults[0].kind, FaultKind::thermal);
        EXPECT_FALSE(faults[0].critical);
        for (int i = 0; i < 10; ++i) EXPECT_TRUE(run.look().empty());
        EXPECT_TRUE(run.closed());
        run.gpu.throttle = throttle::hw_slowdown;
        run.gpu.below_slowdown = 3;  // cool, and slowed nevertheless
        run.look();
        run.look();
        EXPECT_TRUE(run.breaker.is_open());
    }
}

TEST(CircuitBreaker, CapsOfSoftwareAreNoFault) {
    Watched run;
    run.gpu.throttle = throttle::sw_power_cap | throttle::sw_thermal_slowdown | throttle::applications_clocks_setting |
                       throttle::sync_boost | throttle::display_clocks_setting;
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(run.look().empty());
}

TEST(CircuitBreaker, ALostGpuOpensAtOnce) {
    Watched run;
    run.gpu.lost = true;
    run.look();
    EXPECT_TRUE(run.breaker.is_open());
    EXPECT_NE(run.breaker.status().last_failure_reason.find("does not answer"), std::string::npos);
}

TEST(CircuitBreaker, ADriverThatSaysNothingButErrorsIsNotTakenForAHealthyGpu) {
    Watched run;
    run.gpu.silent = true;
    const auto faults = run.look();
    ASSERT_EQ(faults.size(), 1U);
    EXPECT_EQ(faults[0].kind, FaultKind::no_answer);
    EXPECT_TRUE(run.look().empty());
    EXPECT_TRUE(run.closed()) << "what computes may go on: a container that lost its right to ask looks like this";
}

TEST(CircuitBreaker, AFailedRemapOpensOnlyWhenItIsNew) {
    Watched old;
    old.gpu.remap_failed = true;
    ASSERT_EQ(old.look().size(), 1U);
    EXPECT_TRUE(old.closed());
    Watched fresh;
    fresh.gpu.remap_failed = false;
    fresh.look();
    fresh.gpu.remap_failed = true;
    fresh.look();
    EXPECT_TRUE(fresh.breaker.is_open());
    Watched pending;
    pending.gpu.remap_pending = false;
    pending.look();
    pending.gpu.remap_pending = true;
    EXPECT_EQ(pending.look().at(0).kind, FaultKind::row_remap);
    EXPECT_TRUE(pending.closed());
}

TEST(CircuitBreaker, OnlyFailuresOfThisGpuCount) {
    Watched run;
    EXPECT_TRUE(run.breaker.failed("CUDA out of memory. Tried to allocate 2.00 GiB", run.now).empty());
    EXPECT_TRUE(run.breaker.failed("NCCL error: remote process exited or there was a network error", run.now).empty());
    EXPECT_TRUE(run.closed());
    const auto faults = run.breaker.failed("CUDA error: unknown error\nframe #0: ...", run.now);
    ASSERT_EQ(faults.size(), 1U);
    EXPECT_EQ(faults[0].what, "calls to the GPU fail: CUDA error: unknown error");
    EXPECT_TRUE(run.breaker.ends_run());

    HealthOptions patient;
    patient.cuda_failure_threshold = 2;
    Watched second{patient};
    EXPECT_TRUE(second.breaker.failed("CUDA error: unknown error", second.now).empty());
    EXPECT_EQ(second.breaker.failed("CUDA error: unknown error", second.now).size(), 1U);
}

TEST(CircuitBreaker, WarningRunsGoThroughHalfOpenBackToClosed) {
    Watched run{warning()};
    run.gpu.ecc_volatile.uncorrected = 0;
    run.look();
    run.gpu.ecc_volatile.uncorrected = 10;
    run.look();
    EXPECT_TRUE(run.breaker.is_open());
    EXPECT_FALSE(run.breaker.ends_run());
    for (int i = 0; i < 11; ++i) run.look();  // 55 seconds without a new error
    EXPECT_TRUE(run.breaker.is_open());
    run.look();
    EXPECT_EQ(run.breaker.status().state, BreakerState::half_open);
    run.look();
    EXPECT_TRUE(run.closed());
    run.gpu.ecc_volatile.uncorrected = 19;  // 9 since it opened
    run.look();
    EXPECT_TRUE(run.closed());
    run.gpu.ecc_volatile.uncorrected = 20;
    run.look();
    EXPECT_TRUE(run.breaker.is_open());
    EXPECT_EQ(run.breaker.status().failure_count, 2);
}

TEST(CircuitBreaker, AFaultInHalfOpenOpensAgain) {
    Watched run{warning()};
    run.gpu.lost = true;
    run.look();
    run.gpu.lost = false;
    for (int i = 0; i < 12; ++i) run.look();
    ASSERT_EQ(run.breaker.status().state, BreakerState::half_open);
    run.gpu.lost = true;
    EXPECT_EQ(run.look().size(), 1U);
    EXPECT_TRUE(run.breaker.is_open());
    EXPECT_EQ(run.breaker.status().opened_at, run.now);
}

TEST(CircuitBreaker, AFaultThatStandsKeepsItOpen) {
    Watched run{warning()};
    run.gpu.lost = true;
    for (int i = 0; i < 100; ++i) run.look();
    EXPECT_TRUE(run.breaker.is_open());
    EXPECT_EQ(run.breaker.status().failure_count, 1);
}

TEST(CircuitBreaker, ARunThatEndsDoesNotCloseItAgain) {
    for (const auto policy : {BreakerPolicy::stop, BreakerPolicy::drain}) {
        HealthOptions options;
        options.breaker = policy;
        Watched run{options};
        run.gpu.lost = true;
        run.look();
        run.gpu.lost = false;
        for (int i = 0; i < 100; ++i) run.look();
        EXPECT_TRUE(run.breaker.ends_run());
    }
}

TEST(CircuitBreaker, DisksThatFailAreWarnedOfAndThenAFault) {
    Watched run;
    run.host.errors = {{"sda", 400}, {"sdb", 0}};
    EXPECT_TRUE(run.look().empty());
    run.host.errors = {{"sda", 401}, {"sdb", 0}};
    ASSERT_EQ(run.look().size(), 1U);
    EXPECT_TRUE(run.closed());
    run.host.errors = {{"sda", 405}, {"sdb", 5}};
    const auto faults = run.look();
    ASSERT_EQ(faults.size(), 1U);
    EXPECT_NE(faults[0].what.find("10 requests"), std::string::npos);
    EXPECT_NE(faults[0].what.find("(sda, sdb)"), std::string::npos);
    EXPECT_EQ(CircuitBreaker::error_of(faults[0], "rank 0/2 on a").code(), strata::Errc::host_fault);
}

TEST(CircuitBreaker, ADiskFailsWhenItDoesSoOftenAndNotOnceInAWhile) {
    Watched run;
    run.host.errors = {{"sda", 7}};
    run.look();
    for (std::uint64_t i = 1; i <= 100; ++i) {  // a SMART value that the disk does not have, every 70 seconds
        run.host.errors[0].failed = 7 + i;
        run.now += seconds{65};
        const auto faults = run.look();
        EXPECT_EQ(faults.size(), i == 1 ? 1U : 0U);
        EXPECT_TRUE(run.closed()) << i;
    }
    run.host.errors[0].failed += 1;  // the tenth of the last ten minutes
    const auto faults = run.look();
    ASSERT_EQ(faults.size(), 1U);
    EXPECT_TRUE(faults[0].critical);
    EXPECT_EQ(faults[0].what, "10 requests to the host's disks failed within 10 minutes (sda)");
    EXPECT_TRUE(run.breaker.ends_run());
}

TEST(CircuitBreaker, MemoryAndEachDiskThatRunOutAreWarnedOf) {
    Watched run;
    run.host.memory_total = 1000;
    run.host.memory_available = 20;
    run.host.space = {{"/out", 1000, 20}, {"/cache", 1000, 500}};
    EXPECT_TRUE(run.look().empty());  // 2 % are enough
    run.host.memory_available = 19;
    run.host.space[0].available = 19;
    EXPECT_EQ(run.look().size(), 2U);
    run.host.space[1].available = 0;
    const auto faults = run.look();
    ASSERT_EQ(faults.size(), 1U);
    EXPECT_EQ(faults[0].subject, "/cache");
    run.host.memory_available = 500;
    run.look();
    run.host.memory_available = 1;
    EXPECT_EQ(run.look().size(), 1U);  // said again after it was away
    EXPECT_TRUE(run.closed());
}

TEST(CircuitBreaker, TheErrorNamesWhereItIs) {
    const strata::Error error = CircuitBreaker::error_of({FaultKind::gpu_lost, true, "the GPU is gone", "restart"},
                                                         "rank 3/8 on node2, GPU 1 (H100)");
    EXPECT_STREQ(error.what(), "[ST2801] rank 3/8 on node2, GPU 1 (H100): the GPU is gone. Fix: restart.");
}

TEST(CircuitBreaker, OptionsAreHeldToTheirRanges) {
    strata::OptionCheck good;
    EXPECT_TRUE(good.described(HealthOptions{}));
    HealthOptions wrong;
    wrong.poll_interval_seconds = 0;
    wrong.ecc_error_threshold = 0;
    strata::OptionCheck bad;
    EXPECT_FALSE(bad.described(wrong));
}

}  // namespace
