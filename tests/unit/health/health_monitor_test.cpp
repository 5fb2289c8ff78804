// tests/unit/health/health_monitor_test.cpp - a GPU's driver that a script plays, and the thread that looks at it.

#include <strata/health/health_monitor.hpp>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include <gtest/gtest.h>

#include "../../support/temporary_folder.hpp"

namespace {

using namespace strata::health;
using std::chrono::seconds;

/// tests/support/fake_nvml.cpp, and what it reads.
class FakeDriver {
public:
    FakeDriver() {
        ::setenv("STRATA_FAKE_NVML", script().c_str(), 1);
        for (const auto& [key, value] : std::map<std::string, std::string>{{"count", "2"},
                                                                           {"gpu0.name", "NVIDIA H100"},
                                                                           {"gpu0.uuid", "GPU-aaaa"},
                                                                           {"gpu1.name", "NVIDIA H100"},
                                                                           {"gpu1.uuid", "GPU-bbbb"},
                                                                           {"gpu1.temperature", "60"}})
            answers_[key] = value;
        write();
    }
    ~FakeDriver() { ::unsetenv("STRATA_FAKE_NVML"); }
    void set(const std::string& key, const std::string& value) {
        answers_[key] = value;
        write();
    }
    [[nodiscard]] static OpenedGpu open(const std::string& visible) {
        return open_gpu(
            0,
            [visible](const std::string& name) {
                return name == "CUDA_VISIBLE_DEVICES" ? std::optional{visible} : std::nullopt;
            },
            STRATA_FAKE_NVML_LIBRARY);
    }

private:
    [[nodiscard]] std::string script() const { return (folder_.path() / "script").string(); }
    void write() const {
        std::ofstream out{script()};
        for (const auto& [key, value] : answers_) out << key << ' ' << value << '\n';
    }
    strata_test::TemporaryFolder folder_;
    std::map<std::string, std::string> answers_;
};

TEST(HealthMonitor, AHostWithoutTheLibrarySaysSoAndGoesOn) {
    const OpenedGpu opened = open_gpu(0, strata::process_environment, "libno-such-nvml.so.1");
    EXPECT_FALSE(opened.monitor);
    EXPECT_EQ(opened.note, "no GPU is watched: libno-such-nvml.so.1 is not on this host");
}

TEST(HealthMonitor, ADriverThatDoesNotStartIsQuoted) {
    FakeDriver driver;
    driver.set("init", "!9");
    const OpenedGpu opened = FakeDriver::open("0");
    EXPECT_FALSE(opened.monitor);
    EXPECT_NE(opened.note.find("does not start: Driver Not Loaded"), std::string::npos);
}

TEST(HealthMonitor, TheGpuOfTheRankIsReadAndNoOther) {
    const FakeDriver driver;
    const OpenedGpu opened = FakeDriver::open("GPU-bb");
    ASSERT_TRUE(opened.monitor) << opened.note;
    EXPECT_EQ(opened.monitor->index(), 1U);
    EXPECT_EQ(opened.monitor->uuid(), "GPU-bbbb");
    EXPECT_EQ(opened.monitor->read().temperature, 60);
}

TEST(HealthMonitor, AGpuWithoutAccessIsNamed) {
    FakeDriver driver;
    driver.set("gpu0.handle", "!4");
    EXPECT_NE(FakeDriver::open("0").note.find("does not give access to GPU 0"), std::string::npos);
    EXPECT_TRUE(FakeDriver::open("1").monitor);  // which keeps its number
}

TEST(HealthMonitor, WhatAGpuDoesNotTellStaysEmpty) {
    const FakeDriver driver;
    const GpuReading reading = FakeDriver::open("0").monitor->read();
    EXPECT_FALSE(reading.temperature || reading.below_shutdown || reading.ecc_volatile.uncorrected || reading.throttle);
    EXPECT_FALSE(reading.remapped_rows || reading.retired_pages || reading.fan_percent || reading.memory_total);
    EXPECT_FALSE(reading.lost || reading.silent);
}

TEST(HealthMonitor, ADriverThatAnswersNothingButErrorsIsWarnedOf) {
    FakeDriver driver;
    driver.set("gpu0.temperature", "!999");
    driver.set("gpu0.power", "!999");
    EXPECT_TRUE(FakeDriver::open("0").monitor->read().silent);
    driver.set("gpu0.busy", "3");
    EXPECT_FALSE(FakeDriver::open("0").monitor->read().silent) << "one question that fails is none of the GPU's faults";
}

TEST(HealthMonitor, EveryReadingComesFromItsCall) {
    FakeDriver driver;
    for (const auto& [key, value] : std::map<std::string, std::string>{{"shutdown_at", "95"},
                                                                       {"slowdown_at", "92"},
                                                                       {"volatile_corrected", "1"},
                                                                       {"volatile_uncorrected", "2"},
                                                                       {"remapped", "5"},
                                                                       {"aggregate_corrected", "3"},
                                                                       {"aggregate_uncorrected", "4294967300"},
                                                                       {"remap_pending", "1"},
                                                                       {"remap_failed", "0"},
                                                                       {"throttle", "72"},
                                                                       {"power", "351500"},
                                                                       {"power_limit", "700000"},
                                                                       {"fan", "30"},
                                                                       {"memory_total", "85899345920"},
                                                                       {"memory_used", "42949672960"},
                                                                       {"busy", "97"}})
        driver.set("gpu1." + key, value);
    const GpuReading reading = FakeDriver::open("1").monitor->read();
    EXPECT_EQ(reading.below_shutdown, 35);
    EXPECT_EQ(reading.below_slowdown, 32);
    EXPECT_EQ(reading.ecc_volatile.corrected, 1U);
    EXPECT_EQ(reading.ecc_volatile.uncorrected, 2U);
    EXPECT_EQ(reading.ecc_aggregate.corrected, 3U);
    EXPECT_EQ(reading.ecc_aggregate.uncorrected, 4'294'967'300U);
    EXPECT_EQ(reading.remapped_rows, 5U);
    EXPECT_EQ(reading.remap_pending, true);
    EXPECT_EQ(reading.remap_failed, false);
    EXPECT_EQ(throttle_reasons(*reading.throttle),
              (std::vector<std::string_view>{"hw_slowdown", "hw_thermal_slowdown"}));
    EXPECT_EQ(reading.power_watt, 351.5);
    EXPECT_EQ(reading.power_limit_watt, 700.0);
    EXPECT_EQ(reading.fan_percent, 30U);
    EXPECT_EQ(reading.memory_used_percent(), 50.0);
    EXPECT_EQ(reading.busy_percent, 97U);
}

TEST(HealthMonitor, MarginsComeBeforeThresholds) {
    FakeDriver driver;
    driver.set("gpu1.shutdown_at", "95");
    driver.set("gpu1.slowdown_at", "92");
    driver.set("gpu1.margin", "27");
    driver.set("gpu1.field193", "-8");  // 8 degrees beyond the GPU's limit
    const GpuReading reading = FakeDriver::open("1").monitor->read();
    EXPECT_EQ(reading.below_shutdown, 35);
    EXPECT_EQ(reading.below_slowdown, 32);  // of which there is no margin
}

TEST(HealthMonitor, PagesOfBothCausesAreCounted) {
    FakeDriver driver;
    driver.set("gpu0.retired_single", "3");
    driver.set("gpu0.retired_double", "0");
    EXPECT_EQ(FakeDriver::open("0").monitor->read().retired_pages, 3U);
}

TEST(HealthMonitor, AFaultOfTheDriverOpensTheBreakerAtTheNextLook) {
    FakeDriver driver;
    std::vector<std::string> told;
    HealthSources sources = sources_of(FakeDriver::open("1"), {});
    sources.on_fault = [&told](const Fault& fault, const CircuitBreaker::Status& status) {
        told.push_back(std::string{name_of(fault.kind)} + " " + std::string{name_of(status.state)});
    };
    HealthMonitor monitor{HealthOptions{}, std::move(sources)};
    monitor.poll();
    EXPECT_FALSE(monitor.ends_run());
    driver.set("gpu1.temperature", "!15");
    monitor.poll();
    EXPECT_TRUE(monitor.ends_run());
    EXPECT_EQ(told, std::vector<std::string>{"gpu_lost open"});
    EXPECT_EQ(monitor.snapshot().critical->kind, FaultKind::gpu_lost);
    EXPECT_EQ(monitor.snapshot().polls, 2);
}

TEST(HealthMonitor, WhatComesAndGoesIsRememberedForSomeLooks) {
    GpuReading gpu;
    HostReading host;
    HealthSources sources;
    sources.gpu = [&] { return std::optional{gpu}; };
    sources.host = [&] { return host; };
    HealthMonitor monitor{HealthOptions{}, std::move(sources)};
    monitor.poll();
    EXPECT_EQ(monitor.snapshot().recent.throttle, 0U);
    gpu.throttle = throttle::sw_power_cap;
    host.disk_wait_percent = 30;
    monitor.poll();
    gpu.throttle = throttle::sw_thermal_slowdown;
    host.disk_wait_percent = 10;
    monitor.poll();
    gpu.throttle.reset();
    host.disk_wait_percent.reset();
    for (std::size_t look = 2; look < HealthMonitor::recent_looks; ++look) monitor.poll();
    EXPECT_EQ(monitor.snapshot().recent.throttle, throttle::sw_power_cap | throttle::sw_thermal_slowdown);
    EXPECT_EQ(monitor.snapshot().recent.disk_wait_percent, 30);
    monitor.poll();
    EXPECT_EQ(monitor.snapshot().recent.throttle, throttle::sw_thermal_slowdown);
    EXPECT_EQ(monitor.snapshot().recent.disk_wait_percent, 10);
    monitor.poll();
    EXPECT_EQ(monitor.snapshot().recent.throttle, 0U);
}

TEST(HealthMonitor, AFailedCallOpensItWithoutALook) {
    HealthMonitor monitor{HealthOptions{}, HealthSources{.computes_on_gpu = true}};
    EXPECT_FALSE(monitor.failed("CUDA out of memory"));
    EXPECT_TRUE(monitor.failed("CUDA error: unknown error"));
    EXPECT_TRUE(monitor.ends_run());
}

TEST(HealthMonitor, NoCallIsAGpusFaultWhereThereIsNone) {
    HealthMonitor monitor{HealthOptions{}, HealthSources{}};
    EXPECT_FALSE(monitor.failed("CUDA error: unknown error"));
    EXPECT_FALSE(monitor.ends_run());
    HealthMonitor read{HealthOptions{}, HealthSources{.gpu = [] { return std::optional{GpuReading{}}; }}};
    EXPECT_TRUE(read.failed("CUDA error: unknown error"));
}

TEST(HealthMonitor, WhatMaySpoilTheStateIsKnownWhicheverFaultCameFirst) {
    GpuReading gpu;
    gpu.throttle = throttle::hw_power_brake_slowdown;
    HealthMonitor monitor{HealthOptions{}, HealthSources{.gpu = [&] { return std::optional{gpu}; }}};
    monitor.poll();
    monitor.poll();
    EXPECT_EQ(monitor.snapshot().critical->kind, FaultKind::power_brake);
    EXPECT_FALSE(monitor.snapshot().suspect);
    gpu.lost = true;
    monitor.poll();
    EXPECT_EQ(monitor.snapshot().critical->kind, FaultKind::power_brake);
    EXPECT_EQ(monitor.snapshot().suspect->kind, FaultKind::gpu_lost);
}

/// What a monitor watches that does not answer before it is told to, at a time that a test says.
struct Hanging {
    std::mutex mutex;
    std::condition_variable changed;
    bool is_asked = false, answers = false;
    std::atomic<int> seconds_by_now = 0;
    std::vector<std::string> told;

    [[nodiscard]] static HealthSources sources(const std::shared_ptr<Hanging>& self) {
        HealthSources sources;
        sources.gpu = [self]() -> std::optional<GpuReading> {
            std::unique_lock lock{self->mutex};
            self->is_asked = true;
            self->changed.notify_all();
            self->changed.wait(lock, [&] { return self->answers; });
            GpuReading gone;
            gone.lost = true;
            return gone;
        };
        sources.now = [self] { return CircuitBreaker::Time{seconds{self->seconds_by_now}}; };
        sources.on_fault = [self](const Fault& fault, const CircuitBreaker::Status&) {
            self->told.push_back(std::string{name_of(fault.kind)} + ": " + fault.what);
        };
        return sources;
    }
    void is_awaited() {
        std::unique_lock lock{mutex};
        changed.wait(lock, [&] { return is_asked; });
    }
    void answer() {
        const std::lock_guard lock{mutex};
        answers = true;
        changed.notify_all();
    }
};

TEST(HealthMonitor, ADriverThatHangsIsWarnedOfAndKeepsNothingWaiting) {
    const auto driver = std::make_shared<Hanging>();
    HealthMonitor monitor{HealthOptions{}, Hanging::sources(driver)};
    monitor.start();
    driver->is_awaited();
    driver->seconds_by_now = 29;
    EXPECT_FALSE(monitor.ends_run());
    EXPECT_TRUE(driver->told.empty());
    driver->seconds_by_now = 30;
    EXPECT_FALSE(monitor.ends_run());
    EXPECT_FALSE(monitor.ends_run());
    EXPECT_EQ(driver->told, std::vector<std::string>{"no_answer: the GPU's driver has not answered for 30 seconds"});
    EXPECT_TRUE(monitor.failed("CUDA error: unknown error")) << "which is known without the driver";
    EXPECT_TRUE(monitor.ends_run());
    driver->answer();
    monitor.stop(std::chrono::hours{1});
    EXPECT_EQ(monitor.snapshot().polls, 1);
}

TEST(HealthMonitor, ALookThatDoesNotEndKeepsNobodyFromEnding) {
    const auto driver = std::make_shared<Hanging>();
    {
        HealthMonitor monitor{HealthOptions{}, Hanging::sources(driver)};
        monitor.start();
        driver->is_awaited();
        monitor.stop(std::chrono::milliseconds{0});
    }
    driver->answer();
    while (driver.use_count() > 1) std::this_thread::yield();  // its thread ends, and takes what it worked with along
    EXPECT_TRUE(driver->told.empty()) << "whoever would have been told is gone";
}

TEST(HealthMonitor, ItsThreadLooksUntilItIsEnded) {
    std::mutex mutex;
    std::condition_variable looked;
    int looks = 0;
    HealthSources sources;
    sources.gpu = [&]() -> std::optional<GpuReading> {
        const std::lock_guard lock{mutex};
        ++looks;
        looked.notify_all();
        return std::nullopt;
    };
    HealthOptions options;
    options.poll_interval_seconds = 0.1;
    {
        HealthMonitor monitor{options, std::move(sources)};
        monitor.start();
        std::unique_lock lock{mutex};
        EXPECT_TRUE(looked.wait_for(lock, seconds{60}, [&] { return looks >= 3; }));
    }
    const int at_end = looks;
    EXPECT_GE(at_end, 3);
}

TEST(HealthMonitor, LooksTakeLessThanAThousandthOfTheirInterval) {
    const FakeDriver driver;
    const HealthOptions options;
    HealthMonitor monitor{options, sources_of(FakeDriver::open("1"), {"/tmp"})};
    constexpr int looks = 50;
    for (int i = 0; i < looks; ++i) monitor.poll();
    const std::chrono::duration<double> bound{looks * options.poll_interval_seconds / 1000};
    EXPECT_LT(monitor.snapshot().cpu_time, bound);
}

}  // namespace
