// What metrics.jsonl keeps, and what a resumed run sets aside from it.

#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include <sys/resource.h>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <strata/core/error.hpp>
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

    void write(const std::string& text) const { std::ofstream{file, std::ios::binary | std::ios::trunc} << text; }
    [[nodiscard]] std::filesystem::path aside(int number) const {
        return file.string() + ".kept-" + std::to_string(number);
    }
    [[nodiscard]] auto files() const {
        return std::distance(std::filesystem::directory_iterator{folder}, std::filesystem::directory_iterator{});
    }
};

using Lines = std::vector<std::string>;

std::string text_of(const std::filesystem::path& file) {
    std::ifstream in{file, std::ios::binary};
    return {std::istreambuf_iterator<char>{in}, {}};
}

/// A line that this version would not write so.
std::string line(int step, const std::string& loss = "0.5") {
    return "{\"step\": " + std::to_string(step) + ", \"loss\": " + loss + "}\n";
}

StepMetrics step(std::int64_t number, double loss) {
    return {.step = number,
            .loss = loss,
            .learning_rate = 1e-3,
            .grad_norm = 0.5,
            .samples_per_second = 10,
            .seconds = 1,
            .epoch = 0.25};
}

TEST_F(Metrics, ALossComesBackWithEveryBit) {
    const double loss = 0.1 + 0.2;
    MetricsLog{file, 0}.append(step(1, loss));
    ASSERT_EQ(strata::train::read_metrics(file).size(), 1U);
    EXPECT_EQ(strata::train::read_metrics(file)[0].loss, loss);
}

TEST_F(Metrics, TheWaitForDataComesBackAndIsUnknownInOlderLines) {
    StepMetrics second = step(2, 0.5);
    second.data_wait = 0.125;
    write(line(1));
    MetricsLog{file, 1}.append(second);
    const auto steps = strata::train::read_metrics(file);
    ASSERT_EQ(steps.size(), 2U);
    EXPECT_TRUE(std::isnan(steps[0].data_wait));
    EXPECT_EQ(steps[1].data_wait, 0.125);
    EXPECT_NE(text_of(file).find("\"data_wait\":0.125,"), std::string::npos);
}

TEST_F(Metrics, TriesThatWereSkippedAreInTheLineOfTheirStepOnly) {
    {
        MetricsLog log{file, 0};
        log.append(step(1, 0.5));
        StepMetrics second = step(2, 0.4);
        second.skipped = 3;
        log.append(second);
    }
    const auto read = strata::train::read_metrics(file);
    ASSERT_EQ(read.size(), 2U);
    EXPECT_EQ(read[0].skipped, 0);
    EXPECT_EQ(read[1].skipped, 3);
    std::ifstream in{file};
    std::string first, other;
    std::getline(in, first);
    std::getline(in, other);
    EXPECT_EQ(first.find("skipped"), std::string::npos) << "lines of runs without any are as they were";
    EXPECT_NE(other.find(",\"skipped\":3}"), std::string::npos) << other;
}

