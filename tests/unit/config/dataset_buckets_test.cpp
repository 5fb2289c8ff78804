#include <cstdlib>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <strata/config/dataset_list.hpp>

#include "dataset_lists.hpp"

namespace {

using namespace strata::config;
using strata::Errc;
using strata_test::bucket_with;
using strata_test::load;
using strata_test::refused;
using strata_test::text_entry;

// Pictures in a bucket, captions and sizes in a table beside them, caches on a local disk.
TEST(DatasetBuckets, ReadsAListWithATableAndLocalCaches) {
    ::setenv("STRATA_TEST_KEY", "AKIDEXAMPLE", 1);
    ::setenv("STRATA_TEST_SECRET", "geheim", 1);
    ::setenv("STRATA_TEST_SCRATCH", "/scratch/7", 1);
    const DatasetList list = load(R"([
      {"id": "photos", "type": "aws", "dataset_type": "image", "aws_bucket_name": "photos-of-things",
       "aws_region_name": null, "aws_endpoint_url": "https://storage.example", "aws_data_prefix": "2024/raw",
       "aws_access_key_id": "{env:STRATA_TEST_KEY}", "aws_secret_access_key": "{env:STRATA_TEST_SECRET}",
       "aws_max_pool_connections": 64, "cache_dir_vae": "{env:STRATA_TEST_SCRATCH}/vae/", "image_embeds": "vae-storage",
       "caption_strategy": "parquet", "metadata_backend": "parquet",
       "parquet": {"path": "train.parquet", "filename_column": "id", "caption_column": "cogvlm_caption",
                   "fallback_caption_column": "tags", "width_column": "w", "height_column": "h",
                   "identifier_includes_extension": true},
       "resolution": 1.0, "resolution_type": "area", "minimum_image_size": 0.75, "maximum_image_size": 2.0,
       "target_downsample_size": 1.5, "crop": true, "crop_aspect": "closest", "crop_style": "random",
       "crop_aspect_buckets": [1.0, 0.75, 1.23], "vae_cache_clear_each_epoch": true, "instance_prompt": null,
       "prepend_instance_prompt": false, "only_instance_prompt": false, "preserve_data_backend_cache": true,
       "skip_file_discovery": "", "probability": 1.0, "repeats": 1},
      {"id": "vae-storage", "type": "local", "dataset_type": "image_embeds"},
      {"id": "text-storage", "type": "local", "dataset_type": "text_embeds", "default": true,
       "cache_dir": "{env:STRATA_TEST_SCRATCH}/text", "write_batch_size": 128}])");
    ASSERT_EQ(list.images.size(), 1U);
    const ImageDataset& photos = list.images[0];
    EXPECT_EQ(photos.type, StoreType::aws);
    EXPECT_EQ(photos.s3.bucket, "photos-of-things");
    EXPECT_EQ(photos.s3.region, "");
    EXPECT_EQ(photos.s3.endpoint_url, "https://storage.example");
    EXPECT_EQ(photos.s3.data_prefix, "2024/raw");
    EXPECT_EQ(photos.s3.access_key_id, "AKIDEXAMPLE");
    EXPECT_EQ(photos.s3.secret_access_key.reveal(), "geheim");
    EXPECT_TRUE(photos.s3.session_token.empty());
    EXPECT_EQ(photos.s3.max_pool_connections, 64);
    ASSERT_TRUE(photos.parquet.has_value());
    EXPECT_EQ(photos.parquet->path, "train.parquet");
    EXPECT_EQ(photos.parquet->filename_column, "id");
    EXPECT_EQ(photos.parquet->caption_column, std::vector<std::string>{"cogvlm_caption"});
    EXPECT_EQ(photos.parquet->fallback_caption_column, std::vector<std::string>{"tags"});
    EXPECT_EQ(photos.parquet->width_column, "w");
    EXPECT_EQ(photos.parquet->height_column, "h");
    EXPECT_TRUE(photos.parquet->identifier_includes_extension);
    EXPECT_TRUE(photos.preserve_data_backend_cache);
    const CachePlace latents = list.latent_cache_of(photos);
    EXPECT_EQ(latents.type, StoreType::local);
    EXPECT_EQ(latents.folder, "/scratch/7/vae/");
    EXPECT_EQ(text_cache_of(list.text_embeds_of(photos)).folder, "/scratch/7/text");
}

