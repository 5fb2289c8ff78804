// What S3 does when servers, networks and people err: against servers that say what a test wants.

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <strata/storage/digest.hpp>
#include <strata/storage/s3.hpp>

#include "fake_http_server.hpp"
#include "own_certificate.hpp"
#include "temporary_folder.hpp"

namespace {

using strata::Errc;
using strata::S3;
using strata_test::FakeHttpServer;
using strata_test::FakeReply;
using strata_test::FakeRequest;
using strata_test::OwnCertificate;
using strata_test::TemporaryFolder;
using strata_test::thrown_by;
namespace storage = strata::storage;
using namespace std::chrono_literals;

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span{text.data(), text.size()}); }
std::string text(const std::vector<std::byte>& b) { return {reinterpret_cast<const char*>(b.data()), b.size()}; }
std::string md5_of(std::string_view of) { return storage::to_hex(storage::md5(bytes(of))); }

constexpr const char* key_id = "AKIDEXAMPLE123";
constexpr const char* secret = "geheim/SecretOfTheTest";
constexpr const char* token = "token+OfTheTest/==";

storage::S3Options options_for(const std::string& url) {
    storage::S3Options options;
    options.bucket = "b";
    options.endpoint_url = url;
    options.access_key_id = key_id;
    options.secret_access_key = secret;
    options.retry = {.attempts = 3, .attempts_at_first = 3, .first_wait = 1ms, .longest_wait = 2ms};
    options.environment = [](const std::string&) { return std::nullopt; };
    return options;
}

/// An object, or the range of it that is asked for, as S3 answers.
FakeReply object_for(const FakeRequest& request, const std::string& object, std::string etag = {},
                     const std::string& more = {}) {
    if (etag.empty()) etag = md5_of(object);
    const std::string headers = "ETag: \"" + etag + "\"\r\n" + more;
    const std::string range = request.header("range");
    if (range.empty()) return FakeReply::answer(200, object, headers);
    const std::size_t begin = std::stoull(range.substr(6));
    const std::size_t last = std::min<std::size_t>(std::stoull(range.substr(range.find('-') + 1)), object.size() - 1);
    if (begin >= object.size()) return FakeReply::error(416, "InvalidRange");
    return FakeReply::answer(206, object.substr(begin, last - begin + 1),
                             headers + "Content-Range: bytes " + std::to_string(begin) + "-" + std::to_string(last) +
                                 "/" + std::to_string(object.size()) + "\r\n");
}

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
    const S3 store{options_for(server.url())};
    const auto start = std::chrono::steady_clock::now();
    EXPECT_EQ(text(store.get("k")), "hello");
    EXPECT_GE(std::chrono::steady_clock::now() - start, 1s);
}

TEST(S3Faults, GivesUpAfterItsAttemptsAndSaysSo) {
    const FakeHttpServer server{[](const FakeRequest&) { return FakeReply::error(503, "SlowDown"); }};
    const S3 store{options_for(server.url())};
    const auto error = thrown_by([&] { store.put("a/k", bytes("x")); });
    EXPECT_EQ(error.code, Errc::transfer_failed);
    EXPECT_TRUE(error.says("cannot write '" + server.url() + "/b/a/k'") && error.says("503 SlowDown") &&
                error.says("3 times in a row"))
        << error.message;
    EXPECT_EQ(server.requests(), 3);
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
    storage::S3Options options = options_for(server.url());
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
    storage::S3Options options = options_for(server.url());
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
    storage::S3Options trusting = options_for(server.url());
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
    storage::S3Options options = options_for("http://127.0.0.1:1");
    options.retry.attempts = 8;
    options.retry.attempts_at_first = 2;
    const S3 refused{options};
    const auto error = thrown_by([&] { (void)refused.list(""); });
    EXPECT_EQ(error.code, Errc::store_unreachable);
    EXPECT_TRUE(error.says("no connection to http://127.0.0.1:1") && error.says("2 times in a row")) << error.message;
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
    storage::S3Options options = options_for(server.url());
    options.stall_timeout = 1s;
    options.retry.attempts = 1;
    const auto error = thrown_by([&] { (void)S3{options}.get("k"); });
    EXPECT_EQ(error.code, Errc::transfer_failed);
    EXPECT_TRUE(error.says("fewer than 1000 bytes/s")) << error.message;
}

