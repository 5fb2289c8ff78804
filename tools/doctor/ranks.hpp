#pragma once
// tools/doctor/ranks.hpp - start_ranks(): `strata launch` of the program strata-doctor, and what its ranks have said.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "../launch_hosts.hpp"
#include "place.hpp"
#include "rank_judgement.hpp"

namespace strata::tools::doctor {

/// As `strata launch` has them.
struct RanksRequest {
    std::optional<std::int64_t> ranks{};
    std::optional<std::vector<LaunchHost>> hosts{};  ///< with as many slots as there are ranks; none: this one
    std::string remote_shell{};
    std::filesystem::path shared{};      ///< the folder that all are to share; empty: none
    std::vector<FolderPlace> folders{};  ///< looked at on every other host
};

/// Hosts that the remote shell does not reach within 20 s are left out and named; the others have five minutes together. Throws
/// Errc::cannot_launch where there is no strata-doctor.
[[nodiscard]] RanksFacts start_ranks(const RanksRequest& request);

/// Where no ranks were asked for: the mpirun that would start them.
[[nodiscard]] Line look_at_mpirun();

}  // namespace strata::tools::doctor
