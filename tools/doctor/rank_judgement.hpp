#pragma once
// tools/doctor/rank_judgement.hpp - what the reports of all ranks say about hosts, network, clocks and the folder that they share.

#include <string>
#include <vector>

#include "line.hpp"
#include "rank_report.hpp"

namespace strata::tools::doctor {

/// How the ranks were started and ended.
struct RanksFacts {
    std::vector<RankReport> reports;        ///< one for each rank that was asked for
    std::vector<std::string> silent_hosts;  ///< that the remote shell did not reach; no rank was to be there
    std::string shared_folder;              ///< empty: none was looked at
    std::string failure;                    ///< first line of what the launcher said; empty: nothing
    bool is_in_time = true;
};

[[nodiscard]] std::vector<Line> judge(const RanksFacts& facts);

}  // namespace strata::tools::doctor