TEST_F(Metrics, AResumedRunLeavesOutTheStepsAfterItsCheckpoint) {
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

TEST_F(Metrics, AnUnfinishedLastLineIsLeftOutAndKeptWithAQuietWord) {
    {
        MetricsLog log{file, 0};
        log.append(step(1, 1));
        log.append(step(2, 2));
    }
    std::filesystem::resize_file(file, std::filesystem::file_size(file) - 9);
    const std::string cut_off = text_of(file).substr(text_of(file).find('\n') + 1);
    MetricsLog log{file, 1};
    ASSERT_EQ(log.history().size(), 1U);
    EXPECT_EQ(
        log.notes(),
        Lines{"metrics.jsonl: set aside in metrics.jsonl.kept-1: its last line, which was cut off as a kill does"});
    EXPECT_EQ(text_of(aside(1)), cut_off + "\n");
    log.append(step(2, 7));
    const auto steps = strata::train::read_metrics(file);
    ASSERT_EQ(steps.size(), 2U);
    EXPECT_EQ(steps[1].loss, 7);
}

TEST_F(Metrics, ALogThatIsWellIsNotWrittenAnew) {
    write(line(1) + line(2));
    const auto before = std::filesystem::last_write_time(file) - std::chrono::hours{1};
    std::filesystem::last_write_time(file, before);
    const MetricsLog log{file, 2};
    EXPECT_EQ(std::filesystem::last_write_time(file), before);
    EXPECT_EQ(log.notes(), Lines{});
    EXPECT_EQ(files(), 1);
}

TEST_F(Metrics, WhatCannotBeReadIsKeptUnderAnotherNameAndSaid) {
    const std::string strange = std::string{"nonsense\xff\n{\"step\":\"x\"}\n[]\n{\"step\":2.5}\n"} +
                                std::string(5, '\0') + "\n{\"step\":3,\"loss\":\"?\"}\n";
    write(line(1) + strange + line(2));
    const MetricsLog log{file, 2};
    EXPECT_EQ(text_of(file), line(1) + line(2));
    EXPECT_EQ(text_of(aside(1)), strange);
    EXPECT_EQ(
        log.notes(),
        Lines{"metrics.jsonl: set aside in metrics.jsonl.kept-1: 6 lines that cannot be read (the first is line 2)"});
    EXPECT_EQ(log.history().size(), 2U);
}

TEST_F(Metrics, WhatWasSetAsideBeforeIsNeverOverwritten) {
    write(line(1) + "one\n");
    MetricsLog{file, 1};
    std::ofstream{file, std::ios::app} << "two\n";
    std::filesystem::create_symlink(folder / "nowhere", aside(2));
    const MetricsLog log{file, 1};
    EXPECT_EQ(text_of(aside(1)), "one\n");
    EXPECT_EQ(text_of(aside(3)), "two\n");
    EXPECT_TRUE(std::filesystem::is_symlink(aside(2)));
    EXPECT_EQ(log.notes(),
              Lines{"metrics.jsonl: set aside in metrics.jsonl.kept-3: 1 line that cannot be read (line 2)"});
}

TEST_F(Metrics, StepsThatAreDoneAgainAreKeptAside) {
    write(line(1) + line(2) + line(3) + line(4));
    const MetricsLog log{file, 2};
    EXPECT_EQ(text_of(file), line(1) + line(2));
    EXPECT_EQ(text_of(aside(1)), line(3) + line(4));
    EXPECT_EQ(log.notes(),
              Lines{"metrics.jsonl: set aside in metrics.jsonl.kept-1: 2 lines of steps 3 to 4, to be done again"});
}

TEST_F(Metrics, OfAStepThatComesTwiceTheLaterLineCounts) {
    write(line(1) + line(2, "2") + line(3, "3") + line(2, "20") + line(3, "30"));
    const MetricsLog log{file, 3};
    EXPECT_EQ(text_of(file), line(1) + line(2, "20") + line(3, "30"));
    EXPECT_EQ(text_of(aside(1)), line(2, "2") + line(3, "3"));
    EXPECT_EQ(
        log.notes(),
        Lines{"metrics.jsonl: set aside in metrics.jsonl.kept-1: 2 lines of steps 2 to 3 that a later line replaces"});
    ASSERT_EQ(log.history().size(), 3U);
    EXPECT_EQ(log.history()[1].loss, 20);
}

TEST_F(Metrics, EverythingThatIsWrongIsOneSentence) {
    write(line(1, "inf") + "what\n" + line(2) + line(2) + line(4) + line(7) + line(9) + "{\"st");
    const MetricsLog log{file, 4};
    EXPECT_EQ(text_of(file), line(1, "null") + line(2) + line(4));
    EXPECT_EQ(text_of(aside(1)), line(1, "inf") + "what\n" + line(2) + line(7) + line(9) + "{\"st\n")
        << "in their order";
    EXPECT_EQ(
        log.notes(),
        (Lines{
            "metrics.jsonl: set aside in metrics.jsonl.kept-1: 1 line that cannot be read (line 2), 1 line of step 2 that a "
            "later line replaces, 1 line as it was with inf or nan, which is no JSON (null now), 2 lines of steps 7 and 9, "
            "to be done again and its last line, which was cut off as a kill does",
            "metrics.jsonl lacks step 3: 1 of 4 steps so far"}));
}

TEST_F(Metrics, LinesOutOfOrderArePutInOrder) {
    write(line(3) + line(1) + line(2));
    const MetricsLog log{file, 3};
    EXPECT_EQ(text_of(file), line(1) + line(2) + line(3));
    EXPECT_EQ(log.notes(), Lines{"metrics.jsonl: its lines were not in the order of their steps, and are now"});
}

TEST_F(Metrics, StepsThatNoLineTellsOfAreSaid) {
    write(line(4) + line(5) + line(8));
    EXPECT_EQ((MetricsLog{file, 10}.notes()),
              Lines{"metrics.jsonl lacks steps 1 to 3, 6 to 7 and 9 to 10: 7 of 10 steps so far"});
    std::filesystem::remove(file);
    EXPECT_EQ((MetricsLog{file, 100}.notes()), Lines{"metrics.jsonl lacks steps 1 to 100: 100 of 100 steps so far"});
    write(line(2) + line(4) + line(6) + line(8));
    EXPECT_EQ((MetricsLog{file, 9}.notes()),
              Lines{"metrics.jsonl lacks steps 1, 3, 5 and others: 5 of 9 steps so far"});
    EXPECT_EQ(files(), 1) << "nothing was set aside";
}

TEST_F(Metrics, KeysOfOthersStayInTheirLinesByteForByte) {
    const std::string others =
        "{ \"step\" : 1, \"loss\":0.10, \"note\":\"inf \\\"nan\\\"\", \"gpu\":{\"w\":[300]} }\r\n";
    write(others + "broken\n" + line(2));
    const MetricsLog log{file, 2};
    EXPECT_EQ(text_of(file), others + line(2));
    ASSERT_EQ(log.history().size(), 2U);
    EXPECT_EQ(log.history()[0].loss, 0.10);
    EXPECT_TRUE(std::isnan(log.history()[0].grad_norm)) << "not a norm of 0, which nobody measured";
}

TEST_F(Metrics, NumbersThatAreNotFiniteAreWrittenAsNull) {
    const double infinite = std::numeric_limits<double>::infinity();
    MetricsLog{file, 0}.append(
        {.step = 1, .loss = -infinite, .learning_rate = 1, .grad_norm = std::nan(""), .seconds = 3, .epoch = infinite});
    const auto json = nlohmann::json::parse(text_of(file));
    for (const char* key : {"loss", "grad_norm", "epoch"}) EXPECT_TRUE(json.at(key).is_null()) << key;
    const MetricsLog log{file, 1};
    EXPECT_EQ(log.notes(), Lines{});
    ASSERT_EQ(log.history().size(), 1U);
    EXPECT_TRUE(std::isnan(log.history()[0].loss));
    EXPECT_EQ(log.history()[0].seconds, 3);
}

TEST_F(Metrics, ALogWhoseEpochsAreInfIsReadAndMended) {
    const std::string of_old =
        "{\"step\":1,\"loss\":2,\"seconds\":5,\"epoch\":inf}\n{\"step\":2,\"loss\":-nan,\"seconds\":NaN,\"note\":\"inf\",\"epoch\":-inf}\n";
    write(of_old);
    EXPECT_EQ(strata::train::read_metrics(file).size(), 2U);
    const MetricsLog log{file, 2};
    EXPECT_EQ(
        text_of(file),
        "{\"step\":1,\"loss\":2,\"seconds\":5,\"epoch\":null}\n{\"step\":2,\"loss\":null,\"seconds\":null,\"note\":\"inf\",\"epoch\":null}\n");
    EXPECT_EQ(text_of(aside(1)), of_old);
    EXPECT_EQ(
        log.notes(),
        Lines{
            "metrics.jsonl: set aside in metrics.jsonl.kept-1: 2 lines as they were with inf or nan, which is no JSON (null now)"});
    EXPECT_EQ(log.history().back().seconds, 5) << "the clock of a resumed run goes on";
}

TEST_F(Metrics, AWholeLastLineWithoutItsEndGetsOne) {
    write(line(1) + line(2).substr(0, line(2).size() - 1));
    MetricsLog log{file, 2};
    EXPECT_EQ(log.notes(), Lines{});
    log.append(step(3, 3));
    EXPECT_EQ(strata::train::read_metrics(file).size(), 3U);
    EXPECT_EQ(files(), 1);
}

/// No byte can be written: neither the lines set aside nor the new log.
TEST_F(Metrics, WhereNothingCanBeWrittenTheLogStaysAsItWas) {
    const std::string before = line(1) + "strange\n" + line(2);
    write(before);
    struct ::rlimit usual {};
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &usual), 0);
    const auto handler = ::signal(SIGXFSZ, SIG_IGN);
    const struct ::rlimit none { 0, usual.rlim_max };
    ::setrlimit(RLIMIT_FSIZE, &none);
    std::string message;
    try {
        const MetricsLog log{file, 1};
    } catch (const strata::Error& error) {
        message = error.what();
    }
    ::setrlimit(RLIMIT_FSIZE, &usual);
    ::signal(SIGXFSZ, handler);
    EXPECT_NE(message.find("kept-1"), std::string::npos) << message;
    EXPECT_EQ(text_of(file), before);
    EXPECT_EQ(files(), 1);
}

