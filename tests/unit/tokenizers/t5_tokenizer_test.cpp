// T5Tokenizer: sentencepiece's cuts, T5's marks and numbers, and files that cannot be used.

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <strata/storage/atomic_file.hpp>
#include <strata/tokenizers/t5_tokenizer.hpp>

#include "support/made_tokenizers.hpp"
#include "support/temporary_folder.hpp"

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
    std::string short_of_one = whole;
    short_of_one.erase(0, made.pieces.front().size());
    EXPECT_TRUE(refused(short_of_one).says("of 10 pieces, and has 9"));
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