TEST(DatasetBuckets, CachesInABucketStandBesideTheData) {
    const std::string keys = R"("aws_bucket_name":"b","aws_data_prefix":"data/")";
    const DatasetList list =
        load(R"([{"id":"p","type":"aws","cache_dir_vae":"cache/vae",)" + keys + "}," +
             R"({"id":"t","type":"aws","dataset_type":"text_embeds","cache_dir":"",)" + keys + "}]");
    const CachePlace latents = list.latent_cache_of(list.images[0]);
    EXPECT_EQ(latents.type, StoreType::aws);
    EXPECT_EQ(latents.s3.bucket, "b");
    EXPECT_EQ(latents.s3.data_prefix, "cache/vae");
    EXPECT_EQ(text_cache_of(list.text_embeds[0]).s3.data_prefix, "data/");
}

TEST(DatasetBuckets, AVariableThatIsNotSetIsNamedWithItsKey) {
    ::unsetenv("STRATA_TEST_NOT_SET");
    for (const std::string key : {"aws_secret_access_key", "aws_bucket_name", "aws_data_prefix", "cache_dir_vae",
                                  "caption_strategy", "repeats", "crop", "instance_prompt"}) {
        std::string list =
            R"([{"id":"p","type":"aws",")" + key + R"(":"geheim{env:STRATA_TEST_NOT_SET}"},)" + text_entry + "]";
        const auto error = refused(list);
        EXPECT_EQ(error.code, Errc::bad_value);
        EXPECT_TRUE(error.says("key '[0]." + key +
                               "' refers to the environment variable 'STRATA_TEST_NOT_SET', which is not set"))
            << error.message;
        EXPECT_FALSE(error.says("geheim")) << error.message;
    }
    const auto nested = refused(
        R"([{"id":"p","instance_data_dir":"d","cache_dir_vae":"v","crop_aspect_buckets":["{env:STRATA_TEST_NOT_SET}"]}])");
    EXPECT_TRUE(nested.says("'[0].crop_aspect_buckets[0]'")) << nested.message;
    const auto table = refused(
        R"([{"id":"p","instance_data_dir":"d","cache_dir_vae":"v","parquet":{"path":"{env:STRATA_TEST_NOT_SET}"}}])");
    EXPECT_TRUE(table.says("'[0].parquet.path'")) << table.message;
}

TEST(DatasetBuckets, NoMessageHasASecret) {
    ::setenv("STRATA_TEST_SECRET", "geheim", 1);
    const std::string bucket = R"(,"aws_bucket_name":"b")";
    const std::vector<std::string> lists{
        bucket_with(bucket + R"(,"aws_access_key_id":4711,"aws_secret_access_key":"geheim")"),
        bucket_with(bucket + R"(,"aws_access_key_id":"i","aws_secret_access_key":4711)"),
        bucket_with(bucket + R"(,"aws_access_key_id":"i","aws_secret_access_key":["4711","geheim"])"),
        bucket_with(bucket + R"(,"aws_access_key_id":"i","aws_secret_access_key":"geheim{env:")"),
        bucket_with(bucket + R"(,"aws_secret_access_key":"geheim")"),
        bucket_with(bucket + R"(,"aws_session_token":{"geheim":4711})"),
        bucket_with(R"(,"aws_access_key_id":"4711","aws_secret_access_key":"geheim")"),
        bucket_with(R"(,"aws_secret_acces_key":"geheim")"),
        strata_test::list_with(R"(,"aws_secret_access_key":"geheim")"),
        // a variable's value in a key that is no place for it
        strata_test::list_with(R"(,"caption_strategy":"{env:STRATA_TEST_SECRET}")"),
        strata_test::list_with(R"(,"type":"{env:STRATA_TEST_SECRET}")"),
        strata_test::list_with(R"(,"repeats":"{env:STRATA_TEST_SECRET}")"),
        strata_test::list_with(R"(,"crop":"{env:STRATA_TEST_SECRET}")"),
        strata_test::list_with(R"(,"skip_file_discovery":"{env:STRATA_TEST_SECRET}")"),
        R"([{"id":"p","aws_secret_access_key":"geheim" "x":4711}])"};
    for (const std::string& list : lists) {
        const auto error = refused(list);
        EXPECT_TRUE(error.says("config.json")) << list << "\n" << error.message;
        EXPECT_FALSE(error.says("geheim") || error.says("4711")) << error.message;
    }
    ::setenv("STRATA_TEST_SECRET", "4711471147114711", 1);
    const auto range = refused(strata_test::list_with(R"(,"repeats":"{env:STRATA_TEST_SECRET}")"));
    EXPECT_TRUE(range.says("{env:STRATA_TEST_SECRET}") && range.says("out of its range")) << range.message;
    EXPECT_FALSE(range.says("4711")) << range.message;
}

}  // namespace
