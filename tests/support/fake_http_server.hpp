#pragma once
// tests/support/fake_http_server.hpp - an HTTP server on loopback that says what a test wants, and a proxy that
// fails.

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace strata_test {

/// A TCP socket on 127.0.0.1 that hands each connection to a function, in a thread of its own.
class Listener {
public:
    using Serve = std::function<void(int socket, int number)>;  ///< number: 0 for the first connection

    explicit Listener(Serve serve)
        : serve_{std::move(serve)}, socket_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)} {
        sockaddr_in address = loopback(0);
        socklen_t size = sizeof address;
        if (socket_ < 0 || ::bind(socket_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
            ::listen(socket_, 64) != 0 || ::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size) != 0)
            throw std::runtime_error{"no socket on loopback"};
        port_ = ntohs(address.sin_port);
        acceptor_ = std::thread{[this] { accept_all(); }};
    }
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;
    ~Listener() {
        ending_ = true;
        ::shutdown(socket_, SHUT_RDWR);
        acceptor_.join();
        {
            const std::lock_guard lock{mutex_};
            for (const int connection : connections_) ::shutdown(connection, SHUT_RDWR);
        }
        for (std::thread& server : servers_) server.join();
        for (const int connection : connections_) ::close(connection);
        ::close(socket_);
    }

    [[nodiscard]] int port() const noexcept { return port_; }
    [[nodiscard]] int connections() const noexcept { return number_; }
    [[nodiscard]] bool ending() const noexcept { return ending_; }

    static sockaddr_in loopback(int port) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        address.sin_port = htons(static_cast<std::uint16_t>(port));
        return address;
    }

private:
    void accept_all() {
        sigset_t pipe;
        ::sigemptyset(&pipe);
        ::sigaddset(&pipe, SIGPIPE);
        ::pthread_sigmask(SIG_BLOCK, &pipe, nullptr);  // and with it the threads started here
        while (!ending_) {
            const int connection = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
            if (connection < 0) break;
            const std::lock_guard lock{mutex_};
            connections_.push_back(connection);
            servers_.emplace_back([this, connection, number = number_++] {
                serve_(connection, number);
                ::shutdown(connection, SHUT_RDWR);
            });
        }
    }

    Serve serve_;
    int socket_;
    int port_ = 0;
    std::atomic<int> number_{0};
    std::atomic<bool> ending_{false};
    std::mutex mutex_;
    std::vector<int> connections_;
    std::vector<std::thread> servers_;
    std::thread acceptor_;
};

struct FakeRequest {
    std::string method;
    std::string target;
    std::map<std::string, std::string> headers;  ///< names in lower case
    std::string body;
    int number = 0;  ///< of this server's requests, from 0

    [[nodiscard]] std::string header(const std::string& name) const {
        const auto found = headers.find(name);
        return found == headers.end() ? std::string{} : found->second;
    }
    [[nodiscard]] bool asks(std::string_view text) const { return target.find(text) != std::string::npos; }
};

/// What a handler says: the bytes of the answer, and then perhaps the end of the connection.
struct FakeReply {
    std::string bytes;
    bool close = false;
    bool hang = false;  ///< say nothing more until the server ends

    /// A whole answer; Content-Length is added.
    static FakeReply answer(int status, const std::string& body = {}, const std::string& headers = {}) {
        return {"HTTP/1.1 " + std::to_string(status) + " Status\r\nContent-Length: " + std::to_string(body.size()) +
                    "\r\n" + headers + "\r\n" + body,
                false, false};
    }
    static FakeReply error(int status, const std::string& code, const std::string& message = {}) {
        return answer(status, "<?xml version=\"1.0\"?><Error><Code>" + code + "</Code><Message>" + message +
                                  "</Message></Error>");
    }
    static FakeReply cut() { return {"", true, false}; }
};

/// Serves one connection after the other, each in its thread; keeps connections open between requests.
class FakeHttpServer {
public:
    using Handler = std::function<FakeReply(const FakeRequest&)>;

    /// With `tls`, whose owner stays the caller, speaks https.
    explicit FakeHttpServer(Handler handler, SSL_CTX* tls = nullptr)
        : handler_{std::move(handler)}, tls_{tls}, listener_{[this](int socket, int) { serve(socket); }} {}

    [[nodiscard]] std::string url() const {
        return (tls_ != nullptr ? "https://127.0.0.1:" : "http://127.0.0.1:") + std::to_string(listener_.port());
    }
    [[nodiscard]] int connections() const noexcept { return listener_.connections(); }
    [[nodiscard]] int requests() const noexcept { return count_; }
    /// Everything that was asked so far.
    [[nodiscard]] std::vector<FakeRequest> seen() const {
        const std::lock_guard lock{mutex_};
        return seen_;
    }

private:
    /// Bytes of a connection, through TLS or not.
    struct Stream {
        int socket;
        SSL* ssl;
        long read(char* data, std::size_t size) const {
            return ssl != nullptr ? ::SSL_read(ssl, data, static_cast<int>(size)) : ::recv(socket, data, size, 0);
        }
        long write(const char* data, std::size_t size) const {
            return ssl != nullptr ? ::SSL_write(ssl, data, static_cast<int>(size))
                                  : ::send(socket, data, size, MSG_NOSIGNAL);
        }
        bool write_all(std::string_view text) const {
            while (!text.empty()) {
                const long n = write(text.data(), text.size());
                if (n <= 0) return false;
                text.remove_prefix(static_cast<std::size_t>(n));
            }
            return true;
        }
    };

