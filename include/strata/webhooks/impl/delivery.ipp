#pragma once
// strata/webhooks/impl/delivery.ipp - order, intervals, waits after failures, and a bound on what waits.

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include <nlohmann/json.hpp>

#include <strata/http/retry.hpp>
#include <strata/webhooks/delivery.hpp>

namespace strata::webhooks {

namespace detail {

inline std::chrono::milliseconds milliseconds_of(double seconds) {
    return std::chrono::milliseconds{std::llround(1000 * seconds)};
}

/// Discord says in the body of a 429 how long it wants to be left alone, to the millisecond.
inline std::optional<std::chrono::milliseconds> asked_in_body(const http::HttpAnswer& answer) {
    const nlohmann::json body = nlohmann::json::parse(answer.text(), nullptr, false);
    if (!body.is_object()) return std::nullopt;
    const auto found = body.find("retry_after");
    if (found == body.end() || !found->is_number()) return std::nullopt;
    return milliseconds_of(std::clamp(found->get<double>(), 0.0, 86'400.0));
}

/// Discord's bucket of requests is empty after this one, and until then.
inline std::optional<std::chrono::milliseconds> asked_by_bucket(const http::HttpAnswer& answer) {
    if (answer.header("x-ratelimit-remaining") != "0") return std::nullopt;
    const nlohmann::json after = nlohmann::json::parse(answer.header("x-ratelimit-reset-after"), nullptr, false);
    if (!after.is_number()) return std::nullopt;
    return milliseconds_of(std::clamp(after.get<double>(), 0.0, 3600.0));
}

}  // namespace detail

STRATA_INLINE Judgement judge(const http::HttpAnswer& answer, std::chrono::system_clock::time_point now) {
    using http::HttpFailure;
    const std::string because = answer.reason.empty() ? "" : " (" + answer.reason + ")";
    switch (answer.failure) {
        case HttpFailure::none:
        case HttpFailure::left:  // a long body, of which Transport takes no more than it needs
            break;
        case HttpFailure::unresolved:
            return {Verdict::later, {}, "has a name without address" + because};
        case HttpFailure::unreachable:
            return {Verdict::later, {}, "cannot be connected to" + because};
        case HttpFailure::untrusted:
            return {Verdict::refused, {}, "has a certificate that is not accepted" + because};
        case HttpFailure::stalled:
            return {Verdict::later, {}, "does not answer in time" + because};
        case HttpFailure::forbidden:
            return {Verdict::forbidden, {}, "is at a private address" + because};
        default:
            return {Verdict::later, {}, "broke the connection off" + because};
    }
    const int status = answer.status;
    const std::string answers = "answers " + std::to_string(status);
    if (status / 100 == 2) return {Verdict::delivered, detail::asked_by_bucket(answer), ""};
    if (status / 100 == 3) return {Verdict::forbidden, {}, answers + ", which names another address"};
    if (status == 408 || status == 425 || status == 429 || status >= 500) {
        std::optional<std::chrono::milliseconds> asked = http::retry_after(answer.header("retry-after"), now);
        if (status == 429)
            if (const auto exact = detail::asked_in_body(answer)) asked = std::max(asked.value_or(*exact), *exact);
        return {Verdict::later, asked, answers};
    }
    const bool is_of_event = status == 400 || status == 413 || status == 415 || status == 422;
    return {is_of_event ? Verdict::bad_event : Verdict::refused, detail::asked_by_bucket(answer), answers};
}

STRATA_INLINE Delivery::Delivery(const WebhookOptions& options)
    : options_{options}, together_{options.webhook_type == WebhookType::discord ? most_together : 1} {
    retry_.first_wait = std::chrono::milliseconds{1000};
    retry_.longest_wait = detail::milliseconds_of(options.longest_wait_seconds);
    retry_.longest_asked = std::max(retry_.longest_wait, std::chrono::milliseconds{3'600'000});
}

STRATA_INLINE std::vector<std::string> Delivery::add(std::shared_ptr<const QueuedEvent> event) {
    std::vector<std::string> let_go;
    Waiting one{.event = std::move(event)};
    if (!one.event->replaces.empty()) {
        const auto older = std::find_if(waiting_.begin(), waiting_.end(), [&](const Waiting& other) {
            return !other.in_flight && other.event->replaces == one.event->replaces;
        });
        if (older != waiting_.end()) {
            let_go.push_back(older->event->id);
            one.replaced = older->replaced + 1;
            waiting_.erase(older);
        }
    }
    waiting_.push_back(std::move(one));
    if (waiting_.size() > static_cast<std::size_t>(options_.most_waiting)) {
        auto least = waiting_.end();
        for (auto at = waiting_.begin(); at != waiting_.end(); ++at)
            if (!at->in_flight && (least == waiting_.end() || at->event->severity > least->event->severity)) least = at;
        let_go.push_back(least->event->id);  // there is one: what has just come is not in flight
        waiting_.erase(least);
        ++dropped_;
    }
    return let_go;
}

STRATA_INLINE Delivery::Time Delivery::ready(const Waiting& one, bool closing) const {
    Time time = blocked_until_.value_or(Time::min());
    const auto& last = last_.at(static_cast<std::size_t>(one.event->kind));
    if (last && !closing)
        time = std::max(time, *last + detail::milliseconds_of(interval_of(options_, one.event->kind)));
    return time;
}

STRATA_INLINE std::vector<Delivery::Waiting> Delivery::next(Time now, bool closing) {
    std::vector<Waiting> batch;
    for (Waiting& one : waiting_) {
        if (ready(one, closing) > now) continue;
        one.in_flight = true;
        batch.push_back(one);
        if (batch.size() == together_) break;
    }
    telling_ = dropped_;
    return batch;
}

STRATA_INLINE std::optional<Delivery::Time> Delivery::due(bool closing) const {
    std::optional<Time> first;
    for (const Waiting& one : waiting_) {
        if (one.in_flight) return std::nullopt;
        const Time time = ready(one, closing);
        if (!first || time < *first) first = time;
    }
    return first;
}

STRATA_INLINE std::vector<std::string> Delivery::answered(const Judgement& judgement, Time now, double uniform) {
    std::vector<std::string> done;
    const auto count =
        std::count_if(waiting_.begin(), waiting_.end(), [](const Waiting& one) { return one.in_flight; });
    const std::size_t usual = options_.webhook_type == WebhookType::discord ? most_together : 1;
    const bool is_delivered = judgement.verdict == Verdict::delivered;
    const bool is_of_event = judgement.verdict == Verdict::bad_event;
    blocked_until_.reset();
    if (is_delivered || (is_of_event && count == 1)) {
        failures_ = 0;
        for (auto at = waiting_.begin(); at != waiting_.end();) {
            if (!at->in_flight) {
                ++at;
            } else if (!is_delivered && !at->no_pictures && !at->event->pictures.empty()) {
                at->in_flight = false;
                (at++)->no_pictures = true;  // it may be they that are too large, or of a form that is not liked
            } else {
                done.push_back(at->event->id);
                if (is_delivered) last_.at(static_cast<std::size_t>(at->event->kind)) = now;
                ++(is_delivered ? delivered_ : refused_);
                at = waiting_.erase(at);
            }
        }
    } else {
        for (Waiting& one : waiting_) one.in_flight = false;
        if (is_of_event)
            together_ = 1;  // which of them it is shows when they go one by one
        else
            ++failures_;
    }
    if (is_delivered) {
        told_ = telling_;
        together_ = usual;
        if (judgement.asked) blocked_until_ = now + *judgement.asked;
        return done;
    }
    // Behind an event that is not taken, too: else a thousand of them would be as many requests without a pause.
    auto wait = http::backoff(retry_, is_of_event ? 1 : failures_, uniform);
    if (judgement.verdict == Verdict::refused || judgement.verdict == Verdict::forbidden)
        wait = std::max(wait, retry_.longest_wait / 2);
    if (judgement.asked) wait = std::max(wait, std::min(*judgement.asked, retry_.longest_asked));
    blocked_until_ = now + wait;
    return done;
}

}  // namespace strata::webhooks
