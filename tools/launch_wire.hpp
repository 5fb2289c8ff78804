#pragma once
// tools/launch_wire.hpp - Wire: what the launcher and the process that watches a rank say to each other.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
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

/// Something can be read of it without waiting: of a socket that listens, somebody has come.
[[nodiscard]] bool has_input(int file);

/// A message is a kind and some words, which may hold any bytes.
struct Message {
    enum class Kind : char {
        // the watcher of a rank says
        here = 'h',       ///< rank, host, the host's name for the launcher or "", cores, GPUs: it runs
        started = 's',    ///< pid: the program runs
        failed = 'f',     ///< errno: the program could not be started
        confirmed = 'c',  ///< the program has taken the wish to stop
        faulty = 'b',     ///< the program says that its host has a fault
        ended =
            'e',  ///< status of waitpid, nanoseconds of the host's clock, "1" if it was told to, what is known of memory, "1" if the
        ///< program has said why
        output =
            'o',  ///< "1" or "2", bytes: what the program has printed, where it does not print to the launcher's own files
        // the launcher says
        environment = 'v',  ///< NAME=VALUE ...: for the program, before it is started
        program = 'p',      ///< its path and its arguments; with it come standard output and standard error, or neither
        stop = 'w',         ///< the program is to finish its step, save and end
        end = 'k',          ///< the program is to be ended at once
        leave = 'l',        ///< nothing is left to do; to a node: the exit status
        // who listens at a port says, and who came to it answers (launch_handshake.hpp)
        challenge = 'C',  ///< a number that is used once
        proof = 'P',      ///< another one, and what only who knows the secret can make of both
        welcome = 'W',    ///< the same from the other side
        // a node that was started by itself, and the first one
        node = 'n',     ///< machine_rank, slots, host, how many machines it expects
        refused = 'r',  ///< what is wrong, what to do about it; of a proof without words: it is wrong
        line = 'x',     ///< NAME=VALUE ... "", the line that is to be run
        done = 'd',     ///< status of waitpid of that line, what it has printed
    };
    Kind kind{};
    std::vector<std::string> words;
};

/// One end of a connection. A message is its length, its kind, and a length and the bytes of each word: a stream, so
/// that hosts can be joined by other sockets. The other end's death is its end.
class Wire {
public:
    explicit Wire(int socket) noexcept : socket_{socket} {}

    /// From here on each message ends with a code of `key` and its number, so that nobody on the way can change, repeat or
    /// leave out one. Both ends call it at the same message.
    void seal(std::string key, bool listens);

    [[nodiscard]] int socket() const noexcept { return socket_.number(); }

    ///   files    sent along, where the socket is one of this host
    ///   returns  false when the other end is gone
    bool send(const Message& message, std::span<const int> files = {});

    /// Reads what has arrived, without waiting. False when the other end is gone, or does not speak this language, or was not
    /// who it said.
    [[nodiscard]] bool receive();
    /// The next message that is complete.
    [[nodiscard]] std::optional<Message> next();
    /// errno of a connection that broke; 0 of one that the other end closed.
    [[nodiscard]] int failure() const noexcept { return failure_; }
    /// The other end is gone.
    [[nodiscard]] bool is_closed() const noexcept { return closed_; }
    /// Messages beyond this are not read: before the other end has proved who it is.
    void limit(std::size_t bytes) noexcept { largest_ = bytes; }
    /// Files that came along with messages so far.
    [[nodiscard]] std::vector<File> take_files() { return std::exchange(files_, {}); }

private:
    [[nodiscard]] std::string code_of(std::string_view body, bool from_listener, std::uint64_t number) const;

    File socket_;
    std::string bytes_;
    std::vector<File> files_;
    std::size_t largest_ = std::size_t{64} << 20U;  // arguments of a program end at 2 MiB
    int failure_ = 0;
    bool broken_ = false;
    bool closed_ = false;
    std::string key_;  // empty: messages are not sealed
    bool listens_ = false;
    std::uint64_t sent_ = 0;
    std::uint64_t received_ = 0;
};

}  // namespace strata::tools
