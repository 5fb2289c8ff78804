// HashedText: the same numbers on every machine, and vectors that reflect words.

#include <string>

#include <gtest/gtest.h>

#include <torch/torch.h>

#include <strata/models/encoders.hpp>
#include <strata/models/hashed_text.hpp>

namespace {

using strata::models::HashedText;
static_assert(strata::models::TextEncoder<HashedText>);

double cosine(const at::Tensor& a, const at::Tensor& b) { return (a.dot(b) / (a.norm() * b.norm())).item<double>(); }

TEST(HashedText, NumbersAreTheSameOnEveryMachine) {
    const auto embedding = HashedText{}.encode("A red apple.");
    std::string signs;
    for (std::int64_t i = 0; i < 32; ++i) signs.push_back(embedding.tokens[1][i].item<float>() > 0 ? '+' : '-');
    EXPECT_EQ(signs, "+++---+-+-++++-+-++----++++-++--");
    EXPECT_FLOAT_EQ(embedding.tokens[0][0].item<float>(), -1.0f);
    EXPECT_FLOAT_EQ(embedding.tokens[2][127].item<float>(), -1.0565411f);
    EXPECT_FLOAT_EQ(embedding.pooled[0].item<float>(), -0.51121718f);
    EXPECT_FLOAT_EQ(embedding.pooled[100].item<float>(), -0.51121718f);
}

TEST(HashedText, ShapesAreFixedAndTheEmptyCaptionIsZero) {
    const HashedText text;
    for (const char* caption : {"", "...", "one", "one two three four five six seven eight nine ten"}) {
        const auto embedding = text.encode(caption);
        EXPECT_EQ(embedding.tokens.sizes(), (at::IntArrayRef{HashedText::tokens, HashedText::width}));
        EXPECT_EQ(embedding.pooled.sizes(), (at::IntArrayRef{HashedText::width}));
    }
    EXPECT_EQ(text.encode("").pooled.abs().max().item<float>(), 0.0f);
    EXPECT_EQ(text.encode("...").tokens.abs().max().item<float>(), 0.0f);
}

TEST(HashedText, EveryWordHasItsTokenAndAUnitSize) {
    const auto embedding = HashedText{}.encode("a red apple");
    for (std::int64_t i = 0; i < 3; ++i) EXPECT_NEAR(embedding.tokens[i].square().mean().item<double>(), 1.0, 1e-5);
    EXPECT_EQ(embedding.tokens[3].abs().max().item<float>(), 0.0f);
    EXPECT_NEAR(embedding.pooled.square().mean().item<double>(), 1.0, 1e-5);
}

TEST(HashedText, CaseAndPunctuationDoNotMatterAndAccentsDo) {
    const HashedText text;
    EXPECT_TRUE(at::equal(text.encode("A Red, apple!").pooled, text.encode("a red apple").pooled));
    EXPECT_FALSE(at::equal(text.encode("p\xc3\xa8re").pooled, text.encode("pere").pooled));
    EXPECT_NO_THROW((void)text.encode("\xff\xfe broken \xc3"));
}

TEST(HashedText, SimilarWordsAreCloserThanOthers) {
    const HashedText text;
    const auto token = [&](const char* word) { return text.encode(word).tokens[0]; };
    EXPECT_GT(cosine(token("apples"), token("apple")), 0.3);
    EXPECT_LT(cosine(token("apples"), token("church")), 0.3);
    EXPECT_GT(cosine(text.encode("a red apple").pooled, text.encode("a green apple").pooled), 0.3);
    EXPECT_LT(cosine(text.encode("a red apple").pooled, text.encode("the full moon").pooled), 0.3);
}

TEST(HashedText, WordOrderReachesThePooledVector) {
    const HashedText text;
    EXPECT_FALSE(at::allclose(text.encode("cat on mat").pooled, text.encode("mat on cat").pooled));
}

TEST(HashedText, WordsBeyondTheTokensStillReachThePooledVector) {
    const HashedText text;
    const auto short_one = text.encode("one two three four five six seven eight");
    const auto long_one = text.encode("one two three four five six seven eight nine");
    EXPECT_TRUE(at::equal(short_one.tokens, long_one.tokens));
    EXPECT_FALSE(at::equal(short_one.pooled, long_one.pooled));
}

}  // namespace
