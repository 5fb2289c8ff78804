#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <strata/http/http_pool.hpp>

#include "../../support/fake_http_server.hpp"
#include "../../support/own_certificate.hpp"
#include "../../support/temporary_folder.hpp"

namespace {

using strata::http::BodyUse;
using strata::http::HttpAnswer;
using strata::http::HttpFailure;
using strata::http::HttpOptions;
using strata::http::HttpPool;
using strata::http::HttpRequest;
using strata_test::FakeHttpServer;
using strata_test::FakeReply;
using strata_test::FakeRequest;
using strata_test::OwnCertificate;
using strata_test::TemporaryFolder;

HttpRequest get(const std::string& url) { return {.method = "GET", .url = url}; }

TEST(HttpPool, SendsWhatItIsGivenAndReturnsWhatCame) {
    const FakeHttpServer server{
        [](const FakeRequest&) { return FakeReply::answer(201, "hello", "X-Thing:  a b \r\nETag: \"x\"\r\n"); }};
    HttpPool pool{{}};
    const std::string body(300'000, 'b');
    const HttpAnswer answer = pool.perform({.method = "PUT",
                                            .url = server.url() + "/a/../b//c%20d?q=1",
                                            .headers = {{"x-mine", "yes"}},
                                            .body = std::as_bytes(std::span{body})});
    EXPECT_EQ(answer.failure, HttpFailure::none) << answer.reason;
    EXPECT_EQ(answer.status, 201);
    EXPECT_EQ(answer.text(), "hello");
    EXPECT_EQ(answer.header("x-thing"), "a b");
    EXPECT_EQ(answer.header("etag"), "\"x\"");
    EXPECT_EQ(answer.header("absent"), "");
    EXPECT_EQ(answer.received, 5U);
    EXPECT_EQ(answer.sent, body.size());
    const auto seen = server.seen();
    ASSERT_EQ(seen.size(), 1U);
    EXPECT_EQ(seen[0].method, "PUT");
    EXPECT_EQ(seen[0].target, "/a/../b//c%20d?q=1");
    EXPECT_EQ(seen[0].header("x-mine"), "yes");
    EXPECT_EQ(seen[0].body, body);
    EXPECT_EQ(seen[0].headers.count("accept") + seen[0].headers.count("content-type"), 0U);
}

TEST(HttpPool, BodiesGoWhereTheyAreWantedAndNoFurther) {
    const FakeHttpServer server{[](const FakeRequest& request) {
        return request.asks("bad") ? FakeReply::answer(404, "no such thing") : FakeReply::answer(200, "0123456789");
    }};
    HttpPool pool{{}};
    std::vector<std::byte> ten(10);
    HttpRequest request = get(server.url());
    request.into = ten;
    HttpAnswer answer = pool.perform(request);
    EXPECT_EQ(answer.received, 10U);
    EXPECT_TRUE(answer.body.empty());
    EXPECT_EQ(static_cast<char>(ten[9]), '9');

    request.into = std::span{ten}.first(9);
    EXPECT_EQ(pool.perform(request).failure, HttpFailure::too_long);
    request.into = {};
    request.most = 9;
    EXPECT_EQ(pool.perform(request).failure, HttpFailure::too_long);
    request.most = 10;
    EXPECT_EQ(pool.perform(request).text(), "0123456789");

    request.url += "/bad";
    request.most = 1;
    request.into = ten;
    answer = pool.perform(request);
    EXPECT_EQ(answer.text(), "no such thing") << "what a refusal says is never cut to the size of what was wanted";
}

TEST(HttpPool, ABodyThatMayBeCutIsTakenAsFarAsItIsWanted) {
    const std::string large(3'000'000, 'x');
    const FakeHttpServer server{[&](const FakeRequest& request) {
        return FakeReply::answer(request.asks("bad") ? 400 : 200, request.asks("short") ? "0123456789" : large,
                                 "X-Thing: a\r\n");
    }};
    HttpPool pool{{}};
    HttpRequest request = get(server.url());
    request.most = 1'000'000;
    EXPECT_EQ(pool.perform(request).failure, HttpFailure::too_long);
    request.cut = true;
    HttpAnswer answer = pool.perform(request);
    EXPECT_EQ(answer.failure, HttpFailure::left) << answer.reason;
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.header("x-thing"), "a");
    EXPECT_TRUE(answer.text() == large.substr(0, 1'000'000)) << answer.received;
    request.url = server.url() + "/bad";
    answer = pool.perform(request);
    EXPECT_EQ(answer.failure, HttpFailure::left) << answer.reason;
    EXPECT_EQ(answer.status, 400);
    EXPECT_EQ(answer.received, 1U << 20U) << "what a refusal says has a length of its own";
    request.url = server.url() + "/short";
    request.most = 10;
    answer = pool.perform(request);
    EXPECT_EQ(answer.failure, HttpFailure::none) << answer.reason;
    EXPECT_EQ(answer.text(), "0123456789");
}

TEST(HttpPool, ABodyMayBeSummedOrLeftOnceItsHeadIsKnown) {
    const std::string large(20'000'000, 'x');
    const FakeHttpServer server{[&](const FakeRequest& request) {
        return FakeReply::answer(request.asks("bad") ? 404 : 200, request.asks("large") ? large : "message digest");
    }};
    HttpPool pool{{}};
    HttpRequest request = get(server.url());
    request.on_body = [](const HttpAnswer& answer) {
        return answer.header("content-length").size() > 4 ? BodyUse::leave : BodyUse::take_and_sum;
    };
    HttpAnswer answer = pool.perform(request);
    EXPECT_EQ(answer.text(), "message digest");
    ASSERT_TRUE(answer.md5);
    EXPECT_EQ(strata::storage::to_hex(*answer.md5), "f96b697d7cb7938d525a2f31aaf161d0");
    request.url += "/large";
    answer = pool.perform(request);
    EXPECT_EQ(answer.failure, HttpFailure::left);
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.header("content-length"), "20000000");
    EXPECT_TRUE(answer.body.empty() && !answer.md5);
    request.url = server.url() + "/bad";
    answer = pool.perform(request);
    EXPECT_EQ(answer.text(), "message digest");
    EXPECT_FALSE(answer.md5);
}

