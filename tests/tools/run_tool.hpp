#pragma once
// tests/tools/run_tool.hpp - the command `strata` in a process of its own, and how it ended.

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace strata_test {

struct Outcome {
    int status = -1;  ///< exit status, or 128 + signal
    std::string out, err;
};

inline std::string text_of(const std::filesystem::path& file) {
    std::ifstream in{file, std::ios::binary};
    return {std::istreambuf_iterator<char>{in}, {}};
}

/// A program that runs; it does not outlive the test.
class Running {
public:
    ///   words   the program's path and its arguments
    ///   folder  takes what it prints
    Running(const std::vector<std::string>& words, std::filesystem::path folder) : folder_{std::move(folder)} {
        const pid_t test = ::getpid();
        process_ = ::fork();
        if (process_ != 0) return;
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != test) ::_exit(127);
        const auto redirect = [this](const char* name, int to) {
            ::dup2(::open((folder_ / name).c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644), to);
        };
        redirect("out.txt", STDOUT_FILENO);
        redirect("err.txt", STDERR_FILENO);
        std::vector<char*> argv;
        for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
        argv.push_back(nullptr);
        ::execv(argv[0], argv.data());
        ::_exit(127);
    }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;
    ~Running() {
        if (process_ <= 0) return;
        ::kill(process_, SIGKILL);
        ::waitpid(process_, nullptr, 0);
    }

    [[nodiscard]] pid_t pid() const { return process_; }
    void signal(int number) const { ::kill(process_, number); }
    Outcome wait() {
        int status = 0;
        while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) continue;
        process_ = -1;
        return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), text_of(folder_ / "out.txt"),
                text_of(folder_ / "err.txt")};
    }
    [[nodiscard]] bool has_ended() const {
        siginfo_t info{};
        return ::waitid(P_PID, static_cast<id_t>(process_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
               info.si_pid != 0;
    }

private:
    std::filesystem::path folder_;
    pid_t process_ = -1;
};

}  // namespace strata_test
