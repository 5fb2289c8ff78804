#pragma once
// tools/launch_job.hpp - LaunchJob: the ranks of one program, from the first process to the last word.

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>
#include <sys/wait.h>

#include <strata/core/error.hpp>
#include <strata/health/fault.hpp>

#include "launch_hosts.hpp"
#include "launch_nodes.hpp"
#include "launch_output.hpp"
#include "launch_port.hpp"
#include "launch_shell.hpp"
#include "launch_socket.hpp"
#include "launch_wire.hpp"
#include "mpirun_process.hpp"
#include "out_of_memory.hpp"

namespace strata::tools {

/// What is started.
struct LaunchPlan {
    int ranks = 1;
    bool verbose = false;
    std::vector<std::string> program;  ///< its name as it was typed, and its arguments
    std::string program_file;
    std::vector<std::string> start;  ///< the command that starts one watcher a rank; the socket's path comes behind it
    /// The first stop signal ends all ranks at once, as else the second does: of programs that have nothing to save.
    bool ends_when_asked = false;

    std::vector<LaunchHost> hosts;         ///< none: this one alone
    std::string own_host;                  ///< of them the one that this is; empty: none, as far as is known
    std::vector<std::string> environment;  ///< NAME=VALUE, for the program on every host
    std::string threads;                   ///< OMP_NUM_THREADS where it was set; empty: a host's cores over its ranks
    LaunchPort* port = nullptr;            ///< where ranks of other hosts come to
    LaunchNodes* nodes = nullptr;          ///< where each host was started by itself
    LaunchOutput* output = nullptr;        ///< null: ranks of this host print where the launcher does, without a detour
    /// Whether the job is to stop and go on with more ranks, when the hosts of these names are there as well. Empty: never.
    std::function<bool(const std::vector<std::string>& come)> would_grow;
    /// Hosts that it does without, where the remote shell finds out whether they are there.
    std::vector<std::string> absent;
    std::string remote_shell;
};

/// How a job ended.
struct LaunchOutcome {
    int status = 0;
    bool may_restart = false;          ///< a rank or a host failed, and nobody asked for an end
    bool is_to_grow = false;           ///< it stopped because a host has come back
    std::string why;                   ///< in a line, where the status is not 0
    std::vector<std::string> lost;     ///< names of hosts whose connection broke
    std::vector<std::string> drained;  ///< names of hosts that a rank has left because of a fault of theirs
};

/// mpirun starts a watcher (launch_rank.hpp) for every rank. When all of them have come, each is told the program, and
/// from then on it is the watchers that are asked to stop it and that say how it ended: mpirun is only the way there.
///
/// The stop signals must be blocked (held_signals.hpp).
class LaunchJob {
public:
    explicit LaunchJob(LaunchPlan plan);

    /// Throws Error: cannot_launch.
    LaunchOutcome run();
    /// The host on which a rank's start failed first, as the launcher knows it. Empty: none.
    [[nodiscard]] const std::string& host_without_start() const { return host_without_start_; }

private:
    using Clock = MpirunProcess::Clock;

    struct Ended {
        int status = 0;         // of waitpid
        std::int64_t when = 0;  // nanoseconds of the host's clock
        bool told_to = false;   // by this launcher, and so no failure of the rank
        OutOfMemory::Verdict memory = OutOfMemory::Verdict::unknown;
        bool reason_is_told = false;  // by the program, on standard error
    };
    struct Rank {
        Wire wire;
        bool connected = true;
        int number = -1;       // until it has said it
        std::string host;      // as it calls itself
        std::string known_as;  // in LaunchPlan::hosts
        int cores = 1;
        int gpus = 0;
        bool is_local = true;
        bool is_none = false;            // but a node, or somebody who left without a word
        int order = 0;                   // in which ends were told: clocks of hosts differ
        bool is_on_faulty_host = false;  // as its program says
        bool told_program = false;       // and what is said to it from then on reaches a program that runs
        pid_t process = -1;              // until it has said that it does
        std::optional<Ended> ended;
        [[nodiscard]] bool failed() const { return ended && ended->status != 0 && !ended->told_to; }
        [[nodiscard]] bool exited_with(int status) const {
            return failed() && WIFEXITED(ended->status) && WEXITSTATUS(ended->status) == status;
        }
        [[nodiscard]] bool has_fault() const {
            return exited_with(health::status_of_fault) || exited_with(health::status_of_drained);
        }
        [[nodiscard]] bool runs() const { return connected && told_program && !ended; }
    };

    void wait();
    void let_in();
    void look_for_hosts();
    void grow(const std::vector<std::string>& come);
    void name_hosts();
    void warn_of_gpus() const;
    [[nodiscard]] int ranks_beside(const Rank& rank) const;
    [[nodiscard]] std::vector<std::string> environment_of(const Rank& rank) const;
    [[nodiscard]] std::vector<std::string> lost_hosts() const;
    [[nodiscard]] std::vector<std::string> drained_hosts() const;
    [[nodiscard]] bool is_earlier(const Rank& a, const Rank& b) const;
    void take_signals();
    void take_messages(Rank& rank);
    void take(Rank& rank, const Message& message);
    void look_at_time();

    void start_program();
    void ask_to_stop();
    void end_all();
    void leave_together();
    void let_go();
    [[nodiscard]] bool some_run() const;
    [[nodiscard]] bool is_over() const;

    [[nodiscard]] int verdict();
    [[nodiscard]] int verdict_on(const Rank& rank);
    void tell(const Error& error);
    void say(const std::string& line) const;
    [[nodiscard]] std::string name_of(const Rank& rank) const;

    LaunchPlan plan_;
    std::optional<LaunchSocket> socket_;  // until all ranks have come
    File signals_;
    std::optional<MpirunProcess> mpirun_;
    std::vector<Rank> ranks_;  // as they came
    std::optional<LaunchOutput> own_output_;
    LaunchOutput* output_ = nullptr;
    LaunchOutcome outcome_;
    std::optional<HostProbe> probe_;
    Clock::time_point next_probe_ = Clock::now();
    int ends_told_ = 0;
    std::string host_without_start_;

    bool started_ = false;   // the program is, everywhere
    bool ending_ = false;    // all ranks are being ended
    bool leaving_ = false;   // all end by themselves, because of a fault on one
    int asked_ = 0;          // stop signals so far
    int ended_by_ = 0;       // the second one
    int start_failure_ = 0;  // errno of a program that could not be started
    bool foreign_ = false;   // mpirun does not number its processes
    bool mpirun_left_ranks_ = false;
    bool confirmed_ = false;  // a rank has taken the wish to stop
    bool hinted_ = false;
    Clock::time_point asked_at_{};
    std::optional<Clock::time_point> last_wait_;  // when patience with processes that should be ending is over
    int pressure_ = 0;
};

}  // namespace strata::tools
