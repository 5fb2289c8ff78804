// ClipTokenizer: byte pairs, what text is made of before them, and files that cannot be used.

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <strata/storage/atomic_file.hpp>
#include <strata/storage/gzip.hpp>
#include <strata/tokenizers/clip_tokenizer.hpp>

#include "../../support/made_tokenizers.hpp"
#include "../../support/temporary_folder.hpp"

namespace {

using strata::tokenizers::ClipCleaning;
using strata::tokenizers::ClipTokenizer;
using strata::tokenizers::Tokens;
using strata_test::MadeClip;
using strata_test::thrown_by;
using Ids = std::vector<std::int64_t>;

/// A tokenizer of few words, and the numbers of its tokens.
struct Small {
    explicit Small(const MadeClip& words = strata_test::cats_and_dogs(), const ClipTokenizer::Options& options = {})
        : made{words}, tokenizer{(words.write(folder.path()), folder.path()), options} {}
    strata_test::TemporaryFolder folder;
    MadeClip made;
    ClipTokenizer tokenizer;
    /// Expects these tokens of a text.
    void expect(const std::string& text, const std::vector<std::string>& tokens) const {
        EXPECT_EQ(tokenizer.ids(text), made.ids(tokens)) << text;
    }
};

std::vector<std::string> letters(const std::string& word) {
    std::vector<std::string> tokens;
    for (const char c : word) tokens.push_back(strata_test::spelled(static_cast<unsigned char>(c)));
    tokens.back() += "</w>";
    return tokens;
}

TEST(ClipTokenizer, MergesThePairThatWasMergedFirst) {
    const Small small;
    small.expect("cat", {"cat</w>"});
    small.expect("dog", {"dog</w>"});
    small.expect("cats", {"cat", "s</w>"});  // c a, then ca t: the end of a word is another symbol
    small.expect("aaaaa", {"aa", "aa", "a</w>"});
    small.expect("", {});
    // A pair that a merge makes waits until every pair of that merge is done: (xy, x) would take the second x away.
    const Small twice{MadeClip{{{"x", "y"}, {"xy", "x"}, {"xy", "xy"}}}};
    twice.expect("xyxyz", {"xyxy", "z</w>"});
}

TEST(ClipTokenizer, CutsTextAsItsExpressionDoes) {
    const Small small;
    small.expect("  Cat\tDOG\n", {"cat</w>", "dog</w>"});
    small.expect("cat's", {"cat</w>", "'s</w>"});
    small.expect("cat'S", {"cat</w>", "'s</w>"});
    small.expect("12", {"1</w>", "2</w>"});  // digits one by one
    small.expect("cat!!dog", {"cat</w>", "!!</w>", "dog</w>"});
    small.expect("\xE7\x8C\xAB", letters("\xE7\x8C\xAB"));  // an ideograph: its three bytes
    small.expect("<|startoftext|>cat<|ENDOFTEXT|>", {"<|startoftext|>", "cat</w>", "<|endoftext|>"});
    small.expect("&lt;&amp;amp;cat", {"<", "&</w>", "cat</w>"});  // twice, and then as any punctuation
}

TEST(ClipTokenizer, WhatIsNoUtf8IsTheReplacementCharacter) {
    const Small small;
    const std::string replacement = "\xEF\xBF\xBD";
    for (const auto& [bytes, as] : std::vector<std::pair<std::string, std::string>>{
             {"\xFF", replacement},
             {"cat \xC3", "cat " + replacement},
             {"\xE7\x8C", replacement},                                  // an ideograph that breaks off: one
             {"\xED\xA0\x80", replacement + replacement + replacement},  // half of a pair of UTF-16: three
             {"\xF4\x90\x80\x80", replacement + replacement + replacement + replacement},
             {"\xC0\x80", replacement + replacement}})
        EXPECT_EQ(small.tokenizer.ids(bytes), small.tokenizer.ids(as));
    EXPECT_EQ(small.tokenizer.ids(std::string{"cat\0dog", 7}).size(), 3U);
}

TEST(ClipTokenizer, LowerCaseIsThatOfPython) {
    const Small small;
    const auto same = [&](const std::string& text, const std::string& lower) {
        EXPECT_EQ(small.tokenizer.ids(text), small.tokenizer.ids(lower)) << text;
    };
    same("\xC3\x89T\xC3\x89", "\xC3\xA9t\xC3\xA9");  // É
    same("\xCE\x9F\xCE\xA3 \xCE\xA3\xCE\x9F",
         "\xCE\xBF\xCF\x82 \xCF\x83\xCE\xBF");  // ΟΣ ΣΟ: a sigma at the end of a word is another
    same("\xC4\xB0", "i\xCC\x87");              // İ: the one letter that becomes two characters
    same("\xE1\xBA\x9E", "\xC3\x9F");           // ẞ
}

TEST(ClipTokenizer, ReferencesOfHtmlAreResolvedTwice) {
    const Small small, plain{strata_test::cats_and_dogs(), {77, {}, ClipCleaning::transformers_fast}};
    for (const auto& [text, as] : std::vector<std::pair<std::string, std::string>>{
             {"&quot;cat&quot;", "\"cat\""},
             {"&amp;lt;cat", "<cat"},
             {"&amp;amp;lt;cat", "&lt;cat"},  // twice, and no third time
             {"&notit; &copy",
              "\xC2\xACit; \xC2\xA9"},  // names that stand without a semicolon, one at the beginning of another word
             {"&hellip;&#x41;&#65 &#128;",
              "\xE2\x80\xA6"
              "AA \xE2\x82\xAC"},
             {"&#0;&#xD800;&#99999999999;", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
             {"cat&#7;dog", "catdog"},
             {"&zebra; & &; &#; &#x;", "&zebra; & &; &#; &#x;"}})
        EXPECT_EQ(small.tokenizer.ids(text), plain.tokenizer.ids(as)) << text;
}

TEST(ClipTokenizer, OtherCleaningsAreThoseOfTransformers) {
    const Small fast{strata_test::cats_and_dogs(), {77, {}, ClipCleaning::transformers_fast}};
    const Small slow{strata_test::cats_and_dogs(), {77, {}, ClipCleaning::transformers_slow}};
    const Small openai;
    fast.expect("&lt;cat", {"&</w>", "l", "t</w>", ";</w>", "cat</w>"});
    EXPECT_EQ(fast.tokenizer.ids("e\xCC\x81"), fast.tokenizer.ids("\xC3\xA9"));  // form C
    EXPECT_NE(openai.tokenizer.ids("e\xCC\x81"), openai.tokenizer.ids("\xC3\xA9"));
    slow.expect("ca\x07t\xE2\x80\x8D", {"cat</w>"});  // controls and joiners are gone
    const std::string ideographs = "\xE7\x8C\xAB\xE7\x8C\xAB";
    EXPECT_EQ(slow.tokenizer.ids(ideographs), slow.tokenizer.ids("\xE7\x8C\xAB \xE7\x8C\xAB"));
    EXPECT_NE(fast.tokenizer.ids(ideographs), fast.tokenizer.ids("\xE7\x8C\xAB \xE7\x8C\xAB"));
    // A mark behind punctuation is one for transformers, and punctuation for OpenAI's expression.
    fast.expect("!!<|endoftext|>", {"!!</w>", "<|endoftext|>"});
    slow.expect("!!<|endoftext|>", {"!!</w>", "<|endoftext|>"});
    EXPECT_EQ(openai.tokenizer.ids("!!<|endoftext|>"), openai.tokenizer.ids("!!<| endoftext |>"));
}

TEST(ClipTokenizer, MarksCutsAndPads) {
    const Small small{strata_test::cats_and_dogs(), {6, {}, ClipCleaning::openai}};
    const std::int64_t bos = small.tokenizer.bos(), eos = small.tokenizer.eos();
    const Ids cat = small.made.ids({"cat</w>"}), dog = small.made.ids({"dog</w>"});
    Tokens tokens = small.tokenizer.encode("cat dog");
    EXPECT_EQ(tokens.ids, (Ids{bos, cat[0], dog[0], eos, eos, eos}));
    EXPECT_EQ(tokens.length, 4);
    EXPECT_EQ(tokens.cut, 0);
    tokens = small.tokenizer.encode("cat dog cat dog cat cat cat");
    EXPECT_EQ(tokens.ids, (Ids{bos, cat[0], dog[0], cat[0], dog[0], eos}));
    EXPECT_EQ(tokens.length, 6);
    EXPECT_EQ(tokens.cut, 3);
    tokens = small.tokenizer.encode("");
    EXPECT_EQ(tokens.ids, (Ids{bos, eos, eos, eos, eos, eos}));
    EXPECT_EQ(tokens.length, 2);
}

TEST(ClipTokenizer, PadsWithWhatTheFolderSays) {
    strata_test::TemporaryFolder folder;
    const MadeClip made = strata_test::cats_and_dogs();
    made.write(folder.path());
    EXPECT_EQ(ClipTokenizer{folder.path()}.pad(), made.vocabulary.at("<|endoftext|>"));
    strata::storage::write_file(folder.path() / "special_tokens_map.json", R"({"pad_token": {"content": "!"}})");
    EXPECT_EQ(ClipTokenizer{folder.path()}.pad(), made.vocabulary.at("!"));
    strata::storage::write_file(folder.path() / "tokenizer_config.json", R"({"pad_token": "a"})");
    EXPECT_EQ(ClipTokenizer{folder.path()}.pad(), made.vocabulary.at("a"));
    ClipTokenizer::Options options;
    options.pad = 0;
    EXPECT_EQ(ClipTokenizer(folder.path(), options).pad(), 0);
    EXPECT_NE(ClipTokenizer(folder.path(), options).id(), ClipTokenizer{folder.path()}.id());
    strata::storage::write_file(folder.path() / "tokenizer_config.json", R"({"pad_token": "no such"})");
    EXPECT_TRUE(thrown_by([&] { ClipTokenizer{folder.path()}; }).says("pads with 'no such'"));
}

/// Of textual inversion: the words would be cut into other tokens than were trained.
TEST(ClipTokenizer, TokensThatWereAddedAreRefusedUnlessTheVocabularyHasThem) {
    strata_test::TemporaryFolder folder;
    strata_test::cats_and_dogs().write(folder.path());
    const std::filesystem::path file = folder.path() / "added_tokens.json";
    strata::storage::write_file(file, R"({"<|endoftext|>": 2})");
    EXPECT_NO_THROW(ClipTokenizer{folder.path()});
    strata::storage::write_file(file, R"({"<my-cat>": 49408, "<|endoftext|>": 2})");
    const strata_test::Thrown refused = thrown_by([&] { ClipTokenizer{folder.path()}; });
    EXPECT_EQ(refused.code, strata::Errc::bad_tokenizer);
    EXPECT_TRUE(refused.says("has tokens that vocab.json has not: <my-cat>. Fix: remove the file")) << refused.message;
}

TEST(ClipTokenizer, AVeryLongWordTakesNoLongTime) {
    const Small small;
    EXPECT_EQ(small.tokenizer.ids(std::string(200'001, 'a')).size(), 100'001U);
    EXPECT_EQ(small.tokenizer.encode(std::string(200'001, 'a')).cut, 100'001 - 75);
}

TEST(ClipTokenizer, SeveralThreadsMayAskAtOnce) {
    const Small small;
    std::vector<std::thread> threads;
    std::vector<int> wrong(4, 0);
    for (std::size_t t = 0; t < wrong.size(); ++t)
        threads.emplace_back([&, t] {
            for (int i = 0; i < 500; ++i) {
                const std::string word = "cat" + std::string(static_cast<std::size_t>(i % 50), 'a');
                if (small.tokenizer.ids(word) != small.tokenizer.ids(" " + word + " ")) ++wrong[t];
            }
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

TEST(ClipTokenizer, FilesThatCannotBeUsedAreNamed) {
    const auto refused = [](const std::string& vocabulary, const std::string& merges) {
        strata_test::TemporaryFolder folder;
        strata::storage::write_file(folder.path() / "vocab.json", vocabulary);
        strata::storage::write_file(folder.path() / "merges.txt", merges);
        const strata_test::Thrown thrown = thrown_by([&] { ClipTokenizer{folder.path()}; });
        EXPECT_EQ(thrown.code, strata::Errc::bad_tokenizer) << thrown.message;
        return thrown;
    };
    const MadeClip made = strata_test::cats_and_dogs();
    const std::string vocabulary = nlohmann::json(made.vocabulary).dump();
    EXPECT_TRUE(
        refused("version https://git-lfs.github.com/spec/v1", made.merges).says("vocab.json is no JSON object"));
    EXPECT_TRUE(refused(vocabulary.substr(0, vocabulary.size() / 2), made.merges).says("is no JSON object"));
    EXPECT_TRUE(refused("[1, 2]", made.merges).says("is no JSON object"));
    EXPECT_TRUE(refused(R"({"a": 0, "a": 1})", made.merges).says("has the token 'a' twice"));
    EXPECT_TRUE(refused(R"({"a": 0, "b": 0})", made.merges).says("gives 0 to 'a' and to 'b'"));
    EXPECT_TRUE(refused(R"({"a": -1})", made.merges).says("gives the token 'a' -1"));
    EXPECT_TRUE(refused(R"({"a": "0"})", made.merges).says("gives the token 'a' \"0\""));
    EXPECT_TRUE(refused(vocabulary, "c a\nca t</w>\n").says("merges.txt does not begin with a line '#version"));
    EXPECT_TRUE(refused(vocabulary, "#version: 0.2\n").says("has no merges"));
    EXPECT_TRUE(refused(vocabulary, "#version: 0.2\nc a\nabc\n").says("line 3 'abc', which is no pair"));
    EXPECT_TRUE(refused(vocabulary, "#version: 0.2\nc a t\n").says("line 2 'c a t', which is no pair"));
    EXPECT_TRUE(refused(vocabulary, "#version: 0.2\nc a\nz z\n").says("'zz' is no token of the vocabulary"));
    EXPECT_TRUE(refused(vocabulary, "#version: 0.2\nc a\nc a\n").says("line 3 the pair 'c a' once more"));
    MadeClip unmarked = made;
    unmarked.vocabulary.erase("<|endoftext|>");
    EXPECT_TRUE(refused(nlohmann::json(unmarked.vocabulary).dump(), made.merges).says("has no token '<|endoftext|>'"));

    strata_test::TemporaryFolder folder;
    EXPECT_EQ(thrown_by([&] { ClipTokenizer{folder.path()}; }).code, strata::Errc::not_found);
    const std::filesystem::path packed = folder.path() / "bpe.txt.gz";
    EXPECT_EQ(thrown_by([&] { ClipTokenizer{packed}; }).code, strata::Errc::not_found);
    strata::storage::write_file(packed, "#version: 0.2\ni n\nt h\n");
    EXPECT_TRUE(thrown_by([&] { ClipTokenizer{packed}; }).says("has 2 merges, and CLIP takes the first 48894"));
    const std::string text = "#version: 0.2\ni n\n";
    std::vector<std::byte> gzip = strata::storage::gzip_compress(std::as_bytes(std::span{text.data(), text.size()}));
    gzip.resize(gzip.size() - 4);
    strata::storage::write_file(packed, gzip);
    EXPECT_EQ(thrown_by([&] { ClipTokenizer{packed}; }).code, strata::Errc::corrupt_gzip);

    made.write(folder.path());
    EXPECT_TRUE(thrown_by([&] {
                    ClipTokenizer(folder.path(), {1, {}, ClipCleaning::openai});
                }).says("max_length is 1"));
    EXPECT_TRUE(thrown_by([&] {
                    ClipTokenizer(folder.path(), {77, 999'999, ClipCleaning::openai});
                }).says("pad is 999999"));
}

TEST(ClipTokenizer, MakesTheNumbersOfTheReference) {
    const std::filesystem::path folder = std::filesystem::path{STRATA_REFERENCE_DIR} / "data/tokenizers/clip";
    if (!std::filesystem::exists(folder / "golden.json"))
        GTEST_SKIP() << folder << " is not there: nothing to compare with";
    std::ifstream in{folder / "golden.json"};
    const nlohmann::json golden = nlohmann::json::parse(in);
    const ClipTokenizer of_folder{folder}, of_merges{folder / "bpe_simple_vocab_16e6.txt.gz"};
    EXPECT_EQ(of_folder.vocabulary_size(), golden.at("vocab_size").get<std::int64_t>());
    EXPECT_EQ(of_merges.vocabulary_size(), of_folder.vocabulary_size());
    EXPECT_EQ(of_folder.bos(), golden.at("bos").get<std::int64_t>());
    EXPECT_EQ(of_folder.eos(), golden.at("eos").get<std::int64_t>());
    std::size_t compared = 0;
    for (const nlohmann::json& one : golden.at("cases")) {
        const auto text = one.at("text").get<std::string>();
        EXPECT_EQ(of_folder.ids(text), one.at("ids").get<Ids>()) << text;
        EXPECT_EQ(of_merges.ids(text), one.at("ids").get<Ids>()) << text;
        Ids padded = one.at("padded77_prefix").get<Ids>();
        const Tokens tokens = of_folder.encode(text);
        EXPECT_EQ(tokens.length, static_cast<std::int64_t>(padded.size())) << text;
        padded.resize(77, of_folder.eos());
        EXPECT_EQ(tokens.ids, padded) << text;
        ++compared;
    }
    EXPECT_GE(compared, 100U);
}

}  // namespace
