#pragma once
// strata/health/health_monitor.hpp - HealthMonitor: looks at a rank's GPU and host from a thread of its own.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
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
    /// Calls that fail count although nothing of the GPU can be read; with `gpu` they do.
    bool computes_on_gpu = false;
    std::function<CircuitBreaker::Time()> now = [] { return std::chrono::steady_clock::now(); };
    /// Told of every new fault, from the monitor's thread or from that of failed() or ends_run(), never two at a time. Must not throw.
    std::function<void(const Fault&, const CircuitBreaker::Status&)> on_fault{};
};

/// The GPU of `opened`, if it is one, and the host with the disks of `folders`.
[[nodiscard]] HealthSources sources_of(const OpenedGpu& opened, std::vector<std::filesystem::path> folders);

/// One rank's. Thread-safe. Local: telling other ranks is for whoever asks `ends_run()`.
///
/// Every look is made on its thread, poll_interval_seconds after the one before; the training thread pays for a lock when it asks.
/// A driver or a file server that hangs makes its look wait, and nothing else: ends_run() says so once, and stop() lets go of it.
class HealthMonitor {
public:
    static constexpr std::size_t recent_looks = 12;
    /// A look that takes longer, and longer than three intervals, is a warning.
    static constexpr std::chrono::seconds longest_look{30};
    static constexpr std::chrono::seconds patience{5};

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
        std::optional<Fault> suspect;   ///< the first critical one that makes_state_suspect()
        std::int64_t polls = 0;
        std::chrono::nanoseconds cpu_time{};  ///< of all looks together
    };

    HealthMonitor(const HealthOptions& options, HealthSources sources);
    HealthMonitor(const HealthMonitor&) = delete;
    HealthMonitor& operator=(const HealthMonitor&) = delete;
    ~HealthMonitor();  ///< stop()

    /// Looks now, and then again and again. Once.
    void start();

    /// Ends the thread after the look that it is at, and lets go of it where that takes longer than `longest`: it ends by itself when it is
    /// answered, and nobody is told of it. What was seen can still be asked for.
    void stop(std::chrono::milliseconds longest = patience);

    /// One look, by the calling thread.
    void poll();

    /// A call failed on this rank; `message` is the exception's. Whether it was a fault of the GPU that opened the breaker: never
    /// where this rank has none.
    bool failed(std::string_view message);
    /// Whether failed calls may be those of a GPU.
    [[nodiscard]] bool has_gpu() const;

    [[nodiscard]] bool ends_run() const;
    [[nodiscard]] Snapshot snapshot() const;

private:
    struct Watch;  // what the thread works with, and outlives the monitor where a look does not end

    std::shared_ptr<Watch> watch_;
    std::thread thread_;
};

}  // namespace strata::health

#ifndef STRATA_COMPILED
#include <strata/health/impl/health_monitor.ipp>
#endif
