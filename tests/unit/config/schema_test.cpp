#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>

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
using strata_test::thrown_by;

enum class Colour { red, green };
struct Part {
    std::int64_t size = 1;
    std::vector<std::string> names;
};
Schema<Part>& part_schema() {
    static Schema<Part> s = [] {
        Schema<Part> one;
        one.integer("size", &Part::size, {1, 9}, "A size");
        one.texts("names", &Part::names, "Names");
        return one;
    }();
    return s;
}
struct Settings {
    std::string name = "a \"b\"";
    std::int64_t count = 3;
    double rate = 1e-4;
    std::optional<double> decay;
    bool on = false;
    std::vector<std::string> words{"x"};
    Colour colour = Colour::red;
    std::optional<std::int64_t> limit;
    strata::Secret key;
    std::optional<Part> part;
    Part beside;
    std::optional<bool> loud;
    std::optional<Colour> second;
};

Schema<Settings> schema() {
    Schema<Settings> s;
    s.text("name", &Settings::name, "A name");
    s.integer("count", &Settings::count, {0, 10}, "A count");
    s.number("rate", &Settings::rate, {0, 1}, "A rate").alias("speed");
    s.number("decay", &Settings::decay, {}, "A decay");
    s.flag("on", &Settings::on, "A switch");
    s.texts("words", &Settings::words, "Words");
    s.choice<Colour>("colour", &Settings::colour,
                     {{"red", Colour::red}, {"green", Colour::green}, {"blue", Colour::red, "there is no blue"}},
                     "A colour");
    s.integer("limit", &Settings::limit, {1, 5}, "A limit");
    s.secret("key", &Settings::key, "A key");
    s.object("part", &Settings::part, part_schema(), "A part");
    s.beside(&Settings::beside, part_schema());
    s.unsupported({{"shape", "all shapes are round"}, {"flat", "all shapes are round", true}});
    s.idle({{"threads", "as many as there are cores"}});
    s.flag("loud", &Settings::loud, "A switch with a third position");
    s.choice<Colour>("second", &Settings::second, {{"red", Colour::red}, {"green", Colour::green}}, "Another colour");
    return s;
}

Settings read(const char* json) { return schema().read(nlohmann::json::parse(json), "f.json", ""); }
strata_test::Thrown refused(const char* json) {
    return thrown_by([&] { (void)read(json); });
}

TEST(Schema, AbsentAndNullKeysKeepTheDefault) {
    const Settings settings = read(R"({"rate": null, "name": null})");
    EXPECT_EQ(settings.name, "a \"b\"");
    EXPECT_EQ(settings.rate, 1e-4);
    EXPECT_FALSE(settings.decay.has_value());
    EXPECT_FALSE(settings.loud.has_value());
    EXPECT_FALSE(settings.second.has_value());
}

TEST(Schema, ReadsEveryTypeAlsoWrittenAsText) {
    const Settings plain =
        read(R"({"name":"n","count":7,"rate":0.5,"decay":-2,"on":true,"words":["a","b"],"colour":"green"})");
    EXPECT_EQ(plain.name, "n");
    EXPECT_EQ(plain.count, 7);
    EXPECT_EQ(plain.decay, -2.0);
    EXPECT_TRUE(plain.on);
    EXPECT_EQ(plain.words, (std::vector<std::string>{"a", "b"}));
    EXPECT_EQ(plain.colour, Colour::green);
    EXPECT_EQ(read(R"({"loud":false,"second":"green"})").loud, false);
    EXPECT_EQ(read(R"({"loud":"true","second":"green"})").second, Colour::green);
    const Settings text = read(R"({"count":"7","speed":"5e-1","on":"true","words":"a"})");
    EXPECT_EQ(text.count, 7);
    EXPECT_EQ(text.rate, 0.5);
    EXPECT_TRUE(text.on);
    EXPECT_EQ(text.words, (std::vector<std::string>{"a"}));
    EXPECT_EQ(read(R"({"rate": 0.1, "speed": 0.1})").rate, 0.1) << "two names of one key that agree";
    EXPECT_EQ(read(R"({"count": 1e1})").count, 10);
}

TEST(Schema, WrongTypesAndRangesNameFileAndKey) {
    for (const char* json :
         {R"({"name":1})", R"({"count":1.5})", R"({"count":"7x"})", R"({"count":-1})", R"({"count":11})",
          R"({"count":18446744073709551615})", R"({"rate":"fast"})", R"({"rate":[1]})", R"({"on":1})",
          R"({"on":"yes"})", R"({"words":[1]})", R"({"words":{}})", R"({"colour":"pink"})",
          R"({"rate":0.1,"speed":0.2})", R"({"rate":""})", R"({"name":"\ud83d\ude00","count":{}})"}) {
        const auto error = refused(json);
        EXPECT_EQ(error.code, Errc::bad_value) << json;
        EXPECT_TRUE(error.says("f.json")) << error.message;
    }
    EXPECT_TRUE(refused(R"({"words":["a",1]})").says("words[1]"));
    EXPECT_TRUE(refused(R"({"colour":"pink"})").says("`red`, `green`."));
}

