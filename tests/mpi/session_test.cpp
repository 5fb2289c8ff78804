// What a session of several ranks says, how long it waits, and what it answers when its directory is taken.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <strata/core/version.hpp>

#include "run_job.hpp"

namespace {

namespace fs = std::filesystem;

struct Session : testing::Test {
    fs::path folder = fs::path{testing::TempDir()} / ("strata_session_" + std::to_string(::getpid()));
    void TearDown() override { fs::remove_all(folder); }
    strata_test::Outcome run(int ranks, const std::string& what) const {
        return strata_test::run_job(STRATA_SESSION_JOB, ranks, what + " --output " + folder.string());
    }
};

TEST_F(Session, SaysOnceHowSeveralRanksExchangeTheirBytes) {
    const auto outcome = run(2, "ends");
    EXPECT_EQ(outcome.status, 0) << outcome.text;
    const std::string mark = "transport: ";
    const auto named = outcome.text.find(mark);
    ASSERT_NE(named, std::string::npos) << outcome.text;
    const std::string transport =
        outcome.text.substr(named + mark.size(), outcome.text.find('\n', named) - named - mark.size());
    const std::string line = "2 ranks, " + transport + "\n";
    const auto first = outcome.text.find(line);
    EXPECT_NE(first, std::string::npos) << outcome.text;
    EXPECT_EQ(outcome.text.find("2 ranks, ", first + 1), std::string::npos) << outcome.text;
}

TEST_F(Session, OneRankHasNothingToSayAboutOthers) {
    const auto outcome = run(1, "ends");
    EXPECT_EQ(outcome.status, 0) << outcome.text;
    EXPECT_EQ(outcome.text, "transport: MPI\n");
}

TEST_F(Session, AnOutputDirectoryThatAnotherProgramHoldsIsRefusedWithItsName) {
    fs::create_directories(folder);
    const int lock = ::open((folder / ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    ASSERT_EQ(::flock(lock, LOCK_EX | LOCK_NB), 0);
    const auto outcome = run(2, "ends");
    EXPECT_EQ(outcome.status, 2) << outcome.text;
    EXPECT_NE(outcome.text.find("[ST2603] another run works in " + folder.string() + ": process " +
                                std::to_string(::getpid()) + " on host "),
              std::string::npos)
        << outcome.text;
    ::close(lock);
    EXPECT_EQ(run(1, "ends").status, 0);
}

TEST_F(Session, ADirectoryInUseNamesProgramAndTime) {
    const auto outcome = run(1, "twice");
    EXPECT_EQ(outcome.status, 2) << outcome.text;
    EXPECT_NE(outcome.text.find("('strata_session_job', since 20"), std::string::npos) << outcome.text;
    EXPECT_NE(outcome.text.find(" UTC), which is this one. Fix: wait"), std::string::npos) << outcome.text;
}

TEST_F(Session, ItsTimeoutEndsAJobWhoseLastRankDoesNotCome) {
    const auto outcome = run(2, "waits");
    EXPECT_EQ(outcome.status, 1) << outcome.text;
    EXPECT_NE(outcome.text.find("[ST2303]"), std::string::npos) << outcome.text;
    EXPECT_NE(outcome.text.find("rank 1 did not arrive"), std::string::npos) << outcome.text;
}

/// Of all files below a folder whose name begins so.
std::string texts_in(const fs::path& folder, const std::string& begin) {
    std::string text;
    std::error_code none;
    for (const auto& entry : fs::directory_iterator{folder, none})
        if (entry.path().filename().string().starts_with(begin))
            text += std::string{std::istreambuf_iterator<char>{std::ifstream{entry.path()}.rdbuf()}, {}};
    return text;
}

TEST_F(Session, WhatAllRanksDoWhenTheyWaitInVainIsInAFile) {
    const auto outcome = run(3, "tells-waits");
    EXPECT_EQ(outcome.status, 1) << outcome.text;
    const std::string line = "rank 0/3: what the threads of all ranks did is in " + folder.string() + "/hang_20";
    EXPECT_NE(outcome.text.find(line), std::string::npos) << outcome.text;
    const std::string stacks = texts_in(folder, "hang_");
    EXPECT_NE(stacks.find("[ST2303]"), std::string::npos) << stacks;
    EXPECT_NE(stacks.find("rank 2 did not arrive"), std::string::npos) << stacks;
    const std::size_t second = stacks.find("\n== rank 1: on ");
    const std::size_t last = stacks.find("\n== rank 2: on ");
    ASSERT_TRUE(second != std::string::npos && last != std::string::npos && second < last) << stacks;
    EXPECT_NE(stacks.substr(0, second).find("strata::comm::MpiComm::barrier"), std::string::npos) << stacks;
    EXPECT_NE(stacks.substr(second, last - second).find("strata::comm::MpiComm::barrier"), std::string::npos) << stacks;
    EXPECT_NE(stacks.substr(last).find("pause+0x"), std::string::npos) << stacks;
    const std::string told = texts_in(folder / "webhooks", "");
    EXPECT_NE(told.find("Ranks wait for each other in vain"), std::string::npos) << told;
    EXPECT_NE(told.find("[ST2303]"), std::string::npos) << told;
    EXPECT_NE(told.find("hang_20"), std::string::npos) << told;
}

TEST_F(Session, ARankThatDoesNotAnswerIsSaidSoInThatFile) {
    const auto outcome = run(2, "stops");
    EXPECT_NE(outcome.status, 0) << outcome.text;
    const std::string stacks = texts_in(folder, "hang_");
    EXPECT_NE(stacks.find("\n== rank 1: it does not answer\n"), std::string::npos) << outcome.text << stacks;
    EXPECT_NE(stacks.find("strata::comm::MpiComm::barrier"), std::string::npos) << stacks;
}

TEST_F(Session, ARestartTellsWhyThereIsOne) {
    ::setenv("STRATA_RESTARTS", "2", 1);
    ::setenv("STRATA_RESTARTED_AFTER", "[ST2606] rank 1/2 on host b (pid 3) was ended by SIGKILL", 1);
    const auto outcome = run(2, "tells");
    ::unsetenv("STRATA_RESTARTS");
    ::unsetenv("STRATA_RESTARTED_AFTER");
    EXPECT_EQ(outcome.status, 0) << outcome.text;
    const std::string told = texts_in(folder / "webhooks", "");
    const std::size_t at = told.find("[ST2606] rank 1/2 on host b (pid 3) was ended by SIGKILL");
    EXPECT_NE(at, std::string::npos) << told;
    EXPECT_EQ(told.find("[ST2606]", at + 1), std::string::npos) << "rank 0 alone tells it: " << told;
    EXPECT_NE(told.find("Restart 2 after a failure"), std::string::npos) << told;
    EXPECT_LT(at, told.find("Next")) << "before anything else: " << told;
}

bool is_there(const fs::path& path) {
    std::error_code none;
    return fs::exists(path, none);
}

TEST_F(Session, AfterBadInputNothingIsLeftOfTheOutputDirectory) {
    for (const int ranks : {1, 2, 3})
        for (const std::string what : {"refuses", "refuses-alone"}) {
            const auto outcome =
                strata_test::run_job(STRATA_SESSION_JOB, ranks, what + " --output " + (folder / "a/b").string());
            EXPECT_EQ(outcome.status, 2) << what << outcome.text;
            EXPECT_NE(outcome.text.find("[ST2103] a number is wrong. Fix: use another one."), std::string::npos)
                << outcome.text;
            EXPECT_FALSE(is_there(folder)) << what << " on " << ranks << " ranks";
        }
}

TEST_F(Session, AfterBadInputWhatWasThereIsAsItWas) {
    fs::create_directories(folder);
    EXPECT_EQ(run(2, "refuses").status, 2);
    EXPECT_TRUE(is_there(folder)) << "the run did not make it";
    EXPECT_TRUE(fs::is_empty(folder));
    std::ofstream{folder / "mine.txt"} << "x";
    EXPECT_EQ(run(2, "refuses").status, 2);
    EXPECT_TRUE(is_there(folder / "mine.txt"));
    // The index of pictures: made by this run, and made by another one.
    fs::create_directories(folder / "index");
    std::ofstream{folder / "index/set.sqlite"} << "x";
    fs::remove(folder / "mine.txt");
    EXPECT_EQ(run(1, "refuses").status, 2);
    EXPECT_TRUE(is_there(folder / "index/set.sqlite"));
}

TEST_F(Session, OnceTrainingHasBegunAndAfterOtherFailuresWhatIsThereStays) {
    EXPECT_EQ(run(2, "refuses-late").status, 2);
    EXPECT_TRUE(is_there(folder / "metrics.jsonl"));
    fs::remove_all(folder);
    EXPECT_EQ(run(1, "fails").status, 1);
    EXPECT_FALSE(is_there(folder)) << "nothing was written";
}

TEST_F(Session, HelpAndVersionAreSaidOnceAndMakeNothing) {
    for (const int ranks : {1, 2}) {
        const auto help = run(ranks, "ends --help");
        EXPECT_EQ(help.status, 0) << help.text;
        EXPECT_EQ(help.text.find("usage: "), 0U) << help.text;
        EXPECT_EQ(help.text.find("usage: ", 1), std::string::npos) << help.text;
        const auto version = run(ranks, "ends --version");
        EXPECT_EQ(version.status, 0);
        EXPECT_EQ(version.text, "strata " + std::string{strata::version} + "\n");
        EXPECT_FALSE(is_there(folder));
    }
}

}  // namespace
