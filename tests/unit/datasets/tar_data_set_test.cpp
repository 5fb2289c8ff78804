// Data sets of tar shards, in a folder and in a bucket: pictures and captions of one base name are a sample.

#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <strata/comm/self_comm.hpp>
#include <strata/datasets/discovery.hpp>
#include <strata/datasets/stores.hpp>
#include <strata/policy/setup.hpp>
#include <strata/s3/folder_or_bucket.hpp>
#include <strata/storage/atomic_file.hpp>

#include "../../support/fake_http_server.hpp"
#include "../../support/fake_s3.hpp"
#include "../../support/made_tar.hpp"
#include "../../support/pictures.hpp"
#include "../../support/temporary_folder.hpp"

namespace {

using namespace strata::datasets;
using strata::Errc;
using strata_test::FakeHttpServer;
using strata_test::FakeReply;
using strata_test::FakeRequest;
using strata_test::made_tar;
using strata_test::plain_png;
using strata_test::TemporaryFolder;
using strata_test::thrown_by;
namespace config = strata::config;
using Both = Stores<strata::Setup<strata::Backend<strata::S3>>::backend::store>;

std::string png_text(int width, int height) {
    const auto bytes = plain_png(width, height, 1, 2, 3);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string first_shard() {
    return made_tar({{"000017.png", png_text(64, 48)},
                     {"000017.txt", "a red square"},
                     {"000018.png", png_text(40, 50)},
                     {"000018.txt", "one\nanother"},
                     {"000019.png", "no picture"},
                     {"000019.txt", "x"}});
}
std::string second_shard() { return made_tar({{"000017.png", png_text(32, 32)}, {"000017.txt", "another 17"}}); }

void expect_samples(const Discovered& found) {
    EXPECT_EQ(found.found, 4);
    ASSERT_EQ(found.samples.size(), 3U);
    EXPECT_EQ(found.samples[0].key, "train-000/000017.png");
    EXPECT_EQ(found.samples[0].caption, "a red square");
    EXPECT_EQ(found.samples[0].size.width, 64);
    EXPECT_EQ(found.samples[1].key, "train-000/000018.png");
    EXPECT_EQ(found.samples[2].key, "train-001/000017.png");
    EXPECT_EQ(found.samples[2].caption, "another 17");
    ASSERT_EQ(found.skipped.size(), 1U);
    EXPECT_TRUE(found.skipped[0].place.ends_with("train-000/000019.png"));
}

TEST(TarDataSet, IsDiscoveredInAFolder) {
    const TemporaryFolder folder;
    strata::storage::write_file(folder.path() / "train-000.tar", first_shard());
    strata::storage::write_file(folder.path() / "train-001.tar", second_shard());
    strata::storage::write_file(folder.path() / "other.tar", "no part of it");
    config::ImageDataset dataset;
    dataset.id = "tars";
    dataset.instance_data_dir = folder.path();
    dataset.shards = "train-{000..127}.tar";
    strata::comm::SelfComm comm;
    for (int start = 0; start < 2; ++start) {
        Both stores;
        stores.keep_indexes_in(folder.path() / "index");
        DiscoverOptions options;
        options.index_folder = folder.path() / "index";
        expect_samples(discover(comm, stores.pictures(dataset), dataset, options));
    }
    EXPECT_TRUE(std::filesystem::exists(folder.path() / "index" / "tar"));
    Stores<strata::Local> folders;
    const auto refused = thrown_by([&] { (void)folders.pictures(dataset); });
    EXPECT_EQ(refused.code, Errc::no_backend);
    EXPECT_TRUE(refused.says("is made of tar files")) << refused.message;
    dataset.shards = "*.tgz";
    const auto none = thrown_by([&] { (void)discover(comm, Both{}.pictures(dataset), dataset, {}); });
    EXPECT_EQ(none.code, Errc::no_samples);
    EXPECT_TRUE(none.says("correct shards")) << none.message;
}

TEST(TarDataSet, IsDiscoveredInABucketByRangesAlone) {
    const std::string shards[] = {first_shard(), second_shard()};
    const FakeHttpServer server{[&](const FakeRequest& request) {
        if (request.asks("list-type=2")) {
            std::string found;
            for (int i = 0; i < 2; ++i)
                found += "<Contents><Key>sets/train-00" + std::to_string(i) + ".tar</Key><Size>" +
                         std::to_string(shards[i].size()) + "</Size><ETag>\"" +
                         strata_test::fake_s3::md5_of(shards[i]) +
                         "\"</ETag><LastModified>2024-01-01T00:00:00.000Z</LastModified></Contents>";
            return FakeReply::answer(200, "<?xml version=\"1.0\"?><ListBucketResult><IsTruncated>false</IsTruncated>" +
                                              found + "</ListBucketResult>");
        }
        return strata_test::fake_s3::object_for(request, shards[request.asks("train-001") ? 1 : 0]);
    }};
    const TemporaryFolder folder;
    config::ImageDataset dataset;
    dataset.id = "tars";
    dataset.type = config::StoreType::aws;
    dataset.s3.bucket = "b";
    dataset.s3.endpoint_url = server.url();
    dataset.s3.access_key_id = "key";
    dataset.s3.secret_access_key = strata::Secret{"secret"};
    dataset.s3.data_prefix = "sets";
    dataset.shards = "*.tar";
    strata::comm::SelfComm comm;
    Both stores;
    stores.keep_indexes_in(folder.path());
    expect_samples(discover(comm, stores.pictures(dataset), dataset, {}));
    for (const FakeRequest& request : server.seen()) {
        if (request.asks("list-type=2")) continue;
        EXPECT_FALSE(request.header("range").empty()) << request.target;
    }
    stores.interrupt();
    EXPECT_EQ(thrown_by([&] { (void)stores.pictures(dataset).get("train-000/000017.png"); }).code, Errc::interrupted);
}

}  // namespace
