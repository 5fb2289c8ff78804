#pragma once
// bench/peer_process.hpp - PeerProcess: a program that a bench talks to line by line.

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace bench {

/// A child process whose first line is "ready VERSION". Make it before any other thread is there.
class PeerProcess {
public:
    /// Starts `command` and waits for its first line; an empty one starts nothing.
    explicit PeerProcess(std::vector<std::string> command) {
        if (command.empty()) return;
        std::array<int, 2> to{};
        std::array<int, 2> from{};
        if (::pipe(to.data()) != 0 || ::pipe(from.data()) != 0) return;
        child_ = ::fork();
        if (child_ == 0) {
            ::dup2(to[0], 0);
            ::dup2(from[1], 1);
            for (const int fd : {to[0], to[1], from[0], from[1]}) ::close(fd);
            std::vector<char*> arguments;
            for (std::string& word : command) arguments.push_back(word.data());
            arguments.push_back(nullptr);
            ::execvp(arguments.front(), arguments.data());
            ::_exit(127);
        }
        ::close(to[0]);
        ::close(from[1]);
        out_ = ::fdopen(to[1], "w");
        in_ = ::fdopen(from[0], "r");
        const std::string line = hear();
        there_ = line.starts_with("ready ");
        if (there_) version_ = line.substr(6);
    }
    PeerProcess(const PeerProcess&) = delete;
    PeerProcess& operator=(const PeerProcess&) = delete;
    ~PeerProcess() {
        if (out_ != nullptr) std::fclose(out_);
        if (in_ != nullptr) std::fclose(in_);
        if (child_ > 0) ::waitpid(child_, nullptr, 0);
    }
    [[nodiscard]] bool there() const noexcept { return there_; }
    [[nodiscard]] const std::string& version() const noexcept { return version_; }

    void say(const std::string& line) {
        std::fprintf(out_, "%s\n", line.c_str());
        std::fflush(out_);
    }
    /// The next line; empty when the child has ended.
    std::string hear() {
        std::string line;
        for (int c = std::fgetc(in_); c != EOF && c != '\n'; c = std::fgetc(in_)) line.push_back(static_cast<char>(c));
        return line;
    }

private:
    ::pid_t child_ = -1;
    std::FILE* out_ = nullptr;
    std::FILE* in_ = nullptr;
    bool there_ = false;
    std::string version_;
};

}  // namespace bench
