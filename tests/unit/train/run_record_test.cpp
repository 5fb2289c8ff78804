#include <strata/train/run_record.hpp>

#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <strata/comm/self_comm.hpp>

#include "../../support/temporary_folder.hpp"

namespace {

using namespace strata;
namespace fs = std::filesystem;

struct RunRecord : testing::Test {
    strata_test::TemporaryFolder folder;
    fs::path root = folder.path();
    comm::SelfComm comm;
    train::RunPlan plan{.samples_per_micro_batch = 8, .gradient_accumulation_steps = 2, .micro_batches_per_epoch = 10};
    std::vector<std::string> said;
    train::RunRecord::Say say = [this](const std::string& line) { said.push_back(line); };
};

TEST_F(RunRecord, WhatFollowsFromPlanAndTimeIsFilledIn) {
    train::RunRecord record;
    record.open(comm, root, 0, say);
    record.begin();
    train::StepMetrics first{.step = 1, .loss = 0.5}, second{.step = 2, .loss = 0.4};
    record.complete(first, 4.0, plan);
    record.append(first);
    EXPECT_EQ(first.epoch, 0.2);
    EXPECT_EQ(first.samples_per_second, 4.0) << "16 samples";
    EXPECT_EQ(first.data_wait, 0);
    record.wait(0.25);
    record.skip();
    record.wait(0.5);
    record.skip();
    record.wait(0.125);
    record.complete(second, 6.0, plan, 4);
    EXPECT_EQ(second.data_wait, 0.875) << "that of tries that changed nothing included";
    EXPECT_EQ(second.skipped, 2);
    EXPECT_EQ(second.samples_per_second, 2.0) << "of a data set with a batch of its own";
    EXPECT_EQ(record.last().step, 2);
    EXPECT_EQ(record.last().loss, 0.4);
}

TEST_F(RunRecord, ARunThatGoesOnAddsItsTimeToThatOfTheRunBefore) {
    train::StepMetrics first{.step = 1};
    {
        train::RunRecord record;
        record.open(comm, root, 0, say);
        record.begin();
        record.complete(first, 4.0, plan);
        record.append(first);
    }
    train::RunRecord record;
    record.open(comm, root, 1, say);
    record.begin();
    EXPECT_EQ(record.last().step, 1);
    train::StepMetrics second{.step = 2};
    record.complete(second, 1.0, plan);
    EXPECT_EQ(second.seconds, 5.0);
    EXPECT_TRUE(said.empty());
}

TEST_F(RunRecord, ClearingLeavesWhatIsNotOfARun) {
    fs::create_directories(root / "checkpoints/step_00000001");
    fs::create_directories(root / "index");
    train::RunRecord::clear(root);
    EXPECT_FALSE(fs::exists(root / "checkpoints"));
    EXPECT_TRUE(fs::exists(root / "index"));
}

}  // namespace
