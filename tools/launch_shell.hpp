#pragma once
// tools/launch_shell.hpp - `strata launch-shell`: what mpirun starts in place of ssh. People do not type it.

#include <chrono>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace strata::tools {

/// The remote shell with its options, as words: "ssh -x".
inline constexpr const char* remote_shell_variable = "STRATA_LAUNCH_REMOTE_SHELL";

/// The launcher's socket: `strata launch-shell` says there which host a line failed on, while ranks are being started.
inline constexpr const char* launcher_socket_variable = "STRATA_LAUNCH_SOCKET";

/// Runs a line on another host: by the node that was started there, where shell_socket_variable says so, else by the remote
/// shell, which is handed the launch's key through its input: neither a command line nor a log shows it.
///
///   words    the host, and the line
///   returns  the line's status
int launch_shell_command(std::span<const std::string> words);

/// The words of a remote shell. Throws Errc::bad_argument where there are none.
[[nodiscard]] std::vector<std::string> words_of_shell(const std::string& text);

/// Asks hosts whether the remote shell runs a command there, all at once and without waiting.
class HostProbe {
public:
    HostProbe(const std::vector<std::string>& hosts, const std::string& shell, int seconds);
    ~HostProbe();
    HostProbe(const HostProbe&) = delete;
    HostProbe& operator=(const HostProbe&) = delete;

    /// False when all have answered, or have not in time.
    [[nodiscard]] bool goes_on();
    [[nodiscard]] const std::vector<std::string>& answered() const { return answered_; }

private:
    std::vector<std::pair<std::string, pid_t>> asked_;
    std::vector<std::string> answered_;
    std::chrono::steady_clock::time_point until_;
};

/// Of `hosts` those that answered within so many seconds, or until a stop signal came that this process holds.
[[nodiscard]] std::vector<std::string> hosts_that_answer(const std::vector<std::string>& hosts,
                                                         const std::string& shell, int seconds);

}  // namespace strata::tools
