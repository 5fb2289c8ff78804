#pragma once
// strata/webhooks/request.hpp - events as the bytes that a server gets: JSON with a signature, or a message of Discord's.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <strata/core/inline.hpp>
#include <strata/http/http_pool.hpp>
#include <strata/webhooks/delivery.hpp>
#include <strata/webhooks/event.hpp>

namespace strata::webhooks {

/// A body and its headers. Those that are secret, or made with a secret, are apart: a server that another one names does not get them.
struct Request {
    std::string body;
    std::vector<http::HttpHeader> headers;
    std::vector<http::HttpHeader> secret_headers;
};

/// What Discord takes in one message: it refuses more as a whole.
namespace discord {
inline constexpr std::size_t content_characters = 2000;
inline constexpr std::size_t title_characters = 256;
inline constexpr std::size_t description_characters =
    2000;                                                ///< 4096 may be; ten of them must not be more than the next
inline constexpr std::size_t message_characters = 6000;  ///< of all embeds together
inline constexpr std::size_t most_files = 10;
inline constexpr std::uint64_t file_bytes = 8ULL << 20U;  ///< of all together
}  // namespace discord

/// Events that go together: one for a raw webhook.
///
///   run      what messages begin with where the options have no prefix
///   below    what relative paths of pictures are seen from
///   dropped  events that the server will never see, if it was not told so yet
/// A picture that is not there any more is left out, and the text says so.
[[nodiscard]] Request make_request(const WebhookOptions& options, std::span<const Delivery::Waiting> events,
                                   std::string_view run, const std::filesystem::path& below, std::int64_t dropped,
                                   std::chrono::system_clock::time_point now);

/// At most so many characters, counted as Discord counts: those outside of the basic plane twice. What is cut ends with "…".
[[nodiscard]] std::string cut_characters(std::string_view text, std::size_t most);

}  // namespace strata::webhooks

#ifndef STRATA_COMPILED
#include <strata/webhooks/impl/request.ipp>
#endif
