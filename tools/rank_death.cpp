#include "rank_death.hpp"

#include <csignal>
#include <cstring>
#include <utility>

#include <sys/wait.h>

namespace strata::tools {

namespace {

/// What happened, behind the signal's name, and what to do about it.
using Meaning = std::pair<std::string, std::string>;

const char* const less_memory =
    "give the job more memory, or let it need less: fewer ranks on this host, a smaller train_batch_size, state on disk "
    "(docs/offload.md)";

Meaning of_sigkill(const RankDeath& death) {
    switch (death.memory) {
        case OutOfMemory::Verdict::killed:
            return {": memory ran out, and the kernel's out-of-memory killer chose it", less_memory};
        case OutOfMemory::Verdict::likely:
            return {": the kernel ended a process of this machine because memory ran out, most likely this one",
                    less_memory};
        case OutOfMemory::Verdict::not_seen:
            return {
                "; the kernel counted no kill for memory meanwhile, so a person, a batch system or a container's limit sent it",
                "look for who did: the batch system's log of this job, and `dmesg` on that host"};
        case OutOfMemory::Verdict::unknown:
            break;
    }
    return {"; that is how the kernel's out-of-memory killer ends a process, and whether it did cannot be read here",
            "look for the pid in `dmesg | grep -i 'killed process'` on that host; where it stands, " +
                std::string{less_memory}};
}

Meaning of_crash(const RankDeath& death, int signal) {
    const std::string what =
        signal == SIGBUS ? ": a mapped file or shared memory (/dev/shm) ended before it was read, or its disk is full"
        : signal == SIGABRT ? ": it gave up by itself, and the lines before this one may say why"
        : signal == SIGILL  ? ": this processor lacks an instruction, or the program crashed"
                            : ": it crashed";
    if (WCOREDUMP(death.status))
        return {what + " and left a core dump",
                "open the core dump: gdb " + death.program + " core (or coredumpctl gdb)"};
    return {what, "run it again after `ulimit -c unlimited`, and open the core dump: gdb " + death.program +
                      " core (or coredumpctl gdb)"};
}

Meaning meaning_of(const RankDeath& death, int signal) {
    switch (signal) {
        case SIGKILL:
            return of_sigkill(death);
        case SIGSEGV:
        case SIGBUS:
        case SIGILL:
        case SIGFPE:
        case SIGABRT:
        case SIGTRAP:
        case SIGSYS:
            return of_crash(death, signal);
        case SIGXCPU:
            return {": it used up its processor time", "raise the limit (ulimit -t), or the batch system's"};
        case SIGXFSZ:
            return {": a file grew beyond the limit for files", "raise the limit (ulimit -f)"};
        default:
            return {", which this rank alone was sent", "send SIGTERM to strata launch to stop all ranks"};
    }
}

}  // namespace

std::string name_of_signal(int signal) {
    if (const char* const name = ::sigabbrev_np(signal)) return "SIG" + std::string{name};
    return "signal " + std::to_string(signal);
}

Error error_of(const RankDeath& death) {
    const std::string who = "rank " + std::to_string(death.rank) + "/" + std::to_string(death.world) + " on host " +
                            death.host + " (pid " + std::to_string(death.process) + ")";
    if (WIFEXITED(death.status))
        return Error{Errc::rank_died,
                     who + " ended with status " + std::to_string(WEXITSTATUS(death.status)) +
                         " and did not tell strata launch why",
                     "see what it printed before this line; --log-dir FOLDER keeps what each rank prints in a file"};
    const int signal = WTERMSIG(death.status);
    const auto [what, fix] = meaning_of(death, signal);
    return Error{Errc::rank_died, who + " was ended by " + name_of_signal(signal) + what, fix};
}

}  // namespace strata::tools
