// Which addresses are the internet's.

#include <string>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <strata/http/http_pool.hpp>
#include <strata/http/public_address.hpp>

#include "../../support/fake_http_server.hpp"

namespace {

using strata::http::HttpFailure;
using strata::http::HttpPool;

bool is_public_text(const std::string& text) {
    sockaddr_storage storage{};
    auto& ipv4 = reinterpret_cast<sockaddr_in&>(storage);
    auto& ipv6 = reinterpret_cast<sockaddr_in6&>(storage);
    if (::inet_pton(AF_INET, text.c_str(), &ipv4.sin_addr) == 1)
        storage.ss_family = AF_INET;
    else if (::inet_pton(AF_INET6, text.c_str(), &ipv6.sin6_addr) == 1)
        storage.ss_family = AF_INET6;
    const auto& address = reinterpret_cast<const sockaddr&>(storage);
    EXPECT_EQ(strata::http::address_text(address), text);
    return strata::http::is_public(address);
}

TEST(PublicAddress, PrivateOnesAreKnownInAllTheirForms) {
    for (const char* text : {"0.0.0.0",
                             "10.1.2.3",
                             "100.64.0.1",
                             "100.127.255.255",
                             "127.0.0.1",
                             "127.8.8.8",
                             "169.254.169.254",
                             "172.16.0.1",
                             "172.31.255.255",
                             "192.0.2.1",
                             "192.168.1.1",
                             "198.19.255.255",
                             "203.0.113.9",
                             "224.0.0.1",
                             "255.255.255.255",
                             "::",
                             "::1",
                             "fe80::1",
                             "fc00::1",
                             "fd12::1",
                             "ff02::1",
                             "2001:db8::1",
                             "2001::1",
                             "::ffff:127.0.0.1",
                             "::ffff:10.0.0.1",
                             "64:ff9b::a00:1",
                             "2002:7f00:1::",
                             "3fff::1"})
        EXPECT_FALSE(is_public_text(text)) << text;
    for (const char* text : {"1.1.1.1", "8.8.8.8", "100.63.255.255", "100.128.0.0", "172.15.255.255", "172.32.0.0",
                             "192.0.1.0", "223.255.255.255", "2606:4700:4700::1111", "2a00:1450::1", "::ffff:8.8.8.8",
                             "64:ff9b::808:808", "2002:808:808::"})
        EXPECT_TRUE(is_public_text(text)) << text;
    EXPECT_FALSE(strata::http::is_public(sockaddr{.sa_family = AF_UNIX, .sa_data = {}}));
}

TEST(PublicAddress, APoolThatMayNotGoThereOpensNoConnection) {
    const strata_test::FakeHttpServer server{
        [](const strata_test::FakeRequest&) { return strata_test::FakeReply::answer(200); }};
    HttpPool strict{{.proxy = false, .public_only = true}};
    for (const std::string& host : {std::string{"127.0.0.1"}, std::string{"localhost"}, std::string{"0x7f.1"}}) {
        const std::string url = "http://" + host + server.url().substr(std::string{"http://127.0.0.1"}.size());
        const auto answer = strict.perform({.method = "GET", .url = url});
        EXPECT_EQ(answer.failure, HttpFailure::forbidden) << host << ": " << answer.reason;
        EXPECT_NE(answer.reason.find("is no public address"), std::string::npos) << answer.reason;
    }
    EXPECT_EQ(server.connections(), 0);
    HttpPool usual{{}};
    EXPECT_EQ(usual.perform({.method = "GET", .url = server.url()}).status, 200);
}

}  // namespace
