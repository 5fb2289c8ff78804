#pragma once
// strata/optim/impl/device_kernels.ipp - the error of a kernel that was not launched.

#include <string>

#include <strata/core/error.hpp>
#include <strata/optim/device_kernels.hpp>

namespace strata::optim::detail {

[[noreturn]] STRATA_INLINE void throw_launch_failed(std::string_view name, std::string_view description) {
    throw Error{
        Errc::device_failed,
        "an update could not be launched on the GPU: " + std::string{description} + " (" + std::string{name} + ")",
        "look for an earlier failure on this GPU, and at nvidia-smi; if the GPU has no kernel image, set "
        "CMAKE_CUDA_ARCHITECTURES to this GPU's when compiling"};
}

}  // namespace strata::optim::detail
