#pragma once
// tools/launch_series.hpp - LaunchSeries: a program on hosts, started again when a rank or a host fails.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "launch_job.hpp"

namespace strata::tools {

/// Which hosts a launch may go on with.
struct Elastic {
    int least = 0;  ///< hosts; 0: always all of them
    int most = 0;
    bool keeps_batch = false;  ///< gradient_accumulation_steps grows as ranks get fewer
};

struct SeriesPlan {
    LaunchPlan launch;  ///< of all hosts
    int restarts = 0;
    Elastic elastic;
    std::string remote_shell;
    int wait_seconds = 600;  ///< for nodes that were started by themselves
    std::string first_node;  ///< host:port, where there are such
};

class LaunchSeries {
public:
    explicit LaunchSeries(SeriesPlan plan) : plan_{std::move(plan)} {}
    /// Returns the exit status. Throws Error: cannot_launch, node_missing, not_elastic.
    int run();

private:
    [[nodiscard]] bool await_nodes();
    [[nodiscard]] std::vector<LaunchHost> hosts_that_are_there(bool is_restart) const;
    [[nodiscard]] LaunchPlan plan_on(const std::vector<LaunchHost>& hosts, bool is_restart) const;
    [[nodiscard]] bool leave(const std::vector<std::string>& names);

    SeriesPlan plan_;
    std::vector<std::string> left_;  ///< hosts that had a fault, and are not gone on with
    int restarts_ = 0;
    std::string why_;  ///< of the last restart; empty where a host had come back
};

/// The program's words, with `--gradient_accumulation_steps` times `from` over `to`, so that a step of `to` ranks has as many samples as
/// one of `from`. False where that is no whole number. Throws Errc::bad_argument where the words do not have it.
[[nodiscard]] bool keep_batch(std::vector<std::string>& words, int from, int to);

/// As many of the hosts, from the first on, as a launch may go on with. Throws Errc::not_elastic where that is none.
[[nodiscard]] std::vector<LaunchHost> elastic_hosts(const std::vector<LaunchHost>& there, const SeriesPlan& plan);

}  // namespace strata::tools
