// How a job of LaunchJob ended: its status, the line that says why, and the hosts that it cannot go on with.

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstring>

#include <sys/wait.h>

#include <strata/core/error.hpp>

#include "exit_status.hpp"
#include "launch_job.hpp"
#include "rank_death.hpp"

namespace strata::tools {

/// How the job ended, and the line that says so.
int LaunchJob::verdict() {
    if (ended_by_ != 0) return 128 + ended_by_;
    if (start_failure_ != 0) {
        const bool format = start_failure_ == ENOEXEC;
        throw Error{Errc::cannot_launch,
                    "the program '" + plan_.program_file + "' cannot be run: " + std::strerror(start_failure_),
                    format ? "build it for this machine; a script needs #! and its interpreter on its first line"
                           : "see whether the file, or the interpreter on its first line, can be run by itself"};
    }
    const Rank* first = nullptr;
    for (const Rank& rank : ranks_)
        if (rank.failed() && (first == nullptr || is_earlier(rank, *first))) first = &rank;
    if (first != nullptr) return verdict_on(*first);

    if (const std::vector<std::string> lost = lost_hosts(); !lost.empty() && started_) {
        std::string numbers;
        std::string name = lost.front();
        std::size_t count = 0;
        for (const Rank& rank : ranks_) {
            if (rank.known_as != lost.front() || rank.number < 0) continue;
            if (name == lost.front() && rank.host != name) name += " (" + rank.host + ")";
            numbers += (count++ == 0 ? "" : ", ") + std::to_string(rank.number);
        }
        tell(Error{Errc::host_lost,
                   "the connection to host " + name + " broke while " + (count == 1 ? "rank " : "ranks ") + numbers +
                       " of " + std::to_string(plan_.ranks) + " ran there, and the others were ended",
                   "see whether that host is up and its network works; the next start goes on from the newest "
                   "checkpoint, and --max-restarts or --elastic do so by themselves"});
        return host_lost_status;
    }

    if (!mpirun_->unsaid().empty()) mpirun_->say();
    if (mpirun_left_ranks_) {
        const int status = mpirun_->status();
        const std::string how = status > 128 ? "was ended by " + name_of_signal(status - 128)
                                             : "ended with status " + std::to_string(status);
        tell(Error{Errc::rank_died, "mpirun " + how + " while ranks were running, and they were ended with it",
                   "look for who did that: `dmesg`, the batch system's log of this job"});
        return std::max(1, status);
    }
    for (const Rank& rank : ranks_) {
        if (!started_ || rank.ended) continue;
        tell(Error{Errc::rank_died, name_of(rank) + " is gone, because the process that watched over it was killed",
                   "look for who did that: `dmesg` on that host, the batch system's log of this job"});
        return 128 + SIGKILL;
    }
    if (foreign_)
        throw Error{Errc::cannot_launch, "the mpirun in PATH does not number its processes as Open MPI does",
                    "let PATH find the mpirun of Open MPI 4 or 5 first, the MPI that strata is built with"};
    if (!started_ && asked_ > 0) return 0;
    if (!started_ && !outcome_.lost.empty())
        throw Error{Errc::host_lost,
                    "the connection to host " + outcome_.lost.front() + " broke before all ranks were there",
                    "see whether that host is up and its network works, and start again"};
    if (!started_)
        throw Error{Errc::cannot_launch,
                    "mpirun ended with status " + std::to_string(mpirun_->status()) + " before all ranks were there",
                    "see what it says above, and try `mpirun -n " + std::to_string(plan_.ranks) +
                        " hostname`; strata launch wants Open MPI 4 or 5"};
    if (mpirun_->status() != 0) outcome_.why = "mpirun ended with status " + std::to_string(mpirun_->status());
    return mpirun_->status();
}

bool LaunchJob::is_earlier(const Rank& a, const Rank& b) const {
    return a.host == b.host ? a.ended->when < b.ended->when : a.order < b.order;
}

/// Hosts whose connection to a rank broke, rather than being closed; or to the host itself.
std::vector<std::string> LaunchJob::lost_hosts() const {
    std::vector<std::string> names = outcome_.lost;
    for (const Rank& rank : ranks_)
        if (!rank.is_local && rank.told_program && !rank.ended && rank.wire.failure() != 0 &&
            std::find(names.begin(), names.end(), rank.known_as) == names.end())
            names.push_back(rank.known_as);
    return names;
}

/// Hosts that a rank has said are not to be gone on with.
std::vector<std::string> LaunchJob::drained_hosts() const {
    std::vector<std::string> names;
    for (const Rank& rank : ranks_)
        if (rank.is_on_faulty_host && std::find(names.begin(), names.end(), rank.known_as) == names.end())
            names.push_back(rank.known_as);
    return names;
}

/// The line of an end that no rank has said itself.
void LaunchJob::tell(const Error& error) {
    outcome_.why = error.what();
    std::fprintf(stderr, "%s\n", error.what());
}

int LaunchJob::verdict_on(const Rank& rank) {
    const int status = rank.ended->status;
    if (WIFEXITED(status) && rank.ended->reason_is_told) {
        outcome_.why = name_of(rank) + " ended with status " + std::to_string(WEXITSTATUS(status));
        return WEXITSTATUS(status);
    }
    const RankDeath death{rank.number, plan_.ranks,        rank.host,         rank.process,
                          status,      rank.ended->memory, plan_.program_file};
    tell(error_of(death));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace strata::tools
