// Numbers and names of collectives, and the sentence about ranks that do not come.

#include <array>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <strata/comm/collective_log.hpp>

namespace {

using strata::Errc;
using strata::Error;
using strata::comm::CollectiveLog;
using strata::comm::CollectiveRecord;
using strata::comm::PeerState;

CollectiveRecord did(std::uint64_t number, std::string_view op, std::uint64_t bytes = 0, std::string_view label = "") {
    CollectiveLog log;
    log.label(label);
    CollectiveRecord record = log.begin(op, bytes).record();
    record.number = number;
    record.running = 0;
    record.milliseconds = 1500;
    return record;
}

std::string stall(const CollectiveRecord& mine, const std::vector<PeerState>& peers) {
    return strata::comm::explain_stall(mine, peers).what();
}

TEST(CollectiveLog, NumbersCollectivesFromOne) {
    CollectiveLog log;
    EXPECT_EQ(log.latest().number, 0U);
    {
        const auto running = log.begin("barrier", 0);
        EXPECT_EQ(running.record().number, 1U);
        EXPECT_EQ(log.latest().running, 1U);
    }
    EXPECT_EQ(log.latest().running, 0U);
    EXPECT_EQ(log.begin("all_gather", 64).record().number, 2U);
    EXPECT_EQ(log.latest().bytes, 64U);
}

TEST(CollectiveLog, RefusesASecondCollectiveWhileOneRuns) {
    CollectiveLog log;
    const auto running = log.begin("all_gather", 8);
    try {
        const auto second = log.begin("barrier", 0);
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), Errc::comm_busy);
        EXPECT_NE(error.problem().find("collective 1 (all_gather of 8 bytes)"), std::string::npos) << error.what();
    }
}

TEST(CollectiveLog, EndsACollectiveThatThrows) {
    CollectiveLog log;
    try {
        const auto running = log.begin("barrier", 0);
        throw 1;
    } catch (int) {
    }
    EXPECT_EQ(log.begin("barrier", 0).record().number, 2U);
}

TEST(CollectiveLog, RemembersTheLastSixteen) {
    CollectiveLog log;
    for (std::uint64_t bytes = 1; bytes <= 20; ++bytes) (void)log.begin("broadcast", bytes);
    EXPECT_EQ(log.numbered(20).bytes, 20U);
    EXPECT_EQ(log.numbered(5).bytes, 5U);
    EXPECT_EQ(log.numbered(4).number, 0U);
    EXPECT_EQ(log.numbered(0).number, 0U);
    EXPECT_EQ(log.numbered(21).number, 0U);
}

TEST(CollectiveLog, CutsLongLabels) {
    CollectiveLog log;
    log.label(std::string(100, 'x'));
    EXPECT_EQ(std::string{log.begin("barrier", 0).record().label.data()}, std::string(39, 'x'));
}

TEST(CollectiveLog, NamesTheRankThatDidNotArriveAndWhatItDidLast) {
    const CollectiveRecord mine = did(7, "reduce_scatter", 4096, "gradients 3");
    const std::string line =
        stall(mine, {{1, true, mine, mine}, {2, true, {}, did(6, "all_gather", 8, "parameters")}, {3, true, {}, {}}});
    EXPECT_EQ(
        line.find("[ST2303] collective 7 (reduce_scatter of 4096 bytes, 'gradients 3') has not ended after 1.5 s: "),
        0U)
        << line;
    EXPECT_NE(
        line.find(
            "rank 2 did not arrive, its last one was collective 6 (all_gather of 8 bytes, 'parameters'), done 1.5 s ago; "
            "rank 3 did not arrive, it has not been in any collective yet."),
        std::string::npos)
        << line;
    EXPECT_EQ(line.find("rank 1"), std::string::npos) << line;
}

TEST(CollectiveLog, TellsARankThatIsInsideAnEarlierOneFromOneThatIsOutside) {
    CollectiveRecord earlier = did(6, "barrier");
    earlier.running = 1;
    const std::string line = stall(did(7, "barrier"), {{1, true, {}, earlier}});
    EXPECT_NE(line.find("rank 1 did not arrive, it has been in collective 6 (barrier) for 1.5 s."), std::string::npos)
        << line;
}

TEST(CollectiveLog, NamesASilentRank) {
    EXPECT_NE(stall(did(7, "barrier"), {{1, false, {}, {}}}).find("1.5 s: rank 1 does not answer."), std::string::npos);
}

TEST(CollectiveLog, CallsAnotherOperationUnderTheSameNumberAMismatch) {
    const CollectiveRecord mine = did(7, "all_gather", 64);
    for (const CollectiveRecord& theirs :
         {did(7, "all_gather", 32), did(7, "broadcast", 64), did(7, "all_gather", 64, "x")}) {
        const Error error = strata::comm::explain_stall(mine, std::vector<PeerState>{{1, true, theirs, theirs}});
        EXPECT_EQ(error.code(), Errc::rank_mismatch);
        EXPECT_NE(error.problem().find("rank 1 called collective 7 as "), std::string::npos) << error.what();
    }
}

TEST(CollectiveLog, CountsARankThatIsFarAheadAsArrived) {
    const CollectiveRecord mine = did(7, "broadcast", 64);
    EXPECT_TRUE(has_arrived({1, true, {}, did(40, "barrier")}, mine));
    EXPECT_TRUE(has_arrived({1, true, mine, did(8, "barrier")}, mine));
    EXPECT_FALSE(has_arrived({1, true, {}, did(6, "barrier")}, mine));
    EXPECT_FALSE(has_arrived({1, false, mine, mine}, mine));
}

TEST(CollectiveLog, SaysSoWhenNobodyIsMissingOrNobodyCouldBeAsked) {
    const CollectiveRecord mine = did(7, "barrier");
    EXPECT_NE(stall(mine, {{1, true, mine, mine}}).find("although all ranks take part in it"), std::string::npos);
    EXPECT_NE(stall(mine, {}).find("unknown, because MPI was started without MPI_THREAD_MULTIPLE"), std::string::npos);
}

}  // namespace
