// A configuration file that is no good is one sentence of strata's own, whatever is wrong with it.

#include <algorithm>
#include <cstddef>
#include <exception>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <strata/config/dataset_list.hpp>
#include <strata/config/schema.hpp>
#include <strata/config/trainer_config.hpp>

#include "temporary_json.hpp"

namespace {

using namespace strata::config;
using strata::Errc;
using strata_test::TemporaryJson;
using strata_test::Thrown;
using strata_test::thrown_by;

Thrown refused(std::string_view text) {
    const TemporaryJson file{text};
    return thrown_by([&] { (void)load_json(file.path()); });
}

bool is_strata_only(const std::string& message) {
    for (const char* foreign : {"json.exception", "[json", "nlohmann", "std::", "basic_", "parse_error", "terminate"})
        if (message.find(foreign) != std::string::npos) return false;
    return message.starts_with("[ST21") && message.find(" Fix: ") != std::string::npos;
}

TEST(LoadJson, ANumberBeyondADoubleIsNamedWithItsPlace) {
    const auto one = refused("{\"seed\": 1,\n  \"learning_rate\": 1e999}");
    EXPECT_EQ(one.code, Errc::bad_value);
    EXPECT_TRUE(one.says("config.json:2:20: key 'learning_rate' is 1e999, which is larger than")) << one.message;
    EXPECT_TRUE(one.says("Fix: write a number between -1.7e308 and 1.7e308")) << one.message;
    EXPECT_TRUE(refused(R"([{"a": 1}, {"b": [1, {"c": -1.5E+400}]}])")
                    .says("config.json:1:28: key '[1].b[1].c' is -1.5E+400,"));
    EXPECT_TRUE(refused("1e400").says("the number is 1e400"));
    EXPECT_TRUE(refused(R"({"é": 1e400})").says("config.json:1:7")) << "characters are counted and not bytes";
    EXPECT_TRUE(refused("[" + std::string(400, '9') + ".0]").says("is 999999999"));
    EXPECT_TRUE(refused("[" + std::string(400, '9') + ".0]").says("..., which is larger"));
}

TEST(LoadJson, SmallestAndLargestNumbersAreTaken) {
    const TemporaryJson file{"[1.7976931348623157e308, -1e-999, 18446744073709551616]"};
    EXPECT_EQ(load_json(file.path())[0].get<double>(), 1.7976931348623157e308);
}

TEST(LoadJson, BytesThatAreNoTextAreSaidToBe) {
    const auto nul = refused(std::string_view{"{\"a\": 1}\0 what follows", 22});
    EXPECT_EQ(nul.code, Errc::unreadable_config);
    EXPECT_TRUE(nul.says("has a NUL byte at line 1, column 9")) << nul.message;
    EXPECT_TRUE(refused(std::string_view{"{\"a\0\": 1}", 9}).says("has a NUL byte at line 1, column 4"));
    EXPECT_TRUE(
        refused("{\"name\":\n\"caf\xE9\"}").says("is no UTF-8 text at line 2, column 5. Fix: save it as UTF-8"));
    for (const char* bad :
         {"\"\xC0\xAF\"", "\"\xE0\x80\x80\"", "\"\xED\xA0\x80\"", "\"\xF4\x90\x80\x80\"", "\"\xF8\"", "\"\xE2\x82"})
        EXPECT_TRUE(refused(bad).says("is no UTF-8 text at line 1, column 2")) << bad;
    EXPECT_TRUE(refused(std::string_view{"\xFF\xFE{\0}\0", 6}).says("is UTF-16 text. Fix: save it as UTF-8"));
    EXPECT_TRUE(refused("").says("is empty"));
    EXPECT_TRUE(refused("\xEF\xBB\xBF \n").says("is empty"));
    const TemporaryJson marked{"\xEF\xBB\xBF{\"a\": 1}"};
    EXPECT_EQ(load_json(marked.path())["a"], 1);
    EXPECT_TRUE(refused("\xEF\xBB\xBF{\"a\" 1}").says("config.json:1:6: is no JSON")) << "the mark takes no column";
}

TEST(LoadJson, TextWithANulInItIsNoPath) {
    const TemporaryJson file{R"({"data_backend_config": "a\u0000b.json"})"};
    const auto error = thrown_by([&] { (void)load_trainer_config(file.path()); });
    EXPECT_EQ(error.code, Errc::unreadable_config);
    EXPECT_TRUE(error.says(R"(config.json:1:27: is no JSON: the character \u0000, at /data_backend_config)"))
        << error.message;
    EXPECT_TRUE(refused(R"({"se\u0000ed": 1})").says(R"(the character \u0000)"));
}

TEST(LoadJson, KeysThatComeTwiceAndDepthsSayWhere) {
    EXPECT_TRUE(refused("{\"a\": 1,\n \"b\": 2,\n \"a\": 3}").says("config.json:3:2"));
    EXPECT_TRUE(refused(std::string(70, '[')).says("64"));
}

std::string text_of(const std::string& file) {
    std::ifstream stream{file, std::ios::binary};
    return {std::istreambuf_iterator<char>{stream}, {}};
}

/// Changes a text in a few places, in ways that files are changed: bytes that flip, vanish, come twice or are replaced
/// by something that means something in JSON.
std::string mutated(std::string text, std::mt19937& random) {
    const std::vector<std::string> pieces{"{",
                                          "}",
                                          "[",
                                          "]",
                                          ",",
                                          ":",
                                          "\"",
                                          "\\",
                                          "null",
                                          "true",
                                          "-1",
                                          "1e999",
                                          "0.5",
                                          "\"\"",
                                          "\\u0000",
                                          "\\ud800",
                                          std::string(1, '\0'),
                                          "\xFF",
                                          "\xC3\xA9",
                                          "\n",
                                          "{}",
                                          "[[[[",
                                          "-",
                                          "99999999999999999999",
                                          "{env:HOME}",
                                          "\"auto\"",
                                          "1e-400",
                                          "\xEF\xBB\xBF"};
    for (auto changes = 1 + random() % 3; changes > 0; --changes) {
        const std::size_t at = random() % (text.size() + 1);
        const std::size_t length = std::min<std::size_t>(random() % 12, text.size() - at);
        switch (random() % 5) {
            case 0:
                text.erase(at, length);
                break;
            case 1:
                text.insert(at, pieces[random() % pieces.size()]);
                break;
            case 2:
                text.replace(at, length, pieces[random() % pieces.size()]);
                break;
            case 3:
                text.insert(at, text.substr(at, length));
                break;
            default:
                if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << random() % 8));
        }
    }
    return text;
}

