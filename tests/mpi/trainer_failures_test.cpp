// How a job ends whose ranks cannot end together: at once, with the line of the rank that failed, and with its checkpoints whole.

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>

#include <unistd.h>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <strata/core/host_name.hpp>

#include "run_job.hpp"

namespace {

namespace fs = std::filesystem;

struct TrainerFailures : testing::Test {
    fs::path folder = fs::path{testing::TempDir()} / ("strata_failures_" + std::to_string(::getpid()));
    void TearDown() override { fs::remove_all(folder); }
    strata_test::Outcome run(const std::string& what) const { return run_in(folder, what); }
    static strata_test::Outcome run_in(const fs::path& output, const std::string& what) {
        return strata_test::run_job(STRATA_TRAINER_JOB, 2, what + " --output " + output.string());
    }
    /// Of every step the loss, to its last bit; of a step that was done again all of them.
    static std::map<std::int64_t, std::set<double>> losses_in(const fs::path& output) {
        std::map<std::int64_t, std::set<double>> losses;
        std::ifstream in{output / "metrics.jsonl"};
        for (std::string line; std::getline(in, line);) {
            const auto step = nlohmann::json::parse(line);
            if (step.contains("loss")) losses[step.at("step")].insert(step.at("loss").get<double>());
        }
        return losses;
    }
    void expect_words(const strata_test::Outcome& outcome, const std::string& words) const {
        EXPECT_NE(outcome.text.find(words), std::string::npos) << words << " in:\n" << outcome.text;
    }
};

TEST_F(TrainerFailures, AModelThatThrowsInACollectiveForwardPassEndsTheJobAndSaysWhatIsLost) {
    const auto outcome = run("forward");
    EXPECT_EQ(outcome.status, 1) << outcome.text;
    expect_words(outcome,
                 "rank 1/2 on " + strata::core::host_name() +
                     ": [ST2503] step 3 on rank 1 failed: one row is no batch; step 2 could not be saved (the ranks "
                     "are not at the same place any more), and there is no checkpoint");
}

TEST_F(TrainerFailures, ASourceThatThrowsOnOneRankIsSaidByAll) {
    const auto outcome = run("next");
    EXPECT_EQ(outcome.status, 1) << outcome.text;
    expect_words(outcome, "rank 0/2 on " + strata::core::host_name() +
                              ": [ST2503] step 3 on rank 1 failed: no more rows; step 2 is saved in ");
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

TEST_F(TrainerFailures, WhatIsLearntBehindAnInterruptionIsWhatIsLearntWithoutOne) {
    const auto plain = run_in(folder / "plain", "none");
    ASSERT_EQ(plain.status, 0) << plain.text;
    const auto undisturbed = losses_in(folder / "plain");
    ASSERT_EQ(undisturbed.size(), 8U);
    for (const std::string what : {"killed", "faulty-stop", "cuda"}) {
        EXPECT_NE(run_in(folder / what, what).status, 0) << what;
        const auto again = run_in(folder / what, "none");
        EXPECT_EQ(again.status, 0) << what << again.text;
        expect_words(again, "resuming from " + (folder / what / "checkpoints/step_").string());
        EXPECT_EQ(losses_in(folder / what), undisturbed) << what;
    }
}

// ---- health ---------------------------------------------------------------------------------------------------------

TEST_F(TrainerFailures, AFaultOfOneGpusMemoryEndsTheJobWithItsOwnStatusAtTheCheckpointOfBefore) {
    const auto outcome = run("faulty-stop");
    EXPECT_EQ(outcome.status, 69) << outcome.text;
    expect_words(outcome, "rank 1: fault: rank 1/2 on ");
    expect_words(outcome, "rank 0/2 on " + strata::core::host_name() + ": [ST2801] rank 1/2 on ");
    expect_words(outcome, "GPU 0 (NVIDIA H100): the GPU's memory had 12 uncorrectable errors in this run");
    expect_words(outcome, "step 4 is not saved, because a fault may have spoilt it (rank 1/2 on ");
    const std::string before = (folder / "checkpoints/step_00000003").string();
    expect_words(outcome, "the next start goes on from " + before + " and does 1 step again");
    EXPECT_TRUE(fs::exists(folder / "checkpoints/step_00000003/manifest.json")) << outcome.text;
    EXPECT_FALSE(fs::exists(folder / "checkpoints/step_00000004")) << "all ranks were told at the end of that step";
    const auto again = run("none");
    EXPECT_EQ(again.status, 0) << again.text;
    expect_words(again, "resuming from " + before);
}

TEST_F(TrainerFailures, AStepThatAFaultMayHaveSpoiltIsSavedWhereThereIsNothingElse) {
    const auto outcome = run("early-stop");
    EXPECT_EQ(outcome.status, 69) << outcome.text;
    expect_words(outcome, "step 1 is saved, although a fault may have spoilt it (rank 1/2 on ");
    expect_words(outcome, "there is no checkpoint of before it");
    EXPECT_TRUE(fs::exists(folder / "checkpoints/step_00000001/manifest.json")) << outcome.text;
}

TEST_F(TrainerFailures, ARunThatAFaultMayHaveSpoiltInItsLastStepIsNotComplete) {
    const auto outcome = run("late-stop");
    EXPECT_EQ(outcome.status, 69) << outcome.text;
    expect_words(outcome, "step 8 is not saved, because a fault may have spoilt it (rank 1/2 on ");
    EXPECT_TRUE(fs::exists(folder / "checkpoints/step_00000007/manifest.json")) << outcome.text;
    EXPECT_FALSE(fs::exists(folder / "checkpoints/step_00000008"));
    EXPECT_FALSE(fs::exists(folder / "model.safetensors")) << "weights of a run that is not complete";
    const auto again = run("none");
    EXPECT_EQ(again.status, 0) << again.text;
    expect_words(again, "resuming from " + (folder / "checkpoints/step_00000007").string());
}

TEST_F(TrainerFailures, AHostThatIsDrainedIsToldFromOneThatFailed) {
    const auto outcome = run("faulty-drain");
    EXPECT_EQ(outcome.status, 70) << outcome.text;
    expect_words(outcome, "[ST2801] rank 1/2 on ");
    expect_words(outcome, "(power brake): the run saves and ends. Fix: ");
    expect_words(outcome, "asked to stop: saving step 4");
    EXPECT_TRUE(fs::exists(folder / "checkpoints/step_00000004/manifest.json")) << outcome.text;
}

TEST_F(TrainerFailures, AFaultIsAWarningWhereThatIsAskedFor) {
    const auto outcome = run("faulty-warn");
    EXPECT_EQ(outcome.status, 0) << outcome.text;
    expect_words(outcome, "rank 1: warning: rank 1/2 on ");
    EXPECT_TRUE(fs::exists(folder / "checkpoints/step_00000008/manifest.json")) << outcome.text;
}

TEST_F(TrainerFailures, AGpuWhoseCallsFailIsAFaultOfItsRank) {
    const auto outcome = run("cuda");
    EXPECT_EQ(outcome.status, 69) << outcome.text;
    expect_words(outcome, "rank 0/2 on " + strata::core::host_name() +
                              ": [ST2801] rank 1's calls to its GPU fail: step 3 on rank 1 failed: CUDA error");
    EXPECT_TRUE(fs::exists(folder / "checkpoints/step_00000002/manifest.json")) << outcome.text;
}

TEST_F(TrainerFailures, WordsOfCudaAreNoFaultOfAGpuThatHasNoPartInThem) {
    const auto without = run("no-gpu");
    EXPECT_EQ(without.status, 1) << without.text;
    expect_words(without,
                 "rank 0/2 on " + strata::core::host_name() + ": [ST2503] step 3 on rank 1 failed: CUDA error");
    const auto path = run("words");
    EXPECT_EQ(path.status, 1) << path.text;
    expect_words(path, "rank 1 cannot read '/runs/cuda error: 7/rows'");
    EXPECT_EQ(path.text.find("[ST2801]"), std::string::npos) << path.text;
}

TEST_F(TrainerFailures, TheRankWhoseGpuFailsIsNamedAndNotTheOneThatNcclTellsOfIt) {
    const auto outcome = run("nccl");
    EXPECT_EQ(outcome.status, 69) << outcome.text;
    expect_words(outcome, "rank 1/2 on " + strata::core::host_name() + ": [ST2801] rank 1/2 on ");
    expect_words(outcome, "calls to the GPU fail: cudaStreamQuery failed on GPU 0 of rank 1");
    EXPECT_EQ(outcome.text.find("remote process exited"), std::string::npos) << outcome.text;
}

TEST_F(TrainerFailures, TheDisksOfOutputAndOffloadedStateAreWatched) {
    const auto outcome = run("disks");
    EXPECT_EQ(outcome.status, 0) << outcome.text;
    expect_words(outcome, "watches " + folder.parent_path().string() + "\n");  // the output directory is to be made yet
    expect_words(outcome, "watches /usr\n");
}

}  // namespace
