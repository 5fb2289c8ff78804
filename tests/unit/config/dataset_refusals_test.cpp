#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <strata/config/dataset_list.hpp>

#include "dataset_lists.hpp"

namespace {

using strata::Errc;
using strata_test::bucket_with;
using strata_test::list_with;
using strata_test::refused;
using strata_test::text_entry;

/// A list, the code it is refused with, and what the message has after the file's name.
struct Case {
    std::string list;
    Errc code;
    std::string says;
};

void check(const std::vector<Case>& cases) {
    for (const Case& one : cases) {
        const auto error = refused(one.list);
        EXPECT_EQ(error.code, one.code) << one.list << "\n" << error.message;
        EXPECT_TRUE(error.says("config.json")) << one.list << "\n" << error.message;
        EXPECT_TRUE(error.says(one.says)) << one.list << "\n" << error.message;
    }
}

void check_first(const std::vector<std::pair<std::string, std::string>>& cases) {
    std::vector<Case> all;
    for (const auto& [more, says] : cases) all.push_back({list_with("," + more), Errc::bad_value, says});
    check(all);
}

TEST(DatasetRefusals, ListsOfAddressesHaveTheirKeysTogether) {
    const auto list = [](const std::string& more) {
        return R"([{"id":"web","type":"csv")" + more + "}," + text_entry + "]";
    };
    const std::string whole =
        R"(,"csv_file":"l.csv","csv_cache_dir":"kept","cache_dir_vae":"v","csv_caption_column":"text")";
    const std::string by_column = R"(,"caption_strategy":"csv")";
    std::vector<Case> cases;
    for (const auto& [more, says] : std::vector<std::pair<std::string, std::string>>{
             {by_column, "'[0].csv_file' is missing"},
             {by_column + R"(,"csv_file":"l.csv")", "'[0].csv_cache_dir' is missing"},
             {by_column + R"(,"csv_file":"l.csv","csv_cache_dir":"kept")", "'[0].csv_caption_column' is missing"},
             {whole, "'[0].caption_strategy' is neither csv nor instanceprompt"},
             {whole + by_column + R"(,"csv_url_column":"")", "'[0].csv_url_column' is empty"},
             {whole + by_column + R"(,"instance_data_dir":"d")", "csv_cache_dir"},
             {whole + by_column + R"(,"shards":"*.tar")", "'[0].shards' is given, and type is csv"},
             {whole + by_column + R"(,"scan_for_errors":true,"delete_problematic_images":true)", "fetched again"}})
        cases.push_back({list(more), Errc::bad_value, says});
    cases.push_back({list_with(R"(,"csv_file":"l.csv")"), Errc::bad_value, "type is not csv"});
    cases.push_back({list_with(by_column), Errc::bad_value, "type is not"});
    cases.push_back({list_with(R"(,"shards":"*.tar","scan_for_errors":true,"delete_problematic_images":true)"),
                     Errc::bad_value, "in tar files"});
    check(cases);
}

TEST(DatasetRefusals, OutOfScopeSaysWhy) {
    std::vector<Case> cases;
    for (const auto& [more, says] : std::vector<std::pair<std::string, std::string>>{
             {R"("dataset_type":"video")", "'[0].dataset_type' is 'video': strata trains on still pictures"},
             {R"("dataset_type":"audio")", "still pictures"},
             {R"("dataset_type":"conditioning_image_embeds")", "is kept with that of the picture it belongs to"},
             {R"("type":"huggingface")", "download the data set"},
             {R"("type":"webshart")", "the files with `shards`"},
             {R"("type":"memory")", "cache_memory_mib"},
             {R"("crop":true,"crop_style":"face")", "'[0].crop_style' is 'face': strata has no face detector"},
             {R"("caption_strategy":"huggingface")", "download the data set"},
             {R"("metadata_backend":"webshart")", "the files with `shards`"},
             {R"("metadata_backend":"csv")", "a list of addresses has no sizes"},
             {R"("video":{})",
              "'[0].video' is known from other trainers, and strata does not act on it. Fix: remove it: "},
             {R"("conditioning":[{"type":"canny"}])", "make the conditioning pictures beforehand"},
             {R"("conditioning_type":"mask")", "only an entry with dataset_type conditioning has it"},
             {R"("disable_vae_cache":true)", "the key is `vae_cache_disable`"},
             {R"("delete_unwanted_images":true)", "and stay"}})
        cases.push_back({list_with("," + more), Errc::unsupported_key, says});
    cases.push_back(
        {list_with(R"(,"metadata_backend":"parquet","parquet":{"path":"p","filename_column":"f","bbox_column":"b"})"),
         Errc::unsupported_key, "'[0].parquet.bbox_column'"});
    check(cases);
    // null leaves a key out, and false asks for what happens anyway.
    EXPECT_NO_THROW((void)strata_test::load(list_with(R"(,"video":null,"default":false,"delete_nsfw_images":false)")));
    EXPECT_EQ(refused(list_with(R"(,"video":false)")).code, Errc::unsupported_key);
}

TEST(DatasetRefusals, MistakesNameTheFileAndTheEntry) {
    check({{list_with(R"(,"repeat":1)"), Errc::unknown_key, "key '[0].repeat' is unknown. Fix: did you mean 'repeats'"},
           {list_with(R"(,"caption_shuffle":{"cuont":2})"), Errc::unknown_key,
            "'[0].caption_shuffle.cuont' is unknown. Fix: did you mean 'count'"},
           {list_with(R"(,"caption_shuffle":true)"), Errc::bad_value, "'[0].caption_shuffle' is not a JSON object"},
           {list_with(R"(,"caption_shuffle":{"count":0})"), Errc::bad_value,
            "'[0].caption_shuffle.count' is 0, out of its range"},
           {"{}", Errc::bad_value, "is not a list of data sets"},
           {"[1]", Errc::bad_value, "'[0]' is not a JSON object"},
           {"[]", Errc::bad_value, "no data set with pictures to train on"},
           {R"([{"instance_data_dir":"d"}])", Errc::bad_value, "key '[0].id' is missing"},
           {R"([{"id":""}])", Errc::bad_value, "key '[0].id' is empty"},
           {R"([{"id":"x"}])", Errc::bad_value, "key '[0].instance_data_dir' is missing"},
           {"[" + text_entry + "," + text_entry + "]", Errc::bad_value,
            "key '[1].id' is 'text', which another entry has"},
           {R"([{"id":"a","disabled":true},{"id":"a"}])", Errc::bad_value, "which another entry has"},
           {R"([{"id":"a","disabled":"maybe"}])", Errc::bad_value,
            "key '[0].disabled' is \"maybe\", not true or false"}});
    check_first({{R"("dataset_type":"imgae")",
                  "'[0].dataset_type' is \"imgae\", which is none of its values. Fix: use one of `image`, `eval`"},
                 {R"("resolution":"big")", "'[0].resolution' is \"big\", not a number"},
                 {R"("repeats":-1)", "'[0].repeats' is -1, out of its range. Fix: use a number from 0 to 1e+06"},
                 {R"("minimum_aspect_ratio":200)", "'[0].minimum_aspect_ratio' is 200, out of its range"},
                 {R"("minimum_aspect_ratio":2,"maximum_aspect_ratio":1.5)",
                  "'[0].minimum_aspect_ratio' is 2, and maximum_aspect_ratio is 1.5: no picture is within"},
                 {R"("minimum_aspect_ratio":5)", "'[0].minimum_aspect_ratio' is 5, and maximum_aspect_ratio is 4"},
                 {R"("small_buckets":"prune")",
                  "'[0].small_buckets' is \"prune\", which is none of its values. Fix: use one "
                  "of `refuse`, `merge`, `drop`, `repeat`"},
                 {R"("train_batch_size":-1)", "'[0].train_batch_size' is -1, out of its range"},
                 {R"("dataset_type":"eval","disable_after_epoch_step":5)",
                  "'[0].disable_after_epoch_step' is given, and dataset_type is eval"},
                 {R"("caption_filter_list":[1])", "'[0].caption_filter_list[0]' is 1, not text"},
                 {R"("instance_data_dir":"")", "twice"},
                 {R"("skip_file_discovery":"vae captions")",
                  "'[0].skip_file_discovery' is \"vae captions\", and not all of that are steps"}});
}

TEST(DatasetRefusals, SizesThatContradict) {
    check_first(
        {{R"("resolution":0)", "'[0].resolution' is 0, out of its range"},
         {R"("resolution":4)", "'[0].resolution' is below 8 pixels"},
         {R"("resolution":1024,"resolution_type":"area")",
          "'[0].resolution' is above 20, and resolution_type area counts megapixels"},
         {R"("resolution":1,"resolution_type":"area","minimum_image_size":512)",
          "'[0].minimum_image_size' is above 20"},
         {R"("minimum_image_size":0.75)", "'[0].minimum_image_size' is below 1 pixels"},
         {R"("maximum_image_size":2.0,"target_downsample_size":1.5)", "'[0].maximum_image_size' is below 8 pixels"},
         {R"("maximum_image_size":1536)",
          "'[0].target_downsample_size' is missing, and maximum_image_size is given. Fix: say there"},
         {R"("maximum_image_size":1024,"target_downsample_size":1280)",
          "'[0].target_downsample_size' is larger than maximum_image_size"}});
}

TEST(DatasetRefusals, CropsThatContradict) {
    check_first({{R"("crop":true,"crop_style":"random")",
                  "'[0].crop_style' is random, and cached latents would keep the crop of the first epoch. Fix: set "
                  "vae_cache_clear_each_epoch or vae_cache_disable to true, or use another crop"},
                 {R"("crop":true,"crop_aspect":"random","crop_aspect_buckets":[1],"vae_cache_ondemand":true)",
                  "'[0].crop_aspect' is random, and cached latents"},
                 {R"("crop":true,"crop_aspect":"closest")",
                  "'[0].crop_aspect_buckets' is missing, and crop_aspect is closest. Fix: list the aspect ratios"},
                 {R"("crop":true,"crop_aspect":"random","crop_aspect_buckets":[])",
                  "'[0].crop_aspect_buckets' is missing, and crop_aspect is random"},
                 {R"("crop":true,"crop_aspect_buckets":[1.0])",
                  "'[0].crop_aspect_buckets' is given, and crop_aspect is neither closest nor random"},
                 {R"("crop":true,"max_upscale_threshold":0.2)",
                  "'[0].max_upscale_threshold' is given, and crop_aspect is neither"},
                 {R"("max_upscale_threshold":20)", "'[0].max_upscale_threshold' is 20, out of its range"},
                 {R"("crop":true,"crop_aspect":"closest","crop_aspect_buckets":[1,5])",
                  "'[0].crop_aspect_buckets' has 5, which is not within"},
                 {R"("crop_aspect_buckets":[1,0])", "'[0].crop_aspect_buckets[1]' is 0, out of its range"},
                 {R"("crop_aspect_buckets":1.0)", "'[0].crop_aspect_buckets' is 1.0, not a list"},
                 {R"("crop_aspect_buckets":[1,{"aspect":1,"weight":1}])",
                  "'[0].crop_aspect_buckets' has both plain numbers and objects"},
                 {R"("crop_aspect_buckets":[{"aspect":1,"weight":0.5},{"aspect":2,"weight":0.4}])",
                  "'[0].crop_aspect_buckets' has weights whose sum is 0.9"},
                 {R"("crop_aspect_buckets":[{"aspect":1}])", "'[0].crop_aspect_buckets[0].weight' is missing"}});
}

TEST(DatasetRefusals, CaptionsThatContradict) {
    check_first(
        {{R"("caption_strategy":"instanceprompt")",
          "'[0].instance_prompt' is missing, and caption_strategy is instanceprompt"},
         {R"("only_instance_prompt":true)", "'[0].instance_prompt' is missing, and only_instance_prompt is true"},
         {R"("prepend_instance_prompt":true)", "'[0].instance_prompt' is missing, and prepend_instance_prompt is true"},
         {R"("caption_strategy":"parquet")",
          "'[0].parquet' is missing, and caption_strategy is parquet. Fix: name the table"},
         {R"("metadata_backend":"parquet")", "'[0].parquet' is missing, and metadata_backend is parquet"},
         {R"("parquet":{"path":"p","filename_column":"f"})",
          "'[0].parquet' is given, and neither caption_strategy nor metadata_backend"},
         {R"("metadata_backend":"parquet","parquet":{"path":"p"})", "'[0].parquet.filename_column' is missing"},
         {R"("metadata_backend":"parquet","parquet":{"path":"","filename_column":"f"})", "'[0].parquet.path' is empty"},
         {R"("metadata_backend":"parquet","parquet":{"path":"p","filename_column":"f","width_column":""})",
          "'[0].parquet.width_column' is empty"},
         {R"("caption_strategy":"parquet","parquet":{"path":"p","filename_column":"f","caption_column":["a",""]})",
          "'[0].parquet.caption_column' is empty"},
         {R"("caption_strategy":"parquet","parquet":{"path":"p","filename_column":"f"})",
          "'[0].parquet.caption_column' is missing"}});
}

TEST(DatasetRefusals, TurnsAndSchedulesThatContradict) {
    check_first(
        {{R"("probability":0)", "'[0].probability' is 0. Fix: use a number above 0"},
         {R"("probability":1.5)", "'[0].probability' is 1.5, out of its range"},
         {R"("start_epoch":3,"end_epoch":2)", "'[0].end_epoch' is before start_epoch"},
         {R"("start_step":30,"end_step":20)", "'[0].end_step' is before start_step"},
         {R"("start_step":2)", "no data set takes part from the first step on"},
         {R"("start_epoch":2)", "no data set takes part from the first step on"},
         {R"("delete_problematic_images":true)", "'[0].delete_problematic_images' is true, and scan_for_errors is not"},
         {R"("vae_cache_disable":true,"vae_cache_ondemand":true)",
          "'[0].vae_cache_disable' and vae_cache_ondemand are both true"},
         {R"("disabled":true)", "all data sets with pictures to train on are disabled. Fix: enable one"},
         {R"("disable":true)", "all data sets with pictures to train on are disabled"},
         {R"("dataset_type":"eval")", "no data set with pictures to train on"}});
    std::vector<Case> cases;
    for (const std::string key : {R"("repeats":1)", R"("probability":0.5)", R"("start_epoch":2)", R"("end_epoch":3)",
                                  R"("start_step":2)", R"("end_step":3)", R"("is_regularisation_data":true)"})
        cases.push_back({list_with(R"(,"dataset_type":"eval",)" + key), Errc::bad_value,
                         "'[0]." + key.substr(1, key.find('"', 1) - 1) + "' is given, and dataset_type is eval"});
    check(cases);
}

TEST(DatasetRefusals, CachesWithoutAPlaceOrWithTwo) {
    const std::string picture = R"([{"id":"p","instance_data_dir":"d")";
    const std::string embeds = R"({"id":"latents","dataset_type":"image_embeds","cache_dir":"c"},)" + text_entry + "]";
    const auto linked = [&](const std::string& keys) { return picture + "," + keys + "}," + embeds; };
    check({{picture + "}," + text_entry + "]", Errc::bad_value,
            "key '[0].cache_dir_vae' is missing. Fix: name a folder for the cached latents"},
           {linked(R"("image_embeds":"latents","cache_dir_vae":"v")"), Errc::bad_value,
            "'[0].cache_dir_vae' and cache_dir of 'latents', where image_embeds leads, name two folders"},
           {linked(R"("image_embeds":"latent")"), Errc::bad_reference,
            "'[0].image_embeds' links to 'latent', which no entry has as its id. Fix: did you mean 'latents'"},
           {linked(R"("image_embeds":"text")"), Errc::bad_reference,
            "'[0].image_embeds' links to 'text', whose dataset_type is not image_embeds"},
           {linked(R"("text_embeds":"latents","cache_dir_vae":"v")"), Errc::bad_reference,
            "whose dataset_type is not text_embeds"},
           {R"([{"id":"off","dataset_type":"image_embeds","disabled":true},)" +
                list_with(R"(,"image_embeds":"off")").substr(1),
            Errc::bad_reference, "'[1].image_embeds' links to 'off', which is disabled. Fix: enable that entry"},
           {R"([{"id":"t","dataset_type":"text_embeds"},)" + list_with("").substr(1), Errc::bad_value,
            "key '[0].cache_dir' is empty"},
           {R"([{"id":"t","dataset_type":"text_embeds","cache_dir":"x","default":true},)" +
                list_with("").substr(1, list_with("").size() - 3) + R"(,"default":true}])",
            Errc::bad_value, "two text_embeds entries are the default"},
           {list_with(R"(,"cache_dir":"x")"), Errc::unsupported_key, "for pictures the folder is `cache_dir_vae`"}});
}

TEST(DatasetRefusals, CachesThatAreMeantForADiskAndWouldGoIntoABucket) {
    const std::string bucket = R"("type":"aws","aws_bucket_name":"b")";
    const std::string embeds = R"({"id":"e","dataset_type":"image_embeds",)" + bucket + "}," + text_entry + "]";
    check(
        {{R"([{"id":"p","cache_dir_vae":"/scratch/vae",)" + bucket + "}," + text_entry + "]", Errc::bad_value,
          "'[0].cache_dir_vae' is an absolute path, and the latents are kept in a bucket. Fix: name a folder of the bucket, "
          "or link image_embeds to an entry of type local"},
         {R"([{"id":"p","instance_data_dir":"d","cache_dir_vae":"/scratch/vae","image_embeds":"e"},)" + embeds,
          Errc::bad_value, "'[0].cache_dir_vae' is an absolute path"},
         {R"([{"id":"t","dataset_type":"text_embeds","cache_dir":"/scratch/text",)" + bucket + "}]", Errc::bad_value,
          "'[0].cache_dir' is an absolute path, and type is aws"}});
}

TEST(DatasetRefusals, BucketsWithoutANameOrHalfAKey) {
    check({{bucket_with(""), Errc::bad_value, "'[0].aws_bucket_name' is missing, and type is aws"},
           {list_with(R"(,"aws_bucket_name":"b")"), Errc::bad_value,
            "'[0].aws_bucket_name' is given, and type is not aws"},
           {list_with(R"(,"aws_secret_access_key":"s")"), Errc::bad_value,
            "'[0].aws_secret_access_key' is given, and type is not aws"},
           {bucket_with(R"(,"aws_bucket_name":"b","instance_data_dir":"d")"), Errc::bad_value,
            "'[0].instance_data_dir' is given, and type is aws"},
           {bucket_with(R"(,"aws_bucket_name":"b","aws_access_key_id":"i")"), Errc::bad_value,
            "'[0].aws_secret_access_key' is missing"},
           {bucket_with(R"(,"aws_bucket_name":"b","aws_secret_access_key":"s")"), Errc::bad_value,
            "'[0].aws_access_key_id' is missing"},
           {bucket_with(R"(,"aws_bucket_name":"b","aws_session_token":"t")"), Errc::bad_value,
            "'[0].aws_session_token' is given without"},
           {bucket_with(R"(,"aws_bucket_name":"b","aws_max_pool_connections":0)"), Errc::bad_value,
            "'[0].aws_max_pool_connections' is 0"},
           {R"([{"id":"t","dataset_type":"text_embeds","type":"aws","cache_dir":""},)" + list_with("").substr(1),
            Errc::bad_value, "'[0].aws_bucket_name' is missing"}});
}

TEST(DatasetRefusals, ANumberThatNoComputerKeepsHidesNoOtherProblem) {
    const auto all = strata_test::refused(
        list_with(R"(,"repeats":1e400,"crop":3,"crop":false,"resolution":[1,1e999],"probabilty":1)"));
    for (const char* says :
         {"key '[0].repeats' is 1e400, which is larger than any number a computer keeps",
          "key '[0].resolution[1]' is 1e999", "key 'crop' appears twice", "'[0].probabilty' is unknown"})
        EXPECT_TRUE(all.says(says)) << says << "\n" << all.message;
}

/// A list of a picture data set with `more` keys, a conditioning one with `other` keys, and a place for captions.
std::string paired_with(const std::string& more, const std::string& other) {
    return R"([{"id":"pictures","instance_data_dir":"data","cache_dir_vae":"cache/vae")" + more +
           R"(},{"id":"edges","dataset_type":"conditioning","instance_data_dir":"edges")" + other + "}," + text_entry +
           "]";
}

TEST(DatasetRefusals, PairsLeadSomewhereAndAreOfOneKind) {
    const std::string linked = R"(,"conditioning_data":"edges")";
    check({{paired_with(R"(,"conditioning_data":"edgse")", ""), Errc::bad_reference,
            "'[0].conditioning_data' links to 'edgse', which no entry has as its id. Fix: did you mean 'edges'"},
           {paired_with(R"(,"conditioning_data":["edges","text"])", ""), Errc::bad_reference,
            "'[0].conditioning_data' links to 'text', whose dataset_type is not conditioning"},
           {paired_with(R"(,"conditioning_data":"pictures")", ""), Errc::bad_reference,
            "links to 'pictures', whose dataset_type is not conditioning"},
           {paired_with(linked, R"(,"disabled":true)"), Errc::bad_reference, "links to 'edges', which is disabled"},
           {paired_with(linked, R"(,"conditioning_data":"edges")"), Errc::unsupported_key,
            "conditioning pictures have none of their own"},
           {paired_with(R"(,"conditioning_data":["edges","edges"])", ""), Errc::bad_value,
            "'[0].conditioning_data' names 'edges' twice"},
           {paired_with("", R"(,"source_dataset_id":"pictures")"), Errc::bad_reference,
            "'[1].source_dataset_id' links to 'pictures', whose conditioning_data does not name 'edges'"},
           {paired_with(linked, R"(,"source_dataset_id":"picture")"), Errc::bad_reference,
            "'[1].source_dataset_id' links to 'picture', which no entry has as its id"},
           {paired_with(linked, R"(,"conditioning_type":"reference_loose")"), Errc::unsupported_key, "is framed alike"},
           {paired_with(linked, R"(,"type":"csv")"), Errc::unsupported_key, "no names to pair by"},
           {paired_with(linked, R"(,"delete_problematic_images":true)"), Errc::unsupported_key, "and stays"},
           {R"([{"id":"edges","dataset_type":"conditioning"},)" + list_with(linked).substr(1), Errc::bad_value,
            "'[0].instance_data_dir' is missing"},
           {R"([{"id":"edges","dataset_type":"conditioning","instance_data_dir":"d"},)" + text_entry + "]",
            Errc::bad_value, "no data set with pictures to train on"}});
    EXPECT_EQ(refused(R"([{"id":"web","type":"csv","csv_file":"l.csv","csv_cache_dir":"kept","cache_dir_vae":"v",
                          "caption_strategy":"instanceprompt","instance_prompt":"x","conditioning_data":"edges"},
                         {"id":"edges","dataset_type":"conditioning","instance_data_dir":"d"},)" +
                      text_entry + "]")
                  .code,
              Errc::bad_value);
}

}  // namespace