// Objects of several parts: a server that keeps one object of 12 MiB, which a test may replace.
struct TwoParts {
    std::string object = std::string(12U << 20, 'a');
    std::string etag = "0123456789abcdef0123456789abcdef-2";
    std::atomic<int> replaced{0};
    int replace_often = 0;
    std::mutex mutex;

    FakeReply operator()(const FakeRequest& request) {
        const std::lock_guard lock{mutex};
        const std::string match = request.header("if-match");
        const std::string now = etag + std::to_string(replaced);
        if (match.empty() && replaced < replace_often) {  // after the first part
            FakeReply reply = object_for(request, object, now);
            object.assign(object.size(), static_cast<char>('a' + ++replaced));
            return reply;
        }
        if (!match.empty() && match != "\"" + now + "\"") return FakeReply::error(412, "PreconditionFailed");
        return object_for(request, object, now);
    }
};

TEST(S3Faults, AnObjectReplacedBetweenItsPartsIsReadFromItsBeginning) {
    TwoParts parts;
    parts.replace_often = 2;
    const FakeHttpServer server{[&](const FakeRequest& request) { return parts(request); }};
    const S3 store{options_for(server.url())};
    EXPECT_EQ(text(store.get("k")), parts.object);
    EXPECT_EQ(parts.replaced, 2);
    EXPECT_EQ(text(store.get_range("k", 1'000'000, 10'000'000)), parts.object.substr(1'000'000, 10'000'000));

    parts.replace_often = 1000;
    const auto error = thrown_by([&] { (void)store.get("k"); });
    EXPECT_EQ(error.code, Errc::object_changed);
    EXPECT_TRUE(error.says("/b/k")) << error.message;
}

TEST(S3Faults, ThreadsThatReadInPartsShareOneConnectionWithoutWaitingForEachOther) {
    TwoParts parts;
    const FakeHttpServer server{[&](const FakeRequest& request) { return parts(request); }};
    storage::S3Options options = options_for(server.url());
    options.max_pool_connections = 1;
    options.part_bytes = 5U << 20;
    const S3 store{options};
    std::vector<std::thread> threads;
    std::atomic<int> good{0};
    for (int i = 0; i < 4; ++i) threads.emplace_back([&] { good += text(store.get("k")) == parts.object ? 1 : 0; });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(good, 4);
    EXPECT_EQ(store.traffic().get, 16U) << "one that is ended after its head, and three parts";
}

/// The side of S3 that takes uploads in parts.
struct Uploads {
    std::function<FakeReply(int attempt)> end;  ///< what is said to the end of an upload
    std::function<bool(const FakeRequest&)> lose_part = [](const FakeRequest&) { return false; };
    std::atomic<int> ends{0};
    std::atomic<int> given_up{0};
    std::string head_etag;
    std::size_t head_size = 0;

    FakeReply operator()(const FakeRequest& request) {
        if (request.method == "HEAD")
            return {"HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(head_size) + "\r\nETag: \"" + head_etag +
                        "\"\r\n\r\n",
                    false, false};
        if (request.method == "DELETE") {
            ++given_up;
            return FakeReply::answer(204);
        }
        if (request.asks("uploads="))
            return FakeReply::answer(
                200, "<InitiateMultipartUploadResult><UploadId>id</UploadId></InitiateMultipartUploadResult>");
        if (request.method == "PUT") {
            if (lose_part(request)) return FakeReply::error(403, "AccessDenied");
            return FakeReply::answer(200, "", "ETag: \"" + md5_of(request.body) + "\"\r\n");
        }
        return end(ends++);
    }
    static FakeReply good() {
        return FakeReply::answer(200, "<CompleteMultipartUploadResult><ETag></ETag></CompleteMultipartUploadResult>");
    }
};

