#pragma once
// strata/health/impl/health_monitor.ipp - a thread that sleeps, looks, and tells.

#include <algorithm>
#include <utility>

#include <ctime>

#include <strata/core/inline.hpp>
#include <strata/health/health_monitor.hpp>
#include <strata/health/impl/circuit_breaker.ipp>
#include <strata/health/impl/host_reading.ipp>
#include <strata/health/impl/nvml.ipp>

namespace strata::health {

namespace detail {

STRATA_INLINE std::chrono::nanoseconds cpu_time_of_thread() noexcept {
    struct timespec time {};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return std::chrono::seconds{time.tv_sec} + std::chrono::nanoseconds{time.tv_nsec};
}

}  // namespace detail

STRATA_INLINE HealthSources sources_of(const OpenedGpu& opened, std::vector<std::filesystem::path> folders) {
    HealthSources sources;
    if (opened.monitor) sources.gpu = [gpu = *opened.monitor] { return std::optional{gpu.read()}; };
    sources.host = [folders = std::move(folders)] { return read_host(folders); };
    return sources;
}

STRATA_INLINE HealthMonitor::HealthMonitor(const HealthOptions& options, HealthSources sources)
    : options_{options}, sources_{std::move(sources)}, breaker_{options} {}

STRATA_INLINE HealthMonitor::~HealthMonitor() { stop(); }

STRATA_INLINE void HealthMonitor::stop() {
    {
        const std::lock_guard lock{mutex_};
        stopping_ = true;
    }
    wake_.notify_all();
    if (thread_.joinable()) thread_.join();
}

STRATA_INLINE void HealthMonitor::start() {
    thread_ = std::thread{[this] {
        const std::chrono::duration<double> interval{options_.poll_interval_seconds};
        for (std::unique_lock lock{mutex_}; !stopping_;) {
            lock.unlock();
            poll();
            lock.lock();
            wake_.wait_for(lock, interval, [this] { return stopping_; });
        }
    }};
}

STRATA_INLINE void HealthMonitor::poll() {
    const std::lock_guard looking{looking_};
    const auto before = detail::cpu_time_of_thread();
    std::optional<GpuReading> gpu = sources_.gpu ? sources_.gpu() : std::nullopt;
    HostReading host = sources_.host ? sources_.host() : HostReading{};
    const std::vector<Fault> faults = breaker_.look(gpu ? &*gpu : nullptr, host, sources_.now());
    {
        const std::lock_guard lock{mutex_};
        remember(gpu ? &*gpu : nullptr, host);
        latest_.gpu = std::move(gpu);
        latest_.host = std::move(host);
        ++latest_.polls;
        latest_.cpu_time += detail::cpu_time_of_thread() - before;
    }
    tell(faults);
}

STRATA_INLINE bool HealthMonitor::failed(std::string_view message) {
    const std::lock_guard looking{looking_};
    const std::vector<Fault> faults = breaker_.failed(message, sources_.now());
    tell(faults);
    return !faults.empty();
}

STRATA_INLINE void HealthMonitor::remember(const GpuReading* gpu, const HostReading& host) {
    looks_.push_back({gpu != nullptr ? gpu->throttle.value_or(0) : 0, host.disk_wait_percent.value_or(0)});
    if (looks_.size() > recent_looks) looks_.pop_front();
    latest_.recent = {};
    for (const Recent& look : looks_) {
        latest_.recent.throttle |= look.throttle;
        latest_.recent.disk_wait_percent = std::max(latest_.recent.disk_wait_percent, look.disk_wait_percent);
    }
}

STRATA_INLINE void HealthMonitor::tell(const std::vector<Fault>& faults) {
    {
        const std::lock_guard lock{mutex_};
        latest_.breaker = breaker_.status();
        latest_.ends_run = breaker_.ends_run();
        for (const Fault& fault : faults)
            if (fault.critical && !latest_.critical) latest_.critical = fault;
    }
    if (!sources_.on_fault) return;
    for (const Fault& fault : faults) sources_.on_fault(fault, breaker_.status());
}

STRATA_INLINE bool HealthMonitor::ends_run() const {
    const std::lock_guard lock{mutex_};
    return latest_.ends_run;
}

STRATA_INLINE HealthMonitor::Snapshot HealthMonitor::snapshot() const {
    const std::lock_guard lock{mutex_};
    return latest_;
}

}  // namespace strata::health
