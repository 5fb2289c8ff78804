#pragma once
// tools/doctor/host_checks.hpp - check_host(): all that is looked at on one host, each thing for so long and no longer.

#include <vector>

#include "line.hpp"
#include "place.hpp"

namespace strata::tools::doctor {

/// Processor, BLAS, GPUs, memory, limits, io_uring, and these folders. Takes seconds. A program that calls it has the word
/// `doctor-blas` (blas.hpp), and ends by _Exit().
[[nodiscard]] std::vector<Line> check_host(const std::vector<FolderPlace>& folders);

/// The folder, or the nearest above it that is there; empty where its file server does not answer.
[[nodiscard]] std::filesystem::path nearest_folder(const std::filesystem::path& folder);

}  // namespace strata::tools::doctor