const std::string eleven_mib(11U << 20, 'u');

/// ETag of that object in parts of 8 MiB: the MD5 sum of its parts' MD5 sums.
std::string etag_of_eleven_mib() {
    std::vector<std::byte> sums;
    for (const auto part :
         {std::string_view{eleven_mib}.substr(0, 8U << 20), std::string_view{eleven_mib}.substr(8U << 20)})
        for (const std::byte byte : storage::md5(bytes(part))) sums.push_back(byte);
    return storage::to_hex(storage::md5(sums)) + "-2";
}

TEST(S3Faults, AnUploadWhosePartFailsIsGivenUp) {
    Uploads uploads;
    uploads.end = [](int) { return Uploads::good(); };
    uploads.lose_part = [](const FakeRequest& request) { return request.asks("partNumber=2"); };
    const FakeHttpServer server{[&](const FakeRequest& request) { return uploads(request); }};
    const S3 store{options_for(server.url())};
    EXPECT_EQ(thrown_by([&] { store.put("k", bytes(eleven_mib)); }).code, Errc::store_refused);
    EXPECT_EQ(uploads.given_up, 1);
    EXPECT_EQ(uploads.ends, 0);
}

TEST(S3Faults, AnErrorInsideOfA200EndsNoUpload) {
    Uploads uploads;
    uploads.end = [](int attempt) { return attempt == 0 ? FakeReply::error(200, "InternalError") : Uploads::good(); };
    const FakeHttpServer server{[&](const FakeRequest& request) { return uploads(request); }};
    const S3 store{options_for(server.url())};
    store.put("k", bytes(eleven_mib));
    EXPECT_EQ(uploads.ends, 2);
    EXPECT_EQ(uploads.given_up, 0);
    uploads.end = [](int) { return FakeReply::error(200, "AccessDenied"); };
    EXPECT_EQ(thrown_by([&] { store.put("k", bytes(eleven_mib)); }).code, Errc::store_refused);
    EXPECT_EQ(uploads.given_up, 1);
}

TEST(S3Faults, AnUploadThatEndedUnheardIsFoundToBeThere) {
    Uploads uploads;
    uploads.end = [](int attempt) {
        return attempt % 2 == 0 ? FakeReply::cut() : FakeReply::error(404, "NoSuchUpload");
    };
    uploads.head_etag = etag_of_eleven_mib();
    uploads.head_size = eleven_mib.size();
    const FakeHttpServer server{[&](const FakeRequest& request) { return uploads(request); }};
    const S3 store{options_for(server.url())};
    store.put("k", bytes(eleven_mib));
    EXPECT_EQ(uploads.given_up, 0);
    uploads.head_etag = "0123456789abcdef0123456789abcdef-2";  // of somebody else's bytes
    EXPECT_EQ(thrown_by([&] { store.put("k", bytes(eleven_mib)); }).code, Errc::transfer_failed);
}

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
        storage::S3Options options = options_for(server.url());
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

std::string listing(const std::vector<std::string>& keys, bool truncated, const std::string& more = {}) {
    std::string body =
        "<ListBucketResult><IsTruncated>" + std::string{truncated ? "true" : "false"} + "</IsTruncated>" + more;
    for (const std::string& key : keys)
        body += "<Contents><Key>" + key + "</Key><ETag>e</ETag><Size>1</Size></Contents>";
    return body + "</ListBucketResult>";
}

