// What metrics.jsonl keeps, and what a resumed run drops from it.

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

#include <strata/train/metrics.hpp>

namespace {

using strata::train::MetricsLog;
using strata::train::StepMetrics;

struct Metrics : testing::Test {
    std::filesystem::path folder = std::filesystem::path{testing::TempDir()} / "strata_metrics_test";
    std::filesystem::path file = folder / "metrics.jsonl";
    void SetUp() override {
        std::filesystem::remove_all(folder);
        std::filesystem::create_directories(folder);
    }
    void TearDown() override { std::filesystem::remove_all(folder); }
};

StepMetrics step(std::int64_t number, double loss) {
    return {.step = number, .loss = loss, .learning_rate = 1e-3, .grad_norm = 0.5, .samples_per_second = 10, .seconds = 1, .epoch = 0.25};
}

TEST_F(Metrics, ALossComesBackWithEveryBit) {
    const double loss = 0.1 + 0.2;
    MetricsLog{file, 0}.append(step(1, loss));
    ASSERT_EQ(strata::train::read_metrics(file).size(), 1U);
    EXPECT_EQ(strata::train::read_metrics(file)[0].loss, loss);
}

TEST_F(Metrics, AResumedRunDropsTheStepsAfterItsCheckpoint) {
    {
        MetricsLog log{file, 0};
        for (int i = 1; i <= 5; ++i) log.append(step(i, i));
    }
    MetricsLog log{file, 3};
    EXPECT_EQ(log.history().size(), 3U);
    log.append(step(4, 40));
    const auto steps = strata::train::read_metrics(file);
    ASSERT_EQ(steps.size(), 4U);
    EXPECT_EQ(steps[3].step, 4);
    EXPECT_EQ(steps[3].loss, 40);
}

TEST_F(Metrics, AFreshRunStartsAnEmptyFile) {
    MetricsLog{file, 0}.append(step(1, 1));
    const MetricsLog log{file, 0};
    EXPECT_TRUE(strata::train::read_metrics(file).empty());
}

TEST_F(Metrics, AnUnfinishedLastLineIsLeftOut) {
    {
        MetricsLog log{file, 0};
        log.append(step(1, 1));
        log.append(step(2, 2));
    }
    std::filesystem::resize_file(file, std::filesystem::file_size(file) - 9);
    MetricsLog log{file, 2};
    ASSERT_EQ(log.history().size(), 1U);
    log.append(step(2, 7));
    const auto steps = strata::train::read_metrics(file);
    ASSERT_EQ(steps.size(), 2U);
    EXPECT_EQ(steps[1].loss, 7);
}

TEST_F(Metrics, LinesThatAreNoneOfOursAreLeftOut) {
    MetricsLog{file, 0}.append(step(1, 1));
    std::ofstream{file, std::ios::app} << "{\"step\":\"x\"}\n{\"step\":2,\"loss\":null}\n[]\nnonsense\n";
    EXPECT_EQ(strata::train::read_metrics(file).size(), 1U);
}

}  // namespace
