#pragma once
// strata/webhooks/delivery.hpp - Delivery: which events a webhook gets next and when, and what an answer means for them.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <strata/core/inline.hpp>
#include <strata/http/http_pool.hpp>
#include <strata/http/retry.hpp>
#include <strata/webhooks/event.hpp>

namespace strata::webhooks {

/// What an answer means.
enum class Verdict : std::uint8_t {
    delivered,
    later,      ///< the server is busy, fails, or is not there: it is asked again
    bad_event,  ///< the server will never take this
    refused,  ///< the server takes nothing from this run until somebody mends its address or token; it is asked again, too
    forbidden,  ///< the same for a private address or a redirect that are not allowed
};

struct Judgement {
    Verdict verdict = Verdict::later;
    std::optional<std::chrono::milliseconds> asked{};  ///< to be left alone for so long
    std::string why{};                                 ///< "answers 503", "does not answer (...)"; empty when delivered
};

///   now  for a Retry-After that is a date
[[nodiscard]] Judgement judge(const http::HttpAnswer& answer, std::chrono::system_clock::time_point now);

/// The events that wait for one webhook. No clock and no thread of its own: whoever calls has them. Not thread-safe.
///
/// They leave in the order in which they came, but for those whose kind had its last one too recently. After a failure all wait:
/// first about a second, then up to longest_wait_seconds, at random below twice the time before; what the server asks for counts if
/// it is longer, up to an hour. Behind an event that the server will never take the others wait as after a first failure.
class Delivery {
public:
    using Time = std::chrono::steady_clock::time_point;
    static constexpr std::size_t most_together = 10;  ///< embeds of a message of Discord's

    explicit Delivery(const WebhookOptions& options);

    struct Waiting {
        std::shared_ptr<const QueuedEvent> event;
        std::int64_t replaced = 0;  ///< events that this one came in the place of
        bool no_pictures = false;   ///< the server did not take it with them
        bool in_flight = false;
    };

    /// One more. Returns the ids of those that are let go for it: one that it replaces, or, where most_waiting do, the oldest of
    /// those that matter least, which may be itself.
    [[nodiscard]] std::vector<std::string> add(std::shared_ptr<const QueuedEvent> event);

    /// What is to be sent now; empty: nothing. It is in flight until answered() says what became of it. One of a raw webhook's, up
    /// to most_together of Discord's.
    ///
    ///   closing  the run ends: no kind waits for its interval
    [[nodiscard]] std::vector<Waiting> next(Time now, bool closing);
    /// When next() will have something; nothing: when another one has come, or what is in flight was answered.
    [[nodiscard]] std::optional<Time> due(bool closing) const;

    /// What became of what next() has given last. Returns the ids that are done with: delivered, or never to be.
    ///
    ///   uniform  a random number in [0, 1)
    [[nodiscard]] std::vector<std::string> answered(const Judgement& judgement, Time now, double uniform);

    [[nodiscard]] std::size_t waiting() const noexcept { return waiting_.size(); }
    [[nodiscard]] int failures() const noexcept { return failures_; }  ///< in a row
    [[nodiscard]] std::int64_t delivered() const noexcept { return delivered_; }
    [[nodiscard]] std::int64_t dropped() const noexcept { return dropped_; }  ///< because too many waited
    [[nodiscard]] std::int64_t refused() const noexcept { return refused_; }  ///< by the server, one by one
    /// Of the dropped ones those that the server does not know of yet; what is delivered next tells it.
    [[nodiscard]] std::int64_t untold() const noexcept { return dropped_ - told_; }

private:
    [[nodiscard]] Time ready(const Waiting& one, bool closing) const;

    WebhookOptions options_;
    http::RetryOptions retry_;
    std::vector<Waiting> waiting_;                                     // oldest first
    std::array<std::optional<Time>, event_kind_names.size()> last_{};  // of each kind
    std::optional<Time> blocked_until_;
    std::size_t together_;  // the most in one message now
    int failures_ = 0;
    std::int64_t delivered_ = 0, dropped_ = 0, told_ = 0, telling_ = 0, refused_ = 0;
};

}  // namespace strata::webhooks

#ifndef STRATA_COMPILED
#include <strata/webhooks/impl/delivery.ipp>
#endif
