#pragma once
// strata/options/health_options.hpp - HealthOptions: how often GPU and host are looked at, what a fault does to a run, and which ranks are slow.

#include <array>
#include <cstdint>

#include <strata/core/option_description.hpp>
#include <strata/core/ranges.hpp>

namespace strata::health {

/// What a run does when a circuit breaker opens.
enum class BreakerPolicy : std::uint8_t {
    stop,   ///< the last good state is saved and the job ends
    warn,   ///< one line, and the run goes on; the breaker closes again when the fault is gone
    drain,  ///< the step is finished, the state saved, and this host is left
};

/// Each once, by the name that configuration files have.
inline constexpr std::array<NamedValue<BreakerPolicy>, 3> breaker_policy_names{{
    {"stop", BreakerPolicy::stop},
    {"warn", BreakerPolicy::warn},
    {"drain", BreakerPolicy::drain},
}};

/// Names and thresholds of SimpleTuner's GPU circuit breaker where it has them: poll_interval_seconds, ecc_error_threshold,
/// cuda_failure_threshold; success_threshold and recovery_seconds are of its breaker for services.
struct HealthOptions {
    BreakerPolicy breaker = BreakerPolicy::stop;
    double poll_interval_seconds = 5.0;
    std::int64_t ecc_error_threshold = 10;   ///< uncorrectable errors since the run began
    int cuda_failure_threshold = 1;          ///< errors of CUDA, cuDNN, cuBLAS or NCCL that are this GPU's own
    double shutdown_margin_celsius = 5.0;    ///< nearer to the temperature at which the GPU turns itself off is a fault
    std::int64_t disk_error_threshold = 10;  ///< failed requests of the host's disks within ten minutes
    int throttle_polls = 2;            ///< readings in a row that show a slowdown of the hardware, or a shutdown near
    int success_threshold = 2;         ///< healthy readings in half-open that close the breaker
    double recovery_seconds = 60.0;    ///< from open to half-open
    double host_memory_percent = 2.0;  ///< less than that of the host's (or cgroup's) memory available is a warning
    double disk_percent = 2.0;         ///< less than that of a watched disk free is a warning
    double straggler_factor = 1.3;     ///< a rank that works so many times as long as the others is named; 1: none is
    int straggler_steps = 50;          ///< that it has to do so for

    static void describe(auto& option) {
        using T = HealthOptions;
        constexpr Range percent{0.0, 100.0};
        option("breaker", &T::breaker, breaker_policy_names,
               {.help = "What a fault of GPU or host does: save and end the job, say it, or finish the step and leave "
                        "the host"});
        option("poll_interval_seconds", &T::poll_interval_seconds, {0.1, 3600.0},
               {.help = "Time between two looks at GPU and host", .unit = "seconds"});
        option("ecc_error_threshold", &T::ecc_error_threshold, ranges::positive,
               "Uncorrectable memory errors of the GPU since the run began that are a fault");
        option("cuda_failure_threshold", &T::cuda_failure_threshold, {1, 1e6},
               "Errors of CUDA, cuDNN, cuBLAS or NCCL of this GPU that are a fault; being out of memory is none");
        option("shutdown_margin_celsius", &T::shutdown_margin_celsius, {0.0, 50.0},
               {.help = "A GPU nearer than this to the temperature at which it turns itself off is a fault",
                .unit = "degrees"});
        option("throttle_polls", &T::throttle_polls, {1, 1e6},
               "Looks in a row that find the GPU's clocks lowered by its hardware, or the GPU near its shutdown, until "
               "that is a fault");
        option("disk_error_threshold", &T::disk_error_threshold, ranges::positive,
               "Failed requests of the host's disks within ten minutes that are a fault; fewer are warned of");
        option("success_threshold", &T::success_threshold, {1, 1e6},
               "Healthy looks after which a breaker that is half open closes");
        option("recovery_seconds", &T::recovery_seconds, {0.0, 86400.0},
               {.help = "Time after a fault until an open breaker is tried again", .unit = "seconds"});
        option("host_memory_percent", &T::host_memory_percent, percent,
               "Less than this part of the memory that the host or its cgroup has is warned of");
        option("disk_percent", &T::disk_percent, percent, "Less than this part of a watched disk free is warned of");
        option("straggler_factor", &T::straggler_factor, {1.0, 1000.0},
               {.help = "A rank whose own work in a step takes so many times that of the others is named",
                .special = "1 compares nothing"});
        option("straggler_steps", &T::straggler_steps, {1, 1e6}, "Steps over which ranks are compared");
    }
};

}  // namespace strata::health