TEST(S3Faults, KeysAreBelowThePrefix) {
    const FakeHttpServer server{[](const FakeRequest& request) {
        if (!request.asks("list-type=2")) return object_for(request, "hello");
        return FakeReply::answer(200, listing({"photos/2024/", "photos/2024/a/", "photos/2024/a/1"}, false));
    }};
    storage::S3Options options = options_for(server.url());
    options.data_prefix = "photos/2024";
    const S3 store{options};
    const auto found = store.list("a");
    ASSERT_EQ(found.size(), 2U) << "the folder itself is no object in it";
    EXPECT_EQ(found[0].key, "a/");
    EXPECT_EQ(found[1].key, "a/1");
    EXPECT_TRUE(server.seen()[0].asks("prefix=photos%2F2024%2Fa&"));
    (void)store.get("x y");
    EXPECT_EQ(server.seen()[1].target, "/b/photos/2024/x%20y");
    const S3 deeper = store.below("cache");
    (void)deeper.get("k");
    EXPECT_EQ(server.seen()[2].target, "/b/photos/2024/cache/k");
    EXPECT_EQ(deeper.where("k"), server.url() + "/b/photos/2024/cache/k");
    EXPECT_EQ(store.below("").where("k"), store.where("k"));
    EXPECT_EQ(store.traffic().get, 2U) << "one connection pool, one bill";
}

TEST(S3Faults, ListingsThatLeadNowhereEnd) {
    std::vector<std::string> pages;
    const FakeHttpServer server{[&](const FakeRequest& request) {
        return FakeReply::answer(
            200, pages[std::min<std::size_t>(static_cast<std::size_t>(request.number), pages.size() - 1)]);
    }};
    const auto listed_by = [&](std::vector<std::string> answers) {
        pages = std::move(answers);
        const FakeHttpServer fresh{[&](const FakeRequest& request) {
            return FakeReply::answer(
                200, pages[std::min<std::size_t>(static_cast<std::size_t>(request.number), pages.size() - 1)]);
        }};
        std::string keys;
        for (const auto& info : S3{options_for(fresh.url())}.list("")) keys += info.key + " ";
        return keys;
    };
    EXPECT_EQ(listed_by({listing({"a", "b"}, true), listing({"c"}, false)}), "a b c ");
    EXPECT_EQ(listed_by({listing({}, true, "<NextContinuationToken>t</NextContinuationToken>"), listing({"c"}, false)}),
              "c ");
    EXPECT_EQ(thrown_by([&] {
                  listed_by({listing({"a", "b"}, true)});
              }).code,
              Errc::bad_answer)
        << "the same page for ever";
    EXPECT_EQ(thrown_by([&] { listed_by({listing({"b", "a"}, false)}); }).code, Errc::bad_answer) << "out of order";
    EXPECT_EQ(thrown_by([&] { listed_by({listing({}, true)}); }).code, Errc::bad_answer) << "more, but where?";
    EXPECT_EQ(
        thrown_by([&] { listed_by({listing({}, true, "<NextContinuationToken>t</NextContinuationToken>")}); }).code,
        Errc::bad_answer);
}

TEST(S3Faults, AddressesBothWays) {
    const FakeHttpServer server{[](const FakeRequest& request) { return object_for(request, "hello"); }};
    const std::string port = server.url().substr(server.url().rfind(':'));
    storage::S3Options options = options_for("http://localhost" + port + "/base/");
    EXPECT_EQ(text(S3{options}.get("a//b")), "hello");
    options.addressing = storage::Addressing::virtual_host;
    EXPECT_EQ(text(S3{options}.get("a//b")), "hello");
    const auto seen = server.seen();
    ASSERT_EQ(seen.size(), 2U);
    EXPECT_EQ(seen[0].target, "/base/b/a//b");
    EXPECT_EQ(seen[0].header("host"), "localhost" + port);
    EXPECT_EQ(seen[1].target, "/base/a//b");
    EXPECT_EQ(seen[1].header("host"), "b.localhost" + port);

    options = options_for("");
    options.region = "eu-central-1";
    EXPECT_EQ(S3{options}.where("a/b"), "s3://b/a/b");
    options.environment = [&](const std::string& name) -> std::optional<std::string> {
        if (name == "AWS_ENDPOINT_URL") return server.url();
        return std::nullopt;
    };
    EXPECT_EQ(S3{options}.where(""), server.url() + "/b/");
}

