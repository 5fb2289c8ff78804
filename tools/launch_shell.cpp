#include "launch_shell.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <strata/core/error.hpp>

#include "held_signals.hpp"
#include "launch_handshake.hpp"
#include "launch_nodes.hpp"
#include "launch_rank.hpp"
#include "launch_socket.hpp"

namespace strata::tools {

namespace {

using Kind = Message::Kind;

std::string quoted(const std::string& text) {
    std::string quoted = "'";
    for (const char letter : text) quoted += letter == '\'' ? std::string{"'\\''"} : std::string{letter};
    return quoted + "'";
}

/// Becomes the program; returns where it cannot.
void become(const std::vector<std::string>& words) {
    std::vector<char*> argv;
    for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    ::execvp(argv[0], argv.data());
}

/// The line is run by the node of that name.
int by_node(const std::string& socket, const std::string& host, const std::string& line) {
    auto wire = LaunchSocket::connect(socket);
    if (!wire) return 255;  // the launcher is gone
    wire->send({Kind::line, {host, line}});
    while (true) {
        const auto message = await_message(*wire, 3600);
        if (!message && !wire->is_closed()) continue;
        if (!message || message->kind != Kind::done || message->words.size() != 2) return 255;
        std::fwrite(message->words[1].data(), 1, message->words[1].size(), stderr);
        const int status = std::atoi(message->words[0].c_str());
        return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
    }
}

/// The line is run by the remote shell.
int by_shell(const char* shell, const char* key, const std::string& host, const std::string& line) {
    std::array<int, 2> pipe{};
    const std::string input = std::string{key} + "\n";
    if (::pipe2(pipe.data(), O_CLOEXEC) != 0 ||
        ::write(pipe[1], input.data(), input.size()) != static_cast<ssize_t>(input.size()))
        throw Error{Errc::cannot_launch, std::string{"no pipe can be made: "} + std::strerror(errno),
                    "raise the limit of open files (ulimit -n)"};
    std::vector<std::string> all = words_of_shell(shell);
    all.push_back(host);
    all.push_back("sh -c " + quoted(std::string{"IFS= read -r "} + key_variable + "; export " + key_variable + "; " +
                                    host_variable + "=" + quoted(host) + "; export " + host_variable + "; " + line));
    const pid_t self = ::getpid();
    const pid_t process = ::fork();
    if (process == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGTERM);  // as mpirun would end it
        if (::getppid() != self) ::_exit(1);
        ::dup2(pipe[0], STDIN_FILENO);
        ::unsetenv(key_variable);
        become(all);
        const Error error{Errc::cannot_launch,
                          "the remote shell '" + all.front() + "' cannot be run: " + std::strerror(errno),
                          "install it (apt install openssh-client), or name another with --remote-shell"};
        std::fprintf(stderr, "%s\n", error.what());
        ::_exit(127);
    }
    if (process < 0)
        throw Error{Errc::cannot_launch, std::string{"no process can be made: "} + std::strerror(errno),
                    "raise the limit of processes (ulimit -u)"};
    for (const int end : pipe) ::close(end);
    int status = 0;
    while (::waitpid(process, &status, 0) < 0 && errno == EINTR) continue;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

}  // namespace

std::vector<std::string> words_of_shell(const std::string& text) {
    std::vector<std::string> words;
    for (std::size_t begin = text.find_first_not_of(' '); begin != std::string::npos;) {
        const std::size_t end = std::min(text.find(' ', begin), text.size());
        words.push_back(text.substr(begin, end - begin));
        begin = text.find_first_not_of(' ', end);
    }
    if (words.empty())
        throw Error{Errc::bad_argument, "the remote shell has no name",
                    "give --remote-shell a program, as in \"ssh -x\""};
    return words;
}

int launch_shell_command(std::span<const std::string> words) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const char* const shell = std::getenv(remote_shell_variable);
    const char* const key = std::getenv(key_variable);
    if (words.size() < 2 || shell == nullptr || key == nullptr)
        throw Error{Errc::bad_argument, "strata launch-shell is a part of strata launch, and not for typing",
                    "type strata launch --hostfile FILE -- PROGRAM"};
    const std::string& host = words.front();
    std::string line;
    for (const std::string& word : words.subspan(1)) line += (line.empty() ? "" : " ") + word;
    const char* const node_socket = std::getenv(shell_socket_variable);
    const int status = node_socket != nullptr ? by_node(node_socket, host, line) : by_shell(shell, key, host, line);
    // mpirun says that a host has failed, and not which.
    const char* const launcher = std::getenv(launcher_socket_variable);
    if (status != 0 && launcher != nullptr)
        if (auto wire = LaunchSocket::connect(launcher)) wire->send({Kind::done, {host, std::to_string(status)}});
    return status;
}

HostProbe::HostProbe(const std::vector<std::string>& hosts, const std::string& shell, int seconds)
    : until_{std::chrono::steady_clock::now() + std::chrono::seconds{seconds}} {
    for (const std::string& host : hosts) {
        const pid_t process = ::fork();
        if (process != 0) {
            if (process > 0) asked_.emplace_back(host, process);
            continue;
        }
        ::setpgid(0, 0);
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        const int nothing = ::open("/dev/null", O_RDWR);
        for (const int file : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nothing, file);
        sigset_t none;
        sigemptyset(&none);
        ::sigprocmask(SIG_SETMASK, &none, nullptr);
        std::vector<std::string> words = words_of_shell(shell);
        words.insert(words.end(), {host, "true"});
        become(words);
        ::_exit(127);
    }
}

HostProbe::~HostProbe() {
    for (const auto& [host, process] : asked_) {
        ::kill(-process, SIGKILL);
        ::kill(process, SIGKILL);
        ::waitpid(process, nullptr, 0);
    }
}

bool HostProbe::goes_on() {
    for (auto one = asked_.begin(); one != asked_.end();) {
        int status = -1;
        if (::waitpid(one->second, &status, WNOHANG) != one->second) {
            ++one;
            continue;
        }
        if (status == 0) answered_.push_back(one->first);
        one = asked_.erase(one);
    }
    return !asked_.empty() && std::chrono::steady_clock::now() < until_;
}

std::vector<std::string> hosts_that_answer(const std::vector<std::string>& hosts, const std::string& shell,
                                           int seconds) {
    HostProbe probe{hosts, shell, seconds};
    while (probe.goes_on() && !is_stop_held()) std::this_thread::sleep_for(std::chrono::milliseconds{20});
    return probe.answered();
}

}  // namespace strata::tools
