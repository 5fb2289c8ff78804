// Jobs in which a rank sleeps, stops, throws or does something else: they end, with a line that names the rank.

#include <string>

#include <gtest/gtest.h>

#include "run_job.hpp"

namespace {

using strata_test::Outcome;

Outcome run_job(int ranks, const std::string& what) { return strata_test::run_job(STRATA_FAILING_JOB, ranks, what); }

void expect_line(const std::string& job, int ranks, const std::string& line) {
    const Outcome outcome = run_job(ranks, job);
    EXPECT_NE(outcome.status, 0) << job;
    EXPECT_FALSE(outcome.hung) << job;
    EXPECT_NE(outcome.text.find(line), std::string::npos) << job << " on " << ranks << " ranks said:\n" << outcome.text;
}

TEST(MpiWatchdog, NamesTheRankThatSleepsAndWhatItDidLast) {
    for (const std::string way : {"", " messages"}) {
        expect_line(
            "sleeps" + way, 3,
            "rank 2 did not arrive, its last one was collective 1 (all_gather of 8 bytes, 'parameters'), done ");
    }
}

TEST(MpiWatchdog, NamesTheCollectiveThatWaits) {
    const Outcome outcome = run_job(2, "sleeps");
    const std::string line =
        "rank 0/2: [ST2303] collective 2 (reduce_scatter of 64 bytes, 'gradients 3') has not ended after ";
    EXPECT_NE(outcome.text.find(line), std::string::npos) << outcome.text;
}

TEST(MpiWatchdog, NamesARankThatHasNotBeenInAnyCollective) {
    expect_line("absent", 2, "rank 1 did not arrive, it has not been in any collective yet");
}

TEST(MpiWatchdog, NamesARankThatDoesNotAnswer) { expect_line("stops impatient", 2, ": rank 1 does not answer"); }

TEST(MpiWatchdog, SaysWhatItDoesNotKnowWithoutThreadMultiple) {
    expect_line("sleeps serialized", 2,
                "which ranks are missing is unknown, because MPI was started without MPI_THREAD_MULTIPLE");
}

TEST(MpiWatchdog, NamesBothOperationsOfRanksThatDiffer) {
    // Messages of different operations never meet; the rank that speaks names the other one's operation.
    const Outcome outcome = run_job(2, "differs messages");
    EXPECT_NE(outcome.status, 0);
    const bool zero =
        outcome.text.find("collective 1 (all_gather of 8 bytes, 'norms')") != std::string::npos &&
        outcome.text.find("rank 1 called collective 1 as all_gather of 8 bytes, 'losses'") != std::string::npos;
    const bool one =
        outcome.text.find("collective 1 (all_gather of 8 bytes, 'losses')") != std::string::npos &&
        outcome.text.find("rank 0 called collective 1 as all_gather of 8 bytes, 'norms'") != std::string::npos;
    EXPECT_TRUE((zero || one) && outcome.text.find("[ST2302]") != std::string::npos) << outcome.text;
}

TEST(MpiWatchdog, OnSharedMemoryRanksThatDifferAreToldAtOnce) {
    const Outcome outcome = run_job(2, "differs");
    EXPECT_EQ(outcome.status, 3) << outcome.text;
    const std::string one =
        "rank 0 is in collective 1 (all_gather of 8 bytes, 'norms'), rank 1 in collective 1 (all_gather of 8 bytes, 'losses')";
    const std::string other =
        "rank 1 is in collective 1 (all_gather of 8 bytes, 'losses'), rank 0 in collective 1 (all_gather of 8 bytes, 'norms')";
    EXPECT_TRUE(outcome.text.find(one) != std::string::npos || outcome.text.find(other) != std::string::npos)
        << outcome.text;
}

TEST(MpiWatchdog, ARankThatThrowsBesideItsCollectivesEndsTheJob) {
    for (const std::string way : {"", " messages"}) {
        const Outcome outcome = run_job(2, "throws" + way);
        EXPECT_EQ(outcome.status, 3) << outcome.text;
        EXPECT_NE(outcome.text.find("rank 1/2: the loss is a banana"), std::string::npos) << outcome.text;
    }
}

TEST(MpiWatchdog, ARankWhoseOperationThrowsEndsTheJob) {
    const Outcome outcome = run_job(3, "throws_in_operation");
    EXPECT_EQ(outcome.status, 3) << outcome.text;
    EXPECT_NE(outcome.text.find("rank 2/3: the disk is full"), std::string::npos) << outcome.text;
}

}  // namespace
