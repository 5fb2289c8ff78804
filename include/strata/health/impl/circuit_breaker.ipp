#pragma once
// strata/health/impl/circuit_breaker.ipp - thresholds, and the three states.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <tuple>
#include <utility>

#include <strata/core/inline.hpp>
#include <strata/health/circuit_breaker.hpp>
#include <strata/health/impl/failure_class.ipp>

namespace strata::health {

namespace detail {

STRATA_INLINE std::string percent_of(std::uint64_t part, std::uint64_t whole) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f %%",
                  whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole));
    return text;
}

STRATA_INLINE bool is_below(std::uint64_t part, std::uint64_t whole, double percent) {
    return whole > 0 && 100.0 * static_cast<double>(part) < percent * static_cast<double>(whole);
}

/// So near to the temperature at which the hardware lowers clocks that this is why it does.
STRATA_INLINE bool is_at_slowdown(const GpuReading& gpu) { return gpu.below_slowdown && *gpu.below_slowdown <= 2; }

/// In which failed requests of disks count together.
inline constexpr std::chrono::minutes disk_window{10};

}  // namespace detail

STRATA_INLINE std::uint64_t CircuitBreaker::Growth::since(std::optional<std::uint64_t> count) {
    if (!count) return 0;
    if (!first_ || *count < *first_) first_ = count;
    last_ = count;
    return *count - *first_;
}

STRATA_INLINE void CircuitBreaker::find_memory_faults(const GpuReading& gpu, std::vector<Fault>& found) {
    // Both counters see an error; a driver that lacks one of them is served by the other.
    const std::uint64_t errors = std::max(ecc_volatile_.since(gpu.ecc_volatile.uncorrected),
                                          ecc_aggregate_.since(gpu.ecc_aggregate.uncorrected));
    if (errors >= static_cast<std::uint64_t>(options_.ecc_error_threshold))
        found.push_back({FaultKind::ecc_error, true,
                         "the GPU's memory had " + std::to_string(errors) + " uncorrectable errors in this run",
                         "take the GPU out of use and reset it; replace the card if they come back"});
    else if (errors > 0)
        found.push_back({FaultKind::ecc_error, false,
                         "the GPU's memory had " + std::to_string(errors) +
                             " uncorrectable errors in this run, below " + std::to_string(options_.ecc_error_threshold),
                         "watch it; reset the GPU when the run is over"});
    if (gpu.remap_failed) {
        if (!remap_had_failed_) remap_had_failed_ = gpu.remap_failed;
        if (*gpu.remap_failed)
            found.push_back({FaultKind::row_remap, !*remap_had_failed_,
                             "the GPU has no spare row left for a damaged one of its memory", "replace the card"});
    }
    if (gpu.remap_pending) {
        if (!remap_was_pending_) remap_was_pending_ = gpu.remap_pending;
        if (*gpu.remap_pending && !*remap_was_pending_)
            found.push_back({FaultKind::row_remap, false,
                             "the GPU waits for a reset to replace a damaged row of its memory",
                             "reset the GPU when the run is over"});
    }
}

