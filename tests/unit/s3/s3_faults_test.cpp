// What S3 does when servers, networks and people err: against servers that say what a test wants.

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <strata/s3/s3.hpp>

#include "../../support/fake_s3.hpp"
#include "../../support/own_certificate.hpp"
#include "../../support/temporary_folder.hpp"

namespace {

using namespace strata_test::fake_s3;
using strata::Errc;
using strata::S3;
using strata_test::FakeHttpServer;
using strata_test::FakeReply;
using strata_test::FakeRequest;
using strata_test::OwnCertificate;
using strata_test::TemporaryFolder;
using strata_test::thrown_by;

TEST(S3Faults, FailuresThatMayPassAreTriedAgain) {
    const std::vector<FakeReply> failures{
        FakeReply::answer(500),
        FakeReply::answer(502),
        FakeReply::answer(503),
        FakeReply::answer(504),
        FakeReply::answer(429),
        FakeReply::answer(408),
        FakeReply::cut(),
        FakeReply::error(400, "RequestTimeout"),
        FakeReply::error(400, "BadDigest"),
        FakeReply::error(409, "OperationAborted"),
        FakeReply::error(500, "UnknownError"),
        FakeReply{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nETag: \"x\"\r\n\r\nhel", true, false}};
    for (std::size_t i = 0; i < failures.size(); ++i) {
        const FakeHttpServer server{[&](const FakeRequest& request) {
            return request.number < 2 ? failures[i] : object_for(request, "hello");
        }};
        const S3 store{options_for(server.url())};
        EXPECT_EQ(text(store.get("k")), "hello") << i;
        EXPECT_EQ(store.traffic().get, 3U) << i;
        EXPECT_EQ(store.traffic().retries, 2U) << i;
        EXPECT_EQ(server.requests(), 3) << i;
    }
}

TEST(S3Faults, WaitsAsLongAsTheServerAsks) {
    const FakeHttpServer server{[](const FakeRequest& request) {
        return request.number == 0 ? FakeReply::answer(503, "", "Retry-After: 1\r\n") : object_for(request, "hello");
    }};
    s3::S3Options options = options_for(server.url());
    std::vector<std::chrono::milliseconds> waits;
    options.retry.patience = 5min;
    options.retry_hooks.wait = [&](std::chrono::milliseconds time) { waits.push_back(time); };
    const S3 store{options};
    EXPECT_EQ(text(store.get("k")), "hello");
    EXPECT_EQ(waits, std::vector<std::chrono::milliseconds>{1000ms});
}

TEST(S3Faults, GivesUpWhenItsTimeIsUpAndSaysSo) {
    const FakeHttpServer server{[](const FakeRequest&) { return FakeReply::error(503, "SlowDown"); }};
    const S3 store{options_for(server.url())};
    const auto error = thrown_by([&] { store.put("a/k", bytes("x")); });
    EXPECT_EQ(error.code, Errc::transfer_failed);
    EXPECT_TRUE(error.says("cannot write '" + server.url() + "/b/a/k'") && error.says("503 SlowDown") &&
                error.says("3 times in 2 s"))
        << error.message;
    EXPECT_EQ(server.requests(), 3);
}

TEST(S3Faults, AnOutageIsSaidOnceAndThatItIsOver) {
    const FakeHttpServer server{[](const FakeRequest& request) {
        return request.number < 7 ? FakeReply::error(503, "SlowDown") : object_for(request, "hello");
    }};
    std::vector<std::string> lines;
    s3::S3Options options = options_for(server.url());
    options.retry.patience = 5min;
    options.retry_hooks.say = [&](const std::string& line) { lines.push_back(line); };
    const S3 store{options};
    EXPECT_EQ(text(store.get("k")), "hello");
    EXPECT_EQ(text(store.below("deeper").get("k")), "hello");
    EXPECT_EQ(lines, (std::vector<std::string>{
                         "S3 server " + server.url() + " answers 503 SlowDown; trying again for 5 min",
                         "S3 server " + server.url() + " answers again, after 7 s",
                     }));
}

TEST(S3Faults, RefusalsAreNotTriedAgainAndSayWhatToDo) {
    struct Case {
        int status;
        const char* code;
        Errc expected;
        const char* says;
    };
    const std::vector<Case> cases{
        {403, "SignatureDoesNotMatch", Errc::store_refused, "the secret access key of the configuration is wrong"},
        {403, "InvalidAccessKeyId", Errc::store_refused, "does not know the access key of the configuration"},
        {403, "AccessDenied", Errc::store_refused, "s3:GetObject"},
        {400, "ExpiredToken", Errc::store_refused, "new temporary credentials"},
        {403, "RequestTimeTooSkewed", Errc::clock_skew, "this machine's clock"},
        {404, "NoSuchBucket", Errc::no_bucket, "bucket 'b' does not exist"},
        {404, "NoSuchKey", Errc::not_found, "no such object"},
        {400, "KeyTooLongError", Errc::bad_object_key, "too long"},
        {507, "", Errc::no_space, "no room"},
        {403, "QuotaExceeded", Errc::no_space, "quota"},
        {500, "XMinioStorageFull", Errc::no_space, "no room"},
        {418, "Teapot", Errc::store_refused, "418 Teapot (short and stout)"},
        {404, "", Errc::bad_answer, "not as S3 does"},
        {302, "", Errc::bad_answer, "302"},
    };
    for (const Case& one : cases) {
        const FakeHttpServer server{[&](const FakeRequest&) {
            return *one.code == '\0' ? FakeReply::answer(one.status, "<html>oops</html>")
                                     : FakeReply::error(one.status, one.code, "short and stout");
        }};
        const S3 store{options_for(server.url())};
        for (const auto& error :
             {thrown_by([&] { (void)store.get("k"); }), thrown_by([&] { store.put("k", bytes("x")); })}) {
            EXPECT_EQ(error.code, one.expected) << error.message;
            EXPECT_TRUE(error.says(one.says)) << error.message;
            EXPECT_TRUE(error.says(server.url() + "/b/k")) << error.message;
        }
        EXPECT_EQ(server.requests(), 2) << one.code;
    }
}

TEST(S3Faults, TheSourceOfTheKeysIsNamed) {
    const FakeHttpServer server{[](const FakeRequest&) { return FakeReply::error(403, "SignatureDoesNotMatch"); }};
    s3::S3Options options = options_for(server.url());
    options.access_key_id = {};
    options.secret_access_key = {};
    options.environment = [](const std::string& name) -> std::optional<std::string> {
        if (name == "AWS_ACCESS_KEY_ID" || name == "AWS_SECRET_ACCESS_KEY") return "x";
        return std::nullopt;
    };
    EXPECT_TRUE(thrown_by([&] { (void)S3{options}.list(""); }).says("of the environment is wrong"));
}

TEST(S3Faults, TheRightRegionIsNamed) {
    const FakeHttpServer server{[](const FakeRequest&) {
        return FakeReply::answer(301, "<Error><Code>PermanentRedirect</Code></Error>",
                                 "x-amz-bucket-region: eu-west-1\r\n");
    }};
    const S3 store{options_for(server.url())};
    const auto error = thrown_by([&] { (void)store.list(""); });
    EXPECT_EQ(error.code, Errc::store_refused);
    EXPECT_TRUE(error.says("another region than 'us-east-1'") && error.says("set aws_region_name to eu-west-1"))
        << error.message;
    EXPECT_EQ(thrown_by([&] { (void)store.head("k"); }).code, Errc::store_refused);
}

TEST(S3Faults, AWrongClockIsSaidWithItsError) {
    const auto now = std::chrono::system_clock::from_time_t(1763683200);
    const FakeHttpServer server{[](const FakeRequest&) {
        return FakeReply::answer(403, "<Error><Code>RequestTimeTooSkewed</Code></Error>",
                                 "Date: Fri, 21 Nov 2025 00:00:00 GMT\r\n");
    }};
    s3::S3Options options = options_for(server.url());
    options.clock = [=] { return now + 3600s; };
    EXPECT_TRUE(thrown_by([&] { (void)S3{options}.get("k"); }).says("clock is 3600 s ahead of"));
    EXPECT_EQ(server.seen()[0].header("x-amz-date"), "20251121T010000Z");
    options.clock = [=] { return now - 7200s; };
    const auto error = thrown_by([&] { (void)S3{options}.head("k"); });
    EXPECT_EQ(error.code, Errc::clock_skew);
    EXPECT_TRUE(error.says("clock is 7200 s behind")) << error.message;
}

TEST(S3Faults, WhatHeadCannotSayIsAskedFor) {
    // The answer to HEAD has no body: neither the reason of a 403 nor whether key or bucket are missing.
    const FakeHttpServer server{[](const FakeRequest& request) {
        if (request.asks("list-type=2")) return FakeReply::error(404, "NoSuchBucket");
        if (request.method == "HEAD") return FakeReply::answer(request.asks("missing") ? 404 : 403);
        return FakeReply::error(403, "SignatureDoesNotMatch");
    }};
    const S3 store{options_for(server.url())};
    EXPECT_TRUE(thrown_by([&] { (void)store.head("k"); }).says("secret access key"));
    EXPECT_EQ(thrown_by([&] { (void)store.exists("missing"); }).code, Errc::no_bucket);
}

TEST(S3Faults, ABucketThatWasSeenIsNotAskedForAgain) {
    const FakeHttpServer server{[](const FakeRequest& request) {
        return request.asks("there") ? object_for(request, "hello") : FakeReply::answer(404);
    }};
    const S3 store{options_for(server.url())};
    EXPECT_EQ(text(store.get("there")), "hello");
    EXPECT_FALSE(store.exists("missing"));
    EXPECT_FALSE(store.exists("missing"));
    EXPECT_EQ(server.requests(), 3);
}

TEST(S3Faults, BytesThatAreNotThoseOfTheEtagAreReadAgain) {
    std::atomic<int> bad{1};
    std::atomic<bool> own_keys{false};
    const FakeHttpServer server{[&](const FakeRequest& request) {
        const bool damage = bad-- > 0;
        return object_for(request, damage ? "hellO" : "hello", md5_of("hello"),
                          own_keys ? "x-amz-server-side-encryption: aws:kms\r\n" : "");
    }};
    const S3 store{options_for(server.url())};
    EXPECT_EQ(text(store.get("k")), "hello");
    EXPECT_EQ(store.traffic().retries, 1U);
    bad = 1000;
    const auto error = thrown_by([&] { (void)store.get("k"); });
    EXPECT_EQ(error.code, Errc::bad_answer);
    EXPECT_TRUE(error.says("not those of its ETag") && error.says("3 times")) << error.message;
    EXPECT_EQ(text(store.get_range("k", 1, 4)), "ellO") << "a part of an object has no sum to compare with";
    own_keys = true;
    EXPECT_EQ(text(store.get("k")), "hellO") << "ETags of objects encrypted with KMS are no MD5 sums";
    own_keys = false;
    s3::S3Options trusting = options_for(server.url());
    trusting.verify_etag = false;
    EXPECT_EQ(text(S3{trusting}.get("k")), "hellO");
}

TEST(S3Faults, ObjectsKeepTheCheckSumTheyWereWrittenWith) {
    std::mutex mutex;
    std::string object;
    std::string crc;
    bool damage = false;
    const FakeHttpServer server{[&](const FakeRequest& request) {
        const std::lock_guard lock{mutex};
        const std::string etag = "0123456789abcdef0123456789abcdef";  // of MD5's form and no MD5 sum
        if (request.method == "PUT") {
            object = request.body;
            crc = request.header("x-amz-meta-strata-crc32c");
            return FakeReply::answer(200, "", "ETag: \"not-a-sum\"\r\n");
        }
        std::string damaged = object;
        if (damage) damaged.back() ^= 1;
        return object_for(request, damaged, etag, "x-amz-meta-strata-crc32c: " + crc + "\r\n");
    }};
    const S3 store{options_for(server.url())};
    store.put("k", bytes("123456789"));
    EXPECT_EQ(crc, "e3069283");
    EXPECT_EQ(text(store.get("k")), "123456789") << "the sum it was written with counts and not the ETag";
    damage = true;
    EXPECT_TRUE(thrown_by([&] { (void)store.get("k"); }).says("do not have the check sum they were written with"));
    EXPECT_EQ(thrown_by([&] { (void)store.get_range("k", 0, 100); }).code, Errc::bad_answer)
        << "all of it, so it is compared";
    EXPECT_EQ(text(store.get_range("k", 1, 100)), "23456788");
    object.assign(12U << 20, 'x');
    EXPECT_EQ(thrown_by([&] { (void)store.get("k"); }).code, Errc::bad_answer) << "of an object in parts as well";
}

TEST(S3Faults, AnEtagOfOtherBytesThanThoseSentIsAFailure) {
    const FakeHttpServer server{
        [](const FakeRequest&) { return FakeReply::answer(200, "", "ETag: \"" + md5_of("others") + "\"\r\n"); }};
    const S3 store{options_for(server.url())};
    EXPECT_EQ(thrown_by([&] { store.put("k", bytes("mine")); }).code, Errc::bad_answer);
    for (const auto& request : server.seen()) {
        EXPECT_EQ(request.body, "mine");
        EXPECT_EQ(request.header("content-md5"), storage::to_base64(storage::md5(bytes("mine"))));
        EXPECT_EQ(request.header("x-amz-content-sha256"), storage::to_hex(storage::sha256(bytes("mine"))));
    }
}

TEST(S3Faults, AnswersOfNoS3ServerAreNotTakenForBytes) {
    const std::string range = "Content-Range: bytes 0-4/5\r\n";
    const std::string etag = "ETag: \"x\"\r\n";
    const std::vector<FakeReply> wrong{
        FakeReply::answer(206, "hello", etag + "Content-Range: bytes 1-5/6\r\n"),
        FakeReply::answer(206, "hell", etag + range),
        FakeReply::answer(206, "hello", etag + "Content-Range: bytes 0-4/50\r\n"),
        FakeReply::answer(206, "hello", etag + "Content-Range: bytes 0-4/*\r\n"),
        FakeReply::answer(206, "hello", etag),
        FakeReply::answer(206, "hello", range),
    };
    for (std::size_t i = 0; i < wrong.size(); ++i) {
        const FakeHttpServer server{[&](const FakeRequest&) { return wrong[i]; }};
        const S3 store{options_for(server.url())};
        EXPECT_EQ(thrown_by([&] { (void)store.get_range("k", 0, 100); }).code, Errc::bad_answer) << i;
        EXPECT_EQ(thrown_by([&] { (void)store.get("k"); }).code, Errc::bad_answer) << i << ": a range nobody asked for";
    }
    const FakeHttpServer no_ranges{[](const FakeRequest& request) {
        return FakeReply::answer(200, request.asks("large") ? std::string((8U << 20) + 1, 'x') : "hello",
                                 "ETag: \"x\"\r\n");
    }};
    const S3 store{options_for(no_ranges.url())};
    EXPECT_EQ(text(store.get("small")), "hello");
    EXPECT_EQ(text(store.get_range("small", 2, 10)), "llo");
    EXPECT_EQ(thrown_by([&] { (void)store.get("large"); }).code, Errc::bad_answer);
    const FakeHttpServer web{
        [](const FakeRequest&) { return FakeReply::answer(200, "<html><body>Welcome!</body></html>"); }};
    const S3 website{options_for(web.url())};
    EXPECT_EQ(thrown_by([&] { (void)website.list(""); }).code, Errc::bad_answer);
    EXPECT_EQ(thrown_by([&] { (void)website.head("k"); }).code, Errc::bad_answer);
}

TEST(S3Faults, ServersThatCannotBeReachedAreNamed) {
    s3::S3Options options = options_for("http://127.0.0.1:1");
    options.retry.patience = 5min;
    options.retry.attempts_at_first = 2;
    const S3 refused{options};
    const auto error = thrown_by([&] { (void)refused.list(""); });
    EXPECT_EQ(error.code, Errc::store_unreachable);
    EXPECT_TRUE(error.says("no connection to http://127.0.0.1:1") && error.says("2 times in 1 s")) << error.message;
    EXPECT_EQ(refused.traffic().list, 0U) << "what reaches no server costs nothing";

    const auto unknown = thrown_by([] { (void)S3{options_for("http://no-such-host.invalid")}.list(""); });
    EXPECT_EQ(unknown.code, Errc::store_unreachable);
    EXPECT_TRUE(unknown.says("'no-such-host.invalid' has no address")) << unknown.message;

    const TemporaryFolder folder;
    const OwnCertificate own{"IP:127.0.0.1", folder.path() / "own.pem"};
    const FakeHttpServer server{[](const FakeRequest& request) { return object_for(request, "hello"); }, own.context()};
    options = options_for(server.url());
    const auto untrusted = thrown_by([&] { (void)S3{options}.get("k"); });
    EXPECT_EQ(untrusted.code, Errc::store_unreachable);
    EXPECT_TRUE(untrusted.says("certificate") && untrusted.says("AWS_CA_BUNDLE")) << untrusted.message;
    EXPECT_EQ(server.connections(), 1) << "a certificate does not get better by asking again";
    options.environment = [&](const std::string& name) -> std::optional<std::string> {
        if (name == "AWS_CA_BUNDLE") return (folder.path() / "own.pem").string();
        return std::nullopt;
    };
    EXPECT_EQ(text(S3{options}.get("k")), "hello");
}

TEST(S3Faults, AServerThatFallsSilentIsGivenUp) {
    const FakeHttpServer server{[](const FakeRequest& request) {
        if (request.number > 0) return object_for(request, "hello");
        return FakeReply{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nETag: \"x\"\r\n\r\nhe", false, true};
    }};
    s3::S3Options options = options_for(server.url());
    options.stall_timeout = 1s;
    options.retry.patience = 0s;
    const auto error = thrown_by([&] { (void)S3{options}.get("k"); });
    EXPECT_EQ(error.code, Errc::transfer_failed);
    EXPECT_TRUE(error.says("fewer than 1000 bytes/s")) << error.message;
}

// Objects of several parts: a server that keeps one object of 12 MiB, which a test may replace.

TEST(S3Faults, NoMessageHoldsASecret) {
    std::vector<std::string> kinds{"SignatureDoesNotMatch", "AccessDenied", "ExpiredToken", "Other", "SlowDown"};
    for (const std::string& kind : kinds) {
        const FakeHttpServer server{[&](const FakeRequest& request) {
            std::string everything = std::string{secret} + " " + token + " ";
            for (const auto& [name, value] : request.headers) everything += name + "=" + value + " ";
            return FakeReply::answer(kind == "SlowDown" ? 503 : 400,
                                     "<Error><Code>" + kind + "</Code><Message>" + everything + "</Message><Region>" +
                                         everything + "</Region></Error>",
                                     "x-amz-bucket-region: " + std::string{secret} + "\r\n");
        }};
        s3::S3Options options = options_for(server.url());
        options.session_token = token;
        const S3 store{options};
        for (const auto& error : {thrown_by([&] { (void)store.get("k"); }), thrown_by([&] { (void)store.list(""); }),
                                  thrown_by([&] { (void)store.head("k"); }), thrown_by([&] { store.put("k", {}); })})
            for (const char* hidden : {key_id, secret, token}) EXPECT_FALSE(error.says(hidden)) << error.message;
        EXPECT_EQ(server.seen()[0].header("x-amz-security-token"), token);
        EXPECT_NE(server.seen()[0].header("authorization").find("x-amz-security-token"), std::string::npos);
        EXPECT_EQ(server.seen()[0].header("authorization").find(secret), std::string::npos);
    }
}

TEST(S3Faults, InterruptEndsWhatIsUnderWay) {
    const FakeHttpServer server{[](const FakeRequest& request) {
        return request.asks("busy") ? FakeReply::answer(503, "", "Retry-After: 200\r\n") : FakeReply{"", false, true};
    }};
    s3::S3Options options = options_for(server.url());
    options.retry_hooks = {};  // real waits, which interrupt() ends
    const S3 store{options};
    const S3 copy = store.below("deeper");
    std::vector<std::thread> threads;
    std::atomic<int> interrupted{0};
    for (const char* key : {"silent", "busy"})
        threads.emplace_back(
            [&, key] { interrupted += thrown_by([&] { (void)copy.get(key); }).code == Errc::interrupted ? 1 : 0; });
    while (server.requests() < 2) std::this_thread::yield();
    store.interrupt();
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(interrupted, 2);
    EXPECT_EQ(thrown_by([&] { (void)store.list(""); }).code, Errc::interrupted);
}

}  // namespace
