// T5Tokenizer: sentencepiece's cuts, T5's marks and numbers, and files that cannot be used.

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <strata/storage/atomic_file.hpp>
#include <strata/tokenizers/t5_tokenizer.hpp>

#include "../../support/made_tokenizers.hpp"
#include "../../support/temporary_folder.hpp"

namespace {

using strata::tokenizers::T5Tokenizer;
using strata::tokenizers::Tokens;
using strata_test::MadeSentencePieces;
using strata_test::thrown_by;
using Ids = std::vector<std::int64_t>;

enum : std::int64_t { pad, end_of_text, unknown, space, cat, dog, s, c, a, t, extra_id_99 };

struct Small {
    explicit Small(const T5Tokenizer::Options& options = {})
        : tokenizer{(strata::storage::write_file(folder.path() / "spiece.model", strata_test::small_pieces().bytes()),
                     folder.path()),
                    options} {}
    strata_test::TemporaryFolder folder;
    T5Tokenizer tokenizer;
};

TEST(T5Tokenizer, TheLikeliestPiecesWin) {
    const Small small;
    EXPECT_EQ(small.tokenizer.ids("cat dogs"), (Ids{cat, dog, s}));
    EXPECT_EQ(small.tokenizer.ids("  cat   dog "), (Ids{cat, dog}));
    EXPECT_EQ(small.tokenizer.ids("ca"), (Ids{space, c, a}));
    EXPECT_EQ(small.tokenizer.ids("cat xyz"), (Ids{cat, space, unknown}));  // what is no piece is one unknown
    EXPECT_EQ(small.tokenizer.ids("cat \xFF\xFE"), (Ids{cat, space, unknown}));
    EXPECT_EQ(small.tokenizer.ids(""), Ids{});
    EXPECT_EQ(small.tokenizer.vocabulary_size(), 110);
}

/// A model whose table of characters has one row, a tab that becomes a space: the double array of darts-clone, four bytes a
/// unit, behind its length, and the texts behind that.
std::string with_a_table(std::uint32_t length = 64 * 4, const std::string& texts = std::string{" \0", 2}) {
    std::vector<std::uint32_t> units(64, 0);
    units[0] = 16U << 10;                  // the first byte leads to unit 16 ^ byte
    units[16 ^ 9] = 49U << 10 | 256U | 9;  // a tab, which is a whole text: its value is in unit 25 ^ 49
    units[40] = 1U << 31;                  // the text at 0
    std::string table;
    const auto add = [&](std::uint32_t word) {
        for (int i = 0; i < 4; ++i) table.push_back(static_cast<char>(word >> 8 * i));
    };
    add(length);
    for (const std::uint32_t unit : units) add(unit);
    MadeSentencePieces made = strata_test::small_pieces();
    made.normalizer = strata_test::Message{}.text(3, strata_test::Message{}.text(2, table + texts).bytes).bytes;
    return made.bytes();
}

TEST(T5Tokenizer, CharactersBecomeWhatTheFileSays) {
    strata_test::TemporaryFolder folder;
    const std::filesystem::path file = folder.path() / "spiece.model";
    std::ofstream{file, std::ios::binary} << with_a_table();
    EXPECT_EQ(T5Tokenizer{file}.ids("\tcat\t\tdog s\t"), (Ids{cat, dog, space, s}));
    EXPECT_EQ(Small{}.tokenizer.ids("cat\tdog").at(1), unknown);  // without a table
    for (const auto& [length, texts] : std::vector<std::pair<std::uint32_t, std::string>>{{0, {" \0", 2}},
                                                                                          {6, {" \0", 2}},
                                                                                          {4096, {" \0", 2}},
                                                                                          {~0U - 3, {" \0", 2}},
                                                                                          {64 * 4, ""},
                                                                                          {64 * 4, " "}}) {
        std::ofstream{file, std::ios::binary} << with_a_table(length, texts);
        EXPECT_TRUE(thrown_by([&] { T5Tokenizer{file}; }).says("has a damaged table of characters")) << length;
    }
}

TEST(T5Tokenizer, ModelsOfOtherKindsAreRefused) {
    strata_test::TemporaryFolder folder;
    const std::filesystem::path file = folder.path() / "spiece.model";
    const auto refused = [&](const MadeSentencePieces& made) {
        std::ofstream{file, std::ios::binary} << made.bytes();
        return thrown_by([&] { T5Tokenizer{file}; });
    };
    const auto piece = [](const std::string& text, std::uint64_t type) {
        return strata_test::Message{}.text(1, strata_test::Message{}.text(1, text).number(3, type).bytes).bytes;
    };
    MadeSentencePieces made = strata_test::small_pieces();
    made.trainer = strata_test::Message{}.text(2, strata_test::Message{}.number(3, 2).bytes).bytes;
    EXPECT_TRUE(refused(made).says("is no unigram model"));
    made.trainer = strata_test::Message{}.text(2, strata_test::Message{}.number(35, 1).bytes).bytes;
    EXPECT_TRUE(refused(made).says("spells what is unknown in bytes"));
    made = strata_test::small_pieces();
    made.pieces.back() = piece("<0x41>", 6);
    EXPECT_TRUE(refused(made).says("piece 9 of a kind that T5 has not"));
    made.pieces.back() = piece("s", 1);
    EXPECT_TRUE(refused(made).says("piece 9 twice"));
    made.pieces.back() = piece("", 1);
    EXPECT_TRUE(refused(made).says("piece 9 is none"));
    made = strata_test::small_pieces();
    made.normalizer = strata_test::Message{}.text(3, strata_test::Message{}.number(5, 0).bytes).bytes;
    EXPECT_TRUE(refused(made).says("keeps spaces as they are"));
}

TEST(T5Tokenizer, EndsCutsAndPads) {
    const Small small{{4, false}};
    Tokens tokens = small.tokenizer.encode("cat dog");
    EXPECT_EQ(tokens.ids, (Ids{cat, dog, end_of_text, pad}));
    EXPECT_EQ(tokens.length, 3);
    EXPECT_EQ(tokens.cut, 0);
    tokens = small.tokenizer.encode("cat cat cat cat dog");
    EXPECT_EQ(tokens.ids, (Ids{cat, cat, cat, end_of_text}));
    EXPECT_EQ(tokens.length, 4);
    EXPECT_EQ(tokens.cut, 2);
    tokens = small.tokenizer.encode("");
    EXPECT_EQ(tokens.ids, (Ids{end_of_text, pad, pad, pad}));
    EXPECT_EQ(tokens.length, 1);
}

TEST(T5Tokenizer, MarksInATextAreTextOrTokens) {
    const Small text, marks{{512, true}};
    EXPECT_EQ(text.tokenizer.ids("cat</s>"), (Ids{cat, unknown, s, unknown}));
    EXPECT_EQ(marks.tokenizer.ids("cat</s>cat"), (Ids{cat, end_of_text, cat}));
    EXPECT_EQ(marks.tokenizer.ids("<pad><unk>"), (Ids{pad, unknown}));
    EXPECT_EQ(marks.tokenizer.ids("<extra_id_99> cat <extra_id_0>"), (Ids{extra_id_99, cat, extra_id_99 + 99}));
    for (const char* none :
         {"<extra_id_100>", "<extra_id_01>", "<extra_id_>", "<extra_id_+1>", "<extra_id_5", "<extra_id_-1>"})
        EXPECT_EQ(marks.tokenizer.ids(none), text.tokenizer.ids(none)) << none;
    EXPECT_NE(marks.tokenizer.id(), text.tokenizer.id());
}

TEST(T5Tokenizer, FilesThatCannotBeUsedAreNamed) {
    strata_test::TemporaryFolder folder;
    const std::filesystem::path file = folder.path() / "spiece.model";
    EXPECT_EQ(thrown_by([&] { T5Tokenizer{folder.path()}; }).code, strata::Errc::not_found);
    const auto refused = [&](const std::string& bytes) {
        std::ofstream{file, std::ios::binary} << bytes;
        const strata_test::Thrown thrown = thrown_by([&] { T5Tokenizer{file}; });
        EXPECT_EQ(thrown.code, strata::Errc::bad_tokenizer) << thrown.message;
        EXPECT_TRUE(thrown.says("spiece.model")) << thrown.message;
        return thrown;
    };
    EXPECT_TRUE(refused("").says("is no sentencepiece model"));
    EXPECT_TRUE(refused("version https://git-lfs.github.com/spec/v1\n").says("is no sentencepiece model"));
    const MadeSentencePieces made = strata_test::small_pieces();
    // Wherever it is cut, between two pieces too, which sentencepiece takes for a smaller model.
    const std::string whole = made.bytes();
    for (std::size_t length = 0; length < whole.size(); ++length) refused(whole.substr(0, length));
    // Without padding it is a model of something else.
    MadeSentencePieces other = made;
    other.pieces[0] = strata_test::Message{}.text(1, strata_test::Message{}.text(1, "other").bytes).bytes;
    EXPECT_TRUE(refused(other.bytes()).says("has no piece for padding"));

    strata::storage::write_file(file, whole);
    EXPECT_TRUE(thrown_by([&] { T5Tokenizer(file, {0, false}); }).says("max_length is 0"));
}

TEST(T5Tokenizer, MakesTheNumbersOfTheReference) {
    const std::filesystem::path folder = std::filesystem::path{STRATA_REFERENCE_DIR} / "data/tokenizers/t5";
    if (!std::filesystem::exists(folder / "golden.json"))
        GTEST_SKIP() << folder << " is not there: nothing to compare with";
    std::ifstream in{folder / "golden.json"};
    const nlohmann::json golden = nlohmann::json::parse(in);
    const T5Tokenizer tokenizer{folder / "spiece_rebuilt.model"};
    EXPECT_EQ(tokenizer.vocabulary_size(), golden.at("pieces").get<std::int64_t>() + 100);
    EXPECT_EQ(tokenizer.pad(), golden.at("pad").get<std::int64_t>());
    EXPECT_EQ(tokenizer.eos(), golden.at("eos").get<std::int64_t>());
    std::size_t compared = 0;
    for (const nlohmann::json& one : golden.at("cases")) {
        const auto text = one.at("text").get<std::string>();
        const Ids ids = one.at("ids").get<Ids>();
        const Tokens tokens = tokenizer.encode(text);
        if (tokens.cut == 0) {
            Ids padded = ids;
            padded.resize(512, 0);
            EXPECT_EQ(tokens.ids, padded) << text;
            EXPECT_EQ(tokens.length, static_cast<std::int64_t>(ids.size())) << text;
        }
        Ids alone = ids;
        alone.pop_back();
        EXPECT_EQ(tokenizer.ids(text), alone) << text;
        ++compared;
    }
    EXPECT_GE(compared, 100U);
}

}  // namespace
