// Events on their way through nginx, a server that nobody wrote for these tests: over HTTP and TLS, busy, moved, and with too much for it.

#include <atomic>
#include <chrono>
#include <fstream>
#include <optional>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <strata/core/text.hpp>
#include <strata/storage/digest.hpp>
#include <strata/webhooks/courier.hpp>

#include "../../support/courier_time.hpp"
#include "../../support/fake_http_server.hpp"
#include "../../support/nginx.hpp"
#include "../../support/temporary_folder.hpp"

namespace {

using namespace strata::webhooks;
using strata_test::CourierTime;
using strata_test::FakeHttpServer;
using strata_test::FakeReply;
using strata_test::FakeRequest;
using strata_test::Nginx;
using strata_test::note_event;
using strata_test::raw_webhook;
using strata_test::run_courier;
using strata_test::Titles;
using strata_test::titles_of;

/// With plain HTTP, and over TLS with a certificate of one's own.
struct RealServer : testing::TestWithParam<bool> {
    void SetUp() override {
        if (Nginx::found().empty()) GTEST_SKIP() << "nginx is not installed (Debian: nginx)";
        nginx.emplace(behind.url());
    }
    [[nodiscard]] WebhookOptions webhook_at(const std::string& path) const {
        WebhookOptions options = raw_webhook((GetParam() ? nginx->tls_url() : nginx->url()) + path);
        if (GetParam()) options.ca_file = nginx->ca_file();
        options.auth_token = "token-1";
        options.secret = "key";
        return options;
    }

    strata_test::TemporaryFolder folder;
    CourierTime time;
    std::atomic<bool> was_busy = false;
    /// Breaks off what is called "busy" the first time, which nginx answers with 502.
    FakeHttpServer behind{[this](const FakeRequest& request) {
        const bool is_busy = request.body.find("\"busy\"") != std::string::npos && !was_busy.exchange(true);
        return is_busy ? FakeReply::cut() : FakeReply::answer(204);
    }};
    std::optional<Nginx> nginx;
};

TEST_P(RealServer, EventsArriveAsTheyWereSignedAndAgainWhereItIsBusy) {
    Courier courier{{webhook_at("/app/hook?x=1")}, folder.path(), {}, time.hooks()};
    courier.emit(note_event("one"));
    const std::string id = courier.emit(note_event("busy"));
    run_courier(courier);
    EXPECT_EQ(courier.counts().delivered, 1) << time.all_said() << nginx->log();
    EXPECT_NE(time.all_said().find("answers 502"), std::string::npos) << time.all_said();
    time.pass(std::chrono::seconds{1});
    run_courier(courier);
    EXPECT_EQ(courier.counts().delivered, 2) << time.all_said() << nginx->log();
    EXPECT_NE(time.all_said().find("takes events again"), std::string::npos) << time.all_said();
    const auto seen = behind.seen();
    EXPECT_EQ(titles_of(seen), (Titles{"one", "busy", "busy"}));
    for (const FakeRequest& request : seen) {
        EXPECT_EQ(request.method, "POST");
        EXPECT_EQ(request.target, "/app/hook?x=1");
        EXPECT_EQ(request.header("x-api-key"), "token-1");
        const auto mac = strata::storage::hmac_sha256(strata::core::bytes_of("key"), request.body);
        EXPECT_EQ(request.header("x-strata-signature"), "sha256=" + strata::storage::to_hex(mac));
    }
    EXPECT_EQ(seen.back().header("x-strata-event-id"), id);
    courier.finish();
    EXPECT_EQ(folder.count_files(), 0);
}

/// It answers before it has read them, and closes the connection.
TEST_P(RealServer, PicturesThatAreTooLargeAreLeftOut) {
    std::ofstream{folder.path() / "cat.png"} << std::string(5'000'000, 'x');
    Courier courier{{webhook_at("/app/hook")}, folder.path(), {}, time.hooks()};
    Event samples = note_event("samples");
    samples.pictures = {folder.path() / "cat.png"};
    courier.emit(samples);
    run_courier(courier);
    EXPECT_EQ(behind.requests(), 0);
    EXPECT_NE(time.all_said().find("answers 413"), std::string::npos) << time.all_said() << nginx->log();
    time.pass(std::chrono::seconds{1});
    run_courier(courier);
    EXPECT_EQ(courier.counts().delivered, 1) << time.all_said() << nginx->log();
    ASSERT_EQ(behind.requests(), 1);
    EXPECT_EQ(nlohmann::json::parse(behind.seen()[0].body)["images_missing"], 1);
}

TEST_P(RealServer, ARedirectIsNotFollowed) {
    Courier courier{{webhook_at("/moved/hook")}, folder.path(), {}, time.hooks()};
    courier.emit(note_event("one"));
    run_courier(courier);
    EXPECT_EQ(behind.requests(), 0);
    EXPECT_EQ(courier.counts().waiting, 1U);
    EXPECT_NE(time.all_said().find("[ST2811]"), std::string::npos) << time.all_said() << nginx->log();
    EXPECT_NE(time.all_said().find("answers 307"), std::string::npos) << time.all_said();
}

TEST_P(RealServer, WhoHasAnotherCertificateIsNotTalkedTo) {
    if (!GetParam()) return;
    WebhookOptions options = webhook_at("/app/hook");
    options.ca_file.clear();
    Courier courier{{options}, folder.path(), {}, time.hooks()};
    courier.emit(note_event("one"));
    run_courier(courier);
    EXPECT_EQ(behind.requests(), 0);
    EXPECT_NE(time.all_said().find("certificate that is not accepted"), std::string::npos) << time.all_said();
}

INSTANTIATE_TEST_SUITE_P(Plain, RealServer, testing::Values(false));
INSTANTIATE_TEST_SUITE_P(Tls, RealServer, testing::Values(true));

}  // namespace