TEST(LoadJson, NoChangeOfARealFileEndsInAnotherLibrarysWords) {
    const std::string list = R"([{"id": "pictures", "type": "local", "instance_data_dir": "p", "cache_dir_vae": "v",
        "resolution": 1024, "resolution_type": "pixel_area", "crop": true, "vae_cache_disable": true, "crop_aspect": "random",
        "crop_aspect_buckets": [{"aspect": 1.0, "weight": 0.5}, {"aspect": 1.5, "weight": 0.5}], "repeats": 2, "probability": 0.25, "text_embeds": "t",
        "caption_strategy": "parquet", "metadata_backend": "parquet", "caption_shuffle": {"enable": true, "count": 3},
        "parquet": {"path": "x.parquet", "filename_column": "f", "caption_column": ["a", "b"], "width_column": "w",
        "height_column": "h"}}, {"id": "t", "type": "aws", "aws_bucket_name": "b", "aws_access_key_id": "k",
        "aws_secret_access_key": "s", "dataset_type": "text_embeds", "default": true, "cache_dir": "c"}])";
    const std::string config = text_of(STRATA_SOURCE_DIR "/examples/quickstart.json");
    ASSERT_FALSE(config.empty());
    {  // what is changed is good before
        const TemporaryJson whole{config};
        EXPECT_NO_THROW((void)load_trainer_config(whole.path()));
        const TemporaryJson sets{list};
        EXPECT_NO_THROW((void)load_datasets(sets.path()));
    }
    std::mt19937 random{1};
    const strata_test::TemporaryFolder folder;
    int refusals = 0;
    constexpr int tries = 1200;
    for (int i = 0; i < tries; ++i) {
        const bool is_list = i % 2 == 0;
        const std::string text = mutated(is_list ? list : config, random);
        std::ofstream{folder.path() / "config.json", std::ios::binary} << text;
        try {
            if (is_list)
                (void)load_datasets(folder.path() / "config.json");
            else
                (void)load_trainer_config(folder.path() / "config.json");
        } catch (const strata::Error& error) {
            ++refusals;
            ASSERT_TRUE(is_strata_only(error.what())) << error.what() << "\n" << text;
        } catch (const std::exception& other) {
            FAIL() << "not an Error of strata: " << other.what() << "\n" << text;
        }
    }
    EXPECT_GT(refusals, tries / 2);
}

}  // namespace
