#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <strata/config/document.hpp>

#include "temporary_json.hpp"

namespace {

using namespace strata::config;
using strata::Errc;
using strata_test::thrown_by;

Document json(const std::string& text, JsonDialect dialect = JsonDialect::strict) {
    return parse_json(text, "f.json", dialect);
}
strata_test::Thrown refused(const std::string& text, JsonDialect dialect = JsonDialect::strict) {
    return thrown_by([&] { (void)json(text, dialect); });
}
strata_test::Thrown yaml_refused(const std::string& text) {
    return thrown_by([&] { (void)parse_yaml(text, "f.yaml"); });
}

TEST(Document, EveryValueKnowsItsPlace) {
    const Document document = json("{\n  \"a\": {\"b/c\": [1, 2.5e3]},\n  \"\u00fc\": \"x\", \"d\": null}");
    const Node& second = document.root.at("a")->members()[0].value.elements()[1];
    EXPECT_EQ(second.place(), "f.json:2:20");
    EXPECT_EQ(second.pointer(), "/a/b~1c/1");
    EXPECT_EQ(second.path(), "a.b/c[1]");
    EXPECT_EQ(second.number(), 2500);
    EXPECT_EQ(document.root.find("d")->place(), "f.json:3:18") << "a character is a column, whatever its bytes";
    EXPECT_TRUE(document.root.find("d")->is(NodeKind::null));
    EXPECT_EQ(document.root.at("a.nothing"), nullptr);
}

TEST(Document, ScalarsKeepTheTextThatTheyWereWrittenAs) {
    const Document document = json(R"({"a": 5e-05, "b": 1.0, "c": 12345678901234567})");
    EXPECT_EQ(document.root.find("a")->scalar(), "5e-05");
    EXPECT_EQ(document.root.find("b")->whole(), 1);
    EXPECT_EQ(document.root.find("c")->whole(), 12345678901234567);
    EXPECT_EQ(write_json(document.root), "{\n  \"a\": 5e-05,\n  \"b\": 1.0,\n  \"c\": 12345678901234567\n}\n");
}

TEST(Document, NumbersInTextAreNumbersToo) {
    const Document document =
        json(R"({"a": "2", "b": "5e8", "c": "2 ", "d": "auto", "e": true, "f": "0x10", "g": "nan"})");
    EXPECT_EQ(document.root.find("a")->whole(), 2);
    EXPECT_EQ(document.root.find("b")->whole(), 500000000);
    for (const char* key : {"c", "d", "e", "f", "g"}) EXPECT_FALSE(document.root.find(key)->number()) << key;
}

TEST(Document, AKeyThatStandsTwiceIsRefusedInJson) {
    const Document document = json("{\"a\": 1,\n \"b\": {\"a\": 2},\n \"a\": 1}");
    ASSERT_EQ(document.remarks.size(), 1U);
    EXPECT_TRUE(document.remarks[0].refused);
    EXPECT_EQ(document.remarks[0].mark, (Mark{3, 2}));
    EXPECT_EQ(document.remarks[0].what, "key 'a' appears twice in one object, first on line 1");
}

TEST(Document, AKeyThatStandsTwiceInYamlIsAWarningWhereItSaysTheSame) {
    EXPECT_FALSE(parse_yaml("a: 1\na: 1\n", "f").remarks.at(0).refused);
    const Document document = parse_yaml("a: 1\na: 2\n", "f");
    EXPECT_TRUE(document.remarks.at(0).refused);
    EXPECT_EQ(document.root.find("a")->whole(), 2) << "the last one, as PyYAML has it";
}

TEST(Document, CommentsAndCommasAreNamedOrPassedOver) {
    EXPECT_EQ(refused("{\"a\": 1 // one\n}").message,
              "[ST2101] f.json:1:9: is no JSON: a comment, which JSON does not have, at /a. Fix: remove it.");
    EXPECT_EQ(refused("{\"a\": [1, 2,], \"b\": 1}").message,
              "[ST2101] f.json:1:12: is no JSON: a comma stands in front of `]`, at /a/2. Fix: remove the comma.");
    const Document document = json("{/* x */\"a\": [1, 2,], # y\n}", JsonDialect::relaxed);
    EXPECT_EQ(document.root.find("a")->elements().size(), 2U);
    ASSERT_EQ(document.remarks.size(), 2U);
    EXPECT_EQ(document.remarks[0].what, "2 comments, which JSON does not have, passed over");
    EXPECT_EQ(document.remarks[1].what, "2 commas in front of closing brackets, passed over");
    EXPECT_FALSE(document.remarks[0].refused || document.remarks[1].refused);
}

TEST(Document, ATemplateNamesAllOfItsPlaceholders) {
    const auto problem =
        refused("{\"a\": $STAGE,\n \"b\": {{ size }}, \"c\": [${X:-1}, <count>],\n \"d\": LOG_INTERVAL}");
    EXPECT_EQ(problem.code, Errc::unreadable_config);
    EXPECT_EQ(
        problem.message,
        "[ST2101] f.json:1:7: is a template, and no JSON before a script has filled in `$STAGE` at 1:7, `{{ size }}` "
        "at 2:7, `${X:-1}` at 2:25, `<count>` at 2:34, `LOG_INTERVAL` at 3:7. Fix: write values in their place, or "
        "give the file that the script writes.");
    EXPECT_NE(refused("{\n {% if a %}\n \"b\": 1}").message.find("`{% if a %}` at 2:2"), std::string::npos);
    EXPECT_NE(refused("{\"b\": 1,\n $MORE }").message.find("`$MORE` at 2:2"), std::string::npos);
}

TEST(Document, WhatPeopleWriteInPlaceOfJsonIsNamed) {
    const std::vector<std::pair<std::string, std::string>> cases{
        {"{\"a\": True}", "1:7: is no JSON: `True` is Python's word, at /a. Fix: write true or false."},
        {"{\"a\": None}", "`None` is Python's word"},
        {"{'a': 1}", "1:2: is no JSON: a key in single quotes"},
        {"{\"a\": 'b'}", "a text in single quotes"},
        {"{a: 1}", "a key without double quotes"},
        {"{\"a\" 1}", "a colon is missing after a key"},
        {"{\"a\": 1 \"b\": 2}", "a comma or `}` is missing"},
        {"{\"a\": }", "a value is missing"},
        {"{\"a\": auto}", "`auto` is no value of JSON's, at /a"},
        {"{\"a\": 01}", "`01` is no number"},
        {"{\"a\": 1.}", "`1.` is no number"},
        {"{\"a\": 5 GiB}", "a comma or `}` is missing"},
        {"{\"a\": 5GiB}", "`5GiB` is no number"},
        {"{\"a\": \"b\n\"}", "a text does not end on its line"},
        {"{\"a\": \"\\q\"}", "a backslash that begins none of JSON's escapes"},
        {"{\"a\": \"\\u12\"}", "\\u without four hexadecimal digits"},
        {"{\"a\": \"\\ud800\"}", "half of a pair of \\u escapes"},
        {"{\"a\": \"\\u0000\"}", "the character \\u0000"},
        {"{\"a\": 1", "the text ends inside of an object or a list"},
        {"{\"a\": 1}{\"b\": 1}", "1:9: is no JSON: another value begins after the first one has ended"},
        {"{\"a\": 1}]", "something follows after the value has ended"},
        {"", "f.json is empty"},
        {"{\"a\": \"\xff\"}", "f.json is no UTF-8 text at line 1, column 8"},
        {std::string("{\"a\": \0}", 8), "f.json has a NUL byte at line 1, column 7"},
    };
    for (const auto& [text, sentence] : cases) {
        const auto problem = refused(text);
        EXPECT_NE(problem.message.find(sentence), std::string::npos) << text << " -> " << problem.message;
    }
}

TEST(Document, EscapesOfJsonAreRead) {
    EXPECT_EQ(json("\"\\u00fc\\ud83d\\ude00\\n\\\\\\/\"").root.scalar(), "\u00fc\U0001f600\n\\/");
}

TEST(Document, DepthAndSizeHaveLimits) {
    EXPECT_NE(refused(std::string(65, '[')).message.find("more than 64 deep"), std::string::npos);
    std::string many = "[0";
    for (int i = 0; i < 50'000; ++i) many += ",0";
    EXPECT_NE(refused(many + "]").message.find("more than 50000 values"), std::string::npos);
    EXPECT_EQ(yaml_refused(std::string(1000, '[')).code, Errc::unreadable_config);
    std::string laughs = "a: &a [x, x, x, x, x, x, x, x, x]\n";
    for (char c = 'b'; c < 'j'; ++c)
        laughs += std::string{c} + ": &" + c + " [*" + char(c - 1) + ", *" + char(c - 1) + ", *" + char(c - 1) + ", *" +
                  char(c - 1) + ", *" + char(c - 1) + "]\n";
    EXPECT_EQ(yaml_refused(laughs).code, Errc::unreadable_config) << "aliases of aliases are values as well";
}

TEST(Document, YamlIsReadAsPyYamlReadsIt) {
    const Document document = parse_yaml(
        "# comment\ndistributed_type: NO\ndowncast_bf16: 'no'\nstage: 2\nlr: 1e-8\neps: 1.0e-8\nnone: ~\nempty:\nlist: [a, 2]\n"
        "base: &b {x: 1, y: 2}\nmore:\n  <<: *b\n  y: 3\nagain: *b\nport: '29500'\n",
        "f.yaml");
    const Node& root = document.root;
    EXPECT_TRUE(root.find("distributed_type")->is(NodeKind::text));
    EXPECT_EQ(root.find("distributed_type")->flag(), false);
    EXPECT_EQ(root.find("distributed_type")->scalar(), "NO");
    EXPECT_EQ(root.find("downcast_bf16")->place(), "f.yaml:3:16");
    EXPECT_EQ(root.find("stage")->whole(), 2);
    EXPECT_EQ(root.find("lr")->number(), 1e-8) << "PyYAML calls it text, and everybody means the number";
    EXPECT_TRUE(root.find("none")->is(NodeKind::null) && root.find("empty")->is(NodeKind::null));
    EXPECT_EQ(root.at("list")->elements()[1].pointer(), "/list/1");
    EXPECT_EQ(root.at("more.x")->whole(), 1);
    EXPECT_EQ(root.at("more.y")->whole(), 3);
    EXPECT_EQ(root.at("again.y")->whole(), 2);
    EXPECT_TRUE(root.find("port")->is(NodeKind::text));
}

TEST(Document, YamlThatCannotBeReadIsOneSentence) {
    const std::vector<std::pair<std::string, std::string>> cases{
        {"a:\n\tb: 1\n", "f.yaml:2:"},
        {"a: [1, 2\nb: 3\n", "is no YAML: "},
        {"a: {{ stage }}\n", "a map or a list as a key"},
        {"[a, b]: 1\n", "a map or a list as a key"},
        {"a: 1\n---\nb: 2\n", "f.yaml holds more than one YAML document"},
        {"a: *b\n", "is no YAML: "},
        {"<<: 5\n", "`<<` without an alias of a map behind it"},
        {"# nothing\n", "f.yaml holds comments only"},
    };
    for (const auto& [text, sentence] : cases) {
        const auto problem = yaml_refused(text);
        EXPECT_EQ(problem.code, Errc::unreadable_config) << text;
        EXPECT_NE(problem.message.find(sentence), std::string::npos) << text << " -> " << problem.message;
        EXPECT_EQ(problem.message.find("yaml-cpp"), std::string::npos) << problem.message;
    }
}

TEST(Document, TextThatYamlWouldTakeForSomethingElseIsWrittenInQuotes) {
    const Document document =
        json(R"({"a": "no", "b": "12", "c": "x: y", "d": "", "e": "~", "f": "- g", "h": ["on", {"i": []}]})");
    const std::string text = write_yaml(document.root);
    EXPECT_NE(text.find("a: \"no\"\nb: \"12\"\n"), std::string::npos) << text;
    EXPECT_TRUE(parse_yaml(text, "again").root.same_as(document.root)) << text;
}

TEST(Document, WhatIsGivenOverAFileGoesBeforeIt) {
    const Document file =
        parse_yaml("mixed_precision: fp16\ndeepspeed_config:\n  zero_stage: 2\n  gradient_clipping: 1.0\n", "a.yaml");
    const Document flags = document_of({{"deepspeed_config.zero_stage", "3", "--zero_stage"},
                                        {"num_processes", "4", "--num_processes"},
                                        {"num_processes", "8", "--num_processes"}},
                                       "command line");
    const Node both = overlay(file.root, flags.root);
    EXPECT_EQ(both.at("deepspeed_config.zero_stage")->place(), "--zero_stage");
    EXPECT_EQ(both.at("deepspeed_config.zero_stage")->whole(), 3);
    EXPECT_EQ(both.at("deepspeed_config.gradient_clipping")->place(), "a.yaml:4:22");
    EXPECT_EQ(both.at("num_processes")->whole(), 8);
    EXPECT_EQ(both.at("mixed_precision")->scalar(), "fp16");
}

TEST(Document, AFilesFormatIsThatOfItsName) {
    const strata_test::TemporaryJson file{"a: 1\n"};
    EXPECT_EQ(thrown_by([&] { (void)load_document(file.path()); }).code, Errc::unreadable_config);
    EXPECT_NE(thrown_by([] { (void)load_document("/nowhere/a.yaml"); }).message.find("cannot read configuration file"),
              std::string::npos);
}

}  // namespace
