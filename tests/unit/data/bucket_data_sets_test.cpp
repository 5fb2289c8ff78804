// Data sets in a bucket of a real server, with caches on this machine or in a bucket. Skips where no server is installed.

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <strata/comm/self_comm.hpp>
#include <strata/data/picture_source.hpp>
#include <strata/policy/setup.hpp>
#include <strata/s3/folder_or_bucket.hpp>

#include "../../support/fake_encoders.hpp"
#include "../../support/made_files.hpp"
#include "../../support/made_parquet.hpp"
#include "../../support/made_tar.hpp"
#include "../../support/pictures.hpp"
#include "../../support/prepared.hpp"
#include "../../support/s3_server.hpp"

namespace {

using namespace strata::data;
using namespace strata::datasets;
using namespace strata::pictures;
using strata::Errc;
using strata_test::bytes_of;
using strata_test::LengthText;
using strata_test::MeanCodec;
using strata_test::prepared;
using strata_test::S3Server;
using strata_test::thrown_by;
namespace config = strata::config;
using Store = strata::Setup<strata::Backend<strata::S3>>::backend::store;
using Source = PictureSource<strata_test::FakeRecipe, Store>;

class BucketDataSets : public strata_test::WithS3Server {
protected:
    /// Settings of a bucket, which is made.
    [[nodiscard]] static config::S3Settings settings(const std::string& bucket, const std::string& prefix) {
        const strata::s3::S3Options options = server->bucket(bucket);
        config::S3Settings s3;
        s3.bucket = bucket;
        s3.endpoint_url = options.endpoint_url;
        s3.access_key_id = options.access_key_id;
        s3.secret_access_key = options.secret_access_key;
        s3.data_prefix = prefix;
        return s3;
    }
    /// Twelve captioned pictures below `prefix`, one of them cut short behind its header.
    [[nodiscard]] static config::ImageDataset pictures(const std::string& bucket, const std::string& prefix) {
        config::ImageDataset dataset;
        dataset.id = "pictures";
        dataset.type = config::StoreType::aws;
        dataset.s3 = settings(bucket, prefix);
        dataset.text_embeds = "text";
        dataset.resolution = 48;
        const strata::S3 store = Buckets{}.open(dataset.s3);
        for (int i = 0; i < 12; ++i) {
            const std::string stem = "a folder/ü + %" + std::to_string(100 + i);
            auto file = strata_test::plain_png(48, 48, static_cast<std::uint8_t>(20 * i), 0, 0);
            if (i == 5) file.resize(file.size() / 2);
            store.put(stem + ".png", file);
            store.put(stem + ".txt", bytes_of("caption " + std::to_string(i)));
        }
        return dataset;
    }
    [[nodiscard]] static SourceOptions options(const std::filesystem::path& folder) {
        SourceOptions options;
        options.train_batch_size = 2;
        options.aspect_bucket_alignment = 16;
        options.caption_dropout_probability = 0;
        options.index_folder = folder / "index";
        return options;
    }
    /// Opens the list, takes three batches, and says what it cost.
    [[nodiscard]] static std::string run(const config::DatasetList& list, const std::filesystem::path& folder,
                                         int made) {
        strata::comm::SelfComm comm;
        const auto source = prepared<Source>(comm, list, std::make_shared<MeanCodec>(), std::make_shared<LengthText>(),
                                             options(folder));
        const Report report = source->report();
        EXPECT_EQ(report.found, 12);
        EXPECT_EQ(report.used, 11);
        EXPECT_EQ(report.latents.made, made);
        EXPECT_EQ(report.count(SkipReason::unreadable), 1);
        for (int i = 0; i < 3; ++i) EXPECT_EQ(source->next().latents_BCHW.size(0), 2);
        const auto lines = source->closing_lines(comm);
        EXPECT_EQ(lines.size(), 1U);
        return lines.at(0);
    }
};

TEST_F(BucketDataSets, PicturesInABucketAndCachesOnDisk) {
    const strata_test::TemporaryFolder folder;
    config::DatasetList list;
    list.images = {pictures("pictures", "2024")};
    list.images[0].image_embeds = "latents";
    list.image_embeds.emplace_back().id = "latents";
    list.image_embeds[0].cache_dir = folder.path() / "vae";
    list.text_embeds.emplace_back().id = "text";
    list.text_embeds[0].cache_dir = folder.path() / "text";
    const std::string first = run(list, folder.path(), 11);
    EXPECT_TRUE(first.starts_with("S3: 1 LIST, 0 HEAD, ")) << first;
    EXPECT_NE(first.find(" GET, 0 PUT, 0 DELETE"), std::string::npos) << first;
    // The second start lists, and reads one picture: that which could not be decoded.
    const std::string second = run(list, folder.path(), 0);
    EXPECT_TRUE(second.starts_with("S3: 1 LIST, 0 HEAD, 1 GET, 0 PUT, 0 DELETE")) << second;
    list.images[0].preserve_data_backend_cache = true;
    const std::string third = run(list, folder.path(), 0);
    EXPECT_TRUE(third.starts_with("S3: 0 LIST, 0 HEAD, 1 GET, 0 PUT, 0 DELETE")) << third;
}

TEST_F(BucketDataSets, PicturesAndCachesInBuckets) {
    const strata_test::TemporaryFolder folder;
    config::DatasetList list;
    list.images = {pictures("both", "data")};
    list.images[0].cache_dir_vae = "vae";
    config::TextEmbeds& text = list.text_embeds.emplace_back();
    text.id = "text";
    text.type = config::StoreType::aws;
    text.s3 = settings("captions", "cache");
    text.cache_dir = "text";
    (void)run(list, folder.path(), 11);
    EXPECT_EQ(Buckets{}.open(settings("both", "vae")).list("").size(), 11U);
    EXPECT_EQ(Buckets{}.open(settings("captions", "cache/text")).list("").size(), 12U);  // and the empty caption
    EXPECT_EQ(Buckets{}.open(settings("both", "data")).list("").size(), 24U);
    (void)run(list, folder.path(), 0);
    EXPECT_FALSE(std::filesystem::exists(folder.path() / "vae"));
}

/// Tar shards stay whole in the bucket: pictures are read by ranges of them, and a second start reads no shard again.
TEST_F(BucketDataSets, TarShardsAreReadInPlace) {
    const strata_test::TemporaryFolder folder;
    config::DatasetList list;
    config::ImageDataset& dataset = list.images.emplace_back();
    dataset.id = "tars";
    dataset.type = config::StoreType::aws;
    dataset.s3 = settings("tars", "sets");
    dataset.shards = "train-{000..001}.tar";
    dataset.text_embeds = "text";
    dataset.resolution = 48;
    dataset.image_embeds = "latents";
    list.image_embeds.emplace_back().id = "latents";
    list.image_embeds[0].cache_dir = folder.path() / "vae";
    list.text_embeds.emplace_back().id = "text";
    list.text_embeds[0].cache_dir = folder.path() / "text";
    const strata::S3 store = Buckets{}.open(dataset.s3);
    const std::string filler(300'000, 'x');  // so that a shard is much more than its pictures
    for (int shard = 0; shard < 2; ++shard) {
        std::vector<strata_test::TarEntry> entries;
        for (int i = 0; i < 4; ++i) {
            const auto png = strata_test::plain_png(48, 48, static_cast<std::uint8_t>(80 * shard + 20 * i), 0, 0);
            const std::string stem = "00000" + std::to_string(i);
            entries.push_back({stem + ".png", {reinterpret_cast<const char*>(png.data()), png.size()}});
            entries.push_back({stem + ".txt", "caption " + std::to_string(4 * shard + i)});
            entries.push_back({stem + ".bin", filler});
        }
        store.put("train-00" + std::to_string(shard) + ".tar", bytes_of(strata_test::made_tar(entries)));
    }
    strata::comm::SelfComm comm;
    for (const int made : {8, 0}) {
        const auto source = prepared<Source>(comm, list, std::make_shared<MeanCodec>(), std::make_shared<LengthText>(),
                                             options(folder.path()));
        EXPECT_EQ(source->report().found, 8);
        EXPECT_EQ(source->report().latents.made, made);
        for (int b = 0; b < 4; ++b) {
            const auto batch = source->next();
            for (std::size_t i = 0; i < 2; ++i) {
                const int number = std::stoi(batch.captions[i].substr(8));
                EXPECT_NEAR(batch.latents_BCHW[static_cast<std::int64_t>(i)][0][0][0].item<float>(),
                            static_cast<float>(20 * number) / 127.5F - 1, 1e-4F)
                    << batch.samples[i];
            }
        }
        const auto lines = source->closing_lines(comm);
        ASSERT_EQ(lines.size(), 1U);
        if (made == 0) {
            EXPECT_NE(lines[0].find(", 0 GET, "), std::string::npos) << lines[0];
        }
    }
}

TEST_F(BucketDataSets, AnETagTellsWhatWasReplacedAndWhatIsCopiedIsNotEncodedAgain) {
    const strata_test::TemporaryFolder folder;
    config::DatasetList list;
    list.images = {pictures("contents", "first")};
    list.images[0].image_embeds = "latents";
    list.image_embeds.emplace_back().id = "latents";
    list.image_embeds[0].cache_dir = folder.path() / "vae";
    list.text_embeds.emplace_back().id = "text";
    list.text_embeds[0].cache_dir = folder.path() / "text";
    (void)run(list, folder.path(), 11);
    // Another picture of equal size under the same name.
    const strata::S3 store = Buckets{}.open(list.images[0].s3);
    auto other = strata_test::plain_png(48, 48, 7, 8, 9);
    other.resize(std::max(other.size(), store.get("a folder/ü + %103.png").size()));
    store.put("a folder/ü + %103.png", other);
    (void)run(list, folder.path(), 1);
    (void)run(list, folder.path(), 0);
    // The same bytes in another place, whatever their new ETags and dates are: read, and not encoded.
    const strata::S3 copy = Buckets{}.open(settings("contents", "second"));
    for (const auto& object : store.list("")) copy.put(object.key, store.get(object.key));
    list.images[0].s3.data_prefix = "second";
    (void)run(list, folder.path(), 0);
}

TEST_F(BucketDataSets, ATableInTheBucketSparesTheHeaders) {
    namespace made = strata_test::parquet;
    const strata_test::TemporaryFolder folder;
    config::ImageDataset dataset = pictures("table", "data");
    made::MadeColumn names{.name = "file"};
    made::MadeColumn widths{.name = "width", .type = made::int32};
    made::MadeColumn heights{.name = "height", .type = made::int32};
    made::MadeColumn texts{.name = "text"};
    for (int i = 0; i < 12; ++i) {
        names.cells.push_back(made::cell("a folder/ü + %" + std::to_string(100 + i) + ".png"));
        widths.cells.push_back(made::cell(std::int32_t{48}));
        heights.cells.push_back(made::cell(std::int32_t{40}));
        texts.cells.push_back(made::cell("row " + std::to_string(i)));
    }
    const strata::S3 store = Buckets{}.open(dataset.s3);
    store.put("tables/all.parquet", made::made_file({.columns = {names, widths, heights, texts}, .codec = made::zstd}));
    dataset.caption_strategy = config::CaptionStrategy::parquet;
    dataset.metadata_backend = config::MetadataBackend::parquet;
    dataset.parquet.emplace();
    dataset.parquet->path = "tables/all.parquet";
    dataset.parquet->filename_column = "file";
    dataset.parquet->caption_column = {"text"};
    dataset.parquet->identifier_includes_extension = true;
    strata::comm::SelfComm comm;
    DiscoverOptions options;
    options.index_folder = folder.path();
    const Discovered first = discover(comm, store, dataset, options);
    ASSERT_EQ(first.samples.size(), 12U);
    EXPECT_EQ(first.samples[3].caption, "row 3");
    EXPECT_EQ(first.samples[3].size, (PictureSize{48, 40}));
    const auto before = store.traffic();
    EXPECT_LE(before.get, 5U);  // footer and four columns
    EXPECT_EQ(discover(comm, store, dataset, options).samples.size(), 12U);
    EXPECT_EQ(store.traffic().get, before.get);
}

TEST_F(BucketDataSets, AnEmptyPrefixAndAWrongSecretAreSaid) {
    strata::comm::SelfComm comm;
    config::ImageDataset dataset = pictures("wrong", "data");
    dataset.s3.data_prefix = "dta";
    auto error = thrown_by([&] { (void)discover(comm, Buckets{}.open(dataset.s3), dataset); });
    EXPECT_EQ(error.code, Errc::no_samples);
    EXPECT_TRUE(error.says("wrong/dta/") && error.says("aws_data_prefix")) << error.message;
    dataset.s3.secret_access_key = strata::Secret{"not it"};
    error = thrown_by([&] { (void)discover(comm, Buckets{}.open(dataset.s3), dataset); });
    EXPECT_EQ(error.code, Errc::store_refused);
}

}  // namespace
