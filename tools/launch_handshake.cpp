#include "launch_handshake.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <span>
#include <utility>

#include <poll.h>
#include <sys/random.h>

#include <strata/core/error.hpp>
#include <strata/storage/digest.hpp>

namespace strata::tools {

namespace {

using Kind = Message::Kind;
constexpr std::size_t nonce_bytes = 32;
constexpr std::size_t first_message = 1024;  // bytes that are read of somebody unknown

std::string code(std::string_view secret, const std::string& text) {
    return storage::to_hex(storage::hmac_sha256(std::as_bytes(std::span{secret}), text));
}
bool same(std::string_view a, std::string_view b) {
    unsigned differs = a.size() == b.size() ? 0 : 1;
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) differs |= static_cast<unsigned char>(a[i] ^ b[i]);
    return differs == 0;
}
std::string proof_of(std::string_view secret, const std::string& side, const std::string& challenge,
                     const std::string& answer) {
    return code(secret, "strata launch " + side + " " + challenge + " " + answer);
}

}  // namespace

std::string random_digits(std::size_t bytes) {
    std::string random(bytes, '\0');
    for (std::size_t got = 0; got < bytes;) {
        const ssize_t n = ::getrandom(random.data() + got, bytes - got, 0);
        if (n < 0 && errno != EINTR)
            throw Error{Errc::cannot_launch, "the kernel gives no random numbers", "allow the call getrandom"};
        got += static_cast<std::size_t>(std::max<ssize_t>(n, 0));
    }
    return storage::to_hex(std::as_bytes(std::span{random}));
}

std::string derived_key(std::string_view secret, std::string_view purpose) {
    return code(secret, "strata launch key for " + std::string{purpose});
}

Welcome::Welcome(Wire& wire, std::string secret) : secret_{std::move(secret)}, challenge_{random_digits(nonce_bytes)} {
    wire.limit(first_message);
    wire.send({Kind::challenge, {challenge_}});
}

Welcome::Answer Welcome::take(Wire& wire, const Message& message) const {
    if (message.kind != Kind::proof || message.words.size() != 2 || message.words[0].size() != 2 * nonce_bytes ||
        !same(message.words[1], proof_of(secret_, "caller", challenge_, message.words[0]))) {
        // Said, so that a caller can tell it from a connection that broke: the one is final, the other is tried again.
        wire.send({Kind::refused, {}});
        return Answer::wrong;
    }
    const std::string& answer = message.words[0];
    wire.send({Kind::welcome, {proof_of(secret_, "listener", challenge_, answer)}});
    wire.seal(proof_of(secret_, "session", challenge_, answer), true);
    wire.limit(std::size_t{64} << 20U);
    return Answer::right;
}

std::optional<Message> await_message(Wire& wire, int seconds) {
    using Clock = std::chrono::steady_clock;
    const auto until = Clock::now() + std::chrono::seconds{seconds};
    while (true) {
        if (auto message = wire.next()) return message;
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
        pollfd watched{wire.socket(), POLLIN, 0};
        if (left <= 0) return std::nullopt;
        if (::poll(&watched, 1, static_cast<int>(left)) < 0 && errno != EINTR) return std::nullopt;
        if (watched.revents == 0) continue;
        const bool connected = wire.receive();
        if (auto message = wire.next()) return message;
        if (!connected) return std::nullopt;
    }
}

std::string introduce(Wire& wire, const std::string& secret, int seconds) {
    const auto challenge = await_message(wire, seconds);
    if (!challenge || challenge->kind != Kind::challenge || challenge->words.size() != 1)
        return "what listens there is no strata launch";
    const std::string answer = random_digits(nonce_bytes);
    wire.send({Kind::proof, {answer, proof_of(secret, "caller", challenge->words[0], answer)}});
    const auto reply = await_message(wire, seconds);
    if (!reply) return "the connection broke before it was let in";
    if (reply->kind != Kind::welcome || reply->words.size() != 1 ||
        !same(reply->words[0], proof_of(secret, "listener", challenge->words[0], answer)))
        return another_secret;
    wire.seal(proof_of(secret, "session", challenge->words[0], answer), false);
    return {};
}

}  // namespace strata::tools
