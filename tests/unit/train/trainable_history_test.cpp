// What a run's checkpoints say about parameters that were trained for a while.

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <strata/checkpoint/manifest.hpp>
#include <strata/train/trainable_history.hpp>

namespace {

using strata::checkpoint::Manifest;
using strata::train::TrainableHistory;
using strata::zero::ParameterInfo;
using Names = std::vector<std::string>;

std::vector<ParameterInfo> layout(const Names& names) {
    std::vector<ParameterInfo> parameters;
    for (const std::string& name : names) parameters.push_back({name, {1}, 0});
    return parameters;
}
Manifest described(const TrainableHistory& history) {
    Manifest manifest;
    history.describe(manifest);
    return manifest;
}

TEST(TrainableHistory, SaysNothingOfARunThatChangedNothing) {
    TrainableHistory history{layout({"a", "b"})};
    history.chosen(3, layout({"b", "a"}));
    EXPECT_TRUE(described(history).began_with.empty() && described(history).settled.empty());
}

TEST(TrainableHistory, NamesWhatWasTrainedAndIsNot) {
    TrainableHistory history{layout({"a", "b"})};
    history.chosen(0, layout({"b"}));
    history.chosen(4, layout({"c"}));
    EXPECT_EQ(described(history).began_with, (Names{"a", "b"}));
    EXPECT_EQ(described(history).settled, (Names{"a", "b"}));
    history.chosen(8, layout({"a"}));
    EXPECT_EQ(described(history).settled, (Names{"b", "c"}));
    history.chosen(9, layout({"a", "b", "c"}));
    EXPECT_TRUE(described(history).settled.empty());
    EXPECT_EQ(described(history).began_with, (Names{"a", "b"}));
}

TEST(TrainableHistory, GoesOnFromACheckpoint) {
    TrainableHistory history{layout({"a", "b"})};
    Manifest found;
    found.parameters = layout({"c"});
    found.began_with = {"a", "b"};
    found.settled = {"a"};
    history.resumed(found);
    EXPECT_EQ(described(history).began_with, (Names{"a", "b"}));
    EXPECT_EQ(described(history).settled, (Names{"a"}));
    history.chosen(7, layout({"b"}));
    EXPECT_EQ(described(history).settled, (Names{"a", "c"}));
}

TEST(TrainableHistory, KnowsWhatTheProgramChoseAfterACheckpoint) {
    TrainableHistory history{layout({"a", "b"})};
    EXPECT_FALSE(history.was_chosen_since(0)) << "nothing was chosen yet";
    history.chosen(4, layout({"b"}));
    EXPECT_TRUE(history.was_chosen_since(3) && history.was_chosen_since(4));
    EXPECT_FALSE(history.was_chosen_since(5)) << "of a later phase, of an earlier start of the program";
    EXPECT_TRUE(history.is_chosen("b"));
    EXPECT_FALSE(history.is_chosen("a"));
}

}  // namespace
