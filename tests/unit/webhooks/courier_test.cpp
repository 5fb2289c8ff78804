// Events on their way to a server that takes them, is busy, fails, hangs, or is not there.

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <strata/core/text.hpp>
#include <strata/storage/digest.hpp>
#include <strata/webhooks/courier.hpp>
#include <strata/webhooks/health_event.hpp>

#include "../../support/courier_time.hpp"
#include "../../support/fake_http_server.hpp"
#include "../../support/other_process.hpp"
#include "../../support/own_certificate.hpp"
#include "../../support/temporary_folder.hpp"

namespace {

using namespace strata::webhooks;
using std::chrono::milliseconds;
using std::chrono::seconds;
using strata_test::CourierTime;
using strata_test::discord_webhook;
using strata_test::FakeHttpServer;
using strata_test::FakeReply;
using strata_test::FakeRequest;
using strata_test::note_event;
using strata_test::raw_webhook;
using strata_test::run_courier;
using strata_test::TemporaryFolder;
using strata_test::Titles;
using strata_test::titles_of;

TEST(Courier, ARawWebhookGetsEachEventWithItsIdAndItsSignature) {
    const TemporaryFolder folder;
    const FakeHttpServer server{[](const FakeRequest&) { return FakeReply::answer(204); }};
    CourierTime time;
    WebhookOptions options = raw_webhook(server.url() + "/hook?x=1");
    options.auth_token = "token-1";
    options.secret = "key";
    options.message_prefix = "my run";
    Courier courier{{options}, folder.path(), {.job_id = "job", .host = "n1", .rank = 1, .world = 2}, time.hooks()};
    const std::string id = courier.emit(note_event("one"));
    EXPECT_EQ(courier.emit(note_event("debug", Severity::debug)), "") << "less bad than log_level";
    const std::string other = courier.emit(error_event("two\n\"quoted\""));
    EXPECT_NE(id, other);
    run_courier(courier);
    const auto seen = server.seen();
    ASSERT_EQ(seen.size(), 2U);
    EXPECT_EQ(seen[0].method, "POST");
    EXPECT_EQ(seen[0].target, "/hook?x=1");
    EXPECT_EQ(seen[0].header("content-type"), "application/json");
    EXPECT_EQ(seen[0].header("x-api-key"), "token-1");
    EXPECT_EQ(seen[0].header("x-strata-event"), "notification");
    EXPECT_EQ(seen[0].header("x-strata-event-id"), id);
    const auto mac = strata::storage::hmac_sha256(strata::core::bytes_of("key"), seen[0].body);
    EXPECT_EQ(seen[0].header("x-strata-signature"), "sha256=" + strata::storage::to_hex(mac));
    const nlohmann::json body = nlohmann::json::parse(seen[0].body);
    EXPECT_EQ(body["id"], id);
    EXPECT_EQ(body["type"], "notification");
    EXPECT_EQ(body["job_id"], "job");
    EXPECT_EQ(body["rank"], 1);
    EXPECT_EQ(body["message_prefix"], "my run");
    EXPECT_EQ(nlohmann::json::parse(seen[1].body)["message"], "two\n\"quoted\"");
    EXPECT_EQ(courier.counts().delivered, 2);
    courier.finish();
    EXPECT_EQ(folder.count_files(), 0) << "nothing stays of a queue that is empty";
    EXPECT_TRUE(time.said.empty()) << time.all_said();
}

TEST(Courier, ABusyServerIsLeftAloneForAsLongAsItAsks) {
    const TemporaryFolder folder;
    // By seconds, by a date 90 s after the test's begin, and by Discord's own field, which is exact.
    const std::vector<FakeReply> replies{FakeReply::answer(429, "", "Retry-After: 120\r\n"),
                                         FakeReply::answer(503, "", "Retry-After: Tue, 14 Nov 2023 22:16:00 GMT\r\n"),
                                         FakeReply::answer(429, R"({"retry_after": 7.5})"), FakeReply::answer(200)};
    const FakeHttpServer server{[&](const FakeRequest& request) { return replies.at(request.number); }};
    CourierTime time;
    Courier courier{{raw_webhook(server.url())}, folder.path(), {}, time.hooks()};
    const std::string id = courier.emit(note_event("one"));
    int expected = 1;
    for (const milliseconds wait : {milliseconds{120'000}, milliseconds{40'000}, milliseconds{7'500}}) {
        run_courier(courier);
        EXPECT_EQ(server.requests(), expected);
        ASSERT_TRUE(courier.due().has_value());
        EXPECT_EQ(*courier.due() - time.now, wait);
        time.pass(wait - milliseconds{1});
        run_courier(courier);
        EXPECT_EQ(server.requests(), expected) << "before its time";
        time.pass(milliseconds{1});
        ++expected;
    }
    run_courier(courier);
    ASSERT_EQ(server.requests(), 4);
    for (const FakeRequest& request : server.seen()) EXPECT_EQ(request.header("x-strata-event-id"), id);
    EXPECT_EQ(courier.counts().delivered, 1);
    ASSERT_EQ(time.said.size(), 2U) << time.all_said();
    EXPECT_NE(time.said[0].find("answers 429"), std::string::npos);
    EXPECT_NE(time.said[1].find("takes events again"), std::string::npos);
}

TEST(Courier, WaitsDoubleWhileAServerFails) {
    const TemporaryFolder folder;
    const FakeHttpServer server{[](const FakeRequest&) { return FakeReply::answer(500); }};
    CourierTime time;
    WebhookOptions options = raw_webhook(server.url());
    options.longest_wait_seconds = 10;
    Courier courier{{options}, folder.path(), {}, time.hooks()};
    courier.emit(note_event("one"));
    for (const int wait : {999, 1998, 3996, 7992, 9990, 9990}) {
        run_courier(courier);
        ASSERT_TRUE(courier.due().has_value());
        EXPECT_EQ(*courier.due() - time.now, milliseconds{wait});
        time.pass(milliseconds{wait});
    }
}

/// Answers each event in another bad way before it takes it; whatever happens, each must arrive, and under its id alone.
TEST(Courier, NoEventIsLostAndNoneTwiceWithoutItsId) {
    const TemporaryFolder folder;
    std::mutex mutex;
    std::map<std::string, std::set<std::string>> ids;  // of each title, over all requests
    std::set<std::string> taken;
    const FakeHttpServer server{[&](const FakeRequest& request) {
        const nlohmann::json body = nlohmann::json::parse(request.body);
        const std::lock_guard lock{mutex};
        ids[body["title"]].insert(body["id"].get<std::string>());
        switch (request.number % 5) {
            case 0:
                return FakeReply::answer(500);
            case 1:
                return FakeReply::cut();  // it has come all the same
            case 2:
                return FakeReply::answer(429, "", "Retry-After: 1\r\n");
            case 3:
                return FakeReply{"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", true,
                                 false};  // broken in its answer
            default:
                taken.insert(body["title"]);
                return FakeReply::answer(200);
        }
    }};
    CourierTime time;
    Courier courier{{raw_webhook(server.url())}, folder.path(), {}, time.hooks()};
    for (int i = 0; i < 20; ++i) courier.emit(note_event("event " + std::to_string(i)));
    for (int i = 0; i < 200 && courier.counts().delivered < 20; ++i) {
        run_courier(courier);
        time.pass(seconds{400});
    }
    EXPECT_EQ(courier.counts().delivered, 20);
    const std::lock_guard lock{mutex};
    EXPECT_EQ(taken.size(), 20U);
    for (const auto& [title, its] : ids) EXPECT_EQ(its.size(), 1U) << title;
}

TEST(Courier, AServerThatHangsOrIsNotThereIsGivenUpForAWhile) {
    const TemporaryFolder folder;
    CourierTime time;
    const FakeHttpServer hanging{[](const FakeRequest&) { return FakeReply{"", false, true}; }};
    std::string gone;
    {
        const FakeHttpServer ended{[](const FakeRequest&) { return FakeReply::answer(200); }};
        gone = ended.url();
    }
    WebhookOptions hangs = raw_webhook(hanging.url());
    hangs.timeout_seconds = hangs.connect_timeout_seconds = 0.1;
    WebhookOptions absent = raw_webhook(gone);
    absent.name = "absent";
    Courier courier{{hangs, absent}, folder.path(), {}, time.hooks()};
    courier.emit(note_event("one"));
    run_courier(courier);
    EXPECT_EQ(courier.counts().waiting, 2U);
    EXPECT_NE(time.all_said().find("does not answer in time"), std::string::npos) << time.all_said();
    EXPECT_NE(time.all_said().find("cannot be connected to"), std::string::npos) << time.all_said();
}

TEST(Courier, NobodyWaitsForAServerThatHangs) {
    const TemporaryFolder folder;
    std::mutex mutex;
    std::condition_variable asked;
    bool is_asked = false;
    const FakeHttpServer server{[&](const FakeRequest&) {
        const std::lock_guard lock{mutex};
        is_asked = true;
        asked.notify_all();
        return FakeReply{"", false, true};  // until the test ends
    }};
    WebhookOptions options = raw_webhook(server.url());
    options.timeout_seconds = 3000;
    options.closing_seconds = 0;
    Courier courier{{options}, folder.path(), {}, {}};
    courier.start();
    courier.emit(note_event("first"));
    {
        std::unique_lock lock{mutex};
        asked.wait(lock, [&] { return is_asked; });
    }
    for (int i = 0; i < 500; ++i) courier.emit(note_event("more"));
    EXPECT_TRUE(courier.keep(std::chrono::minutes{5})) << "the disk does not wait for the server";
    EXPECT_EQ(courier.counts().delivered, 0);
    courier.finish();
    EXPECT_EQ(EventJournal::left_in(folder.path() / "webhooks").size(), 0U) << "this process still has it";
}

TEST(Courier, WhatAKilledProcessHadIsDeliveredByTheNext) {
    const TemporaryFolder folder;
    const FakeHttpServer server{[](const FakeRequest&) { return FakeReply::answer(200); }};
    std::string gone;
    {
        const FakeHttpServer ended{[](const FakeRequest&) { return FakeReply::answer(200); }};
        gone = ended.url();
    }
    WebhookOptions options = raw_webhook(gone);
    WebhookOptions removed = raw_webhook(gone);
    removed.name = "removed";
    strata_test::OtherProcess process{[&] {
        auto courier = std::make_unique<Courier>(std::vector{options, removed}, folder.path(), Origin{});
        courier->start();
        courier->emit(note_event("one"));
        courier->emit(note_event("two"));
        return courier->keep(std::chrono::minutes{1}) ? std::move(courier) : nullptr;
    }};
    process.end();
    CourierTime time;
    options.url = server.url();  // its name is the same
    Courier courier{{options}, folder.path(), {}, time.hooks()};
    courier.emit(note_event("three"));
    run_courier(courier);
    EXPECT_EQ(titles_of(server.seen()), (Titles{"one", "two", "three"}));
    EXPECT_NE(time.all_said().find("[ST2813] 2 events of an earlier run dropped"), std::string::npos)
        << time.all_said();
    EXPECT_NE(time.all_said().find("2 events of an earlier run are delivered now"), std::string::npos);
    courier.finish();
    EXPECT_EQ(folder.count_files(), 0);
}

/// As after a kill, when a run starts again at once: the one before may still be on its way out.
TEST(Courier, WhatAProcessHadThatEndsLaterIsDeliveredWhileTheNextRunsAndWhenItEnds) {
    const FakeHttpServer server{[](const FakeRequest&) { return FakeReply::answer(200); }};
    std::string gone;
    {
        const FakeHttpServer ended{[](const FakeRequest&) { return FakeReply::answer(200); }};
        gone = ended.url();
    }
    for (const bool ends : {false, true}) {
        const TemporaryFolder folder;
        WebhookOptions options = raw_webhook(gone);
        strata_test::OtherProcess process{[&] {
            auto courier = std::make_unique<Courier>(std::vector{options}, folder.path(), Origin{});
            courier->start();
            courier->emit(note_event("one"));
            return courier->keep(std::chrono::minutes{1}) ? std::move(courier) : nullptr;
        }};
        options.url = server.url();
        CourierTime time;
        Courier courier{{options}, folder.path(), {}, ends ? CourierHooks{} : time.hooks()};
        const int before = server.requests();
        if (ends) {
            courier.start();
            courier.emit(note_event("two"));
            EXPECT_TRUE(courier.keep(std::chrono::minutes{1}));
        } else {
            courier.emit(note_event("two"));
            run_courier(courier);
            EXPECT_EQ(server.requests(), before + 1) << "the other process lives";
        }
        process.end();
        if (!ends) {
            time.pass(std::chrono::minutes{1});
            run_courier(courier);
            EXPECT_EQ(server.requests(), before + 2);
        }
        courier.finish();
        EXPECT_EQ(server.requests(), before + 2);
        EXPECT_EQ(folder.count_files(), 0);
    }
}

TEST(Courier, AStatusThatIsOldWhenItsTimeComesIsNotSent) {
    const TemporaryFolder folder;
    const FakeHttpServer server{[](const FakeRequest&) { return FakeReply::answer(200); }};
    CourierTime time;
    WebhookOptions options = raw_webhook(server.url());
    options.status_interval_seconds = 30;
    options.notification_interval_seconds = 10;
    Courier courier{{options}, folder.path(), {}, time.hooks()};
    for (int step = 1; step <= 50; ++step) {
        courier.emit(status_event("running", {.current = step, .total = 50}, {{"loss", 1.0 / step}}));
        run_courier(courier);
        time.pass(seconds{1});
    }
    const auto seen = server.seen();
    ASSERT_EQ(seen.size(), 2U);
    EXPECT_EQ(nlohmann::json::parse(seen[0].body)["progress"]["current"], 1);
    const nlohmann::json second = nlohmann::json::parse(seen[1].body);
    EXPECT_EQ(second["progress"]["current"], 31);
    EXPECT_EQ(second["replaced"], 29);
    courier.emit(note_event("a"));
    courier.emit(note_event("b"));
    run_courier(courier);
    EXPECT_EQ(server.requests(), 3) << "of notifications none is replaced; the second waits its time";
    run_courier(courier, true);
    EXPECT_EQ(titles_of(server.seen()), (Titles{"Training running", "Training running", "a", "Training running", "b"}))
        << "at the end nothing waits for an interval";
}

TEST(Courier, OfTooManyThoseThatMatterLeastAreDroppedAndCounted) {
    const TemporaryFolder folder;
    bool is_up = false;
    const FakeHttpServer server{[&](const FakeRequest&) { return FakeReply::answer(is_up ? 200 : 500); }};
    CourierTime time;
    WebhookOptions options = raw_webhook(server.url());
    options.most_waiting = 3;
    Courier courier{{options}, folder.path(), {}, time.hooks()};
    courier.emit(note_event("i1"));
    courier.emit(error_event("", "e1"));
    courier.emit(note_event("i2"));
    courier.emit(note_event("i3"));
    courier.emit(error_event("", "e2"));
    run_courier(courier);
    EXPECT_EQ(courier.counts().dropped, 2);
    EXPECT_NE(time.all_said().find("[ST2813]"), std::string::npos) << time.all_said();
    is_up = true;
    time.pass(seconds{500});
    run_courier(courier);
    const auto seen = server.seen();
    ASSERT_EQ(seen.size(), 4U);
    EXPECT_EQ(titles_of({seen.begin() + 1, seen.end()}), (Titles{"e1", "i3", "e2"}));
    EXPECT_EQ(nlohmann::json::parse(seen[1].body)["dropped"], 2);
    EXPECT_FALSE(nlohmann::json::parse(seen[2].body).contains("dropped"));
    courier.finish();
    EXPECT_EQ(folder.count_files(), 0);
}

TEST(Courier, DiscordGetsTenInOneMessageAndPicturesBesides) {
    const TemporaryFolder folder;
    const FakeHttpServer server{[](const FakeRequest&) { return FakeReply::answer(204); }};
    std::ofstream{folder.path() / "cat.png"} << "PNG bytes";
    CourierTime time;
    Courier courier{{discord_webhook(server.url())}, folder.path(), {.host = "n1", .run = "output"}, time.hooks()};
    for (int i = 0; i < 12; ++i)
        courier.emit(notification_event(Severity::warning, "t" + std::to_string(i), std::string(5000, 'x')));
    Event samples = note_event("samples @everyone");
    samples.pictures = {folder.path() / "cat.png", folder.path() / "removed.png"};
    courier.emit(samples);
    run_courier(courier);
    const auto seen = server.seen();
    ASSERT_EQ(seen.size(), 2U);
    const nlohmann::json first = nlohmann::json::parse(seen[0].body);
    EXPECT_EQ(first["embeds"].size(), 10U);
    EXPECT_LE(first["content"].get<std::string>().size(), 2000U);
    EXPECT_TRUE(first["content"].get<std::string>().starts_with("(output)"));
    std::size_t characters = 0;
    for (const auto& embed : first["embeds"])
        for (const char* key : {"title", "description"}) characters += embed[key].get<std::string>().size();
    EXPECT_LE(characters, 6000U);
    EXPECT_EQ(first["allowed_mentions"]["parse"].size(), 0U);
    EXPECT_TRUE(seen[1].header("content-type").starts_with("multipart/form-data; boundary="));
    for (const char* part : {"name=\"payload_json\"", "name=\"files[0]\"; filename=\"0-cat.png\"", "PNG bytes",
                             "attachment://0-cat.png", "1 picture not attached"})
        EXPECT_NE(seen[1].body.find(part), std::string::npos) << part;
    EXPECT_EQ(courier.counts().delivered, 13);
}

TEST(Courier, AnEventThatAServerNeverTakesHoldsUpNoOther) {
    const TemporaryFolder folder;
    const FakeHttpServer server{[](const FakeRequest& request) {
        return FakeReply::answer(request.body.find("bad") == std::string::npos ? 204 : 400);
    }};
    CourierTime time;
    Courier courier{{discord_webhook(server.url())}, folder.path(), {}, time.hooks()};
    for (const char* title : {"a", "bad", "c"}) courier.emit(note_event(title));
    for (int i = 0; i < 4;
         ++i) {  // all, "a" and then the others, "bad" alone, "c": behind each refusal there is a wait
        run_courier(courier);
        time.pass(seconds{1});
    }
    EXPECT_EQ(courier.counts().delivered, 2);
    EXPECT_EQ(courier.counts().refused, 1);
    std::ifstream refused{folder.path() / "webhooks" / "refused.jsonl"};
    std::string line;
    ASSERT_TRUE(std::getline(refused, line));
    EXPECT_EQ(nlohmann::json::parse(line)["title"], "bad");
    EXPECT_NE(time.all_said().find("[ST2812]"), std::string::npos) << time.all_said();
}

TEST(Courier, PrivateAddressesAndRedirectsAreRefusedUnlessTheyAreAllowed) {
    const TemporaryFolder folder;
    CourierTime time;
    const FakeHttpServer other{[](const FakeRequest&) { return FakeReply::answer(200); }};
    const FakeHttpServer server{
        [&](const FakeRequest&) { return FakeReply::answer(307, "", "Location: " + other.url() + "/there\r\n"); }};
    WebhookOptions options = raw_webhook(server.url());
    options.auth_token = "token-1";
    options.secret = "key";
    {
        WebhookOptions strict = options;
        strict.allow_private_addresses = false;
        // Names are looked at as well: what counts is where they lead when the connection is made.
        strict.url = "http://localhost" + server.url().substr(std::string{"http://127.0.0.1"}.size());
        Courier courier{{strict}, folder.path(), {}, time.hooks()};
        courier.emit(note_event("one"));
        run_courier(courier);
        EXPECT_EQ(server.requests(), 0);
        EXPECT_NE(time.all_said().find("[ST2811]"), std::string::npos) << time.all_said();
        EXPECT_NE(time.all_said().find("allow_private_addresses"), std::string::npos) << time.all_said();
    }
    {
        Courier courier{{options}, folder.path(), {}, time.hooks()};
        run_courier(courier);
        EXPECT_EQ(server.requests(), 1);
        EXPECT_EQ(other.requests(), 0);
    }
    options.allow_redirects = true;
    Courier courier{{options}, folder.path(), {}, time.hooks()};
    run_courier(courier);
    ASSERT_EQ(other.requests(), 1);
    const FakeRequest request = other.seen()[0];
    EXPECT_EQ(request.method, "POST");
    EXPECT_EQ(request.target, "/there");
    EXPECT_EQ(nlohmann::json::parse(request.body)["title"], "one");
    EXPECT_EQ(request.headers.count("x-api-key") + request.headers.count("x-strata-signature"), 0U);
    EXPECT_EQ(courier.counts().delivered, 1);
}

TEST(Courier, OverTlsWithACertificateOfOnesOwn) {
    const TemporaryFolder folder, run;
    const strata_test::OwnCertificate certificate{"IP:127.0.0.1", folder.path() / "ca.pem"};
    const FakeHttpServer server{[](const FakeRequest&) { return FakeReply::answer(200); }, certificate.context()};
    CourierTime time;
    WebhookOptions options = raw_webhook(server.url() + "/geheim");
    {
        Courier courier{{options}, run.path(), {}, time.hooks()};
        courier.emit(note_event("one"));
        run_courier(courier);
        EXPECT_EQ(server.requests(), 0);
        EXPECT_NE(time.all_said().find("certificate that is not accepted"), std::string::npos) << time.all_said();
        EXPECT_EQ(time.all_said().find("geheim"), std::string::npos) << time.all_said();
    }
    options.ca_file = folder.path() / "ca.pem";
    Courier trusting{{options}, run.path(), {}, time.hooks()};
    run_courier(trusting);
    EXPECT_EQ(server.requests(), 1);
    options.ca_file.clear();
    options.ssl_no_verify = true;
    Courier blind{{options}, run.path(), {}, time.hooks()};
    blind.emit(note_event("two"));
    run_courier(blind);
    EXPECT_EQ(titles_of(server.seen()), (Titles{"one", "two"}));
}

TEST(Courier, AFaultOfAGpuSaysWhatIsKnownOfIt) {
    strata::health::GpuReading gpu;
    gpu.name = "NVIDIA H100";
    gpu.temperature = 75;
    gpu.throttle = strata::health::throttle::hw_thermal_slowdown;
    const Event event = gpu_fault_event(
        {.kind = strata::health::FaultKind::ecc_error, .what = "bad", .fix = "replace it"}, gpu, "circuit_opened");
    EXPECT_EQ(event.severity, Severity::critical);
    EXPECT_EQ(event.title, "GPU fault: ecc_error");
    EXPECT_EQ(
        event.details,
        R"({"fault":{"action_taken":"circuit_opened","gpu":{"index":0,"name":"NVIDIA H100","temperature_celsius":75,)"
        R"("throttle_reasons":["hw_thermal_slowdown"]},"type":"ecc_error"}})");
}

}  // namespace