TEST(Schema, UnknownKeysGetTheNearestName) {
    const auto typo = refused(R"({"cuont": 1})");
    EXPECT_EQ(typo.code, Errc::unknown_key);
    EXPECT_TRUE(typo.says("did you mean 'count'")) << typo.message;
    EXPECT_TRUE(refused(R"({"seped": 1})").says("did you mean 'speed'"));
    const auto strange = refused(R"({"zzzzzzzzz": 1})");
    EXPECT_EQ(strange.code, Errc::unknown_key);
    EXPECT_FALSE(strange.says("did you mean")) << strange.message;
}

TEST(Schema, KnownButUnsupportedKeysAndValuesSayWhy) {
    const auto key = refused(R"({"shape": 1})");
    EXPECT_EQ(key.code, Errc::unsupported_key);
    EXPECT_TRUE(key.says("all shapes are round")) << key.message;
    const auto value = refused(R"({"colour": "blue"})");
    EXPECT_EQ(value.code, Errc::unsupported_key);
    EXPECT_TRUE(value.says("there is no blue")) << value.message;
}

TEST(Schema, NullLeavesOutAnyKeyAndFalseThoseThatAskForWhatHappensAnyway) {
    EXPECT_NO_THROW((void)read(R"({"shape": null, "flat": false, "threads": {"any": "thing"}})"));
    EXPECT_EQ(refused(R"({"flat": true})").code, Errc::unsupported_key);
    EXPECT_EQ(refused(R"({"flat": "false"})").code, Errc::unsupported_key);
    EXPECT_EQ(refused(R"({"shape": false})").code, Errc::unsupported_key);
}

TEST(Schema, ReadsObjectsKeysOfMembersAndOptionalIntegers) {
    const Settings none = read("{}");
    EXPECT_FALSE(none.part.has_value() || none.limit.has_value());
    EXPECT_EQ(none.beside.size, 1);
    const Settings all = read(R"({"part":{"size":4,"names":["a"]},"size":"7","limit":5,"key":"geheim"})");
    ASSERT_TRUE(all.part.has_value());
    EXPECT_EQ(all.part->size, 4);
    EXPECT_EQ(all.part->names, std::vector<std::string>{"a"});
    EXPECT_EQ(all.beside.size, 7);
    EXPECT_EQ(all.limit, 5);
    EXPECT_EQ(all.key.reveal(), "geheim");
    EXPECT_TRUE(refused(R"({"part":{"size":10}})").says("f.json: key 'part.size' is 10, out of its range"));
    EXPECT_TRUE(refused(R"({"part":{"names":["a",2]}})").says("key 'part.names[1]' is 2, not text"));
    EXPECT_TRUE(refused(R"({"part":{"sise":1}})").says("key 'part.sise' is unknown. Fix: did you mean 'size'"));
    EXPECT_TRUE(refused(R"({"part":[]})").says("'part' is not a JSON object"));
    EXPECT_EQ(refused(R"({"limit":6})").code, Errc::bad_value);
    const auto secret = refused(R"({"key":4711})");
    EXPECT_TRUE(secret.says("key 'key' is a value of type number, not text")) << secret.message;
}