TEST_F(Metrics, AFolderInItsPlaceIsAnError) {
    std::filesystem::create_directories(file);
    EXPECT_THROW((MetricsLog{file, 0}), strata::Error);
}

TEST_F(Metrics, StragglersHaveALineOfTheirOwnToo) {
    {
        MetricsLog log{file, 0};
        log.append(step(1, 0.5));
        log.append(strata::train::StragglerNote{.step = 1, .world = 2, .found = {.rank = 1}});
        log.append(step(2, 0.25));
        log.append(strata::train::StragglerNote{.step = 2, .world = 2, .found = {.rank = 1, .is_slow = false}});
    }
    const std::string all = text_of(file);
    EXPECT_NE(all.find(R"({"step":1,"straggler":{"rank":1,)"), std::string::npos) << all;
    EXPECT_EQ(strata::train::read_metrics(file).size(), 2U);
    const MetricsLog same{file, 2};
    EXPECT_EQ(same.notes(), Lines{});
    EXPECT_EQ(text_of(file), all);
    const MetricsLog earlier{file, 1};
    EXPECT_EQ(earlier.history().size(), 1U);
    EXPECT_EQ(text_of(file).find(R"("step":2)"), std::string::npos) << "is done again";
}

TEST_F(Metrics, SamplesHaveALineOfTheirOwnThatStaysBesideTheStepsLine) {
    {
        MetricsLog log{file, 0};
        log.append(
            strata::train::DrawnSamples{.step = 0, .file = "samples/step_00000000.png", .prompts = {"a \"cat\""}});
        log.append(step(1, 0.5));
        log.append(strata::train::DrawnSamples{.step = 1,
                                               .file = "samples/step_00000001.png",
                                               .weights = {"trained", "average"},
                                               .prompts = {"a cat", "\xff"},
                                               .negative_prompt = "blurry",
                                               .sizes = {{64, 32}},
                                               .images = 2,
                                               .seed = 7,
                                               .steps = 5,
                                               .guidance = 2.5,
                                               .seconds = 0.25});
        log.append(step(2, 0.25));
        log.append(strata::train::DrawnSamples{.step = 2, .file = "samples/step_00000002.png"});
    }
    const std::string all = text_of(file);
    EXPECT_NE(all.find(R"({"step":1,"samples":{"file":"samples/step_00000001.png","weights":["trained","average"],)"
                       "\"prompts\":[\"a cat\",\"\xEF\xBF\xBD\"],"
                       R"("sizes":["64x32"],"images":2,"seed":7,"steps":5,"guidance":2.5,"negative_prompt":"blurry",)"
                       R"("seconds":0.25}})"),
              std::string::npos)
        << all;
    const MetricsLog same{file, 2};
    EXPECT_EQ(same.notes(), Lines{});
    EXPECT_EQ(text_of(file), all);
    EXPECT_EQ(same.history().size(), 2U);
    EXPECT_EQ(strata::train::read_metrics(file).size(), 2U);
    const MetricsLog back{file, 1};
    EXPECT_EQ(back.notes(),
              Lines{"metrics.jsonl: set aside in metrics.jsonl.kept-1: 2 lines of step 2, to be done again"});
    EXPECT_EQ(text_of(file), all.substr(0, all.find("{\"step\":2")));
}

}  // namespace
