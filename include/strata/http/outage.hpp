#pragma once
// strata/http/outage.hpp - Outage: for how long a server that fails is asked again, and the two lines that say so.

#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include <strata/http/retry.hpp>

namespace strata::http {

/// Where the time of retries comes from and where their lines go.
struct RetryHooks {
    std::function<std::chrono::steady_clock::time_point()> now = [] { return std::chrono::steady_clock::now(); };
    std::function<void(std::chrono::milliseconds)> wait{};  ///< empty: the client's own, which its interrupt() ends
    std::function<void(const std::string&)>
        say{};  ///< one line, from any thread, one at a time; empty: nothing is said
};

/// One server, as all requests to it find it. Thread-safe.
///
/// A request that fails in a way that may pass is made again for RetryOptions::patience, counted from its first failure;
/// while the server has never answered anybody, RetryOptions::attempts_at_first times and not more. Of the requests
/// that fail together, the first one says that the server fails, and the first that comes through that it answers again;
/// a server that fails again and again is spoken of at most once in RetryOptions::announce_pause.
class Outage {
public:
    ///   server  as its lines begin: "S3 server http://127.0.0.1:9000"
    Outage(std::string server, const RetryOptions& options, RetryHooks hooks)
        : server_{std::move(server)}, options_{options}, hooks_{std::move(hooks)} {}
    Outage(const Outage&) = delete;
    Outage& operator=(const Outage&) = delete;

    /// A request, from its first attempt to its last. For one thread.
    class Request {
    public:
        explicit Request(Outage& outage) noexcept : outage_{outage} {}

        /// An attempt failed. How long to wait before the next one; nothing when it was the last.
        ///
        ///   why    the server does: "does not answer"
        ///   asked  what its Retry-After says, if it says anything
        [[nodiscard]] std::optional<std::chrono::milliseconds> failed(std::string_view why,
                                                                      std::optional<std::chrono::milliseconds> asked);
        /// The server answered as it should. Says that it does so again if this request had failed.
        void succeeded();
        /// The attempts so far, for a message: ", 3 times in a row", ", 41 times in 5 min"; of one: "".
        [[nodiscard]] std::string failures() const;

    private:
        Outage& outage_;
        std::optional<std::chrono::steady_clock::time_point> first_failure_;
        std::chrono::steady_clock::time_point last_failure_{};
        int failed_ = 0;
    };

    /// The server answered, whatever it said: from now on it is asked again for as long as `patience` says.
    void answered() noexcept;

private:
    void announce(std::string_view why, std::chrono::steady_clock::time_point now);
    void close(std::chrono::steady_clock::time_point now);

    std::string server_;
    RetryOptions options_;
    RetryHooks hooks_;
    std::mutex mutex_;  // of what follows, and of say
    bool answered_ = false;
    bool announced_ = false;  // a line says that the server fails, and none that it answers again
    std::chrono::steady_clock::time_point began_{};
    std::optional<std::chrono::steady_clock::time_point> last_announced_;
};

}  // namespace strata::http

#ifndef STRATA_COMPILED
#include <strata/http/impl/outage.ipp>
#endif
