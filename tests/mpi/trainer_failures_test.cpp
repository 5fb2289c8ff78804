// How a job ends whose ranks cannot end together: at once, with the line of the rank that failed, and with its checkpoints whole.

#include <filesystem>
#include <string>

#include <unistd.h>

#include <gtest/gtest.h>

#include "run_job.hpp"

namespace {

namespace fs = std::filesystem;

struct TrainerFailures : testing::Test {
    fs::path folder = fs::path{testing::TempDir()} / ("strata_failures_" + std::to_string(::getpid()));
    void TearDown() override { fs::remove_all(folder); }
    strata_test::Outcome run(const std::string& what) const {
        return strata_test::run_job(STRATA_TRAINER_JOB, 2, what + " --output " + folder.string());
    }
    void expect_words(const strata_test::Outcome& outcome, const std::string& words) const {
        EXPECT_NE(outcome.text.find(words), std::string::npos) << words << " in:\n" << outcome.text;
    }
};

TEST_F(TrainerFailures, AModelThatThrowsInACollectiveForwardPassEndsTheJobAndSaysWhatIsLost) {
    const auto outcome = run("forward");
    EXPECT_EQ(outcome.status, 1) << outcome.text;
    expect_words(
        outcome,
        "rank 1/2: [ST2503] step 3 on rank 1 failed: one row is no batch; step 2 could not be saved (the ranks "
        "are not at the same place any more), and there is no checkpoint");
}

TEST_F(TrainerFailures, ASourceThatThrowsOnOneRankIsSaidByAll) {
    const auto outcome = run("next");
    EXPECT_EQ(outcome.status, 1) << outcome.text;
    expect_words(outcome, "rank 0/2: [ST2503] step 3 on rank 1 failed: no more rows; step 2 is saved in ");
}

TEST_F(TrainerFailures, ARefusalInTheFirstStepLeavesNothing) {
    const auto outcome = run("refused");
    EXPECT_EQ(outcome.status, 2) << outcome.text;
    expect_words(outcome, "[ST2007] no right to read rows; no step was done before, so nothing is lost");
    EXPECT_FALSE(fs::exists(folder)) << "a log without a line and a folder without a checkpoint are no results";
}

TEST_F(TrainerFailures, ARankThatIsKilledLeavesTheLastCheckpointWhole) {
    const auto outcome = run("killed");
    EXPECT_NE(outcome.status, 0) << outcome.text;
    EXPECT_TRUE(fs::exists(folder / "checkpoints/step_00000002/manifest.json")) << outcome.text;
    const auto again = run("none");
    EXPECT_EQ(again.status, 0) << again.text;
    expect_words(again, "resuming from " + (folder / "checkpoints/step_00000002").string());
    EXPECT_FALSE(fs::exists(folder / "checkpoints/.reserve")) << "what the killed run left is removed";
}

}  // namespace
