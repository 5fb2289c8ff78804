#pragma once
// tools/launch_wire.hpp - Wire: what the launcher and the process that watches a rank say to each other.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace strata::tools {

/// An open file that is closed with its owner.
class File {
public:
    File() = default;
    explicit File(int number) noexcept : number_{number} {}
    File(File&& other) noexcept : number_{std::exchange(other.number_, -1)} {}
    File& operator=(File&& other) noexcept {
        std::swap(number_, other.number_);
        return *this;
    }
    ~File();

    [[nodiscard]] int number() const noexcept { return number_; }
    [[nodiscard]] bool is_open() const noexcept { return number_ >= 0; }

private:
    int number_ = -1;
};

/// A message is a kind and some words, which may hold any bytes.
struct Message {
    enum class Kind : char {
        // the watcher of a rank says
        here = 'h',       ///< rank, host: it runs
        started = 's',    ///< pid: the program runs
        failed = 'f',     ///< errno: the program could not be started
        confirmed = 'c',  ///< the program has taken the wish to stop
        ended =
            'e',  ///< status of waitpid, nanoseconds of the host's clock, "1" if it was told to, what is known of memory
        // the launcher says
        program = 'p',  ///< its path and its arguments; with it come standard output and standard error
        stop = 'w',     ///< the program is to finish its step, save and end
        end = 'k',      ///< the program is to be ended at once
        leave = 'l',    ///< nothing is left to do
    };
    Kind kind{};
    std::vector<std::string> words;
};

/// One end of a connection. A message is its length, its kind, and a length and the bytes of each word: a stream, so
/// that hosts can be joined by other sockets. The other end's death is its end.
class Wire {
public:
    explicit Wire(int socket) noexcept : socket_{socket} {}

    [[nodiscard]] int socket() const noexcept { return socket_.number(); }

    ///   files    sent along, where the socket is one of this host
    ///   returns  false when the other end is gone
    bool send(const Message& message, std::span<const int> files = {});

    /// Reads what has arrived, without waiting. False when the other end is gone, or does not speak this language.
    [[nodiscard]] bool receive();
    /// The next message that is complete.
    [[nodiscard]] std::optional<Message> next();
    /// Files that came along with messages so far.
    [[nodiscard]] std::vector<File> take_files() { return std::exchange(files_, {}); }

private:
    File socket_;
    std::string bytes_;
    std::vector<File> files_;
};

}  // namespace strata::tools