TEST(Schema, EnvironmentVariablesAreFilledInOnce) {
    ::setenv("STRATA_TEST_A", "x{env:STRATA_TEST_B}", 1);
    ::setenv("STRATA_TEST_N", "5", 1);
    ::unsetenv("STRATA_TEST_MISSING");
    EXPECT_EQ(read(R"({"name":"<{env:STRATA_TEST_A}|{env:STRATA_TEST_N}>"})").name, "<x{env:STRATA_TEST_B}|5>");
    EXPECT_EQ(read(R"({"count":"{env:STRATA_TEST_N}"})").count, 5);
    EXPECT_TRUE(refused(R"({"name":"{env:STRATA_TEST_MISSING}"})").says("STRATA_TEST_MISSING"));
    EXPECT_EQ(refused(R"({"name":"{env:STRATA"})").code, Errc::bad_value);
}

TEST(Schema, BrokenJsonNamesFileLineAndColumn) {
    const TemporaryJson file{"{\n  \"a\": 1,\n  \"b\" 2\n}"};
    const auto error = thrown_by([&] { (void)load_json(file.path()); });
    EXPECT_EQ(error.code, Errc::unreadable_config);
    EXPECT_TRUE(error.says("config.json")) << error.message;
    EXPECT_TRUE(error.says("config.json:3:7")) << error.message;
    for (const char* text : {"", "{", "[1,]", "\xFF\xFE", "nul", "{}x"}) {
        const TemporaryJson broken{text};
        EXPECT_EQ(thrown_by([&] { (void)load_json(broken.path()); }).code, Errc::unreadable_config) << text;
    }
}

TEST(Schema, NestingBeyond64IsRefusedHoweverDeepItIs) {
    const auto nested = [](int depth, const std::string& open, const std::string& close) {
        std::string text;
        for (int i = 0; i < depth; ++i) text += open;
        text += "1";
        for (int i = 0; i < depth; ++i) text += close;
        return text;
    };
    for (const auto& [open, close] : {std::pair<std::string, std::string>{"{\"a\":", "}"}, {"[", "]"}}) {
        const TemporaryJson fits{nested(64, open, close)};
        EXPECT_NO_THROW((void)load_json(fits.path()));
        for (const int depth : {65, 500'000}) {
            const TemporaryJson deep{nested(depth, open, close)};
            for (const auto& error : {thrown_by([&] { (void)load_json(deep.path()); }),
                                      thrown_by([&] { (void)load_trainer_config(deep.path()); }),
                                      thrown_by([&] { (void)load_datasets(deep.path()); })}) {
                EXPECT_EQ(error.code, Errc::unreadable_config);
                EXPECT_TRUE(error.says("config.json")) << error.message;
            }
        }
    }
}

TEST(Schema, MissingFilesAndFoldersAreUnreadable) {
    const strata_test::TemporaryFolder folder;
    EXPECT_EQ(thrown_by([&] { (void)load_json(folder.path() / "no.json"); }).code, Errc::unreadable_config);
    EXPECT_EQ(thrown_by([&] { (void)load_json(folder.path()); }).code, Errc::unreadable_config);
}

TEST(Schema, AKeyTwiceInOneObjectIsRefused) {
    const TemporaryJson file{R"([{"a":1,"b":{"a":1}},{"a":1,"c":2,"a":3}])"};
    const auto error = thrown_by([&] { (void)load_json(file.path()); });
    EXPECT_EQ(error.code, Errc::bad_value);
    EXPECT_TRUE(error.says("'a' appears twice")) << error.message;
}

TEST(Schema, NearestNameCountsASwapOfNeighboursAsOneEdit) {
    EXPECT_EQ(nearest_name("resoultion", {"revolution", "resolution"}), "resolution");
    EXPECT_EQ(nearest_name("x", {"resolution"}), "");
}

void expect_tables(const std::string& page, const std::vector<std::string>& tables) {
    std::ifstream stream{std::string{STRATA_SOURCE_DIR} + "/docs/" + page};
    ASSERT_TRUE(stream) << page;
    const std::string text{std::istreambuf_iterator<char>{stream}, {}};
    for (const std::string& table : tables)
        EXPECT_NE(text.find(table), std::string::npos) << "docs/" << page << " needs exactly this table:\n" << table;
}

TEST(Schema, DocumentationHasTheTablesOfTheSchemas) {
    expect_tables("configuration.md", {markdown(trainer_schema().keys())});
    expect_tables(
        "dataset-keys.md",
        {markdown(image_schema().keys()), markdown(conditioning_schema().keys()),
         markdown(conditioning_schema().idle()), markdown(conditioning_schema().unsupported()),
         markdown(parquet_schema().keys()), markdown(caption_shuffle_schema().keys()),
         markdown(text_embeds_schema().keys()), markdown(image_embeds_schema().keys()), markdown(image_schema().idle()),
         markdown(text_embeds_schema().idle()), markdown(image_embeds_schema().idle()),
         markdown(image_schema().unsupported()), markdown(parquet_schema().unsupported()),
         markdown(text_embeds_schema().unsupported()), markdown(image_embeds_schema().unsupported())});
}

TEST(Schema, NoKeyIsBothSupportedAndUnsupported) {
    const auto check = [](const auto& s) {
        std::vector<std::string> names;
        for (const KeyInfo& key : s.keys()) {
            names.push_back(key.key);
            if (!key.alias.empty()) names.push_back(key.alias);
            EXPECT_FALSE(key.meaning.empty()) << key.key;
            EXPECT_FALSE(key.fallback.empty()) << key.key;
        }
        for (const UnsupportedKey& key : s.unsupported()) names.emplace_back(key.key);
        for (const IdleKey& key : s.idle()) names.emplace_back(key.key);
        std::sort(names.begin(), names.end());
        const auto twice = std::adjacent_find(names.begin(), names.end());
        EXPECT_TRUE(twice == names.end()) << *twice;
    };
    check(schema());
    check(trainer_schema());
    check(image_schema());
    check(conditioning_schema());
    check(text_embeds_schema());
    check(image_embeds_schema());
    check(parquet_schema());
    check(caption_shuffle_schema());
}

}  // namespace
