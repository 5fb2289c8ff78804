#pragma once
// strata/comm/gpu_assignment.hpp - gpu_assignment(): which GPU each rank takes, from what all ranks see.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <strata/core/inline.hpp>

namespace strata::comm {

/// What a rank tells the others before GPUs are taken.
struct RankGpus {
    std::string host;
    std::vector<std::string> ids;  ///< of the GPUs that the rank sees, in its own numbering; unique on the host
    int told = -1;                 ///< the number of the GPU that it must take; -1: any
    std::string none_because{};    ///< what the driver said, where there are no ids

    /// As one text for all_gather_varied, and back. None of the words holds a zero byte.
    [[nodiscard]] std::string text() const;
    [[nodiscard]] static RankGpus from_text(std::string_view text);

    friend bool operator==(const RankGpus&, const RankGpus&) = default;
};

/// For every rank the number of its GPU, in that rank's own numbering; no two ranks of a host have the same GPU.
///
/// Ranks that were told a GPU have it. Then, lowest rank first, each takes the first GPU of its list that nobody on its
/// host has: one after the other where ranks see the same list, the only one where a launcher shows each rank its own.
///
///   ranks    one entry a rank, the same on every rank: then so is the answer
/// Local. Throws no_gpu, with what the rank sees and who has it: for the first rank that sees none; else for the first
/// that was told a GPU that it does not see or that a lower rank was told as well; else for the first that is left
/// over.
[[nodiscard]] std::vector<int> gpu_assignment(std::span<const RankGpus> ranks);

}  // namespace strata::comm

#ifndef STRATA_COMPILED
#include <strata/comm/impl/gpu_assignment.ipp>
#endif
