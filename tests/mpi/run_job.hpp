#pragma once
// tests/mpi/run_job.hpp - a job under mpirun from a test that is one process, and how it ended.

#include <array>
#include <cstdio>
#include <string>

#include <sys/wait.h>

namespace strata_test {

struct Outcome {
    int status = 0;
    std::string text;   ///< standard output and standard error
    bool hung = false;  ///< mpirun ended it because its time was up
};

/// mpirun itself ends a job that hangs, far later than any of them takes; with which status depends on its version.
inline Outcome run_job(const std::string& program, int ranks, const std::string& arguments) {
    const std::string command = STRATA_MPIEXEC " -n " + std::to_string(ranks) +
                                " --oversubscribe --bind-to none --timeout 100 --mca mpi_yield_when_idle 1 " + program +
                                " " + arguments + " 2>&1";
    Outcome outcome;
    std::FILE* const pipe = ::popen(command.c_str(), "r");
    std::array<char, 4096> piece{};
    while (const std::size_t n = std::fread(piece.data(), 1, piece.size(), pipe)) outcome.text.append(piece.data(), n);
    const int status = ::pclose(pipe);
    outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    outcome.hung = outcome.text.find("time limit for job execution has been reached") != std::string::npos;
    return outcome;
}

}  // namespace strata_test
