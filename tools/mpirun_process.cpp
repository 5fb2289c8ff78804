#include "mpirun_process.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <strata/core/error.hpp>

#include "held_signals.hpp"

namespace strata::tools {

MpirunProcess::MpirunProcess(const std::vector<std::string>& words) {
    std::array<int, 2> pipe{};
    if (::pipe2(pipe.data(), O_CLOEXEC) != 0)
        throw Error{Errc::cannot_launch, "no pipe to mpirun can be made: " + std::string{std::strerror(errno)},
                    "raise the limit of open files (ulimit -n)"};
    output_ = File{pipe[0]};
    const File writer{pipe[1]};
    const pid_t launcher = ::getpid();
    process_ = ::fork();
    if (process_ < 0)
        throw Error{Errc::cannot_launch, "no process can be started: " + std::string{std::strerror(errno)},
                    "raise the limit of processes (ulimit -u)"};
    if (process_ > 0) {
        ::fcntl(output_.number(), F_SETFL, O_NONBLOCK);
        return;
    }

    ::setsid();
    // So that it can clear up; the watchers of ranks see the launcher's end themselves.
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != launcher) ::_exit(1);
    ::dup2(::open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
    ::dup2(writer.number(), STDOUT_FILENO);
    ::dup2(writer.number(), STDERR_FILENO);
    for (const int signal : stop_signals) ::signal(signal, SIG_DFL);
    ::signal(SIGPIPE, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    std::vector<char*> argv;
    for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    ::execvp(argv[0], argv.data());
    std::fprintf(stderr, "%s: %s\n", argv[0], std::strerror(errno));
    std::fflush(stderr);
    ::_exit(127);
}

void MpirunProcess::read_output() {
    while (output_.is_open()) {
        std::array<char, 4096> piece{};
        const ssize_t n = ::read(output(), piece.data(), piece.size());
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) return;
        if (n <= 0) {
            output_ = File{};
            return;
        }
        if (unsaid_.empty()) first_unsaid_ = Clock::now();
        unsaid_.append(piece.data(), static_cast<std::size_t>(n));
    }
}

void MpirunProcess::say() {
    std::fwrite(unsaid_.data(), 1, unsaid_.size(), stderr);
    std::fflush(stderr);
    unsaid_.clear();
}

void MpirunProcess::poll() {
    int status = 0;
    if (has_ended_ || ::waitpid(process_, &status, WNOHANG) != process_) return;
    has_ended_ = true;
    status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    read_output();
}

void MpirunProcess::signal(int number) const {
    if (!has_ended_) ::kill(-process_, number);
}

}  // namespace strata::tools
