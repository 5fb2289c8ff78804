#pragma once
// strata/health/fault.hpp - Fault: one thing that is wrong with a GPU or a host.

#include <cstdint>
#include <string>
#include <string_view>

namespace strata::health {

enum class FaultKind : std::uint8_t {
    ecc_error,    ///< uncorrectable memory errors
    row_remap,    ///< a damaged row of memory waits to be replaced, or cannot be
    hw_slowdown,  ///< clocks lowered by the hardware, for another reason than heat
    power_brake,  ///< the power supply told the GPU to slow down
    thermal,      ///< heat
    gpu_lost,     ///< the driver says that the GPU is lost
    no_answer,    ///< a driver or a file server hangs, or says nothing but that it cannot
    cuda_error,   ///< calls of CUDA, cuDNN, cuBLAS or NCCL failed on this GPU
    disk_error,   ///< a disk of the host counts failed requests
    host_memory,  ///< the host, or the cgroup, is about to run out of memory
    disk_space,   ///< a watched folder's disk is nearly full
};

/// As events and metrics have it.
[[nodiscard]] constexpr std::string_view name_of(FaultKind kind) noexcept {
    switch (kind) {
        case FaultKind::ecc_error:
            return "ecc_error";
        case FaultKind::row_remap:
            return "row_remap";
        case FaultKind::hw_slowdown:
            return "hw_slowdown";
        case FaultKind::power_brake:
            return "hw_power_brake_slowdown";
        case FaultKind::thermal:
            return "thermal";
        case FaultKind::gpu_lost:
            return "gpu_lost";
        case FaultKind::no_answer:
            return "no_answer";
        case FaultKind::cuda_error:
            return "cuda_error";
        case FaultKind::disk_error:
            return "disk_error";
        case FaultKind::host_memory:
            return "host_memory";
        case FaultKind::disk_space:
            return "disk_space";
    }
    return "";
}

[[nodiscard]] constexpr bool is_of_host(FaultKind kind) noexcept {
    return kind == FaultKind::disk_error || kind == FaultKind::host_memory || kind == FaultKind::disk_space;
}

/// Whether what was computed before the fault was seen may be wrong, so that a run had better go back than on from it.
[[nodiscard]] constexpr bool makes_state_suspect(FaultKind kind) noexcept {
    return kind == FaultKind::ecc_error || kind == FaultKind::row_remap || kind == FaultKind::gpu_lost;
}

/// Exit statuses of a run that a fault has ended, beside 0, 1 and 2: `strata launch` does not start it again by itself.
inline constexpr int status_of_fault = 69;    ///< `breaker` stop
inline constexpr int status_of_drained = 70;  ///< `breaker` drain: it may go on without the host that has the fault

/// Sentences without a full stop, in the user's words.
struct Fault {
    FaultKind kind{};
    bool critical = true;  ///< false: said once, and nothing opens
    std::string what;
    std::string fix;
    std::string subject{};  ///< which of several: the folder of disk_space
};

}  // namespace strata::health
