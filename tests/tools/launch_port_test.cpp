// How hosts of a launch find each other and prove who they are; strangers at the port.

#include <array>
#include <cerrno>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "../../tools/launch_handshake.hpp"
#include "../../tools/launch_port.hpp"
#include "../../tools/launch_wire.hpp"
#include "../../tools/own_host.hpp"
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
        calling.join();
        EXPECT_EQ(right, same);
        EXPECT_EQ(why, same ? "" : strata::tools::another_secret);
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

/// The first node is started again just then: whoever called it calls again.
TEST_F(LaunchPort, AConnectionThatBreaksWhileSecretsAreProvedIsNoOtherSecret) {
    std::array<int, 2> sockets{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets.data()), 0);
    Wire listener{sockets[0]};
    Wire caller{sockets[1]};
    const Welcome welcome{listener, "one"};
    std::string why;
    std::thread calling{[&] { why = strata::tools::introduce(caller, "one", 5); }};
    EXPECT_TRUE(strata::tools::await_message(listener, 5));
    ::shutdown(sockets[0], SHUT_RDWR);
    calling.join();
    EXPECT_EQ(why, "the connection broke before it was let in");
}

/// Connections to a port of this host that say nothing.
struct Strangers {
    std::vector<int> sockets;
    void come(const std::string& reach, int count) {
        sockaddr_in to{};
        to.sin_family = AF_INET;
        to.sin_port = htons(static_cast<std::uint16_t>(std::stoi(reach.substr(reach.rfind(':') + 1))));
        to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        for (int i = 0; i < count; ++i) {
            sockets.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
            ASSERT_EQ(::connect(sockets.back(), reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
        }
    }
    ~Strangers() {
        for (const int socket : sockets) ::close(socket);
    }
};

TEST_F(LaunchPort, StrangersWhoSayNothingDoNotKeepAHostOut) {
    strata::tools::LaunchPort port{0, "a secret of this test", 30};
    Strangers strangers;
    strangers.come(port.reach(), 200);
    EXPECT_TRUE(port.accept().empty());
    EXPECT_EQ(port.numbers().size(), strata::tools::LaunchPort::most_visitors)
        << "all places are taken, and nobody is told of who waits outside";
    std::string why;
    std::optional<Wire> caller;
    std::thread calling{[&] {
        caller = strata::tools::LaunchPort::connect("127.0.0.1" + port.reach().substr(port.reach().rfind(':')),
                                                    "a secret of this test", 30, why);
    }};
    std::size_t came = 0;
    EXPECT_TRUE(eventually([&] { return (came += port.accept().size()) > 0; }));
    calling.join();
    EXPECT_TRUE(caller) << why;
}

TEST_F(LaunchPort, WhereFilesRunOutTheOldestStrangerGoesAndNotTheLaunch) {
    strata::tools::LaunchPort port{0, "a secret of this test", 30};
    Strangers strangers;
    strangers.come(port.reach(), 20);
    rlimit before{};
    ::getrlimit(RLIMIT_NOFILE, &before);
    const int next = ::dup(0);  // the lowest number that is free
    ::close(next);
    const rlimit low{static_cast<rlim_t>(next) + 2, before.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &low);
    EXPECT_NO_THROW((void)port.accept());
    EXPECT_EQ(port.numbers().size(), 1U + 2U) << "the port, and who came last";
    EXPECT_NO_THROW((void)port.accept()) << "nobody has come meanwhile";
    EXPECT_EQ(port.numbers().size(), 1U + 2U);
    ::setrlimit(RLIMIT_NOFILE, &before);
}

TEST_F(LaunchPort, ThisHostIsKnownByItsAddress) {
    const std::string own = strata::tools::own_addresses().front();
    EXPECT_EQ(strata::tools::own_host({{"192.0.2.1", {0}}, {own, {0}}}), own);
    EXPECT_EQ(strata::tools::own_host({{"192.0.2.1", {0}}}), "") << "an address of documentation is nobody's";
    EXPECT_EQ(strata::tools::own_host({{own, {0}}, {"localhost", {0}}}), "localhost") << "names come first";
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
