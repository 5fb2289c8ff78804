#pragma once
// tools/launch_port.hpp - LaunchPort: where other hosts find the launcher.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "launch_handshake.hpp"
#include "launch_wire.hpp"

namespace strata::tools {

/// A TCP port. Who comes is let in after it has proved that it knows the secret; nobody who is slow about it is waited for.
///
/// Strangers cost a launch nothing but some files: where many come and say nothing, those who have been silent longest make room, first of the
/// address that most came from, so that they do not keep out hosts of the launch.
class LaunchPort {
public:
    ///   port    0: one that is free
    /// Throws Error: cannot_launch.
    LaunchPort(std::uint16_t port, std::string secret, int lost_after_seconds);

    /// "ADDRESS,ADDRESS:PORT": every address of this host, for connect().
    [[nodiscard]] const std::string& reach() const noexcept { return reach_; }
    /// What to watch for input.
    [[nodiscard]] std::vector<int> numbers() const;
    /// Lets in who has come; those who have proved themselves since the last call. Never waits. Throws Error: cannot_launch, where this
    /// process has no file left for anybody.
    [[nodiscard]] std::vector<Wire> accept();
    /// How many came with another secret since the last call.
    [[nodiscard]] int take_wrong() { return std::exchange(wrong_, 0); }

    /// A connection to one of the addresses, proved; in `why` what is wrong where there is none.
    [[nodiscard]] static std::optional<Wire> connect(const std::string& reach, const std::string& secret,
                                                     int lost_after_seconds, std::string& why);

    /// Who may be there at once and has proved nothing yet.
    static constexpr std::size_t most_visitors = 64;

private:
    using Clock = std::chrono::steady_clock;

    struct Visitor {
        Wire wire;
        Welcome welcome;
        std::string address;
        Clock::time_point came{};
        bool is_over = false;
    };
    [[nodiscard]] bool is_full() const;
    bool make_room(Clock::duration silent_for);

    std::string secret_;
    int lost_after_ = 0;
    File socket_;
    std::string reach_;
    std::vector<Visitor> visitors_;
    int wrong_ = 0;
};

/// A TCP socket that notices within that time that its other end is gone without a word.
void notice_loss(int socket, int seconds);

}  // namespace strata::tools