STRATA_INLINE void CircuitBreaker::find_in(const GpuReading& gpu, std::vector<Fault>& found) {
    if (gpu.lost) {
        found.push_back({FaultKind::gpu_lost, true, "the GPU does not answer its driver any more",
                         "reset the GPU or restart the host; look for Xid lines in the kernel log"});
        return;
    }
    if (gpu.silent) {
        found.push_back({FaultKind::no_answer, false, "the GPU's driver answers every question with an unknown error",
                         "run nvidia-smi on that host; where a container lost its right to ask, start it anew"});
        return;
    }
    find_memory_faults(gpu, found);
    // One reading may be a sensor's mistake, here and of the slowdowns.
    near_shutdown_ =
        gpu.below_shutdown && *gpu.below_shutdown < options_.shutdown_margin_celsius ? near_shutdown_ + 1 : 0;
    if (near_shutdown_ >= options_.throttle_polls)
        found.push_back({FaultKind::thermal, true,
                         "the GPU is " + std::to_string(*gpu.below_shutdown) +
                             " degrees below the temperature at which it turns itself off" +
                             (gpu.temperature ? " (" + std::to_string(*gpu.temperature) + " degrees)" : ""),
                         "look at fans, dust and the air that comes in, or lower its power limit"});
    if (!gpu.throttle) return;
    const std::uint64_t bits = *gpu.throttle;
    const bool brake = (bits & throttle::hw_power_brake_slowdown) != 0;
    const bool slowdown = (bits & throttle::hw_slowdown) != 0;
    // hw_slowdown stands beside the bit of its reason. Cards that have none for heat show it by the driver's own bit, or by their temperature.
    const bool hot =
        (bits & throttle::hw_thermal_slowdown) != 0 ||
        (slowdown && !brake && ((bits & throttle::sw_thermal_slowdown) != 0 || detail::is_at_slowdown(gpu)));
    if (hot)
        found.push_back({FaultKind::thermal, false, "the GPU's hardware lowers its clocks because of heat",
                         "look at fans, dust and the air that comes in: steps take longer until then"});
    // Heat alone is a warning, as long as the GPU keeps away from its shutdown.
    const bool slow = slowdown && !hot && !brake;
    braked_ = brake ? braked_ + 1 : 0;
    slowed_ = slow ? slowed_ + 1 : 0;
    if (braked_ >= options_.throttle_polls)
        found.push_back({FaultKind::power_brake, true, "the power supply tells the GPU to slow down (power brake)",
                         "look at the host's power supplies and cables, and at the limit of the rack"});
    if (slowed_ >= options_.throttle_polls)
        found.push_back({FaultKind::hw_slowdown, true,
                         "the GPU's hardware halves its clocks, or more, and not because of heat",
                         "look at the GPU's power cables and at the host's power supply"});
}

STRATA_INLINE void CircuitBreaker::find_in(const HostReading& host, Time now, std::vector<Fault>& found) {
    if (host.memory_total && host.memory_available &&
        detail::is_below(*host.memory_available, *host.memory_total, options_.host_memory_percent))
        found.push_back({FaultKind::host_memory, false,
                         "the host, or this job's cgroup, has " +
                             detail::percent_of(*host.memory_available, *host.memory_total) + " of its memory left",
                         "give the job more memory, or lower caches and workers: next, a process is killed"});
    for (const DiskSpace& disk : host.space)
        if (detail::is_below(disk.available, disk.total, options_.disk_percent))
            found.push_back({FaultKind::disk_space, false,
                             "the disk of " + disk.folder.string() + " has " +
                                 detail::percent_of(disk.available, disk.total) + " left",
                             "make room on it, or keep fewer checkpoints", disk.folder.string()});
    find_disk_faults(host, now, found);
}

STRATA_INLINE void CircuitBreaker::find_disk_faults(const HostReading& host, Time now, std::vector<Fault>& found) {
    std::uint64_t failed = 0;
    std::string names;
    for (const DiskErrors& disk : host.errors) {
        const std::uint64_t grown = disks_[disk.device].since(disk.failed);
        if (grown == 0) continue;
        failed += grown;
        names += (names.empty() ? "" : ", ") + disk.device;
    }
    if (failed > disk_failures_) new_disk_failures_.emplace_back(now, failed - disk_failures_);
    disk_failures_ = failed;
    // A disk that fails does so often; what a long run gathers of single ones says nothing about it.
    const auto window = std::max(
        detail::disk_window,
        std::chrono::ceil<std::chrono::minutes>(std::chrono::duration<double>{options_.poll_interval_seconds}));
    while (!new_disk_failures_.empty() && now - new_disk_failures_.front().first > window)
        new_disk_failures_.pop_front();
    std::uint64_t lately = 0;
    for (const auto& [when, count] : new_disk_failures_) lately += count;
    const std::string disks = " requests to the host's disks failed ";
    const std::string of = " (" + names + ")";
    if (lately >= static_cast<std::uint64_t>(options_.disk_error_threshold))
        found.push_back({FaultKind::disk_error, true,
                         std::to_string(lately) + disks + "within " + std::to_string(window.count()) + " minutes" + of,
                         "look at the kernel log and at smartctl, and move the run's folders to another disk"});
    else if (failed > 0)
        found.push_back({FaultKind::disk_error, false, std::to_string(failed) + disks + "in this run" + of,
                         "look at the kernel log: a program that asks for SMART values counts as well"});
}

