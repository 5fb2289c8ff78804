#pragma once
// strata/health/health_monitor.hpp - HealthMonitor: looks at a rank's GPU and host from a thread of its own.

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

#include <strata/core/inline.hpp>
#include <strata/health/circuit_breaker.hpp>
#include <strata/health/nvml.hpp>

namespace strata::health {

/// What a monitor looks at and whom it tells. Tests give readings and times of their own.
struct HealthSources {
    std::function<std::optional<GpuReading>()> gpu{};  ///< empty: no GPU to watch
    std::function<HostReading()> host{};               ///< empty: the host is not watched
    std::function<CircuitBreaker::Time()> now = [] { return std::chrono::steady_clock::now(); };
    /// Told of every new fault, from the monitor's thread or from that of failed(), never two at a time. Must not throw.
    std::function<void(const Fault&, const CircuitBreaker::Status&)> on_fault{};
};

/// The GPU of `opened`, if it is one, and the host with the disks of `folders`.
[[nodiscard]] HealthSources sources_of(const OpenedGpu& opened, std::vector<std::filesystem::path> folders);

/// One rank's. Thread-safe. Local: telling other ranks is for whoever asks `ends_run()`.
///
/// Every look is made on its thread, poll_interval_seconds after the one before; the training thread pays for a lock when it asks.
/// A folder on a server that hangs makes its look wait, and then failed() and stop() with it; ends_run() and snapshot() answer.
class HealthMonitor {
public:
    static constexpr std::size_t recent_looks = 12;

    /// What the last recent_looks looks found together, of what comes and goes between two.
    struct Recent {
        std::uint64_t throttle = 0;    ///< GpuReading::throttle of any
        double disk_wait_percent = 0;  ///< HostReading's, the most
    };

    struct Snapshot {
        CircuitBreaker::Status breaker;
        bool ends_run = false;
        std::optional<GpuReading> gpu;  ///< of the last look
        HostReading host;
        Recent recent;
        std::optional<Fault> critical;  ///< the first that the run had
        std::int64_t polls = 0;
        std::chrono::nanoseconds cpu_time{};  ///< of all looks together
    };

    HealthMonitor(const HealthOptions& options, HealthSources sources);
    HealthMonitor(const HealthMonitor&) = delete;
    HealthMonitor& operator=(const HealthMonitor&) = delete;
    ~HealthMonitor();  ///< stop()

    /// Looks now, and then again and again. Once.
    void start();

    /// Ends the thread, after the look that it is at. What was seen can still be asked for.
    void stop();

    /// One look, by the calling thread.
    void poll();

    /// A call failed on this rank; `message` is the exception's. Whether it was a fault of the GPU that opened the breaker.
    bool failed(std::string_view message);

    [[nodiscard]] bool ends_run() const;
    [[nodiscard]] Snapshot snapshot() const;

private:
    void remember(const GpuReading* gpu, const HostReading& host);  // under mutex_
    void tell(const std::vector<Fault>& faults);                    // under looking_

    HealthOptions options_;
    HealthSources sources_;
    std::mutex looking_;  // of the breaker, and of the looks; taken before mutex_
    CircuitBreaker breaker_;
    mutable std::mutex mutex_;  // of what follows
    Snapshot latest_;
    std::deque<Recent> looks_;  // one each, the newest last
    bool stopping_ = false;
    std::condition_variable wake_;
    std::thread thread_;
};

}  // namespace strata::health

#ifndef STRATA_COMPILED
#include <strata/health/impl/health_monitor.ipp>
#endif