    void serve(int socket) {
        const std::unique_ptr<SSL, void (*)(SSL*)> ssl{tls_ != nullptr ? ::SSL_new(tls_) : nullptr, &::SSL_free};
        if (ssl != nullptr && (::SSL_set_fd(ssl.get(), socket) != 1 || ::SSL_accept(ssl.get()) != 1)) return;
        const Stream stream{socket, ssl.get()};
        std::string buffer;
        while (auto request = read_request(stream, buffer)) {
            request->number = count_++;
            {
                const std::lock_guard lock{mutex_};
                seen_.push_back(*request);
            }
            const FakeReply reply = handler_(*request);
            if (!stream.write_all(reply.bytes) || reply.close) return;
            if (reply.hang) {
                pollfd waiting{socket, POLLIN, 0};
                while (!listener_.ending() && ::poll(&waiting, 1, 50) == 0) {
                }
                return;
            }
        }
    }

    static std::optional<FakeRequest> read_request(const Stream& stream, std::string& buffer) {
        const auto more = [&] {
            char data[65536];
            const long n = stream.read(data, sizeof data);
            if (n > 0) buffer.append(data, static_cast<std::size_t>(n));
            return n > 0;
        };
        std::size_t end = 0;
        while ((end = buffer.find("\r\n\r\n")) == std::string::npos)
            if (!more()) return std::nullopt;
        FakeRequest request;
        std::string head = buffer.substr(0, end + 2);
        buffer.erase(0, end + 4);
        request.method = head.substr(0, head.find(' '));
        request.target = head.substr(request.method.size() + 1, head.find(" HTTP/") - request.method.size() - 1);
        for (std::size_t at = head.find("\r\n") + 2; at < head.size(); at = head.find("\r\n", at) + 2) {
            const std::string line = head.substr(at, head.find("\r\n", at) - at);
            std::string name = line.substr(0, line.find(':'));
            for (char& c : name) c = static_cast<char>(::tolower(c));
            const std::size_t value = line.find_first_not_of(' ', line.find(':') + 1);
            request.headers[name] = value == std::string::npos ? "" : line.substr(value);
        }
        const std::string length = request.header("content-length");
        const std::size_t size = length.empty() ? 0 : std::stoul(length);
        if (!request.header("expect").empty() && !stream.write_all("HTTP/1.1 100 Continue\r\n\r\n"))
            return std::nullopt;
        while (buffer.size() < size)
            if (!more()) return std::nullopt;
        request.body = buffer.substr(0, size);
        buffer.erase(0, size);
        return request;
    }

    Handler handler_;
    SSL_CTX* tls_;
    std::atomic<int> count_{0};
    mutable std::mutex mutex_;
    std::vector<FakeRequest> seen_;
    Listener listener_;  // last: its threads use the others
};

/// Hands connections on to a port of 127.0.0.1 and fails as it is told.
class FaultyProxy {
public:
    struct Fault {
        std::size_t cut_after = SIZE_MAX;    ///< bytes to the client, then both connections end
        std::size_t stall_after = SIZE_MAX;  ///< bytes to the client, then silence
        std::size_t call_after = SIZE_MAX;   ///< bytes to the client, then `call` once, and on with the transfer
        std::function<void()> call{};
    };
    /// fault(n): of the n-th connection, from 0.
    FaultyProxy(int target_port, std::function<Fault(int)> fault)
        : target_{target_port}, fault_{std::move(fault)}, listener_{[this](int socket, int n) {
              serve(socket, fault_(n));
          }} {}

    [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(listener_.port()); }
    [[nodiscard]] int connections() const noexcept { return listener_.connections(); }

private:
    void serve(int client, Fault fault) {
        const int server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        sockaddr_in address = Listener::loopback(target_);
        if (::connect(server, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) pump(client, server, fault);
        ::close(server);
    }

    void pump(int client, int server, Fault fault) const {
        std::size_t delivered = 0;
        std::vector<char> data(65536);
        while (!listener_.ending()) {
            pollfd ready[2]{{client, POLLIN, 0}, {server, delivered < fault.stall_after ? short{POLLIN} : short{0}, 0}};
            if (::poll(ready, 2, 50) < 0) return;
            if ((ready[0].revents & (POLLIN | POLLHUP)) != 0) {
                const long n = ::recv(client, data.data(), data.size(), 0);
                if (n <= 0 || !send_all(server, data.data(), static_cast<std::size_t>(n))) return;
            }
            if (delivered < fault.stall_after && (ready[1].revents & (POLLIN | POLLHUP)) != 0) {
                const long n = ::recv(server, data.data(), data.size(), 0);
                if (n <= 0) return;
                const std::size_t room = std::min(fault.cut_after, fault.stall_after) - delivered;
                const std::size_t count = std::min(static_cast<std::size_t>(n), room);
                if (!send_all(client, data.data(), count)) return;
                delivered += count;
                if (delivered >= fault.cut_after) return;
                if (delivered >= fault.call_after && fault.call) std::exchange(fault.call, {})();
            }
        }
    }

    static bool send_all(int socket, const char* data, std::size_t size) {
        while (size > 0) {
            const long n = ::send(socket, data, size, MSG_NOSIGNAL);
            if (n <= 0) return false;
            data += n;
            size -= static_cast<std::size_t>(n);
        }
        return true;
    }

    int target_;
    std::function<Fault(int)> fault_;
    Listener listener_;
};

}  // namespace strata_test