STRATA_INLINE std::vector<Fault> CircuitBreaker::look(const GpuReading* gpu, const HostReading& host, Time now) {
    std::vector<Fault> found;
    if (gpu != nullptr) find_in(*gpu, found);
    find_in(host, now, found);

    std::vector<Fault> fresh;
    std::set<Standing> standing;
    const Fault* worst = nullptr;
    for (const Fault& fault : found) {
        if (fault.critical && worst == nullptr) worst = &fault;
        const Standing one{fault.kind, fault.critical, fault.subject};
        if (standing.insert(one).second && !standing_.contains(one)) fresh.push_back(fault);
    }
    if (gpu == nullptr)
        for (const Standing& one : standing_)
            if (!is_of_host(std::get<FaultKind>(one))) standing.insert(one);
    standing_ = std::move(standing);

    if (worst != nullptr) {
        if (status_.state == BreakerState::open)
            last_bad_ = now;
        else
            open(*worst, now);
    } else if (options_.breaker == BreakerPolicy::warn) {
        if (status_.state == BreakerState::open &&
            now - last_bad_ >= std::chrono::duration<double>{options_.recovery_seconds}) {
            status_.state = BreakerState::half_open;
            healthy_ = 0;
        }
        if (status_.state == BreakerState::half_open && ++healthy_ >= options_.success_threshold)
            status_.state = BreakerState::closed;
    }
    return fresh;
}

STRATA_INLINE std::vector<Fault> CircuitBreaker::failed(std::string_view message, Time now) {
    if (classify_failure(message) != FailureClass::device) return {};
    if (++cuda_failures_ < options_.cuda_failure_threshold) return {};
    Fault fault{
        FaultKind::cuda_error, true, "calls to the GPU fail: " + std::string{message.substr(0, message.find('\n'))},
        "look for Xid lines in the kernel log; an illegal memory access may also be a fault of the program, which "
        "compute-sanitizer finds"};
    if (status_.state == BreakerState::open)
        last_bad_ = now;
    else
        open(fault, now);
    cuda_failures_ = 0;
    return {std::move(fault)};
}

STRATA_INLINE void CircuitBreaker::open(const Fault& fault, Time now) {
    status_.state = BreakerState::open;
    ++status_.failure_count;
    status_.last_failure_time = now;
    status_.last_failure_reason = fault.what;
    status_.opened_at = now;
    last_bad_ = now;
    begin_anew();
}

STRATA_INLINE void CircuitBreaker::begin_anew() {
    ecc_volatile_.begin_anew();
    ecc_aggregate_.begin_anew();
    for (auto& [name, growth] : disks_) growth.begin_anew();
    disk_failures_ = 0;
    new_disk_failures_.clear();
    remap_had_failed_.reset();
    remap_was_pending_.reset();
    cuda_failures_ = 0;
}

STRATA_INLINE Error CircuitBreaker::error_of(const Fault& fault, std::string_view where) {
    const std::string what = std::string{where} + ": " + fault.what;
    if (is_of_host(fault.kind)) return Error{Errc::host_fault, what, fault.fix};
    return Error{Errc::gpu_fault, what, fault.fix};
}

}  // namespace strata::health
