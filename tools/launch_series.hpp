#pragma once
// tools/launch_series.hpp - LaunchSeries: a program on hosts, started again when a rank or a host fails.

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "launch_elastic.hpp"
#include "launch_job.hpp"

namespace strata::tools {

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
    [[nodiscard]] bool rests(const std::string& name) const;
    void let_rest(const std::string& name);

    SeriesPlan plan_;
    std::vector<std::string> left_;  ///< hosts that had a fault, and are not gone on with
    /// Hosts that answered and could not be started on, and until when they are gone on without.
    std::map<std::string, std::chrono::steady_clock::time_point> resting_;
    std::chrono::seconds pause_{0};
    int restarts_ = 0;
    std::string why_;  ///< of the last restart; empty where a host had come back
};

}  // namespace strata::tools
