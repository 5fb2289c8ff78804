// The JSON Schemas for editors agree with the readers: what is read validates, and what is refused for its type, choice or
// range does not. Of every key with values of all kinds, and of real files.

#include <cmath>
#include <filesystem>
#include <regex>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <strata/config/any_config.hpp>
#include <strata/config/reading.hpp>
#include <strata/config/trainer_table.hpp>

namespace {

using namespace strata::config;
using nlohmann::json;
namespace fs = std::filesystem;

/// A validator of the words that our schemas use; any other word is a mistake of the test's.
class Validator {
public:
    explicit Validator(const FormatTable& table) : root_(json::parse(json_schema(table))) {}

    /// The first thing that does not validate: "/zero_optimization/stage"; "valid" where all does.
    [[nodiscard]] std::string look(const json& value) const { return look(value, root_, ""); }

private:
    [[nodiscard]] std::string look(const json& value, const json& schema, const std::string& at) const {
        for (const auto& [word, says] : schema.items()) {
            if (word == "$schema" || word == "title" || word == "description" || word == "deprecated") continue;
            const std::string found = holds(word, says, value, schema, at);
            if (found != "valid") return found;
        }
        return "valid";
    }
    [[nodiscard]] static bool is(const json& value, const std::string& type) {
        if (type == "integer") return value.is_number() && value.get<double>() == std::floor(value.get<double>());
        return type == "null"      ? value.is_null()
               : type == "boolean" ? value.is_boolean()
               : type == "number"  ? value.is_number()
               : type == "string"  ? value.is_string()
               : type == "array"   ? value.is_array()
                                   : value.is_object();
    }
    [[nodiscard]] std::string holds(const std::string& word, const json& says, const json& value, const json& schema,
                                    const std::string& at) const {
        const auto here = [&](bool good) { return good ? std::string{"valid"} : (at.empty() ? "/" : at); };
        if (word == "$ref") return look(value, root_.at(json::json_pointer{says.get<std::string>().substr(1)}), at);
        if (word == "anyOf") {
            for (const json& one : says)
                if (look(value, one, at) == "valid") return "valid";
            // What is wrong inside of an object says more than that it is none of the others.
            const std::string inner = look(value, says[0], at);
            return value.is_object() && inner != at ? inner : here(false);
        }
        if (word == "type") {
            if (says.is_string()) return here(is(value, says));
            for (const json& one : says)
                if (is(value, one)) return "valid";
            return here(false);
        }
        if (word == "const") return here(value == says);
        if (word == "enum") return here(std::find(says.begin(), says.end(), value) != says.end());
        if (word == "minimum") return here(!value.is_number() || value.get<double>() >= says.get<double>());
        if (word == "maximum") return here(!value.is_number() || value.get<double>() <= says.get<double>());
        if (word == "pattern")
            return here(!value.is_string() ||
                        std::regex_search(value.get<std::string>(), std::regex{says.get<std::string>()}));
        if (word == "properties") {
            if (!value.is_object()) return "valid";
            for (const auto& [key, one] : value.items())
                if (says.contains(key))
                    if (const std::string found = look(one, says[key], at + "/" + key); found != "valid") return found;
            return "valid";
        }
        if (word == "additionalProperties") {
            if (!value.is_object()) return "valid";
            for (const auto& [key, one] : value.items()) {
                if (schema["properties"].contains(key)) continue;
                const std::string found = says == false ? at + "/" + key : look(one, says, at + "/" + key);
                if (found != "valid") return found;
            }
            return "valid";
        }
        ADD_FAILURE() << "the validator of this test does not know '" << word << "'";
        return here(false);
    }
    json root_;
};

/// A document with one value at a path.
std::string at_path(const std::string& path, const std::string& value) {
    std::string text = "{\"";
    std::string ends = "}";
    for (const char c : path) {
        text += c == '.' ? "\": {\"" : std::string{c};
        if (c == '.') ends += "}";
    }
    return text + "\": " + value + ends;
}

void expect_agreement(const FormatTable& table) {
    const Validator validator{table};
    const std::vector<std::string> values{"null",  "true",     "false",    "0",        "1",     "-1",
                                          "3",     "0.5",      "5e8",      "1e30",     "\"3\"", "\"0.5\"",
                                          "\"x\"", "\"auto\"", "\"none\"", "\"CPU\"",  "[]",    "[1]",
                                          "{}",    "\"yes\"",  "\"1\"",    "\"bf16\"", "65536", "\"TRUE\""};
    std::size_t both = 0;
    for (const KeyRow& row : table.rows()) {
        std::string path = row.path;
        if (path.ends_with('*')) path.replace(path.size() - 1, 1, "anything");
        for (const std::string& value : values) {
            const std::string text = at_path(path, value);
            const Document document = parse_json(text, "f", JsonDialect::strict);
            Findings findings;
            const Reading reading{document.root, table, findings};
            const bool is_read = findings.refused() == 0;
            const bool is_valid = validator.look(json::parse(text)) == "valid";
            // Of text that is a number a schema cannot say the range.
            const bool is_number =
                row.kind == ValueKind::whole || row.kind == ValueKind::number || !row.renamed.empty();
            if (is_number && value.starts_with('"') && !is_read) continue;
            EXPECT_EQ(is_valid, is_read) << text << (is_read ? "" : "\n" + sentence(findings.all().front()));
            ++both;
        }
    }
    EXPECT_GT(both, 1000U);
}

TEST(JsonSchema, AgreesWithTheReaderOfDeepSpeedAboutEveryKey) { expect_agreement(deepspeed_table()); }
TEST(JsonSchema, AgreesWithTheReaderOfAccelerateAboutEveryKey) { expect_agreement(accelerate_table()); }

TEST(JsonSchema, RealFilesThatAreReadValidateAndOthersDoNotForTheSameReason) {
    const fs::path folder = fs::path{STRATA_REFERENCE_DIR} / "data/configs";
    std::error_code error;
    if (STRATA_REFERENCE_DIR[0] == '\0' || !fs::is_directory(folder, error))
        GTEST_SKIP() << "no reference material: configure with -DSTRATA_REFERENCE_DIR=/path";
    const Validator deepspeed{deepspeed_table()}, accelerate{accelerate_table()}, trainer{trainer_table()};
    std::size_t taken = 0;
    for (const char* kind : {"deepspeed", "accelerate", "simpletuner"})
        for (const auto& entry : fs::directory_iterator{folder / kind}) {
            const std::string extension = entry.path().extension().string();
            if (extension != ".json" && extension != ".yaml" && extension != ".yml") continue;
            const AnyConfig config = look_at_config(entry.path());
            if (config.format == ConfigFormat::datasets || config.format == ConfigFormat::launch) continue;
            const bool is_deepspeed = config.format == ConfigFormat::deepspeed;
            const FormatTable& table = is_deepspeed                                ? deepspeed_table()
                                       : config.format == ConfigFormat::accelerate ? accelerate_table()
                                                                                   : trainer_table();
            json value;
            try {
                value = json::parse(write_json(load_document(entry.path()).root));
            } catch (const std::exception&) {
                continue;  // no document, or one that JSON has no words for
            }
            if (is_deepspeed && !value.contains("zero_optimization") && value.contains("deepspeed")) continue;
            const Validator& validator = is_deepspeed                                ? deepspeed
                                         : config.format == ConfigFormat::accelerate ? accelerate
                                                                                     : trainer;
            const std::string found = validator.look(value);
            bool is_of_one_value = false;  // what a schema can say
            for (const Finding& one : config.findings.all()) {
                const KeyRow* const row = one.effect == Effect::refused ? table.find(one.key) : nullptr;
                is_of_one_value =
                    is_of_one_value || (row != nullptr && one.words == "is " + one.value + ", not " + expected(*row) &&
                                        row->kind != ValueKind::whole && row->kind != ValueKind::number);
            }
            if (config.findings.refused() == 0) {
                const Finding* const said = config.findings.of(found);
                const bool is_astray = said != nullptr && said->warns;  // an editor may mark what check warns of
                EXPECT_TRUE(found == "valid" || is_astray) << entry.path() << ": " << found;
            } else if (is_of_one_value) {
                EXPECT_NE(found, "valid") << entry.path();
            }
            taken += config.findings.refused() == 0 ? 1 : 0;
        }
    EXPECT_GT(taken, 50U);
}

}  // namespace
