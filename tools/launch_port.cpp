#include "launch_port.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <utility>

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <strata/core/error.hpp>

#include "own_host.hpp"

namespace strata::tools {

namespace {

constexpr int patience_seconds = 10;  // with somebody who has come and says nothing
/// How long everybody is given to prove who they are, where others wait for the place: hosts of a launch take a round trip.
constexpr std::chrono::milliseconds first_patience{500};

void set(int socket, int level, int option, int value) { ::setsockopt(socket, level, option, &value, sizeof value); }

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
    for (const std::string& one : own_addresses()) reach_ += (reach_.empty() ? "" : ",") + one;
    reach_ += ":" + std::to_string(got);
}

std::vector<int> LaunchPort::numbers() const {
    std::vector<int> numbers;
    if (!is_full()) numbers.push_back(socket_.number());  // else who waits outside would be told of for ever
    for (const Visitor& visitor : visitors_) numbers.push_back(visitor.wire.socket());
    return numbers;
}

/// Nobody who comes now would be let in.
bool LaunchPort::is_full() const {
    return visitors_.size() >= most_visitors &&
           std::none_of(visitors_.begin(), visitors_.end(),
                        [limit = Clock::now() - first_patience](const Visitor& one) { return one.came <= limit; });
}

/// Sends away who has been silent longest of the address that most visitors came from. False where nobody has been for that long.
bool LaunchPort::make_room(Clock::duration silent_for) {
    const auto limit = Clock::now() - silent_for;
    const auto from_there = [this](const Visitor& visitor) {
        return std::count_if(visitors_.begin(), visitors_.end(),
                             [&](const Visitor& other) { return other.address == visitor.address; });
    };
    auto chosen = visitors_.end();  // they stand in the order in which they came
    for (auto one = visitors_.begin(); one != visitors_.end(); ++one)
        if (one->came <= limit && (chosen == visitors_.end() || from_there(*one) > from_there(*chosen))) chosen = one;
    if (chosen == visitors_.end()) return false;
    visitors_.erase(chosen);
    return true;
}

std::vector<Wire> LaunchPort::accept() {
    while (visitors_.size() < most_visitors || make_room(first_patience)) {
        sockaddr_storage from{};
        socklen_t size = sizeof from;
        const int connection = ::accept4(socket_.number(), reinterpret_cast<sockaddr*>(&from), &size, SOCK_CLOEXEC);
        if (connection < 0) {
            // The kernel looks for a number of a file before it looks whether anybody has come.
            const int failure = errno;
            if ((failure != EMFILE && failure != ENFILE) || !has_input(socket_.number())) break;
            if (make_room(Clock::duration::zero())) continue;
            throw Error{Errc::cannot_launch, std::string{"a host cannot be let in: "} + std::strerror(failure),
                        "raise the limit of open files (ulimit -n) above the number of ranks, or start fewer"};
        }
        notice_loss(connection, lost_after_);
        Wire wire{connection};
        Welcome welcome{wire, secret_};
        visitors_.push_back(
            {std::move(wire), std::move(welcome), address_of(reinterpret_cast<const sockaddr&>(from)), Clock::now()});
    }
    std::vector<Wire> proved;
    for (Visitor& visitor : visitors_) {
        const bool connected = visitor.wire.receive();
        if (const auto message = visitor.wire.next()) {
            if (visitor.welcome.take(visitor.wire, *message) == Welcome::Answer::right)
                proved.push_back(std::move(visitor.wire));
            else
                ++wrong_;
            visitor.is_over = true;
        } else if (!connected) {
            visitor.is_over = true;
        }
    }
    std::erase_if(visitors_, [limit = Clock::now() - std::chrono::seconds{patience_seconds}](const Visitor& visitor) {
        return visitor.is_over || visitor.came <= limit;
    });
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
