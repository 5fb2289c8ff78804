#pragma once
// strata/health/failure_class.hpp - FailureClass: whose fault a failed call is, by what it says.

#include <cstdint>
#include <optional>
#include <string_view>

#include <strata/core/inline.hpp>

namespace strata::health {

enum class FailureClass : std::uint8_t {
    other,          ///< nothing about a GPU
    out_of_memory,  ///< too large a batch or model: no fault of a GPU
    program,  ///< a device-side assert, a bad argument, tensors on two devices, a build for another GPU: no fault of a GPU
    device,  ///< this rank's GPU or its driver
    remote,  ///< another rank, or the network on the way to it
};

/// Reads an exception's message, in any case: of CUDA, cuDNN, cuBLAS, NCCL and libtorch, or the driver's name of the error.
///
/// "CUDA out of memory" is out_of_memory wherever it stands; a message of NCCL is of a remote rank unless it says that
/// a call of CUDA failed here, since NCCL's other failures are seen by the ranks that are well. A GPU is blamed for the words
/// that a failed call leaves ("CUDA error: ...") and not for its name, which paths and other complaints have as well.
[[nodiscard]] FailureClass classify_failure(std::string_view message);

/// The rank that a message names first: 1 of "step 7 on rank 1 failed: ...". What all ranks throw together is of that one.
[[nodiscard]] std::optional<int> rank_named_in(std::string_view message);

}  // namespace strata::health

#ifndef STRATA_COMPILED
#include <strata/health/impl/failure_class.ipp>
#endif
