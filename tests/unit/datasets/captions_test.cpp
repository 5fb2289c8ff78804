#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <strata/core/random.hpp>
#include <strata/datasets/captions.hpp>

namespace {

using namespace strata::core;
using namespace strata::datasets;
using strata::config::CaptionSeparator;
using strata::config::CaptionShuffle;
using strata::config::CaptionStrategy;
using strata::config::ImageDataset;
using Texts = std::vector<std::string>;

CaptionShuffle shuffle_of(std::int64_t count, std::int64_t position_start = 0, bool include_original = true,
                          CaptionSeparator split_on = CaptionSeparator::comma) {
    return {true, count, std::nullopt, split_on, position_start, include_original};
}

Texts orders(const std::string& caption, const CaptionShuffle& shuffle, std::uint64_t seed = 42) {
    const ShuffledCaption all{caption, shuffle, seed};
    Texts texts;
    for (std::int64_t i = 0; i < all.count(); ++i) texts.push_back(all.at(i));
    return texts;
}

TEST(Captions, EveryLineWithTextIsACaption) {
    const std::string text = "\xEF\xBB\xBF  A red car. \r\n\r\n \t\nA car on a street\nlast";
    EXPECT_EQ(captions_in_text(text), (Texts{"A red car.", "A car on a street", "last"}));
    EXPECT_EQ(captions_in_text(text, false), (Texts{"A red car.\nA car on a street\nlast"}));
    for (const bool split : {true, false}) {
        EXPECT_TRUE(captions_in_text("", split).empty());
        EXPECT_TRUE(captions_in_text(" \n\r\n", split).empty());
        EXPECT_EQ(captions_in_text("one", split), Texts{"one"});
    }
}

TEST(Captions, ShufflingKeepsTheTagsAndTheOnesInFront) {
    const std::string caption = "dog, running, park, sunny day";
    const Texts all = orders(caption, shuffle_of(2, 1));
    ASSERT_EQ(all.size(), 3U);
    EXPECT_EQ(all[0], caption);
    for (const std::string& order : all) {
        EXPECT_TRUE(order.starts_with("dog, ")) << order;
        for (const char* tag : {"running", "park", "sunny day"}) EXPECT_NE(order.find(tag), std::string::npos) << order;
        EXPECT_EQ(order.size(), caption.size());
    }
    EXPECT_EQ(orders(caption, shuffle_of(2, 0, false)).size(), 2U);
}

TEST(Captions, EveryOrderOfTheTagsComesUp) {
    std::map<std::string, int> seen;
    for (const std::string& order : orders("a, b, c, d", shuffle_of(1000, 1, false))) ++seen[order];
    EXPECT_EQ(seen.size(), 6U);
    for (const auto& [order, times] : seen) EXPECT_NEAR(times, 167, 5 * 12) << order;
}

TEST(Captions, CaptionsOfFewTagsStay) {
    for (const char* caption : {"dog", "dog, running", "", " , ,"})
        EXPECT_EQ(orders(caption, shuffle_of(5, 1, false)), Texts{caption});
    EXPECT_EQ(orders("a, b, c", CaptionShuffle{}), Texts{"a, b, c"});
}

TEST(Captions, TagsStandBetweenTheSeparatorThatWasAskedFor) {
    const auto of = [](CaptionSeparator separator, const std::string& caption) {
        Texts all = orders(caption, shuffle_of(200, 0, false, separator));
        return std::set<std::string>(all.begin(), all.end());
    };
    EXPECT_EQ(of(CaptionSeparator::comma, "b ,a,, "), (std::set<std::string>{"a, b", "b, a"}));
    EXPECT_EQ(of(CaptionSeparator::space, " one  two "), (std::set<std::string>{"one two", "two one"}));
    EXPECT_EQ(of(CaptionSeparator::period, "A dog. It runs."),
              (std::set<std::string>{"A dog. It runs.", "It runs. A dog."}));
    EXPECT_EQ(of(CaptionSeparator::period, "A. B"), (std::set<std::string>{"A. B", "B. A"}));
}

TEST(Captions, OrdersFollowFromSeedAndCaption) {
    const CaptionShuffle shuffle = shuffle_of(3);
    const std::string caption = "a, b, c, d, e, f, g, h";
    EXPECT_EQ(orders(caption, shuffle, 1), orders(caption, shuffle, 1));
    EXPECT_NE(orders(caption, shuffle, 1), orders(caption, shuffle, 2));
}

TEST(Captions, OneOfSeveralIsDrawnForEachVisit) {
    const CaptionRule rule{ImageDataset{}, 42};
    const Texts found{"one", "two", "three"};
    std::map<std::string, int> seen;
    for (std::uint64_t visit = 0; visit < 3000; ++visit) ++seen[rule.caption(found, combine({visit}))];
    EXPECT_EQ(seen.size(), 3U);
    for (const auto& [caption, times] : seen) EXPECT_NEAR(times, 1000, 5 * 26) << caption;
    EXPECT_EQ(rule.caption(found, 7), rule.caption(found, 7));
    EXPECT_EQ(rule.all(found), (Texts{"one", "three", "two"}));
}

TEST(Captions, ThePromptIsPutInFrontAndNeverShuffled) {
    ImageDataset dataset;
    dataset.instance_prompt = "sks, dog";
    dataset.prepend_instance_prompt = true;
    dataset.caption_shuffle = shuffle_of(20);
    dataset.caption_shuffle->seed = 5;
    const CaptionRule rule{dataset, 42};
    const Texts all = rule.all({"a, b"});
    EXPECT_EQ(all, (Texts{"sks, dog a, b", "sks, dog b, a"}));
    EXPECT_EQ(CaptionRule(dataset, 43).all({"a, b, c, d"}),
              rule.all({"a, b, c, d"}));  // the block has a seed of its own
    for (std::uint64_t visit = 0; visit < 50; ++visit)
        EXPECT_TRUE(std::binary_search(all.begin(), all.end(), rule.caption({"a, b"}, combine({visit}))));

    dataset.caption_strategy = CaptionStrategy::instanceprompt;
    dataset.caption_shuffle.reset();
    EXPECT_EQ(CaptionRule(dataset, 42).all({"sks, dog"}), Texts{"sks, dog"});
}

TEST(Captions, OnlyThePromptIsTheOneCaption) {
    ImageDataset dataset;
    dataset.instance_prompt = "a, b, c";
    dataset.only_instance_prompt = true;
    dataset.caption_shuffle = shuffle_of(20);
    const CaptionRule rule{dataset, 42};
    EXPECT_EQ(rule.all({"one", "two"}), Texts{"a, b, c"});
    EXPECT_EQ(rule.caption({"one", "two"}, 99), "a, b, c");
}

}  // namespace
