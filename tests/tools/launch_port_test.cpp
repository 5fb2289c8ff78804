// How hosts of a launch find each other and prove who they are; strangers at the port.

#include <array>
#include <cerrno>
#include <string>
#include <thread>
#include <vector>

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "../../tools/launch_handshake.hpp"
#include "../../tools/launch_wire.hpp"
#include "many_hosts.hpp"

namespace {

using strata::tools::Message;
using strata::tools::Welcome;
using strata::tools::Wire;
using Kind = Message::Kind;

struct LaunchPort : strata_test::ManyHosts {};

TEST_F(LaunchPort, BothEndsProveThatTheyKnowTheSecretAndWhatFollowsCannotBeChanged) {
    for (const bool same : {true, false}) {
        std::array<int, 2> sockets{};
        ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets.data()), 0);
        Wire listener{sockets[0]};
        Wire caller{sockets[1]};
        const Welcome welcome{listener, "one"};
        std::string why;
        std::thread calling{[&] { why = strata::tools::introduce(caller, same ? "one" : "other", 5); }};
        const auto proof = strata::tools::await_message(listener, 5);
        ASSERT_TRUE(proof);
        EXPECT_EQ(proof->words.at(1).find("one"), std::string::npos);
        const bool right = welcome.take(listener, *proof) == Welcome::Answer::right;
        if (!right) ::shutdown(sockets[0], SHUT_RDWR);
        calling.join();
        EXPECT_EQ(right, same);
        EXPECT_EQ(why.empty(), same) << why;
        if (!same) continue;
        caller.send({Kind::line, {"as it was", "sent"}});
        const auto message = strata::tools::await_message(listener, 5);
        ASSERT_TRUE(message);
        EXPECT_EQ(message->words, (std::vector<std::string>{"as it was", "sent"}));

        // Somebody on the way sends a message of their own: well formed, and without a code.
        const std::string forged{"\x0b\x00\x00\x00x\x06\x00\x00\x00rm -rf", 15};
        ASSERT_EQ(::write(sockets[1], forged.data(), forged.size()), static_cast<ssize_t>(forged.size()));
        EXPECT_FALSE(strata::tools::await_message(listener, 1));
        EXPECT_EQ(listener.failure(), EBADMSG);
    }
}

TEST_F(LaunchPort, AMessageThatIsSentAgainIsRefused) {
    std::array<int, 2> sockets{};
    std::array<int, 2> copy{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets.data()), 0);
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, copy.data()), 0);
    Wire sender{sockets[0]};
    Wire receiver{copy[1]};
    sender.seal("key", true);
    receiver.seal("key", false);
    sender.send({Kind::stop, {}});
    std::array<char, 256> bytes{};
    const ssize_t size = ::read(sockets[1], bytes.data(), bytes.size());
    for (int i = 0; i < 2; ++i) ASSERT_EQ(::write(copy[0], bytes.data(), static_cast<std::size_t>(size)), size);
    EXPECT_TRUE(strata::tools::await_message(receiver, 5));
    EXPECT_FALSE(strata::tools::await_message(receiver, 1));
    EXPECT_EQ(receiver.failure(), EBADMSG);
    ::close(sockets[1]);
    ::close(copy[0]);
}

}  // namespace
