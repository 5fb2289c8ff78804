#include "launch_port.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <utility>

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <strata/core/error.hpp>

namespace strata::tools {

namespace {

constexpr int patience_seconds = 10;         // with somebody who has come and says nothing
constexpr std::size_t most_visitors = 1024;  // who have proved nothing

std::int64_t now() {
    return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

void set(int socket, int level, int option, int value) { ::setsockopt(socket, level, option, &value, sizeof value); }

/// Addresses that other hosts may know this one by; that of the loopback last, for a launch without a network.
std::string own_addresses() {
    ifaddrs* list = nullptr;
    if (::getifaddrs(&list) != 0) return "127.0.0.1";
    const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner{list, ::freeifaddrs};
    std::string others;
    std::string loopback;
    for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
        if (one->ifa_addr == nullptr || (one->ifa_flags & IFF_UP) == 0) continue;
        std::array<char, INET6_ADDRSTRLEN> text{};
        if (one->ifa_addr->sa_family == AF_INET) {
            const auto* const address = reinterpret_cast<const sockaddr_in*>(one->ifa_addr);
            ::inet_ntop(AF_INET, &address->sin_addr, text.data(), text.size());
        } else if (one->ifa_addr->sa_family == AF_INET6) {
            const auto* const address = reinterpret_cast<const sockaddr_in6*>(one->ifa_addr);
            if (IN6_IS_ADDR_LINKLOCAL(&address->sin6_addr)) continue;  // of use on one link only
            ::inet_ntop(AF_INET6, &address->sin6_addr, text.data(), text.size());
        } else {
            continue;
        }
        std::string& to = (one->ifa_flags & IFF_LOOPBACK) != 0 ? loopback : others;
        to += std::string{text.data()} + ",";
    }
    std::string all = others + loopback;
    if (!all.empty()) all.pop_back();
    return all.empty() ? "127.0.0.1" : all;
}

/// Connected within a few seconds, or errno.
int connect_in_time(int socket, const addrinfo& to) {
    if (::connect(socket, to.ai_addr, to.ai_addrlen) == 0) return 0;
    if (errno != EINPROGRESS) return errno;
    pollfd watched{socket, POLLOUT, 0};
    if (::poll(&watched, 1, 5000) <= 0) return ETIMEDOUT;
    int failure = 0;
    socklen_t size = sizeof failure;
    ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &failure, &size);
    return failure;
}

}  // namespace

void notice_loss(int socket, int seconds) {
    set(socket, IPPROTO_TCP, TCP_NODELAY, 1);
    set(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
    const int step = std::max(1, seconds / 3);
    set(socket, IPPROTO_TCP, TCP_KEEPIDLE, step);
    set(socket, IPPROTO_TCP, TCP_KEEPINTVL, step);
    set(socket, IPPROTO_TCP, TCP_KEEPCNT, 2);
    set(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, seconds * 1000);
}

LaunchPort::LaunchPort(std::uint16_t port, std::string secret, int lost_after_seconds)
    : secret_{std::move(secret)}, lost_after_{lost_after_seconds} {
    const auto refuse = [&] {
        return Error{Errc::cannot_launch,
                     "port " + std::to_string(port) + " cannot be listened at: " + std::strerror(errno),
                     "choose another main_process_port, or end the program that has this one"};
    };
    socket_ = File{::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
    const bool has_v6 = socket_.is_open();
    if (!has_v6) socket_ = File{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
    set(socket_.number(), SOL_SOCKET, SO_REUSEADDR, 1);
    if (has_v6) set(socket_.number(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
    sockaddr_storage address{};
    socklen_t size = has_v6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
    address.ss_family = has_v6 ? AF_INET6 : AF_INET;
    if (has_v6)
        reinterpret_cast<sockaddr_in6&>(address).sin6_port = htons(port);
    else
        reinterpret_cast<sockaddr_in&>(address).sin_port = htons(port);
    if (::bind(socket_.number(), reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
        ::listen(socket_.number(), SOMAXCONN) != 0 ||
        ::getsockname(socket_.number(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
        throw refuse();
    const std::uint16_t got = ntohs(has_v6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                                           : reinterpret_cast<sockaddr_in&>(address).sin_port);
    reach_ = own_addresses() + ":" + std::to_string(got);
}

std::vector<int> LaunchPort::numbers() const {
    std::vector<int> numbers{socket_.number()};
    for (const Visitor& visitor : visitors_) numbers.push_back(visitor.wire.socket());
    return numbers;
}

std::vector<Wire> LaunchPort::accept() {
    while (visitors_.size() < most_visitors) {
        const int connection = ::accept4(socket_.number(), nullptr, nullptr, SOCK_CLOEXEC);
        if (connection < 0) {
            if (errno == EMFILE || errno == ENFILE)
                throw Error{Errc::cannot_launch, std::string{"a host cannot be let in: "} + std::strerror(errno),
                            "raise the limit of open files (ulimit -n) above the number of ranks, or start fewer"};
            break;
        }
        notice_loss(connection, lost_after_);
        Wire wire{connection};
        Welcome welcome{wire, secret_};
        visitors_.push_back({std::move(wire), std::move(welcome), now() + patience_seconds});
    }
    std::vector<Wire> proved;
    for (Visitor& visitor : visitors_) {
        const bool connected = visitor.wire.receive();
        if (const auto message = visitor.wire.next()) {
            if (visitor.welcome.take(visitor.wire, *message) == Welcome::Answer::right)
                proved.push_back(std::move(visitor.wire));
            else
                ++wrong_;
            visitor.until = 0;
        } else if (!connected) {
            visitor.until = 0;
        }
    }
    std::erase_if(visitors_, [time = now()](const Visitor& visitor) { return visitor.until <= time; });
    return proved;
}

std::optional<Wire> LaunchPort::connect(const std::string& reach, const std::string& secret, int lost_after_seconds,
                                        std::string& why) {
    const std::size_t colon = reach.rfind(':');
    const std::string port = reach.substr(colon + 1);
    std::string rest = reach.substr(0, colon);
    std::string refused;
    why = "it has no address";
    while (!rest.empty()) {
        const std::size_t comma = rest.find(',');
        const std::string name = rest.substr(0, comma);
        rest = comma == std::string::npos ? std::string{} : rest.substr(comma + 1);
        addrinfo wanted{};
        wanted.ai_socktype = SOCK_STREAM;
        addrinfo* list = nullptr;
        if (const int failure = ::getaddrinfo(name.c_str(), port.c_str(), &wanted, &list); failure != 0) {
            why = "the name '" + name + "' is not known: " + ::gai_strerror(failure);
            continue;
        }
        const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner{list, ::freeaddrinfo};
        for (const addrinfo* to = list; to != nullptr; to = to->ai_next) {
            File socket{::socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
            if (const int failure = connect_in_time(socket.number(), *to); failure != 0) {
                why = std::strerror(failure);
                continue;
            }
            ::fcntl(socket.number(), F_SETFL, 0);  // Wire sends whole messages
            notice_loss(socket.number(), lost_after_seconds);
            Wire wire{::fcntl(socket.number(), F_DUPFD_CLOEXEC, 0)};
            why = introduce(wire, secret, patience_seconds);
            if (why.empty()) return wire;
            refused = why;  // says more than an address that does not answer
        }
    }
    if (!refused.empty()) why = refused;
    return std::nullopt;
}

}  // namespace strata::tools