TEST(HttpPool, KeepsItsConnectionsAndOpensNoMoreThanItMay) {
    std::mutex mutex;
    std::condition_variable changed;
    int under_way = 0;
    int most = 0;
    const FakeHttpServer server{[&](const FakeRequest&) {
        std::unique_lock lock{mutex};
        most = std::max(most, ++under_way);
        changed.notify_all();
        changed.wait_for(lock, std::chrono::seconds{5}, [&] { return most >= 3; });  // all that may come are here
        --under_way;
        return FakeReply::answer(200, "x");
    }};
    HttpPool pool{HttpOptions{.connections = 3}};
    std::vector<std::thread> threads;
    std::atomic<int> good{0};
    for (int i = 0; i < 8; ++i)
        threads.emplace_back([&] {
            for (int k = 0; k < 5; ++k) good += pool.perform(get(server.url())).status == 200 ? 1 : 0;
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(good, 40);
    EXPECT_EQ(most, 3);
    EXPECT_EQ(server.connections(), 3);
}

TEST(HttpPool, AConnectionThatTheServerHasClosedIsReplaced) {
    const FakeHttpServer server{[](const FakeRequest&) {
        FakeReply reply = FakeReply::answer(200, "x");
        reply.close = true;  // unannounced
        return reply;
    }};
    HttpPool pool{{}};
    const std::string body(100'000, 'b');
    for (int i = 0; i < 3; ++i) {
        const HttpAnswer answer =
            pool.perform({.method = "PUT", .url = server.url(), .headers = {}, .body = std::as_bytes(std::span{body})});
        EXPECT_EQ(answer.failure, HttpFailure::none) << answer.reason;
    }
    for (const auto& request : server.seen()) EXPECT_EQ(request.body, body);
}

TEST(HttpPool, TellsFailuresApart) {
    const FakeHttpServer server{[](const FakeRequest& request) {
        if (request.asks("cut")) return FakeReply{"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf", true, false};
        if (request.asks("nothing")) return FakeReply::cut();
        return FakeReply{"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf", false, true};
    }};
    HttpPool pool{HttpOptions{.stall_timeout = std::chrono::seconds{1}}};
    EXPECT_EQ(pool.perform(get(server.url() + "/cut")).failure, HttpFailure::broken);
    EXPECT_EQ(pool.perform(get(server.url() + "/nothing")).failure, HttpFailure::broken);
    EXPECT_EQ(pool.perform(get(server.url() + "/stall")).failure, HttpFailure::stalled);
    EXPECT_EQ(pool.perform(get("http://127.0.0.1:1/")).failure, HttpFailure::unreachable);
    EXPECT_EQ(pool.perform(get("http://no-such-host.invalid/")).failure, HttpFailure::unresolved);
    EXPECT_NE(pool.perform(get("file:///etc/passwd")).failure, HttpFailure::none);
    EXPECT_TRUE(pool.perform(get("file:///etc/passwd")).body.empty());
}

TEST(HttpPool, DoesNotFollowRedirects) {
    const FakeHttpServer server{[](const FakeRequest& request) {
        return request.asks("there") ? FakeReply::answer(200, "secret")
                                     : FakeReply::answer(307, "", "Location: /there\r\n");
    }};
    EXPECT_EQ(HttpPool{{}}.perform(get(server.url())).status, 307);
    EXPECT_EQ(server.requests(), 1);
}

TEST(HttpPool, InterruptEndsRequestsThatWaitAndLaterOnes) {
    const FakeHttpServer server{[](const FakeRequest&) { return FakeReply{"", false, true}; }};
    HttpPool pool{HttpOptions{.connections = 1, .stall_timeout = std::chrono::seconds{3600}}};
    HttpAnswer answers[2];
    std::thread first{[&] { answers[0] = pool.perform(get(server.url())); }};   // waits for the server
    std::thread second{[&] { answers[1] = pool.perform(get(server.url())); }};  // waits for the connection
    std::thread sleeper{[&] { EXPECT_FALSE(pool.wait_for(std::chrono::hours{1})); }};
    while (server.requests() < 1) std::this_thread::yield();
    pool.interrupt();
    first.join();
    second.join();
    sleeper.join();
    for (const HttpAnswer& answer : answers) EXPECT_EQ(answer.failure, HttpFailure::interrupted);
    EXPECT_EQ(pool.perform(get(server.url())).failure, HttpFailure::interrupted);
    EXPECT_EQ(server.requests(), 1);
}

TEST(HttpPool, TalksTlsOnlyToServersWhoseCertificateItTrusts) {
    const TemporaryFolder folder;
    const OwnCertificate own{"IP:127.0.0.1", folder.path() / "own.pem"};
    const OwnCertificate of_another{"IP:127.0.0.2", folder.path() / "other.pem"};
    const auto hello = [](const FakeRequest&) { return FakeReply::answer(200, "hello"); };
    const FakeHttpServer server{hello, own.context()};
    const FakeHttpServer impostor{hello, of_another.context()};

    HttpAnswer answer = HttpPool{{}}.perform(get(server.url()));
    EXPECT_EQ(answer.failure, HttpFailure::untrusted) << answer.reason;
    HttpPool trusting{HttpOptions{.ca_file = folder.path() / "own.pem"}};
    for (int i = 0; i < 3; ++i) {
        answer = trusting.perform(get(server.url()));
        EXPECT_EQ(answer.text(), "hello") << answer.reason;
    }
    EXPECT_EQ(server.connections(), 2);  // one was refused, one was kept
    answer = trusting.perform(get(impostor.url()));
    EXPECT_EQ(answer.failure, HttpFailure::untrusted) << "signed by nobody who is trusted";
    answer = HttpPool{HttpOptions{.ca_file = folder.path() / "other.pem"}}.perform(get(impostor.url()));
    EXPECT_EQ(answer.failure, HttpFailure::untrusted) << "trusted, but with another name";
    EXPECT_EQ(HttpPool{HttpOptions{.ca_file = "/nowhere.pem"}}.perform(get(server.url())).failure,
              HttpFailure::untrusted);
    EXPECT_EQ(impostor.requests(), 0);
}

TEST(HttpPool, AServerThatHangsUpWhileItIsWrittenToEndsNoProcess) {
    const TemporaryFolder folder;
    const OwnCertificate own{"IP:127.0.0.1", folder.path() / "own.pem"};
    const strata_test::Listener hangs_up{[&](int socket, int) {
        const std::unique_ptr<SSL, void (*)(SSL*)> ssl{::SSL_new(own.context()), &::SSL_free};
        ::SSL_set_fd(ssl.get(), socket);
        ::SSL_accept(ssl.get());
        char byte = 0;
        ::SSL_read(ssl.get(), &byte, 1);
        ::shutdown(socket, SHUT_RDWR);
    }};
    const std::string body(20'000'000, 'b');
    HttpPool pool{HttpOptions{.ca_file = folder.path() / "own.pem"}};
    for (int i = 0; i < 5; ++i) {  // SIGPIPE has its default action here: it would end the tests
        const HttpAnswer answer = pool.perform({.method = "PUT",
                                                .url = "https://127.0.0.1:" + std::to_string(hangs_up.port()) + "/",
                                                .headers = {{"x", "y"}},
                                                .body = std::as_bytes(std::span{body})});
        EXPECT_EQ(answer.failure, HttpFailure::broken) << answer.reason;
    }
}

}  // namespace
