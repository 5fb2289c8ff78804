#pragma once
// strata/http/impl/outage.ipp - when enough was tried, and when a line is due.

#include <algorithm>

#include <strata/core/amounts.hpp>
#include <strata/core/inline.hpp>
#include <strata/http/impl/retry.ipp>
#include <strata/http/outage.hpp>

namespace strata::http {

STRATA_INLINE std::optional<std::chrono::milliseconds> Outage::Request::failed(
    std::string_view why, std::optional<std::chrono::milliseconds> asked) {
    using std::chrono::milliseconds;
    const auto now = outage_.hooks_.now();
    if (!first_failure_) first_failure_ = now;
    last_failure_ = now;
    ++failed_;
    const RetryOptions& options = outage_.options_;
    milliseconds wait = backoff(options, failed_, jitter());
    if (asked) wait = std::max(wait, std::min(*asked, options.longest_asked));
    {
        const std::lock_guard lock{outage_.mutex_};
        if (!outage_.answered_) {
            if (failed_ >= options.attempts_at_first) return std::nullopt;
            return wait;
        }
    }
    const auto left = std::chrono::ceil<milliseconds>(*first_failure_ + options.patience - now);
    if (left <= milliseconds{0}) {
        const std::lock_guard lock{outage_.mutex_};
        outage_.announced_ = false;  // what this request throws says the rest
        return std::nullopt;
    }
    outage_.announce(why, now);
    return std::min(wait, left);  // the last attempt is made when the time is up, and not before
}

STRATA_INLINE void Outage::Request::succeeded() {
    if (failed_ > 0) outage_.close(outage_.hooks_.now());
}

STRATA_INLINE std::string Outage::Request::failures() const {
    if (failed_ < 2) return {};
    const std::string times = ", " + std::to_string(failed_) + " times in ";
    const auto tried = std::chrono::round<std::chrono::seconds>(last_failure_ - *first_failure_);
    return times + (tried.count() < 1 ? std::string{"a row"} : core::in_words(tried));
}

STRATA_INLINE void Outage::answered() noexcept {
    const std::lock_guard lock{mutex_};
    answered_ = true;
}

STRATA_INLINE void Outage::announce(std::string_view why, std::chrono::steady_clock::time_point now) {
    const std::lock_guard lock{mutex_};
    if (announced_ || (last_announced_ && now - *last_announced_ < options_.announce_pause)) return;
    announced_ = true;
    began_ = now;
    last_announced_ = now;
    if (hooks_.say)
        hooks_.say(server_ + " " + std::string{why} + "; trying again for " +
                   core::in_words(std::chrono::round<std::chrono::seconds>(options_.patience)));
}

STRATA_INLINE void Outage::close(std::chrono::steady_clock::time_point now) {
    const std::lock_guard lock{mutex_};
    if (!announced_) return;
    announced_ = false;
    if (hooks_.say)
        hooks_.say(
            server_ + " answers again, after " +
            core::in_words(std::max(std::chrono::seconds{1}, std::chrono::ceil<std::chrono::seconds>(now - began_))));
}

}  // namespace strata::http
