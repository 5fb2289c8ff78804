// What S3 asks servers for, and what it refuses to ask: keys, addresses, listings, the bill.

#include <string>
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

std::string listing(const std::vector<std::string>& keys, bool truncated, const std::string& more = {}) {
    std::string body =
        "<ListBucketResult><IsTruncated>" + std::string{truncated ? "true" : "false"} + "</IsTruncated>" + more;
    for (const std::string& key : keys)
        body += "<Contents><Key>" + key + "</Key><ETag>e</ETag><Size>1</Size></Contents>";
    return body + "</ListBucketResult>";
}

TEST(S3Requests, KeysAreBelowThePrefix) {
    const FakeHttpServer server{[](const FakeRequest& request) {
        if (!request.asks("list-type=2")) return object_for(request, "hello");
        return FakeReply::answer(200, listing({"photos/2024/", "photos/2024/a/", "photos/2024/a/1"}, false));
    }};
    s3::S3Options options = options_for(server.url());
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

TEST(S3Requests, ListingsThatLeadNowhereEnd) {
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

TEST(S3Requests, AddressesBothWays) {
    const FakeHttpServer server{[](const FakeRequest& request) { return object_for(request, "hello"); }};
    const std::string port = server.url().substr(server.url().rfind(':'));
    s3::S3Options options = options_for("http://localhost" + port + "/base/");
    EXPECT_EQ(text(S3{options}.get("a//b")), "hello");
    options.addressing = s3::Addressing::virtual_host;
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

TEST(S3Requests, OptionsThatCannotWorkAreRefusedAtOnce) {
    const auto refused = [](const std::function<void(s3::S3Options&)>& change) {
        s3::S3Options options = options_for("http://127.0.0.1:1");
        change(options);
        return thrown_by([&] { S3{options}; });
    };
    using O = s3::S3Options;
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
             {[](O& o) { o.retry.attempts_at_first = 0; }, "attempts"},
             {[](O& o) { o.retry.attempts_at_damage = 0; }, "attempts"},
             {[](O& o) { o.retry.patience = -1ms; }, "patience"},
             {[](O& o) { o.bucket = "under_score", o.addressing = s3::Addressing::virtual_host; }, "Addressing::path"},
         }) {
        const auto error = refused(change);
        EXPECT_EQ(error.code, Errc::bad_value) << error.message;
        EXPECT_TRUE(error.says(says)) << error.message;
    }
    EXPECT_EQ(refused([](O& o) { o.access_key_id = ""; }).code, Errc::no_credentials);
}

TEST(S3Requests, KeysThatCannotBeAreRefusedWithoutARequest) {
    const FakeHttpServer server{[](const FakeRequest&) { return FakeReply::answer(500); }};
    s3::S3Options options = options_for(server.url());
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

TEST(S3Requests, TheBillIsOneLine) {
    EXPECT_EQ(s3::summary({}), "0 LIST, 0 HEAD, 0 GET, 0 PUT, 0 DELETE, 0 bytes in, 0 bytes out");
    EXPECT_EQ(
        s3::summary({3, 1024, 1'234'567, 12, 0, 2, 307'200'000, 1'799}),
        "3 LIST, 1,024 HEAD, 1,234,567 GET, 12 PUT, 0 DELETE (2 of them again after a failure), 307.2 MB in, 1.8 kB out");
    EXPECT_EQ(s3::summary({0, 0, 0, 0, 0, 0, 999, 999'999'999'999}),
              "0 LIST, 0 HEAD, 0 GET, 0 PUT, 0 DELETE, 999 bytes in, 1.0 TB out");
}

}  // namespace
