#pragma once
// strata/train/impl/run_health.ipp - lines of faults, and the end of a run.

#include <optional>
#include <utility>

#include <strata/comm/agree.hpp>
#include <strata/health/failure_class.hpp>
#include <strata/train/run_health.hpp>
#include <strata/train/stop_signal.hpp>

namespace strata::train {

STRATA_INLINE void RunHealth::watch(const health::HealthOptions& options, health::HealthSources sources,
                                    std::string where,
                                    std::function<void(const health::Fault&, const std::string&)> tell) {
    if (monitor_ != nullptr) return;
    options_ = options;
    where_ = std::move(where);
    sources.on_fault = [where = where_, tell = std::move(tell), policy = options.breaker](
                           const health::Fault& fault, const health::CircuitBreaker::Status& /*status*/) {
        const bool ends = fault.critical && policy != health::BreakerPolicy::warn;
        // What becomes of a step that may be spoilt is rank 0's to say, and that of one that failed is said by now.
        const bool saves = !health::makes_state_suspect(fault.kind) && fault.kind != health::FaultKind::cuda_error;
        const std::string so = !ends ? "" : saves ? ": the run saves and ends" : ": the run ends";
        tell(fault, (ends ? "fault: " : "warning: ") + where + ": " + fault.what + so + ". Fix: " + fault.fix);
    };
    monitor_ = std::make_unique<health::HealthMonitor>(options, std::move(sources));
    monitor_->start();
}

STRATA_INLINE bool RunHealth::asks_to_stop() const {
    if (monitor_ == nullptr || !monitor_->ends_run()) return false;
    asked_ = true;
    return true;
}

STRATA_INLINE std::string RunHealth::suspicion() const {
    if (monitor_ == nullptr || options_.breaker == health::BreakerPolicy::warn) return {};
    const auto suspect = monitor_->snapshot().suspect;
    return suspect ? where_ + ": " + suspect->what : std::string{};
}

STRATA_INLINE void RunHealth::heed(comm::AnyComm& comm) const {
    if (monitor_ == nullptr) return;
    try {
        comm::agree(comm, [this] {
            if (!asked_) return;
            throw health::CircuitBreaker::error_of(*monitor_->snapshot().critical, where_);
        });
    } catch (const Error& fault) {
        if (fault.code() != Errc::gpu_fault && fault.code() != Errc::host_fault) throw;
        if (asked_) end_by_own_fault();
        throw EndedByFault{fault, status()};
    }
}

STRATA_INLINE void RunHealth::end_by_own_fault() const {
    if (options_.breaker == health::BreakerPolicy::drain) note_faulty_host();
    throw EndedByFault{health::CircuitBreaker::error_of(*monitor_->snapshot().critical, where_), status()};
}

STRATA_INLINE void RunHealth::failed(std::string_view message, int rank, std::string thrown) {
    if (monitor_ == nullptr || !monitor_->has_gpu()) return;
    if (health::classify_failure(message) != health::FailureClass::device) return;
    const std::string text{message.substr(0, message.find('\n'))};
    const std::optional<int> named = health::rank_named_in(message);
    if (named && *named != rank) {  // whose breaker opens at its first failure, or goes on counting in its next run
        if (options_.breaker == health::BreakerPolicy::warn || options_.cuda_failure_threshold > 1) return;
        throw EndedByFault{
            Error{Errc::gpu_fault, "rank " + std::to_string(*named) + "'s calls to its GPU fail: " + text,
                  "look for Xid lines in the kernel log of its host"},
            status()};
    }
    thrown_ = std::move(thrown);
    if (!monitor_->failed(text) || !monitor_->ends_run()) return;
    end_by_own_fault();
}

}  // namespace strata::train
