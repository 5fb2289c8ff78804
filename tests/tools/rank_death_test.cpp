// Whether memory ran out is read from what the kernel counts; here from files that look like the kernel's.

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

#include <unistd.h>

#include <gtest/gtest.h>

#include "../../tools/rank_death.hpp"

namespace {

namespace fs = std::filesystem;
using strata::tools::OutOfMemory;
using Verdict = OutOfMemory::Verdict;

struct RankDeath : testing::Test {
    fs::path root = fs::path{testing::TempDir()} / ("strata_death_" + std::to_string(::getpid()));
    void SetUp() override { fs::remove_all(root); }
    void TearDown() override { fs::remove_all(root); }
    void write(const fs::path& file, const std::string& text, bool append = false) const {
        fs::create_directories((root / file).parent_path());
        std::ofstream{root / file, append ? std::ios::app : std::ios::trunc} << text;
    }
    std::string line(int status, Verdict memory = Verdict::unknown) const {
        return strata::tools::error_of({.rank = 3,
                                        .world = 8,
                                        .host = "node7",
                                        .process = 4711,
                                        .status = status,
                                        .memory = memory,
                                        .program = "./trainer"})
            .what();
    }
};

TEST_F(RankDeath, TheControlGroupsCountTells) {
    write("proc/self/cgroup", "0::/job.slice/step_1\n");
    const fs::path events = "sys/fs/cgroup/job.slice/step_1/memory.events";
    write(events, "low 0\nhigh 0\nmax 7\noom 0\noom_kill 2\n");
    write("proc/vmstat", "oom_kill 5\n");
    const OutOfMemory memory{root};
    EXPECT_EQ(memory.verdict(4711), Verdict::not_seen);
    write("proc/vmstat", "oom_kill 6\n");
    EXPECT_EQ(memory.verdict(4711), Verdict::not_seen) << "another job's";
    write(events, "low 0\nhigh 0\nmax 9\noom 1\noom_kill 3\n");
    EXPECT_EQ(memory.verdict(4711), Verdict::killed);
}

TEST_F(RankDeath, TheFirstVersionOfControlGroupsTellsToo) {
    write("proc/self/cgroup", "5:devices:/\n4:memory:/box/17\n3:cpuset:/\n0::/\n");
    const fs::path control =
        "sys/fs/cgroup/memory/memory.oom_control";  // a container sees its own group as the topmost
    write(control, "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n");
    const OutOfMemory memory{root};
    EXPECT_EQ(memory.verdict(1), Verdict::not_seen);
    write(control, "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n");
    EXPECT_EQ(memory.verdict(1), Verdict::killed);
}

TEST_F(RankDeath, TheMachinesCountIsAGuess) {
    write("proc/vmstat", "nr_free_pages 17\noom_kill 5\n");
    const OutOfMemory memory{root};
    EXPECT_EQ(memory.verdict(1), Verdict::not_seen);
    write("proc/vmstat", "nr_free_pages 17\noom_kill 6\n");
    EXPECT_EQ(memory.verdict(1), Verdict::likely);
}

TEST_F(RankDeath, TheKernelsLogNamesTheProcess) {
    write("dev/kmsg", "3,1,1,-;Out of memory: Killed process 4711 (trainer) total-vm:1kB\n");
    const OutOfMemory memory{root};
    EXPECT_EQ(memory.verdict(4711), Verdict::unknown) << "that was an earlier process with the same number";
    write("dev/kmsg", "3,2,2,-;Out of memory: Killed process 47112 (other) total-vm:1kB\n", true);
    EXPECT_EQ(memory.verdict(4711), Verdict::unknown);
    write("dev/kmsg", "3,3,3,-;Memory cgroup out of memory: Killed process 4711 (trainer) total-vm:1kB\n", true);
    EXPECT_EQ(memory.verdict(4711), Verdict::killed);
}

TEST_F(RankDeath, ALineNamesRankHostProcessAndSignal) {
    EXPECT_EQ(
        line(SIGKILL, Verdict::killed),
        "[ST2606] rank 3/8 on host node7 (pid 4711) was ended by SIGKILL: memory ran out, and the kernel's out-of-memory killer chose it. Fix: "
        "give the job more memory, or let it need less: fewer ranks on this host, a smaller train_batch_size, state on disk (docs/offload.md).");
    EXPECT_NE(line(SIGKILL, Verdict::not_seen).find("counted no kill for memory"), std::string::npos);
    EXPECT_NE(line(SIGKILL, Verdict::likely).find("most likely this one"), std::string::npos);
    EXPECT_NE(line(SIGKILL).find("cannot be read here"), std::string::npos);
    EXPECT_NE(line(SIGBUS).find("SIGBUS: a mapped file or shared memory"), std::string::npos);
    EXPECT_NE(line(SIGSEGV).find("ulimit -c unlimited"), std::string::npos);
    EXPECT_NE(line(SIGSEGV | 0x80).find("left a core dump"), std::string::npos);
    EXPECT_NE(line(SIGTERM).find("SIGTERM, which this rank alone was sent"), std::string::npos);
    EXPECT_TRUE(line(3 << 8).starts_with(
        "[ST2606] rank 3/8 on host node7 (pid 4711) ended with status 3 and did not tell strata launch why. Fix: "))
        << line(3 << 8);
}

}  // namespace
