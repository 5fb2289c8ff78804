#pragma once
// strata/health/visible_gpu.hpp - which of a host's GPUs a process's GPU number n is, by CUDA_VISIBLE_DEVICES.

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <strata/core/inline.hpp>

namespace strata::health {

/// A GPU of the host as the driver lists it, in the order of PCI addresses.
struct ListedGpu {
    std::string name;
    std::string uuid;  ///< "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6"
};

/// Which GPU it is; or none, and why.
struct VisibleGpu {
    std::optional<unsigned> index;  ///< into the list
    std::string note;  ///< a sentence without a full stop: why there is none, or why the index may be wrong
};

/// CUDA's rules: a list of indices, of UUIDs or their beginnings, or of MIG-...; what stands behind an entry that names no GPU is not
/// seen; not set means all. Indices follow CUDA_DEVICE_ORDER: with its default, fastest first, a host with GPUs of several names is
/// told to set PCI_BUS_ID, since only then CUDA's numbers and the driver's are the same.
///
///   visible  the value of CUDA_VISIBLE_DEVICES, if it is set
///   order    the value of CUDA_DEVICE_ORDER, if it is set
///   device   CUDA's number of the GPU in this process
[[nodiscard]] VisibleGpu find_visible_gpu(std::span<const ListedGpu> gpus, const std::optional<std::string>& visible,
                                          const std::optional<std::string>& order, unsigned device);

}  // namespace strata::health

#ifndef STRATA_COMPILED
#include <strata/health/impl/visible_gpu.ipp>
#endif
