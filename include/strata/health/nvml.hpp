#pragma once
// strata/health/nvml.hpp - GpuMonitor: looks at one NVIDIA GPU through the driver's own library, opened when a program runs.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <strata/core/environment.hpp>
#include <strata/core/inline.hpp>
#include <strata/health/gpu_reading.hpp>
#include <strata/health/visible_gpu.hpp>

namespace strata::health {

class Nvml;  // the opened library

/// Reads one GPU of this host. Local; for one thread at a time.
class GpuMonitor {
public:
    /// Some 15 calls into the driver. Throws nothing that is not std::bad_alloc: what cannot be read stays empty.
    [[nodiscard]] GpuReading read() const;

    [[nodiscard]] unsigned index() const noexcept { return index_; }
    [[nodiscard]] const std::string& name() const noexcept { return name_; }
    [[nodiscard]] const std::string& uuid() const noexcept { return uuid_; }

private:
    friend struct OpenedGpu open_gpu(unsigned, const Environment&, const std::string&);

    std::shared_ptr<const Nvml> nvml_;  // nvmlShutdown() with the last of them
    void* device_ = nullptr;
    unsigned index_ = 0;
    std::string name_;
    std::string uuid_;
};

/// A monitor; or none, and a sentence without a full stop that says why, to be said once.
struct OpenedGpu {
    std::optional<GpuMonitor> monitor;
    std::string note;  ///< beside a monitor: why it may be watching another GPU than the one that computes
};

/// The GPU that this process knows by the number `device`, by CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER of `environment`.
///
///   library  what dlopen() is given; the driver's own is on its path
/// A host without driver, library or GPU is no error. Takes tens of milliseconds the first time: the driver wakes up.
[[nodiscard]] OpenedGpu open_gpu(unsigned device = 0, const Environment& environment = process_environment,
                                 const std::string& library = "libnvidia-ml.so.1");

}  // namespace strata::health

#ifndef STRATA_COMPILED
#include <strata/health/impl/nvml.ipp>
#endif
