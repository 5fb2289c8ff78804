#include "launch_socket.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <strata/core/error.hpp>

namespace strata::tools {

namespace {

constexpr std::string_view folder_pattern = "/strata-launch-XXXXXX";
constexpr std::string_view name = "/socket";

sockaddr_un address_of(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    return address;
}

/// TMPDIR, unless an address in it would be too long for a socket.
std::string temporary_folder() {
    const char* const asked = std::getenv("TMPDIR");
    const std::string folder = asked == nullptr || *asked == '\0' ? "/tmp" : asked;
    return folder.size() + folder_pattern.size() + name.size() < sizeof(sockaddr_un::sun_path) ? folder : "/tmp";
}

}  // namespace

LaunchSocket::LaunchSocket() {
    const std::string above = temporary_folder();
    const auto refuse = [&](const std::string& what) {
        const std::string why = std::strerror(errno);
        if (!path_.empty()) remove(path_);
        return Error{Errc::cannot_launch, what + " in " + above + " cannot be made: " + why,
                     "let TMPDIR name a folder on a local disk that you may write to"};
    };
    std::string folder = above + std::string{folder_pattern};
    if (::mkdtemp(folder.data()) == nullptr) throw refuse("a folder for the launcher's socket");  // 0700
    path_ = folder + std::string{name};
    socket_ = File{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
    const sockaddr_un address = address_of(path_);
    if (!socket_.is_open() || ::bind(number(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(number(), SOMAXCONN) != 0)
        throw refuse("the launcher's socket");
}

LaunchSocket::~LaunchSocket() { remove(path_); }

std::optional<Wire> LaunchSocket::accept() {
    const int connection = ::accept4(number(), nullptr, nullptr, SOCK_CLOEXEC);
    if (connection >= 0) return Wire{connection};
    // Who waits to be let in stays there, so this would come back at once, for ever.
    const int failure = errno;
    if ((failure == EMFILE || failure == ENFILE || failure == ENOBUFS || failure == ENOMEM) && has_input(number()))
        throw Error{Errc::cannot_launch, std::string{"a rank cannot be let in: "} + std::strerror(failure),
                    "raise the limit of open files (ulimit -n) above the number of ranks, or start fewer"};
    return std::nullopt;
}

std::optional<Wire> LaunchSocket::connect(const std::string& path) {
    if (path.size() >= sizeof(sockaddr_un::sun_path)) return std::nullopt;
    Wire wire{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    const sockaddr_un address = address_of(path);
    if (::connect(wire.socket(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return std::nullopt;
    return wire;
}

void LaunchSocket::remove(const std::string& path) {
    const std::string folder = std::filesystem::path{path}.parent_path().string();
    // Its like, and nothing that somebody typed.
    if (!path.ends_with(name) || folder.find(folder_pattern.substr(0, folder_pattern.find('X'))) == std::string::npos)
        return;
    ::unlink(path.c_str());
    ::rmdir(folder.c_str());
}

}  // namespace strata::tools
