#pragma once
// tools/mpirun_process.hpp - MpirunProcess: mpirun as a child, and what it has to say.

#include <chrono>
#include <string>
#include <vector>

#include <sys/types.h>

#include "launch_wire.hpp"

namespace strata::tools {

/// mpirun in a session of its own, which the terminal's Ctrl-C does not reach. It ends with this process.
class MpirunProcess {
public:
    using Clock = std::chrono::steady_clock;

    explicit MpirunProcess(const std::vector<std::string>& words);

    /// Readable when it has said something; negative when it says no more.
    [[nodiscard]] int output() const noexcept { return output_.number(); }
    /// Keeps what it said. Never waits.
    void read_output();
    /// What it said and nobody has been shown.
    [[nodiscard]] const std::string& unsaid() const noexcept { return unsaid_; }
    [[nodiscard]] Clock::time_point first_unsaid() const noexcept { return first_unsaid_; }
    /// Shows it on standard error.
    void say();

    /// Notices its end, without waiting for it.
    void poll();
    [[nodiscard]] bool has_ended() const noexcept { return has_ended_; }
    /// The exit status, or 128 + signal.
    [[nodiscard]] int status() const noexcept { return status_; }
    /// To it and what is in its group.
    void signal(int number) const;

private:
    pid_t process_ = -1;
    File output_;
    std::string unsaid_;
    Clock::time_point first_unsaid_{};
    bool has_ended_ = false;
    int status_ = 0;
};

}  // namespace strata::tools
