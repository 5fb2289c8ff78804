#pragma once
// strata/health/circuit_breaker.hpp - CircuitBreaker: from readings to faults, and from faults to whether a run may go on.

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <strata/core/error.hpp>
#include <strata/core/inline.hpp>
#include <strata/health/fault.hpp>
#include <strata/health/gpu_reading.hpp>
#include <strata/health/host_reading.hpp>
#include <strata/options/health_options.hpp>

namespace strata::health {

enum class BreakerState : std::uint8_t {
    closed,     ///< all is well
    open,       ///< a fault stands
    half_open,  ///< the fault has been away for `recovery_seconds`; healthy readings are counted
};

[[nodiscard]] constexpr std::string_view name_of(BreakerState state) noexcept {
    return state == BreakerState::closed ? "closed" : state == BreakerState::open ? "open" : "half_open";
}

/// One rank's, a pure function of the readings, failures and times that it is given. For one thread.
///
/// Counters are compared with the first reading that has them, each with itself: what a card or a disk counted before the run is none
/// of its faults, and a counter that begins anew (a driver that was loaded again) is followed down. An opening takes the counts of its
/// moment as the new beginning, so that a breaker can close again and what comes then is seen as well.
/// With `breaker` stop or drain it stays open: the job is ending.
class CircuitBreaker {
public:
    using Time = std::chrono::steady_clock::time_point;

    struct Status {
        BreakerState state = BreakerState::closed;
        int failure_count = 0;  ///< critical faults of the run
        std::optional<Time> last_failure_time;
        std::string last_failure_reason;
        std::optional<Time> opened_at;
    };

    explicit CircuitBreaker(const HealthOptions& options = {}) : options_{options} {}

    /// What is new: a fault that stands is returned once, and again after a reading without it.
    ///
    ///   gpu  nullptr where there is none to watch: its faults stay as they were
    std::vector<Fault> look(const GpuReading* gpu, const HostReading& host, Time now);

    /// A call failed, or a rank told of it: only what is this rank's GPU's own counts (health/failure_class.hpp). At most one fault.
    std::vector<Fault> failed(std::string_view message, Time now);

    [[nodiscard]] const Status& status() const noexcept { return status_; }
    [[nodiscard]] bool is_open() const noexcept { return status_.state == BreakerState::open; }

    /// Whether the run has to end, by the policy.
    [[nodiscard]] bool ends_run() const noexcept { return is_open() && options_.breaker != BreakerPolicy::warn; }

    /// What ends it, once a critical fault was found: Errc::gpu_fault or Errc::host_fault.
    ///
    ///   where  "rank 3/8 on node2, GPU 1 (NVIDIA H100)"
    [[nodiscard]] static Error error_of(const Fault& fault, std::string_view where);

private:
    /// A counter since its beginning.
    class Growth {
    public:
        std::uint64_t since(std::optional<std::uint64_t> count);
        void begin_anew() noexcept { first_ = last_; }

    private:
        std::optional<std::uint64_t> first_;
        std::optional<std::uint64_t> last_;
    };

    void find_in(const GpuReading& gpu, std::vector<Fault>& found);
    void find_memory_faults(const GpuReading& gpu, std::vector<Fault>& found);
    void find_in(const HostReading& host, Time now, std::vector<Fault>& found);
    void find_disk_faults(const HostReading& host, Time now, std::vector<Fault>& found);
    void open(const Fault& fault, Time now);
    void begin_anew();

    HealthOptions options_;
    Status status_;
    Growth ecc_volatile_;
    Growth ecc_aggregate_;
    std::map<std::string, Growth, std::less<>> disks_;
    std::uint64_t disk_failures_ = 0;                               // of all disks, by the last look
    std::deque<std::pair<Time, std::uint64_t>> new_disk_failures_;  // of looks not long ago that found some
    std::optional<bool> remap_had_failed_;
    std::optional<bool> remap_was_pending_;
    int near_shutdown_ = 0;  // readings in a row
    int slowed_ = 0;
    int braked_ = 0;
    int cuda_failures_ = 0;
    int healthy_ = 0;
    Time last_bad_{};
    using Standing = std::tuple<FaultKind, bool, std::string>;  // kind, critical, subject
    std::set<Standing> standing_;                               // said, and still there
};

}  // namespace strata::health

#ifndef STRATA_COMPILED
#include <strata/health/impl/circuit_breaker.ipp>
#endif
