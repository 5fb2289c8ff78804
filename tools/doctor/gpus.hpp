#pragma once
// tools/doctor/gpus.hpp - the GPUs that a program started here would see, and their driver.

#include <optional>
#include <string>
#include <vector>

#include <strata/core/environment.hpp>
#include <strata/health/gpu_reading.hpp>

#include "line.hpp"

namespace strata::tools::doctor {

struct GpuFacts {
    std::vector<health::GpuReading> gpus;  ///< in the order of CUDA's numbers
    std::string note;                      ///< why there is none, or why the order may be another
    std::string driver;                    ///< "535.104.05"; empty: the kernel has none
    bool has_device = false;               ///< /dev/nvidia0 is there
    std::optional<std::string> visible{};  ///< CUDA_VISIBLE_DEVICES
};

/// Of the text of /proc/driver/nvidia/version.
[[nodiscard]] std::string parse_driver(const std::string& version);

/// Wakes the driver up, which may take seconds.
[[nodiscard]] GpuFacts look_at_gpus(const Environment& environment, const std::string& library);

/// A line a GPU, or one that says that there is none: a host without GPUs is fine.
[[nodiscard]] std::vector<Line> judge(const GpuFacts& facts);

}  // namespace strata::tools::doctor
