// Objects that are read and written in parts, and what can go wrong between them: against servers that say what a test wants.

#include <atomic>
#include <cstddef>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <strata/s3/s3.hpp>

#include "../../support/fake_s3.hpp"
#include "../../support/temporary_folder.hpp"

namespace {

using namespace strata_test::fake_s3;
using strata::Errc;
using strata::S3;
using strata_test::FakeHttpServer;
using strata_test::FakeReply;
using strata_test::FakeRequest;
using strata_test::thrown_by;

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

TEST(S3Parts, AnObjectReplacedBetweenItsPartsIsReadFromItsBeginning) {
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

TEST(S3Parts, ThreadsThatReadInPartsShareOneConnectionWithoutWaitingForEachOther) {
    TwoParts parts;
    const FakeHttpServer server{[&](const FakeRequest& request) { return parts(request); }};
    s3::S3Options options = options_for(server.url());
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

TEST(S3Parts, AnUploadWhosePartFailsIsGivenUp) {
    Uploads uploads;
    uploads.end = [](int) { return Uploads::good(); };
    uploads.lose_part = [](const FakeRequest& request) { return request.asks("partNumber=2"); };
    const FakeHttpServer server{[&](const FakeRequest& request) { return uploads(request); }};
    const S3 store{options_for(server.url())};
    EXPECT_EQ(thrown_by([&] { store.put("k", bytes(eleven_mib)); }).code, Errc::store_refused);
    EXPECT_EQ(uploads.given_up, 1);
    EXPECT_EQ(uploads.ends, 0);
}

TEST(S3Parts, AnErrorInsideOfA200EndsNoUpload) {
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

TEST(S3Parts, AnUploadThatEndedUnheardIsFoundToBeThere) {
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

}  // namespace
