// report.html: one file, nothing beside it, and whatever a prompt says stays text.

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

#include <strata/core/error.hpp>
#include <strata/train/report.hpp>

namespace {

using namespace strata::train;

struct Report : testing::Test {
    std::filesystem::path folder = std::filesystem::path{testing::TempDir()} / "strata_report_test";
    void SetUp() override {
        std::filesystem::remove_all(folder);
        std::filesystem::create_directories(folder);
    }
    void TearDown() override { std::filesystem::remove_all(folder); }

    std::string written(const ReportContent& content) {
        write_report(folder / "report.html", content);
        std::ifstream in{folder / "report.html"};
        return {std::istreambuf_iterator<char>{in}, {}};
    }
    std::filesystem::path picture(const std::string& name, const std::string& bytes) {
        std::ofstream{folder / name, std::ios::binary} << bytes;
        return folder / name;
    }
};

std::vector<StepMetrics> falling_loss(int steps) {
    std::vector<StepMetrics> history;
    for (int i = 1; i <= steps; ++i) history.push_back({.step = i, .loss = 1.0 / i});
    return history;
}

TEST_F(Report, HoldsCurvePicturesAndNoReferenceToAnotherFile) {
    ReportContent content{.title = "run", .history = falling_loss(50), .prompts = {"a cat"}};
    content.grids = {{50, picture("step_00000050.png", "Man")}};
    const std::string html = written(content);
    EXPECT_NE(html.find("<polyline"), std::string::npos);
    EXPECT_NE(html.find("data:image/png;base64,TWFu\""), std::string::npos);
    EXPECT_EQ(html.find("href="), std::string::npos);
    EXPECT_EQ(html.find("src=\"http"), std::string::npos);
}

TEST_F(Report, EncodesPicturesOfEveryLengthModuloThree) {
    for (const auto& [bytes, text] : {std::pair{"M", "TQ=="}, {"Ma", "TWE="}, {"Man", "TWFu"}}) {
        ReportContent content{.title = "run"};
        content.grids = {{1, picture("step_00000001.png", bytes)}};
        EXPECT_NE(written(content).find(std::string{"base64,"} + text + "\""), std::string::npos) << bytes;
    }
}

TEST_F(Report, PromptsAndTitlesCannotAddMarkup) {
    ReportContent content{.title = "<b>", .facts = {{"a&b", "\"<i>\""}}, .prompts = {"<script>"}};
    content.grids = {{1, picture("step_00000001.png", "x")}};
    content.sample_note = "left & right";
    const std::string html = written(content);
    EXPECT_EQ(html.find("<script>"), std::string::npos);
    EXPECT_NE(html.find("<p class=\"under\">left &amp; right</p>"), std::string::npos);
    EXPECT_EQ(html.find("<i>"), std::string::npos);
    EXPECT_NE(html.find("a&amp;b"), std::string::npos);
}

TEST_F(Report, AMissingPictureIsAnErrorAndTheOldReportStays) {
    written({.title = "first"});
    ReportContent content{.title = "second"};
    content.grids = {{1, folder / "gone.png"}};
    EXPECT_THROW(write_report(folder / "report.html", content), strata::Error);
    std::ifstream in{folder / "report.html"};
    const std::string html{std::istreambuf_iterator<char>{in}, {}};
    EXPECT_NE(html.find("first"), std::string::npos);
}

TEST_F(Report, GridsAreFoundInTheOrderOfTheirSteps) {
    for (const char* name : {"step_00000100.png", "step_00000020.png", "step_x.png", "other.png"}) picture(name, "x");
    const auto grids = find_sample_grids(folder);
    ASSERT_EQ(grids.size(), 2U);
    EXPECT_EQ(grids[0].step, 20);
    EXPECT_EQ(grids[1].step, 100);
}

TEST_F(Report, TheShareOfTheTimeThatWasWaitedForDataIsThere) {
    ReportContent content{.title = "run"};
    content.history = {{.step = 1, .data_wait = std::nan(""), .seconds = 1000},  // of an earlier version
                       {.step = 2, .data_wait = 30, .seconds = 1100},
                       {.step = 3, .data_wait = 40, .seconds = 1200}};
    EXPECT_NE(written(content).find("<tr><td>waited for data</td><td>35 % of the time (1:10)</td></tr>"),
              std::string::npos);
    content.history.resize(1);
    EXPECT_EQ(written(content).find("waited for data"), std::string::npos) << "nothing is known";
}

}  // namespace
