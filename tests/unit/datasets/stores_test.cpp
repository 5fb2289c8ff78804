// Folders and buckets as a dataset list names them. Buckets answer from a server inside the test.

#include <atomic>
#include <chrono>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <strata/comm/self_comm.hpp>
#include <strata/datasets/stores.hpp>
#include <strata/policy/setup.hpp>
#include <strata/s3/folder_or_bucket.hpp>

#include "../../support/fake_http_server.hpp"
#include "../../support/retry_in_steps.hpp"
#include "../../support/temporary_folder.hpp"

namespace {

using namespace strata::datasets;
using strata::Errc;
using strata_test::thrown_by;
namespace config = strata::config;
using Folders = Stores<strata::Setup<>::backend::store>;
using Both = Stores<strata::Setup<strata::Backend<strata::S3>>::backend::store>;

config::S3Settings settings(const std::string& url, const std::string& prefix) {
    config::S3Settings s3;
    s3.bucket = "photos";
    s3.endpoint_url = url;
    s3.access_key_id = "key";
    s3.secret_access_key = strata::Secret{"secret"};
    s3.data_prefix = prefix;
    return s3;
}

config::ImageDataset in_bucket(const std::string& url, const std::string& prefix) {
    config::ImageDataset dataset;
    dataset.id = "set " + prefix;
    dataset.type = config::StoreType::aws;
    dataset.s3 = settings(url, prefix);
    return dataset;
}

TEST(Stores, ABucketNeedsItsBackend) {
    Folders stores;
    auto error = thrown_by([&] { (void)stores.pictures(in_bucket("http://127.0.0.1:9", "cats")); });
    EXPECT_EQ(error.code, Errc::no_backend);
    EXPECT_EQ(error.message,
              "[ST2106] data set 'set cats' is of type aws, and this program was built to read folders only. "
              "Fix: build it with Backend<S3>, or set type to local.");
    config::CachePlace place;
    place.type = config::StoreType::aws;
    place.s3 = settings("http://127.0.0.1:9", "cache");
    error = thrown_by([&] { (void)stores.cache(place, "text embeds 'text'"); });
    EXPECT_EQ(error.code, Errc::no_backend);
    EXPECT_TRUE(error.says("text embeds 'text' is of type aws")) << error.message;
}

TEST(Stores, FoldersAreOpenedByBoth) {
    const strata_test::TemporaryFolder folder;
    config::ImageDataset dataset;
    dataset.instance_data_dir = folder.path();
    const config::CachePlace place{config::StoreType::local, folder.path() / "cache", {}};
    Folders folders;
    Both both;
    EXPECT_EQ(folders.pictures(dataset).where("a"), (folder.path() / "a").string());
    EXPECT_EQ(both.pictures(dataset).where("a"), (folder.path() / "a").string());
    both.cache(place, "x").put("entry", {});
    EXPECT_TRUE(folders.cache(place, "x").exists("entry"));
    EXPECT_FALSE(both.pictures(dataset).is_bucket());
    EXPECT_FALSE(both.traffic());
    strata::comm::SelfComm comm;
    EXPECT_TRUE(traffic_lines(comm, both.traffic()).empty());
}

TEST(Stores, RequestsAreRepeatedForAsLongAsTheirMakerSaysAndSaid) {
    std::atomic<int> failures{5};
    const strata_test::FakeHttpServer server{[&](const strata_test::FakeRequest&) {
        return failures-- > 0 ? strata_test::FakeReply::answer(503)
                              : strata_test::FakeReply::answer(200, "", "ETag: \"e1\"\r\n");
    }};
    config::DatasetList list;
    list.images = {in_bucket(server.url(), "cats")};
    std::vector<std::string> lines;
    strata::http::RetryHooks hooks = strata_test::retry_in_steps();
    hooks.say = [&](const std::string& line) { lines.push_back(line); };
    Both patient{list, {.patience = std::chrono::seconds{10}}, hooks};
    EXPECT_TRUE(patient.pictures(list.images[0]).exists("1.png"));
    EXPECT_EQ(lines, (std::vector<std::string>{
                         "S3 server " + server.url() + " answers 503; trying again for 10 s",
                         "S3 server " + server.url() + " answers again, after 5 s",
                     }));
    failures = 5;
    Both impatient{list, {.patience = std::chrono::seconds{3}}, strata_test::retry_in_steps()};
    EXPECT_EQ(thrown_by([&] { (void)impatient.pictures(list.images[0]).exists("1.png"); }).code, Errc::transfer_failed);
}

TEST(Stores, EntriesOfOneBucketShareItsConnectionsAndItsBill) {
    const strata_test::FakeHttpServer server{[](const strata_test::FakeRequest& request) {
        return request.method == "HEAD" ? strata_test::FakeReply::answer(200, "", "ETag: \"e1\"\r\n")
                                        : strata_test::FakeReply::error(404, "NoSuchKey");
    }};
    config::DatasetList list;
    list.images = {in_bucket(server.url(), "cats"), in_bucket(server.url(), "dogs")};
    list.images[0].s3.max_pool_connections = 3;
    list.images[1].s3.max_pool_connections = 5;
    Both stores{list};
    const auto cats = stores.pictures(list.images[0]);
    const auto dogs = stores.pictures(list.images[1]);
    EXPECT_TRUE(cats.is_bucket());
    EXPECT_EQ(cats.requests_at_once(), 5);
    EXPECT_EQ(cats.where("1.png"), server.url() + "/photos/cats/1.png");
    EXPECT_EQ(server.requests(), 0) << "opening asks for nothing";
    (void)cats.exists("1.png");
    (void)dogs.exists("1.png");
    EXPECT_EQ(server.connections(), 1);
    EXPECT_EQ(dogs.traffic().head, 2U);
    config::ImageDataset other = in_bucket(server.url(), "cats");
    other.s3.access_key_id = "another";
    (void)stores.pictures(other).exists("1.png");
    EXPECT_EQ(server.connections(), 2);
    EXPECT_EQ(dogs.traffic().head, 2U);
    ASSERT_TRUE(stores.traffic());
    EXPECT_EQ(stores.traffic()->head, 3U);
    strata::comm::SelfComm comm;
    const auto lines = traffic_lines(comm, stores.traffic());
    ASSERT_EQ(lines.size(), 1U);
    EXPECT_TRUE(lines[0].starts_with("S3: 0 LIST, 3 HEAD, 0 GET, 0 PUT, 0 DELETE")) << lines[0];
    stores.interrupt();
    EXPECT_EQ(thrown_by([&] { (void)cats.exists("1.png"); }).code, Errc::interrupted);
}

}  // namespace
