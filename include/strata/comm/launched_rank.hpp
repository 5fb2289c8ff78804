#pragma once
// strata/comm/launched_rank.hpp - launched_rank(), launched_rank_text(), launched_local_rank(): this process's rank before MPI starts.

#include <array>
#include <cstdlib>

namespace strata::comm {

/// As the launcher says it in the environment (Open MPI, PMIx, the MPICH family, Slurm); nullptr without a launcher. Local.
[[nodiscard]] inline const char* launched_rank_text() noexcept {
    for (const char* const name : std::array{"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"})
        if (const char* const rank = std::getenv(name)) return rank;
    return nullptr;
}

/// 0 without a launcher. For what a program prints once and for which it starts no ranks. Local.
[[nodiscard]] inline int launched_rank() noexcept {
    const char* const rank = launched_rank_text();
    return rank == nullptr ? 0 : std::atoi(rank);
}

/// Among the ranks of its host; 0 without a launcher. Local.
[[nodiscard]] inline int launched_local_rank() noexcept {
    for (const char* const name : std::array{"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"})
        if (const char* const rank = std::getenv(name)) return std::atoi(rank);
    return 0;
}

/// What `strata launch` tells a program that it has started again after a failure: the how manieth time, and why, in a line.
inline constexpr const char* restarts_variable = "STRATA_RESTARTS";
inline constexpr const char* restarted_variable = "STRATA_RESTARTED_AFTER";

}  // namespace strata::comm
