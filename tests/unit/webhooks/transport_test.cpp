// A request on its way to one server: what is taken of its answer, and what a message may say of where it went.

#include <string>

#include <gtest/gtest.h>

#include <strata/webhooks/delivery.hpp>
#include <strata/webhooks/transport.hpp>

#include "../../support/fake_http_server.hpp"

namespace {

using namespace strata::webhooks;
using strata_test::FakeHttpServer;
using strata_test::FakeReply;
using strata_test::FakeRequest;

WebhookOptions webhook_at(const std::string& url) {
    WebhookOptions options;
    options.url = url;
    options.allow_private_addresses = true;
    return options;
}

/// Else an event that a talkative server has taken would be sent again for ever, and hold up all behind it.
TEST(Transport, AnAnswerThatIsLongerThanItNeedBeCountsByItsStatus) {
    const std::string page(3'000'000, 'x');
    const FakeHttpServer server{[&](const FakeRequest& request) {
        return FakeReply::answer(std::stoi(request.target.substr(1)), page, "Retry-After: 60\r\n");
    }};
    const auto judgement_of = [&](const std::string& status) {
        Transport transport{webhook_at(server.url() + "/" + status)};
        return judge(transport.post({.body = "{}", .headers = {}, .secret_headers = {}}), {});
    };
    EXPECT_EQ(judgement_of("200").verdict, Verdict::delivered);
    EXPECT_EQ(judgement_of("413").verdict, Verdict::bad_event);
    EXPECT_EQ(judgement_of("404").verdict, Verdict::refused);
    const Judgement busy = judgement_of("503");
    EXPECT_EQ(busy.verdict, Verdict::later);
    EXPECT_EQ(busy.asked, std::chrono::seconds{60});
    EXPECT_EQ(busy.why, "answers 503");
}

TEST(Transport, NoPartOfAnAddressThatMayBeATokenIsInAText) {
    WebhookOptions options = webhook_at("https://hooks.example.org/api/123456789/Toktoktok-1?key=geheim-123&v=2#gone");
    options.auth_token = "token-1";
    options.secret = "s3";
    const Transport transport{options};
    EXPECT_EQ(
        transport.masked("POST https://hooks.example.org/api/123456789/Toktoktok-1?key=geheim-123&v=2#gone failed"),
        "POST *** failed");
    EXPECT_EQ(transport.masked("no '/api/123456789/Toktoktok-1?key=geheim-123&v=2#gone' there"), "no '***' there");
    EXPECT_EQ(transport.masked("https://other.example.org/api/123456789/Toktoktok-1 is gone"),
              "https://other.example.org/api/***/*** is gone");
    EXPECT_EQ(transport.masked("key is geheim-123, v is 2, s3 and token-1"), "key is ***, v is 2, *** and ***");
    EXPECT_EQ(transport.masked("the api of hooks.example.org"), "the api of hooks.example.org")
        << "short parts are words, and the host may be named";
}

}  // namespace
