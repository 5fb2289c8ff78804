#include <string>

#include <gtest/gtest.h>

#include <strata/config/dataset_list.hpp>
#include <strata/config/trainer_config.hpp>

#include "temporary_json.hpp"

namespace {

using namespace strata::config;
using strata::Errc;
using strata_test::TemporaryJson;
using strata_test::thrown_by;

const std::string text_entry = R"({"id":"text","dataset_type":"text_embeds","cache_dir":"cache/text"})";

/// A list of one picture data set with `more` keys, and one text_embeds entry.
std::string list_with(const std::string& more) {
    return R"([{"id":"pictures","instance_data_dir":"data","cache_dir_vae":"cache/vae")" + more + "}," + text_entry + "]";
}
DatasetList load(const std::string& json) { return load_datasets(TemporaryJson{json}.path()); }
strata_test::Thrown refused(const std::string& json) {
    return thrown_by([&] { (void)load(json); });
}

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
    EXPECT_EQ(load("[" + other + R"(,"default":true},)" + picture + "," + text_entry + "]").images[0].text_embeds, "other");
    EXPECT_EQ(refused("[" + other + "}," + picture + "," + text_entry + "]").code, Errc::bad_reference);
    EXPECT_EQ(refused("[" + picture + "]").code, Errc::bad_reference);
    const auto wrong = refused(list_with(R"(,"text_embeds":"texd")"));
    EXPECT_EQ(wrong.code, Errc::bad_reference);
    EXPECT_TRUE(wrong.says("did you mean 'text'")) << wrong.message;
}

TEST(DatasetList, DisabledEntriesAreLeftOut) {
    EXPECT_EQ(refused(list_with(R"(,"disabled":true)")).code, Errc::bad_value);
    EXPECT_EQ(refused(list_with(R"(,"disable":true)")).code, Errc::bad_value);
    const std::string second = R"([{"id":"b","instance_data_dir":"d","cache_dir_vae":"v","disabled":true},)";
    EXPECT_EQ(load(second + list_with("").substr(1)).images.size(), 1U);
}

TEST(DatasetList, OutOfScopeIsRefusedWithAReason) {
    for (const char* more : {R"(,"dataset_type":"video")", R"(,"dataset_type":"eval")", R"(,"type":"aws")",
                             R"(,"type":"huggingface")", R"(,"aws_bucket_name":"b")", R"(,"crop_style":"random")",
                             R"(,"crop_aspect":"closest")", R"(,"caption_strategy":"parquet")", R"(,"metadata_backend":"parquet")",
                             R"(,"probability":0.5)", R"(,"vae_cache_ondemand":true)", R"(,"video":{})", R"(,"start_epoch":1)"})
        EXPECT_EQ(refused(list_with(more)).code, Errc::unsupported_key) << more;
    EXPECT_TRUE(refused(list_with(R"(,"type":"aws")")).says("local folders only"));
}

TEST(DatasetList, MistakesNameTheFileAndTheEntry) {
    const auto typo = refused(list_with(R"(,"repeat":1)"));
    EXPECT_EQ(typo.code, Errc::unknown_key);
    EXPECT_TRUE(typo.says("'[0].repeat'")) << typo.message;
    EXPECT_TRUE(typo.says("did you mean 'repeats'")) << typo.message;
    EXPECT_TRUE(typo.says("config.json")) << typo.message;
    for (const char* more : {R"(,"resolution":0)", R"(,"resolution":4)", R"(,"resolution":1024,"resolution_type":"area")",
                             R"(,"resolution":"big")", R"(,"repeats":-1)", R"(,"caption_strategy":"instanceprompt")",
                             R"(,"minimum_aspect_ratio":2)", R"(,"instance_data_dir":"")"})
        EXPECT_TRUE(refused(list_with(more).substr(0)).code == Errc::bad_value) << more;
    EXPECT_EQ(refused("{}").code, Errc::bad_value);
    EXPECT_EQ(refused("[1]").code, Errc::bad_value);
    EXPECT_EQ(refused("[]").code, Errc::bad_value);
    EXPECT_EQ(refused(R"([{"id":"x"}])").code, Errc::bad_value);
    EXPECT_EQ(refused("[" + text_entry + "," + text_entry + "]").code, Errc::bad_value);
}

}  // namespace
