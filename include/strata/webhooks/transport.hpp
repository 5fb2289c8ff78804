#pragma once
// strata/webhooks/transport.hpp - Transport: a request on its way to the server of one webhook, and no further than its owner allows.

#include <string>
#include <string_view>

#include <strata/core/inline.hpp>
#include <strata/http/http_pool.hpp>
#include <strata/options/webhook_options.hpp>
#include <strata/webhooks/request.hpp>

namespace strata::webhooks {

/// Thread-safe.
class Transport {
public:
    explicit Transport(const WebhookOptions& options);

    /// One attempt; blocks for connect_timeout_seconds and timeout_seconds at most, for each server that it is led to. Redirects are
    /// followed if they are allowed, up to 5, always as POST with the same body, never from https to http; headers that are secret go
    /// to the first server alone. `reason` has neither address nor token nor secret in it.
    [[nodiscard]] http::HttpAnswer post(const Request& request);

    /// post() under way and later ends as `interrupted`. From any thread.
    void interrupt() noexcept { pool_.interrupt(); }

    /// A text with the secrets of this webhook as "***": its token, its secret, its address and of that each part that could be a token.
    [[nodiscard]] std::string masked(std::string_view text) const;

private:
    WebhookOptions options_;
    http::HttpPool pool_;
};

}  // namespace strata::webhooks

#ifndef STRATA_COMPILED
#include <strata/webhooks/impl/transport.ipp>
#endif
