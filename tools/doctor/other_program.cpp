#include "other_program.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <map>
#include <string_view>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../launch_wire.hpp"

namespace strata::tools::doctor {

namespace {

std::vector<std::string> environment_with(const std::vector<std::string>& changed) {
    std::map<std::string, std::string, std::less<>> all;
    const auto put = [&](std::string_view word) {
        all.insert_or_assign(std::string{word.substr(0, word.find('='))}, std::string{word});
    };
    for (char** one = environ; *one != nullptr; ++one) put(*one);
    for (const std::string& word : changed) put(word);
    std::vector<std::string> words;
    for (const auto& [name, word] : all) words.push_back(word);
    return words;
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    return pointers;
}

/// What has come so far. False at the end.
bool read_some(const File& from, std::string& text) {
    while (true) {
        std::array<char, 16384> bytes{};
        const ssize_t n = ::read(from.number(), bytes.data(), bytes.size());
        if (n > 0)
            text.append(bytes.data(), static_cast<std::size_t>(n));
        else if (n == 0 || (errno != EINTR && errno != EAGAIN))
            return false;
        else if (errno == EAGAIN)
            return true;
    }
}

}  // namespace

OtherProgram run_other(const std::vector<std::string>& words, std::chrono::milliseconds patience,
                       const std::vector<std::string>& changed) {
    using Clock = std::chrono::steady_clock;
    OtherProgram other;
    std::array<int, 2> out{};
    std::array<int, 2> err{};
    if (::pipe2(out.data(), O_CLOEXEC | O_NONBLOCK) != 0) return other;
    File out_end{out[0]};
    File out_start{out[1]};
    if (::pipe2(err.data(), O_CLOEXEC | O_NONBLOCK) != 0) return other;
    File err_end{err[0]};
    File err_start{err[1]};
    for (const int number : {out[1], err[1]})
        ::fcntl(number, F_SETFL, 0);  // of the program itself, which knows of no such thing

    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, err[1], STDERR_FILENO);
    std::vector<std::string> arguments = words;
    std::vector<std::string> variables = environment_with(changed);
    pid_t process = -1;
    const int failed = ::posix_spawnp(&process, arguments.front().c_str(), &actions, nullptr,
                                      pointers_to(arguments).data(), pointers_to(variables).data());
    ::posix_spawn_file_actions_destroy(&actions);
    out_start = File{};
    err_start = File{};
    if (failed != 0) return other;

    // Its end counts and not that of its output: what it has started may keep that open.
    const auto until = Clock::now() + patience;
    int status = 0;
    bool has_ended = false;
    while (!has_ended) {
        std::array<pollfd, 2> watched{pollfd{out_end.number(), POLLIN, 0}, pollfd{err_end.number(), POLLIN, 0}};
        ::poll(watched.data(), watched.size(), 20);
        if (out_end.is_open() && !read_some(out_end, other.out)) out_end = File{};
        if (err_end.is_open() && !read_some(err_end, other.err)) err_end = File{};
        has_ended = ::waitpid(process, &status, WNOHANG) == process;
        if (!has_ended && other.is_in_time && Clock::now() >= until) {
            other.is_in_time = false;
            ::kill(process, SIGKILL);
        }
        // A process that a dead file server holds does not even end so.
        if (!has_ended && Clock::now() >= until + std::chrono::seconds{5}) return other;
    }
    if (out_end.is_open()) read_some(out_end, other.out);
    if (err_end.is_open()) read_some(err_end, other.err);
    other.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return other;
}

}  // namespace strata::tools::doctor
