#pragma once
// strata/health/failure_class.hpp - FailureClass: whose fault a failed call is, by what it says.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <strata/core/inline.hpp>

namespace strata::health {

enum class FailureClass : std::uint8_t {
    other,          ///< nothing about a GPU
    out_of_memory,  ///< too large a batch or model: no fault of a GPU
    program,        ///< a device-side assert, a bad argument, a kernel for another GPU: no fault of a GPU
    device,         ///< this rank's GPU or its driver
    remote,         ///< another rank, or the network on the way to it
};

/// Reads an exception's message, in any case: of CUDA, cuDNN, cuBLAS, NCCL and libtorch, or the driver's name of the error.
///
/// "CUDA out of memory" is out_of_memory wherever it stands; a message of NCCL is of a remote rank unless it says that
/// a call of CUDA failed here, since NCCL's other failures are seen by the ranks that are well.
[[nodiscard]] FailureClass classify_failure(std::string_view message);

/// What one rank has said of itself.
struct RankFailure {
    int rank = 0;
    FailureClass failure = FailureClass::other;
};

/// The ranks that a failure of a job began at, ascending; empty where nothing tells them apart (the network, say).
///
///   reports  of the ranks that failed and could say so, at most one a rank
/// Ranks with a fault of their device come first, then those with any failure that is not remote; where all that failed
/// blame others, it is those that said nothing.
[[nodiscard]] std::vector<int> ranks_to_blame(std::span<const RankFailure> reports, int world);

}  // namespace strata::health

#ifndef STRATA_COMPILED
#include <strata/health/impl/failure_class.ipp>
#endif