TEST(S3Faults, OptionsThatCannotWorkAreRefusedAtOnce) {
    const auto refused = [](const std::function<void(storage::S3Options&)>& change) {
        storage::S3Options options = options_for("http://127.0.0.1:1");
        change(options);
        return thrown_by([&] { S3{options}; });
    };
    using O = storage::S3Options;
    for (const auto& [change, says] : std::vector<std::pair<std::function<void(O&)>, const char*>>{
             {[](O& o) { o.bucket = ""; }, "aws_bucket_name"},
             {[](O& o) { o.bucket = "s3://b"; }, "aws_data_prefix"},
             {[](O& o) { o.bucket = "b/folder"; }, "aws_bucket_name"},
             {[](O& o) { o.bucket = "{env:NOT_SET}"; }, "NOT_SET"},
             {[](O& o) { o.region = "eu central"; }, "aws_region_name"},
             {[](O& o) { o.endpoint_url = "127.0.0.1:9000"; }, "aws_endpoint_url"},
             {[](O& o) { o.max_pool_connections = 0; }, "aws_max_pool_connections"},
             {[](O& o) { o.part_bytes = 1U << 20; }, "part_bytes"},
             {[](O& o) { o.part_requests = 0; }, "part_requests"},
             {[](O& o) { o.retry.attempts = 0; }, "attempts"},
             {[](O& o) { o.bucket = "under_score", o.addressing = storage::Addressing::virtual_host; },
              "Addressing::path"},
         }) {
        const auto error = refused(change);
        EXPECT_EQ(error.code, Errc::bad_value) << error.message;
        EXPECT_TRUE(error.says(says)) << error.message;
    }
    EXPECT_EQ(refused([](O& o) { o.access_key_id = ""; }).code, Errc::no_credentials);
}

TEST(S3Faults, KeysThatCannotBeAreRefusedWithoutARequest) {
    const FakeHttpServer server{[](const FakeRequest&) { return FakeReply::answer(500); }};
    storage::S3Options options = options_for(server.url());
    options.data_prefix = "1234567/";
    const S3 store{options};
    for (const std::string& key : {std::string{}, std::string(1017, 'k'), std::string("a\0b", 3)}) {
        EXPECT_EQ(thrown_by([&] { (void)store.get(key); }).code, Errc::bad_object_key);
        EXPECT_EQ(thrown_by([&] { store.put(key, {}); }).code, Errc::bad_object_key);
        EXPECT_EQ(thrown_by([&] { (void)store.exists(key); }).code, Errc::bad_object_key);
        EXPECT_EQ(thrown_by([&] { store.remove(key); }).code, Errc::bad_object_key);
    }
    EXPECT_EQ(server.requests(), 0);
}

TEST(S3Faults, InterruptEndsWhatIsUnderWay) {
    const FakeHttpServer server{[](const FakeRequest& request) {
        return request.asks("busy") ? FakeReply::answer(503, "", "Retry-After: 200\r\n") : FakeReply{"", false, true};
    }};
    const S3 store{options_for(server.url())};
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

TEST(S3Faults, TheBillIsOneLine) {
    EXPECT_EQ(storage::summary({}), "0 LIST, 0 HEAD, 0 GET, 0 PUT, 0 DELETE, 0 bytes in, 0 bytes out");
    EXPECT_EQ(
        storage::summary({3, 1024, 1'234'567, 12, 0, 2, 307'200'000, 1'799}),
        "3 LIST, 1,024 HEAD, 1,234,567 GET, 12 PUT, 0 DELETE (2 of them again after a failure), 307.2 MB in, 1.8 kB out");
    EXPECT_EQ(storage::summary({0, 0, 0, 0, 0, 0, 999, 999'999'999'999}),
              "0 LIST, 0 HEAD, 0 GET, 0 PUT, 0 DELETE, 999 bytes in, 1.0 TB out");
}

}  // namespace
