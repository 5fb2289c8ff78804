#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <strata/config/dataset_list.hpp>
#include <strata/config/trainer_config.hpp>

#include "dataset_lists.hpp"

namespace {

using namespace strata::config;
using strata::Errc;
using strata_test::list_with;
using strata_test::load;
using strata_test::refused;
using strata_test::TemporaryJson;
using strata_test::text_entry;

TEST(DatasetList, ReadsTheKeysOfThisWorld) {
    const DatasetList list = load(list_with(
        R"(,"type":"local","dataset_type":"image","resolution":128,"resolution_type":"pixel_area","minimum_image_size":48,
           "minimum_aspect_ratio":0.5,"maximum_aspect_ratio":2,"crop":true,"crop_style":"center","crop_aspect":"preserve",
           "repeats":2,"caption_strategy":"filename","metadata_backend":"discovery","text_embeds":"text","disabled":false)"));
    ASSERT_EQ(list.images.size(), 1U);
    const ImageDataset& pictures = list.images[0];
    EXPECT_EQ(pictures.id, "pictures");
    EXPECT_EQ(pictures.instance_data_dir, "data");
    EXPECT_EQ(pictures.resolution, 128);
    EXPECT_EQ(pictures.minimum_image_size, 48);
    EXPECT_EQ(pictures.maximum_aspect_ratio, 2);
    EXPECT_EQ(pictures.crop_aspect, CropAspect::preserve);
    EXPECT_EQ(pictures.repeats, 2);
    EXPECT_EQ(pictures.caption_strategy, CaptionStrategy::filename);
    EXPECT_EQ(list.text_embeds_of(pictures).cache_dir, "cache/text");
}

TEST(DatasetList, ReadsSizesAndCrops) {
    const ImageDataset cropped =
        load(list_with(
                 R"(,"resolution":1.0,"resolution_type":"area","minimum_image_size":0.75,"maximum_image_size":2.0,
           "target_downsample_size":1.5,"crop":true,"crop_style":"random","crop_aspect":"closest",
           "crop_aspect_buckets":[1.0,0.75,1.23],"max_upscale_threshold":0.2,"vae_cache_clear_each_epoch":true)"))
            .images[0];
    EXPECT_EQ(cropped.maximum_image_size, 2.0);
    EXPECT_EQ(cropped.target_downsample_size, 1.5);
    EXPECT_EQ(cropped.crop_style, CropStyle::random);
    EXPECT_EQ(cropped.crop_aspect, CropAspect::closest);
    ASSERT_EQ(cropped.crop_aspect_buckets.size(), 3U);
    EXPECT_EQ(cropped.crop_aspect_buckets[2].aspect, 1.23);
    EXPECT_NEAR(cropped.crop_aspect_buckets[2].weight, 1.0 / 3, 1e-15);
    EXPECT_EQ(cropped.max_upscale_threshold, 0.2);
    EXPECT_TRUE(cropped.is_cropped_at_random());

    const ImageDataset weighted =
        load(list_with(
                 R"(,"crop":true,"crop_aspect":"random","vae_cache_disable":true,"crop_style":"corner",
           "crop_aspect_buckets":[{"aspect":1.0,"weight":0.7},{"aspect":"0.5","weight":0.3}])"))
            .images[0];
    EXPECT_EQ(weighted.crop_style, CropStyle::corner);
    EXPECT_EQ(weighted.crop_aspect_buckets[1].aspect, 0.5);
    EXPECT_EQ(weighted.crop_aspect_buckets[1].weight, 0.3);
    EXPECT_TRUE(weighted.is_cropped_at_random());

    // Without `crop` the other keys of cropping have no say, so they need no cache that is cleared.
    const ImageDataset whole =
        load(list_with(R"(,"crop":false,"crop_style":"random","crop_aspect":"random")")).images[0];
    EXPECT_FALSE(whole.is_cropped_at_random());
}

TEST(DatasetList, ReadsTurnsScheduleAndCaches) {
    const ImageDataset one =
        load(
            list_with(
                R"(,"probability":0.5,"max_num_samples":1000,"start_epoch":1,"end_epoch":"4","start_step":0,"end_step":300,
           "is_regularization_data":true,"preserve_data_backend_cache":true,"skip_file_discovery":"vae, metadata",
           "vae_cache_ondemand":true,"scan_for_errors":true,"delete_problematic_images":true)"))
            .images[0];
    EXPECT_EQ(one.probability, 0.5);
    EXPECT_EQ(one.max_num_samples, 1000);
    EXPECT_EQ(one.end_epoch, 4);
    EXPECT_EQ(one.end_step, 300);
    EXPECT_TRUE(one.is_regularisation_data && one.preserve_data_backend_cache && one.vae_cache_ondemand);
    EXPECT_TRUE(one.scan_for_errors && one.delete_problematic_images);
    EXPECT_TRUE(one.skip_file_discovery.vae && one.skip_file_discovery.metadata);
    EXPECT_FALSE(one.skip_file_discovery.aspect || one.skip_file_discovery.text);
    const SkipDiscovery others =
        load(list_with(R"(,"skip_file_discovery":["aspect","text"])")).images[0].skip_file_discovery;
    EXPECT_TRUE(others.aspect && others.text && !others.vae && !others.metadata);

    const ImageDataset plain =
        load(list_with(
                 R"(,"max_num_samples":null,"end_epoch":null,"skip_file_discovery":"","max_upscale_threshold":null)"))
            .images[0];
    EXPECT_EQ(plain.probability, 1);
    EXPECT_EQ(plain.max_num_samples, 0);
    EXPECT_EQ(plain.start_epoch, 1);
    EXPECT_EQ(plain.end_epoch, 0);
    EXPECT_FALSE(plain.max_upscale_threshold.has_value());
    EXPECT_FALSE(plain.caption_shuffle.has_value() || plain.parquet.has_value());
}

TEST(DatasetList, ReadsCaptions) {
    const ImageDataset shuffled =
        load(list_with(
                 R"(,"instance_prompt":"sks dog","prepend_instance_prompt":true,"only_instance_prompt":true,
           "caption_shuffle":{"enable":true,"count":3,"seed":7,"split_on":"space","position_start":1,"include_original":false})"))
            .images[0];
    EXPECT_TRUE(shuffled.prepend_instance_prompt && shuffled.only_instance_prompt);
    ASSERT_TRUE(shuffled.caption_shuffle.has_value());
    EXPECT_TRUE(shuffled.caption_shuffle->enable);
    EXPECT_EQ(shuffled.caption_shuffle->count, 3);
    EXPECT_EQ(shuffled.caption_shuffle->seed, 7);
    EXPECT_EQ(shuffled.caption_shuffle->split_on, CaptionSeparator::space);
    EXPECT_EQ(shuffled.caption_shuffle->position_start, 1);
    EXPECT_FALSE(shuffled.caption_shuffle->include_original);
    const ImageDataset plain = load(list_with(R"(,"caption_shuffle":{},"caption_strategy":"json")")).images[0];
    EXPECT_FALSE(plain.caption_shuffle->enable || plain.caption_shuffle->seed.has_value());
    EXPECT_TRUE(plain.caption_shuffle->include_original);
    EXPECT_EQ(plain.caption_strategy, CaptionStrategy::json);

    const ImageDataset table =
        load(
            list_with(
                R"(,"caption_strategy":"parquet","parquet":{"path":"t.jsonl","filename_column":"id","caption_column":["a","b"]})"))
            .images[0];
    EXPECT_EQ(table.metadata_backend, MetadataBackend::discovery);
    EXPECT_EQ(table.parquet->caption_column, (std::vector<std::string>{"a", "b"}));
    EXPECT_EQ(table.parquet->width_column, "width");
    EXPECT_EQ(table.parquet->height_column, "height");
    EXPECT_FALSE(table.parquet->identifier_includes_extension);
    EXPECT_EQ(load(list_with(R"(,"metadata_backend":"json")")).images[0].metadata_backend, MetadataBackend::discovery);
}

// A first list of many who train an adapter: a subject, pictures that keep the model as it was, one text cache.
TEST(DatasetList, ReadsAListOfASubjectAndItsRegularisation) {
    const DatasetList list = load(R"([
      {"id": "regularisation", "type": "local", "crop": true, "crop_aspect": "square", "crop_style": "center",
       "resolution": 512, "minimum_image_size": 512, "maximum_image_size": 512, "target_downsample_size": 512,
       "resolution_type": "pixel_area", "cache_dir_vae": "cache/vae/flux/regularisation",
       "instance_data_dir": "datasets/regularisation", "disabled": false, "skip_file_discovery": "",
       "caption_strategy": "filename", "metadata_backend": "discovery", "repeats": 0, "is_regularisation_data": true},
      {"id": "subject-1024", "type": "local", "crop": false, "crop_aspect": "square", "crop_style": "random",
       "resolution": 1024, "minimum_image_size": 768, "maximum_image_size": 1536, "target_downsample_size": 1024,
       "resolution_type": "pixel_area", "minimum_aspect_ratio": 0.5, "maximum_aspect_ratio": 3.0,
       "cache_dir_vae": "cache/vae/flux/subject-1024", "instance_data_dir": "datasets/subject",
       "caption_strategy": "textfile", "instance_prompt": "a photo of sks dog", "prepend_instance_prompt": true,
       "only_instance_prompt": false, "metadata_backend": "discovery", "probability": 1.0, "repeats": 9,
       "vae_cache_clear_each_epoch": false, "hash_filenames": true, "delete_unwanted_images": false},
      {"id": "holdout", "dataset_type": "eval", "instance_data_dir": "datasets/holdout", "resolution": 1024,
       "cache_dir_vae": "cache/vae/flux/holdout", "caption_strategy": "textfile"},
      {"id": "clips", "dataset_type": "video", "disabled": true, "video": {"num_frames": 125}},
      {"id": "text-embeds", "type": "local", "dataset_type": "text_embeds", "default": true,
       "cache_dir": "cache/text/flux", "disabled": false, "write_batch_size": 128,
       "preserve_data_backend_cache": false, "skip_file_discovery": ""}])");
    ASSERT_EQ(list.images.size(), 2U);
    EXPECT_TRUE(list.images[0].is_regularisation_data);
    EXPECT_EQ(list.images[1].instance_prompt, "a photo of sks dog");
    EXPECT_EQ(list.images[1].repeats, 9);
    ASSERT_EQ(list.eval.size(), 1U);
    EXPECT_TRUE(list.eval[0].is_eval());
    EXPECT_EQ(list.eval[0].text_embeds, "text-embeds");
    const std::vector<DatasetList> evaluated = list.evaluated();
    ASSERT_EQ(evaluated.size(), 1U);
    ASSERT_EQ(evaluated[0].images.size(), 1U);
    EXPECT_EQ(evaluated[0].images[0].id, "holdout");
    EXPECT_FALSE(evaluated[0].images[0].is_eval());
    EXPECT_TRUE(evaluated[0].eval.empty());
    EXPECT_EQ(evaluated[0].text_embeds.size(), list.text_embeds.size());
    EXPECT_EQ(list.latent_cache_of(list.images[1]).folder, "cache/vae/flux/subject-1024");
    EXPECT_EQ(text_cache_of(list.text_embeds_of(list.images[0])).folder, "cache/text/flux");
}

TEST(DatasetList, ConditioningDataSetsAreNamedByThoseThatUseThem) {
    // What lists of other trainers say of sizes, captions and caches of such a set has no say here.
    const DatasetList list = load(R"([
      {"id": "photos", "instance_data_dir": "photos", "cache_dir_vae": "vae", "conditioning_data": ["edges", "masks"]},
      {"id": "held", "dataset_type": "eval", "instance_data_dir": "held", "cache_dir_vae": "vae",
       "conditioning_data": "masks"},
      {"id": "masks", "dataset_type": "conditioning", "conditioning_type": "mask", "instance_data_dir": "masks",
       "source_dataset_id": "photos"},
      {"id": "unused", "dataset_type": "conditioning", "instance_data_dir": "unused"},
      {"id": "edges", "type": "local", "dataset_type": "conditioning", "instance_data_dir": "edges", "resolution": 512,
       "crop": true, "caption_strategy": "filename", "cache_dir_vae": "vae/edges", "repeats": 3, "scan_for_errors": true},
      {"id": "text", "dataset_type": "text_embeds", "cache_dir": "text"}])");
    ASSERT_EQ(list.images.size(), 1U);
    ASSERT_EQ(list.conditioning.size(), 3U);
    EXPECT_EQ(list.conditioning_of(list.images[0]), (std::vector<std::size_t>{2, 0}));
    EXPECT_EQ(list.conditioning_of(list.eval[0]), (std::vector<std::size_t>{0}));
    EXPECT_EQ(list.conditioning[0].conditioning_type, ConditioningType::mask);
    EXPECT_EQ(list.conditioning[2].conditioning_type, ConditioningType::controlnet);
    EXPECT_TRUE(list.conditioning[2].is_conditioning());
    EXPECT_TRUE(list.conditioning[2].scan_for_errors);
    EXPECT_EQ(list.conditioning[2].repeats, 0);
    EXPECT_FALSE(list.conditioning[2].crop);
    EXPECT_EQ(list.evaluated()[0].conditioning_of(list.evaluated()[0].images[0]), (std::vector<std::size_t>{0}));
}

TEST(DatasetList, TheListsOfTheDocumentationLoad) {
    ::setenv("S3_KEY", "id", 1);
    ::setenv("S3_SECRET", "geheim", 1);
    int loaded = 0;
    for (const char* page : {"configuration.md", "dataset-keys.md"}) {
        std::ifstream stream{std::string{STRATA_SOURCE_DIR} + "/docs/" + page};
        const std::string text{std::istreambuf_iterator<char>{stream}, {}};
        const std::string fence = "```json\n";
        for (std::size_t at = text.find(fence); at != std::string::npos; at = text.find(fence, at)) {
            at += fence.size();
            EXPECT_NO_THROW((void)load(text.substr(at, text.find("```", at) - at))) << page;
            ++loaded;
        }
    }
    EXPECT_EQ(loaded, 4);
}

TEST(DatasetList, BatchesAndSmallBucketsMayBeADataSetsOwn) {
    TrainerConfig trainer;
    trainer.of_data_sets.small_buckets = SmallBuckets::drop;
    const TemporaryJson file{list_with(
        R"(,"train_batch_size":2,"disable_after_epoch_step":"500","minimum_aspect_ratio":1.2,"maximum_aspect_ratio":1.9},
            {"id":"more","instance_data_dir":"m","cache_dir_vae":"cache/m","small_buckets":"merge")")};
    const DatasetList list = load_datasets(file.path(), trainer.image_defaults());
    EXPECT_EQ(list.images[0].train_batch_size, 2);
    EXPECT_EQ(list.images[0].disable_after_epoch_step, 500);
    EXPECT_EQ(list.images[0].minimum_aspect_ratio, 1.2);
    EXPECT_EQ(list.images[0].small_buckets, SmallBuckets::drop);
    EXPECT_EQ(list.images[1].train_batch_size, 0);
    EXPECT_EQ(list.images[1].small_buckets, SmallBuckets::merge);
    EXPECT_EQ(load(list_with("")).images[0].small_buckets, std::nullopt);
}

TEST(DatasetList, CaptionFiltersAreThoseOfTheTextEntryOrTheDataSetsOwn) {
    const auto list_of = [](const std::string& of_text, const std::string& of_set) {
        return R"([{"id":"p","instance_data_dir":"d","cache_dir_vae":"v")" + of_set +
               R"(},{"id":"text","dataset_type":"text_embeds","cache_dir":"c","caption_filter_list":)" + of_text + "}]";
    };
    using Texts = std::vector<std::string>;
    const auto filters = [&](const std::string& of_text, const std::string& of_set = "") {
        return load(list_of(of_text, of_set)).images[0].caption_filter_list;
    };
    EXPECT_EQ(filters(R"(["arafed ", "  ", "^a"])"), (Texts{"arafed ", "^a"}));
    EXPECT_EQ(filters(R"([])"), Texts{});
    EXPECT_EQ(filters(R"("")"), Texts{});
    EXPECT_EQ(filters(R"(["a"])", R"(,"caption_filter_list":["b"])"), Texts{"b"});
    const strata_test::TemporaryFolder folder;
    const auto text = folder.path() / "filters.txt";
    const auto json = folder.path() / "filters.json";
    strata::storage::write_file(text,
                                "\xEF\xBB\xBF"
                                "arafed \r\n\n \ns/a/b/");
    strata::storage::write_file(json, R"(["x", "y "])");
    EXPECT_EQ(filters("\"" + text.string() + "\""), (Texts{"arafed ", "s/a/b/"}));
    EXPECT_EQ(filters("\"" + json.string() + "\""), (Texts{"x", "y "}));
    strata::storage::write_file(folder.path() / "list.json", list_of(R"("filters.txt")", ""));
    EXPECT_EQ(load_datasets(folder.path() / "list.json").images[0].caption_filter_list.size(), 2U) << "beside the list";
    const auto missing = refused(list_of(R"("nowhere.txt")", ""));
    EXPECT_EQ(missing.code, strata::Errc::bad_reference);
    EXPECT_TRUE(missing.says("'[1].caption_filter_list' names the file \"nowhere.txt\", which is not there"))
        << missing.message;
    const TemporaryJson object{R"({"x": 1})"};
    EXPECT_EQ(refused(list_of("\"" + object.path().string() + "\"", "")).code, strata::Errc::bad_value);
}

TEST(DatasetList, ListsOfAddressesAndTarShardsAreTaken) {
    const DatasetList list =
        load(R"([{"id":"web","type":"csv","csv_file":"l.tsv","csv_url_column":"image","csv_caption_column":"text",)"
             R"("csv_cache_dir":"kept","caption_strategy":"csv","cache_dir_vae":"v"},)"
             R"({"id":"tars","instance_data_dir":"d","shards":"t-{000..127}.tar","cache_dir_vae":"w"},)" +
             text_entry + "]");
    EXPECT_EQ(list.images[0].type, StoreType::csv);
    EXPECT_EQ(list.images[0].csv.file, "l.tsv");
    EXPECT_EQ(list.images[0].csv.url_column, "image");
    EXPECT_EQ(list.images[0].csv.caption_column, "text");
    EXPECT_EQ(list.images[0].csv.cache_dir, "kept");
    EXPECT_EQ(list.images[0].caption_strategy, CaptionStrategy::csv);
    EXPECT_EQ(list.images[1].shards, "t-{000..127}.tar");
    EXPECT_EQ(list.latent_cache_of(list.images[0]).type, StoreType::local);  // a folder, not a list
    EXPECT_EQ(list.latent_cache_of(list.images[0]).folder, "v");
}

TEST(DatasetList, TakesDefaultsFromTheTrainer) {
    TrainerConfig trainer;
    trainer.resolution = 0.5;
    trainer.resolution_type = ResolutionType::area;
    const TemporaryJson file{list_with("")};
    const DatasetList list = load_datasets(file.path(), trainer.image_defaults());
    EXPECT_EQ(list.images[0].resolution, 0.5);
    EXPECT_EQ(list.images[0].resolution_type, ResolutionType::area);
}

TEST(DatasetList, LinksToTheOnlyOrTheDefaultTextEntry) {
    const std::string other = R"({"id":"other","dataset_type":"text_embeds","cache_dir":"o")";
    const std::string picture = R"({"id":"p","instance_data_dir":"d","cache_dir_vae":"v"})";
    EXPECT_EQ(load("[" + picture + "," + text_entry + "]").images[0].text_embeds, "text");
    EXPECT_EQ(load("[" + other + R"(,"default":true},)" + picture + "," + text_entry + "]").images[0].text_embeds,
              "other");
    EXPECT_EQ(refused("[" + other + "}," + picture + "," + text_entry + "]").code, Errc::bad_reference);
    EXPECT_EQ(refused("[" + picture + "]").code, Errc::bad_reference);
    const auto wrong = refused(list_with(R"(,"text_embeds":"texd")"));
    EXPECT_EQ(wrong.code, Errc::bad_reference);
    EXPECT_TRUE(wrong.says("did you mean 'text'")) << wrong.message;
}

TEST(DatasetList, LatentsAreWhereImageEmbedsLead) {
    const auto place_of = [](const std::string& picture, const std::string& embeds) {
        const DatasetList list = load(R"([{"id":"p","instance_data_dir":"d","image_embeds":"e")" + picture + "}," +
                                      R"({"id":"e","dataset_type":"image_embeds")" + embeds + "}," + text_entry + "]");
        return list.latent_cache_of(list.images[0]);
    };
    EXPECT_EQ(place_of(R"(,"cache_dir_vae":"v")", "").folder, "v");
    EXPECT_EQ(place_of("", R"(,"cache_dir":"c")").folder, "c");
    EXPECT_EQ(place_of(R"(,"cache_dir_vae":"a/../c")", R"(,"cache_dir":"c")").folder, "a/../c");
    const CachePlace bucket =
        place_of(R"(,"cache_dir_vae":"v")", R"(,"type":"aws","aws_bucket_name":"b","aws_data_prefix":"x/")");
    EXPECT_EQ(bucket.type, StoreType::aws);
    EXPECT_EQ(bucket.s3.bucket, "b");
    EXPECT_EQ(bucket.s3.data_prefix, "x/v");
    EXPECT_EQ(
        place_of("", R"(,"type":"aws","aws_bucket_name":"b","aws_data_prefix":"x","cache_dir":"y")").s3.data_prefix,
        "x/y");
    EXPECT_EQ(place_of("", R"(,"type":"aws","aws_bucket_name":"b")").s3.data_prefix, "");

    const std::string folder = R"(,"cache_dir":"c")";
    EXPECT_FALSE(place_of("", folder).compress_disk_cache);
    EXPECT_EQ(place_of("", folder + R"(,"compress_disk_cache":true)").compress_disk_cache, true);
    EXPECT_EQ(
        place_of(R"(,"compress_disk_cache":false)", folder + R"(,"compress_disk_cache":true)").compress_disk_cache,
        false);

    DatasetList broken = load(list_with(""));
    broken.images[0].image_embeds = "gone";
    EXPECT_EQ(strata_test::thrown_by([&] { (void)broken.latent_cache_of(broken.images[0]); }).code,
              Errc::bad_reference);
    EXPECT_EQ(load(R"([{"id":"p","instance_data_dir":"d","vae_cache_disable":true},)" + text_entry + "]").images.size(),
              1U);
}

TEST(DatasetList, DisabledEntriesAreLeftOutUnread) {
    const std::string second = R"([{"id":"b","instance_data_dir":"d","cache_dir_vae":"v","disabled":true},)";
    EXPECT_EQ(load(second + list_with("").substr(1)).images.size(), 1U);
    const std::string foreign =
        R"([{"id":"b","type":"webshart","disable":"true","aws_secret_access_key":"{env:STRATA_TEST_NOT_SET}"},)";
    EXPECT_EQ(load(foreign + list_with("").substr(1)).images.size(), 1U);
}

}  // namespace
