#pragma once
// tools/launch_handshake.hpp - both ends of a connection between hosts prove that they know one secret, and never say it.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "launch_wire.hpp"

namespace strata::tools {

/// `bytes` of them from the kernel, as hexadecimal digits. Throws Errc::cannot_launch.
[[nodiscard]] std::string random_digits(std::size_t bytes);

/// A key for one purpose, which does not give the secret away.
[[nodiscard]] std::string derived_key(std::string_view secret, std::string_view purpose);

/// HMAC-SHA-256 of both sides' numbers: who listens sends one, who calls sends another with its proof, and gets one back.
/// What follows is sealed (Wire::seal) by a key of both numbers.
///
/// The side that listens, which never waits.
class Welcome {
public:
    /// Sends the challenge.
    Welcome(Wire& wire, std::string secret);
    enum class Answer : char { right, wrong };
    /// What the first message says; `wire` is sealed where it is right.
    [[nodiscard]] Answer take(Wire& wire, const Message& message) const;

private:
    std::string secret_;
    std::string challenge_;
};

/// What introduce() says where it does no good to call again.
inline constexpr const char* another_secret = "it has another secret";

/// The side that calls; waits up to `seconds`. Empty when all is well, else what is wrong, as a half sentence.
[[nodiscard]] std::string introduce(Wire& wire, const std::string& secret, int seconds);

/// Waits for a message; none when the other end is gone or nothing comes in time.
[[nodiscard]] std::optional<Message> await_message(Wire& wire, int seconds);

}  // namespace strata::tools
