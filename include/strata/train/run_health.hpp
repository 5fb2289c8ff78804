#pragma once
// strata/train/run_health.hpp - RunHealth: a session's monitor of GPU and host, and how a run ends by it.

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <strata/comm/any_comm.hpp>
#include <strata/core/error.hpp>
#include <strata/core/inline.hpp>
#include <strata/health/health_monitor.hpp>
#include <strata/options/health_options.hpp>

namespace strata::train {

/// What ends a program whose run a breaker has ended. Errc::gpu_fault or host_fault.
class EndedByFault : public Error {
public:
    EndedByFault(const Error& fault, int status) : Error{fault}, status_{status} {}
    [[nodiscard]] int status() const noexcept { return status_; }

private:
    int status_;
};

/// A breaker that opens is one more reason to stop: the run asks `asks_to_stop()` where it asks for a stop signal, so that its ranks learn of it in
/// the exchange that ends their step, and save. heed() then says why.
class RunHealth {
public:
    /// Begins to watch, by a thread of its own; once: a second call changes nothing.
    ///
    ///   sources  whose `on_fault` is set here
    ///   where    "rank 3/8 on node2, GPU 1 (NVIDIA H100)", for messages
    ///   tell     told of each fault, with its line, from the monitor's thread
    /// Local.
    void watch(const health::HealthOptions& options, health::HealthSources sources, std::string where,
               std::function<void(const health::Fault&, const std::string& line)> tell);
    [[nodiscard]] bool watches() const noexcept { return monitor_ != nullptr; }
    /// Watches no more: nobody is told from now on. After the look that is under way, unless that hangs.
    void end() {
        if (monitor_ != nullptr) monitor_->stop();
    }

    /// Whether this rank's breaker ends the run. Local, from any thread.
    [[nodiscard]] bool asks_to_stop() const;

    /// Why what this rank has computed lately may be wrong, with where; empty: nothing says that it is. A fault of memory may have come into
    /// weights before a look finds it. Local, from any thread.
    [[nodiscard]] std::string suspicion() const;

    /// After what was asked has stopped, or has not. Throws EndedByFault on all ranks if a breaker has ended the run on one, naming that.
    /// Collective once there is a watch(), which ranks begin together.
    void heed(comm::AnyComm& comm) const;

    /// A call failed: on this rank, or on the one that the message names, as "step 7 on rank 1 failed: ..." does. Throws EndedByFault, with the
    /// message, if that was a fault of that rank's own GPU and ends the run: never where ranks compute without one. Local, and where the message
    /// names a rank alike on all.
    ///
    ///   thrown  the exception's type, for who is told; empty: not known
    void failed(std::string_view message, int rank, std::string thrown = {});
    /// Of the call that failed() is about, while it tells of a FaultKind::cuda_error.
    [[nodiscard]] const std::string& thrown() const noexcept { return thrown_; }

    /// nullptr before watch().
    [[nodiscard]] const health::HealthMonitor* monitor() const noexcept { return monitor_.get(); }

private:
    /// Tells the launcher which host it is, where that is to be left.
    [[noreturn]] void end_by_own_fault() const;
    [[nodiscard]] int status() const noexcept {
        return options_.breaker == health::BreakerPolicy::drain ? health::status_of_drained : health::status_of_fault;
    }

    health::HealthOptions options_;
    std::string where_;
    std::string thrown_;
    mutable std::atomic<bool> asked_ = false;  // and the answer was yes
    std::unique_ptr<health::HealthMonitor> monitor_;
};

}  // namespace strata::train

#ifndef STRATA_COMPILED
#include <strata/train/impl/run_health.ipp>
#endif
