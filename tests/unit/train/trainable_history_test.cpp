// What a run's checkpoints say about parameters that were trained for a while.

#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <strata/checkpoint/manifest.hpp>
#include <strata/train/trainable_history.hpp>

namespace {

using strata::checkpoint::Manifest;
using strata::train::ChosenWhile;
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

Manifest of_step(std::int64_t step) {
    Manifest found;
    found.step = step;
    return found;
}
using Chosen = TrainableHistory::Names;

TEST(TrainableHistory, AChoiceHoldsBehindItsStepWheneverThatIsDone) {
    TrainableHistory history{layout({"a", "b"})};
    history.chosen(0, layout({"a"}));
    history.chosen(4, layout({"b"}));
    history.resumed(of_step(3));
    EXPECT_EQ(history.choice_after(3), nullptr) << "a step too early";
    ASSERT_NE(history.choice_after(4), nullptr);
    EXPECT_EQ(*history.choice_after(4), Chosen{"b"});
    EXPECT_EQ(history.choice_after(5), nullptr) << "of a later phase, of an earlier start of the program";
    history.chosen(4, layout({"a"}));
    EXPECT_EQ(*history.choice_after(4), Chosen{"a"}) << "the last one counts";
}

TEST(TrainableHistory, AnActionMakesItsChoiceAgainByItself) {
    TrainableHistory history{layout({"a", "b"})};
    history.chosen(4, layout({"b"}), ChosenWhile::in_a_step);
    EXPECT_EQ(described(history).settled, Names{"a"});
    EXPECT_EQ(history.choice_after(4), nullptr);
}

TEST(TrainableHistory, AfterAFailureAChoiceHoldsFromWhereTheRunResumes) {
    TrainableHistory history{layout({"a", "b"})};
    history.chosen(2, layout({"b"}));
    history.chosen(4, layout({"a", "b"}));
    history.chosen(6, layout({"a"}), ChosenWhile::after_failure);
    history.resumed(of_step(3));
    ASSERT_NE(history.choice_after(3), nullptr);
    EXPECT_EQ(*history.choice_after(3), Chosen{"a"});
    EXPECT_EQ(history.choice_after(4), nullptr) << "was made before it";
    EXPECT_NE(history.choice_after(2), nullptr);
    history.resumed(of_step(1));
    EXPECT_EQ(*history.choice_after(3), Chosen{"a"}) << "moves once";

    TrainableHistory unsaved{layout({"a", "b"})};
    unsaved.chosen(5, layout({"b"}), ChosenWhile::after_failure);  // and the run went on from step 5
    unsaved.resumed(of_step(8));
    EXPECT_EQ(unsaved.choice_after(8), nullptr) << "a checkpoint of a later step knows better";
}

}  // namespace
