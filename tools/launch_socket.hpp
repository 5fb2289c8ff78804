#pragma once
// tools/launch_socket.hpp - LaunchSocket: where the processes that watch over ranks find the launcher.

#include <optional>
#include <string>

#include "launch_wire.hpp"

namespace strata::tools {

/// A listening socket in a folder that only this user can enter. The folder goes with it.
class LaunchSocket {
public:
    /// Throws Error: cannot_launch.
    LaunchSocket();
    ~LaunchSocket();
    LaunchSocket(const LaunchSocket&) = delete;
    LaunchSocket& operator=(const LaunchSocket&) = delete;

    [[nodiscard]] const std::string& path() const noexcept { return path_; }
    [[nodiscard]] int number() const noexcept { return socket_.number(); }
    /// The next one who came, if there is one. Throws Error: cannot_launch, when no more files can be opened.
    [[nodiscard]] std::optional<Wire> accept();

    /// A connection to the socket of this path; none when nobody listens there.
    [[nodiscard]] static std::optional<Wire> connect(const std::string& path);
    /// Removes what is left of a socket whose launcher is gone.
    static void remove(const std::string& path);

private:
    std::string path_;
    File socket_;
};

}  // namespace strata::tools
