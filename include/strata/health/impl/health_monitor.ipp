#pragma once
// strata/health/impl/health_monitor.ipp - a thread that sleeps, looks, and tells.

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
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

struct HealthMonitor::Watch {
    Watch(const HealthOptions& its_options, HealthSources its_sources)
        : options{its_options}, sources{std::move(its_sources)}, breaker{its_options} {}

    void look_again_and_again();
    void look();
    void tell_of_silence();
    void remember(const GpuReading* gpu, const HostReading& reading);  // under mutex
    void note(const std::vector<Fault>& faults);                       // under mutex
    void tell(const std::vector<Fault>& faults);

    /// What a look waits for.
    struct Question {
        bool of_gpu;
        CircuitBreaker::Time since;
    };
    template <class Source>
    auto ask(const Source& source, bool of_gpu) {
        {
            const std::lock_guard lock{mutex};
            question = Question{of_gpu, sources.now()};
        }
        auto answer = source();
        const std::lock_guard lock{mutex};
        question.reset();
        silence_is_told = false;
        return answer;
    }

    const HealthOptions options;
    const HealthSources sources;
    std::mutex looking;    // one look at a time: sources are asked under it alone, since an answer may never come
    std::mutex telling;    // one fault at a time
    bool is_over = false;  // under telling: nobody is told any more
    std::mutex mutex;      // of what follows; held for moments
    CircuitBreaker breaker;
    Snapshot latest;
    std::deque<Recent> looks;  // one each, the newest last
    std::optional<Question> question;
    bool silence_is_told = false;
    bool stopping = false;
    bool has_ended = false;
    std::condition_variable changed;
};

STRATA_INLINE HealthMonitor::HealthMonitor(const HealthOptions& options, HealthSources sources)
    : watch_{std::make_shared<Watch>(options, std::move(sources))} {}

STRATA_INLINE HealthMonitor::~HealthMonitor() { stop(); }

STRATA_INLINE void HealthMonitor::start() {
    thread_ = std::thread{[watch = watch_] { watch->look_again_and_again(); }};
}

STRATA_INLINE void HealthMonitor::stop(std::chrono::milliseconds longest) {
    bool has_ended = false;
    {
        std::unique_lock lock{watch_->mutex};
        watch_->stopping = true;
        watch_->changed.notify_all();
        has_ended =
            !thread_.joinable() || watch_->changed.wait_for(lock, longest, [this] { return watch_->has_ended; });
    }
    {
        const std::lock_guard lock{watch_->telling};
        watch_->is_over = true;
    }
    if (!thread_.joinable()) return;
    if (has_ended)
        thread_.join();
    else
        thread_.detach();
}

STRATA_INLINE void HealthMonitor::poll() { watch_->look(); }

STRATA_INLINE bool HealthMonitor::failed(std::string_view message) {
    if (!has_gpu()) return false;
    std::vector<Fault> faults;
    {
        const std::lock_guard lock{watch_->mutex};
        faults = watch_->breaker.failed(message, watch_->sources.now());
        watch_->note(faults);
    }
    watch_->tell(faults);
    return !faults.empty();
}

STRATA_INLINE bool HealthMonitor::has_gpu() const {
    return watch_->sources.computes_on_gpu || static_cast<bool>(watch_->sources.gpu);
}

STRATA_INLINE bool HealthMonitor::ends_run() const {
    watch_->tell_of_silence();
    const std::lock_guard lock{watch_->mutex};
    return watch_->latest.ends_run;
}

STRATA_INLINE HealthMonitor::Snapshot HealthMonitor::snapshot() const {
    const std::lock_guard lock{watch_->mutex};
    return watch_->latest;
}

// ---- the watch ---------------------------------------------------------------------------------------------------------

STRATA_INLINE void HealthMonitor::Watch::look_again_and_again() {
    const std::chrono::duration<double> interval{options.poll_interval_seconds};
    std::unique_lock lock{mutex};
    while (!stopping) {
        lock.unlock();
        look();
        lock.lock();
        changed.wait_for(lock, interval, [this] { return stopping; });
    }
    has_ended = true;
    changed.notify_all();
}

STRATA_INLINE void HealthMonitor::Watch::look() {
    const std::lock_guard one{looking};
    const auto before = detail::cpu_time_of_thread();
    std::optional<GpuReading> gpu = sources.gpu ? ask(sources.gpu, true) : std::nullopt;
    HostReading host = sources.host ? ask(sources.host, false) : HostReading{};
    std::vector<Fault> faults;
    {
        const std::lock_guard lock{mutex};
        faults = breaker.look(gpu ? &*gpu : nullptr, host, sources.now());
        note(faults);
        remember(gpu ? &*gpu : nullptr, host);
        latest.gpu = std::move(gpu);
        latest.host = std::move(host);
        ++latest.polls;
        latest.cpu_time += detail::cpu_time_of_thread() - before;
    }
    tell(faults);
}

STRATA_INLINE void HealthMonitor::Watch::remember(const GpuReading* gpu, const HostReading& reading) {
    looks.push_back({gpu != nullptr ? gpu->throttle.value_or(0) : 0, reading.disk_wait_percent.value_or(0)});
    if (looks.size() > recent_looks) looks.pop_front();
    latest.recent = {};
    for (const Recent& one : looks) {
        latest.recent.throttle |= one.throttle;
        latest.recent.disk_wait_percent = std::max(latest.recent.disk_wait_percent, one.disk_wait_percent);
    }
}

/// By whoever asks for the state of things: the thread that looks is the one that hangs.
STRATA_INLINE void HealthMonitor::Watch::tell_of_silence() {
    std::vector<Fault> faults;
    {
        const std::lock_guard lock{mutex};
        if (!question || silence_is_told) return;
        const auto waits = sources.now() - question->since;
        if (waits < longest_look || waits < 3 * std::chrono::duration<double>{options.poll_interval_seconds}) return;
        silence_is_told = true;
        const std::string seconds =
            std::to_string(std::chrono::duration_cast<std::chrono::seconds>(waits).count()) + " seconds";
        faults.push_back(
            question->of_gpu
                ? Fault{FaultKind::no_answer, false, "the GPU's driver has not answered for " + seconds,
                        "look for Xid lines in the kernel log: calls that compute may be about to hang as well"}
                : Fault{FaultKind::no_answer, false,
                        "a file server or disk of the host has not answered for " + seconds,
                        "try `df` on that host, and look at the server of the folder that makes it hang"});
    }
    tell(faults);
}

STRATA_INLINE void HealthMonitor::Watch::note(const std::vector<Fault>& faults) {
    latest.breaker = breaker.status();
    latest.ends_run = breaker.ends_run();
    for (const Fault& fault : faults) {
        if (!fault.critical) continue;
        if (!latest.critical) latest.critical = fault;
        if (!latest.suspect && makes_state_suspect(fault.kind)) latest.suspect = fault;
    }
}

STRATA_INLINE void HealthMonitor::Watch::tell(const std::vector<Fault>& faults) {
    if (faults.empty() || !sources.on_fault) return;
    const std::lock_guard one{telling};
    CircuitBreaker::Status status;
    {
        const std::lock_guard lock{mutex};
        status = latest.breaker;
    }
    for (const Fault& fault : faults)
        if (!is_over) sources.on_fault(fault, status);
}

}  // namespace strata::health
