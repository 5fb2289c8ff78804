#pragma once
// strata/http/http_pool.hpp - HTTP requests of many threads over a bounded number of kept connections, over libcurl.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <strata/storage/digest.hpp>

namespace strata::http {

struct HttpHeader {
    std::string name;
    std::string value;
};

struct HttpOptions {
    int connections = 128;                              ///< open at once; a thread that needs one more waits
    std::chrono::milliseconds connect_timeout{10'000};  ///< name look-up, TCP and TLS together
    std::chrono::seconds stall_timeout{30};             ///< a transfer slower than 1000 bytes/s for so long has failed
    std::filesystem::path ca_file{};                    ///< certificates to trust, PEM; empty: the system's
    std::chrono::milliseconds total_timeout{0};         ///< a request from its begin to its end; 0: none
    bool verify = true;                                 ///< certificates; false: whoever answers is believed
    bool proxy = true;                                  ///< as libcurl finds it; false: none
    /// Only hosts on the internet are connected to (is_public()); looked at in what a name has led to, when the socket is made.
    bool public_only = false;
};

/// Why there is no whole answer.
enum class HttpFailure : std::uint8_t {
    none,
    unresolved,   ///< the host's name has no address
    unreachable,  ///< no connection: refused, no route, connect_timeout
    untrusted,    ///< TLS: the certificate is not accepted, or there is no common protocol
    stalled,      ///< stall_timeout
    broken,       ///< the connection ended before the answer did
    too_long,     ///< more bytes than asked for
    left,         ///< nothing failed: BodyUse::leave, or HttpRequest::cut
    interrupted,  ///< HttpPool::interrupt()
    forbidden,    ///< HttpOptions::public_only, and the host has another address
    other,
};

/// A whole answer, or why there is none.
struct HttpAnswer {
    HttpFailure failure = HttpFailure::none;
    std::string reason;  ///< libcurl's words for the failure
    int status = 0;      ///< 0 if not even the status line came
    std::vector<HttpHeader> headers;
    std::vector<std::byte> body;      ///< of an answer that is no 2xx, or when HttpRequest::into is empty
    std::uint64_t received = 0;       ///< bytes of the body, wherever they went
    std::uint64_t sent = 0;           ///< bytes of the request's body
    std::optional<storage::Md5> md5;  ///< of the body, with BodyUse::take_and_sum

    [[nodiscard]] std::string_view header(std::string_view lower_case_name) const noexcept;  ///< empty if absent
    [[nodiscard]] std::string_view text() const noexcept;                                    ///< the body as text
};

/// What becomes of the body of an answer whose head has come.
enum class BodyUse : std::uint8_t {
    take,
    take_and_sum,  ///< its MD5 sum as well: summed while more is on its way, which takes less time than at the end
    leave,         ///< the connection is closed, and the answer is `left`
};

/// One request. Views must live until perform() returns.
struct HttpRequest {
    std::string method;  ///< GET, HEAD, PUT, POST or DELETE
    std::string url;     ///< sent as it is: encoded, not normalised
    std::vector<HttpHeader> headers{};
    std::span<const std::byte> body{};
    std::span<std::byte> into{};       ///< where the body of a 2xx answer goes; empty: into HttpAnswer::body
    std::uint64_t most = 64ULL << 20;  ///< bytes that the body of a 2xx answer may have; of others, 1 MiB
    std::function<BodyUse(const HttpAnswer&)> on_body{};  ///< asked when the body of a 2xx answer begins; else: take
    bool cut =
        false;  ///< a body longer than `most`, of any status, is taken so far, and the answer is `left`; else: too_long
};

/// Connections to servers, kept open between requests. HTTP/1.1; http and https only; certificates are verified, and proxies
/// are as libcurl finds them (https_proxy, no_proxy), unless the options say otherwise; redirects are not followed. Thread-safe.
class HttpPool {
public:
    explicit HttpPool(HttpOptions options);
    HttpPool(const HttpPool&) = delete;
    HttpPool& operator=(const HttpPool&) = delete;
    ~HttpPool();  ///< no request may be under way

    /// One attempt; blocks. Never throws for what a network or server does.
    [[nodiscard]] HttpAnswer perform(const HttpRequest& request);

    /// Every request under way and every later one ends as `interrupted`, within 0.1 s. From any thread.
    void interrupt() noexcept;
    [[nodiscard]] bool is_interrupted() const noexcept { return interrupted_.load(std::memory_order_relaxed); }
    /// Waits; true when the time has passed, false when interrupt() came first.
    bool wait_for(std::chrono::milliseconds time);

private:
    class Connection;
    [[nodiscard]] std::unique_ptr<Connection> take();
    void give_back(std::unique_ptr<Connection> connection);

    HttpOptions options_;
    std::mutex mutex_;
    std::condition_variable freed_;                  // a connection
    std::condition_variable stopped_;                // interrupt()
    std::vector<std::unique_ptr<Connection>> idle_;  // the last one used is the first to be used again
    int taken_ = 0;
    std::atomic<bool> interrupted_{false};
};

}  // namespace strata::http

#ifndef STRATA_COMPILED
#include <strata/http/impl/http_pool.ipp>
#endif
