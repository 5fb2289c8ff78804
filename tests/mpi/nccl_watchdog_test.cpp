// Jobs whose ranks wait inside NCCL for a rank that sleeps, throws or never connects: they end, with a line that says
// why.

#include <string>

#include <gtest/gtest.h>

#include "run_job.hpp"

namespace {

using strata_test::Outcome;

Outcome run_job(int ranks, const std::string& what) {
    return strata_test::run_job(STRATA_FAILING_NCCL_JOB, ranks, what);
}

TEST(NcclWatchdog, NamesTheRankThatIsMissingInACollectiveOfNccl) {
    const Outcome outcome = run_job(3, "sleeps");
    EXPECT_EQ(outcome.status, 1) << outcome.text;
    for (const std::string part :
         {"rank 0/3: [ST2303] collective 6 (reduce_scatter of 96 bytes, 'gradients 3') has not ended after ",
          "rank 2 did not arrive, its last one was collective 5 (all_gather of 32 bytes, 'weights'), done "}) {
        EXPECT_NE(outcome.text.find(part), std::string::npos) << outcome.text;
    }
}

TEST(NcclWatchdog, EndsAJobWhoseGpusNeverConnect) {
    const Outcome outcome = run_job(2, "connects");
    EXPECT_EQ(outcome.status, 1) << outcome.text;
    EXPECT_NE(outcome.text.find("rank 0/2: [ST2303] collective 4 (nccl_connect) has not ended after "),
              std::string::npos)
        << outcome.text;
    EXPECT_NE(outcome.text.find("although all ranks take part in it"), std::string::npos) << outcome.text;
}

TEST(NcclWatchdog, ARankThatThrowsBesideItsCollectiveEndsTheJob) {
    const Outcome outcome = run_job(2, "throws");
    EXPECT_EQ(outcome.status, 3) << outcome.text;
    EXPECT_NE(outcome.text.find("rank 1/2: the loss is a banana"), std::string::npos) << outcome.text;
}

}  // namespace
