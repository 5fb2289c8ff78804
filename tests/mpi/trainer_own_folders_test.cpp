// Hosts that share no file system: here they are folders, rank 0's and that of all others. Each has every checkpoint as a whole, and whichever
// has the newest is gone on from.

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <strata/comm/folder_keepers.hpp>
#include <strata/comm/self_comm.hpp>
#include <strata/core/file_lock.hpp>

#include "trainer_runs.hpp"

namespace {

using namespace strata;
using strata_test::SmallNet;
namespace fs = std::filesystem;

struct TrainerOwnFolders : strata_test::TrainerRuns {
    fs::path all;  // of what OutputFolder made, which is one for all ranks

    void SetUp() override {
        TrainerRuns::SetUp();
        all = root;
        root = comm.rank() == 0 ? host_a() : host_b();
    }
    void TearDown() override {
        root = all;
        TrainerRuns::TearDown();
    }
    [[nodiscard]] fs::path host_a() const { return all / "a"; }
    [[nodiscard]] fs::path host_b() const { return all / "b"; }

    static Options saving(std::int64_t steps) {
        Options given = options(steps);
        given.checkpoint_every = 2;
        return given;
    }
    /// The bytes of a run's checkpoints by path below their folder.
    [[nodiscard]] static std::map<std::string, std::string> files_of(const fs::path& host) {
        std::map<std::string, std::string> found;
        for (const auto& entry : fs::recursive_directory_iterator{host / "run/checkpoints"})
            if (entry.is_regular_file() && entry.path().filename() != ".reserve")
                found[fs::relative(entry.path(), host).string()] = text_of(entry.path());
        return found;
    }
    void expect_same_on_both(std::size_t checkpoints) const {
        comm_barrier();
        const auto here = files_of(host_a());
        EXPECT_EQ(here.size(), checkpoints * (static_cast<std::size_t>(comm.world()) + 2));
        EXPECT_TRUE(here == files_of(host_b()));
        comm_barrier();
    }
    /// What the same run without a break learns.
    std::vector<double> whole(std::int64_t steps) {
        root = all;
        run<ZeroStage<2>>("whole", options(steps));
        const auto found = losses("whole");
        root = comm.rank() == 0 ? host_a() : host_b();
        return found;
    }
    [[nodiscard]] std::vector<double> losses_of_run() const {
        comm_barrier();
        std::vector<double> found;
        for (const auto& m : train::read_metrics(host_a() / "run/metrics.jsonl")) found.push_back(m.loss);
        return found;
    }
};

TEST_F(TrainerOwnFolders, RanksKnowWhoSeesTheirFolder) {
    for (const fs::path& place : {all / "shared", root / "own"}) {
        fs::create_directories(place);
        if (comm.rank() == 0) std::ofstream{place / "mark"} << "of this run";
        const comm::FolderKeepers keepers = comm::find_keepers(comm, place, place / "mark");
        const bool shared = place == all / "shared";
        EXPECT_EQ(keepers.is_shared(), shared);
        EXPECT_EQ(keepers.of(comm.rank()), shared || comm.rank() == 0 ? 0 : 1);
        EXPECT_EQ(keepers.all(), (shared ? std::vector{0} : std::vector{0, 1}));
        const auto share = keepers.share(comm.rank(), comm.world());
        EXPECT_EQ(share.number, shared || comm.rank() == 0 ? comm.rank() : comm.rank() - 1);
        EXPECT_EQ(share.of, shared ? comm.world() : comm.rank() == 0 ? 1 : comm.world() - 1);
        comm.barrier();
        for (const auto& entry : fs::directory_iterator{place}) EXPECT_EQ(entry.path().filename(), "mark");
        comm.barrier();
    }
}

TEST_F(TrainerOwnFolders, EachHostHasEveryCheckpointAndLearnsTheSame) {
    const auto alone = whole(4);
    run<ZeroStage<2>, Ema<>>("run", saving(4));
    expect_said("/run is another folder on ");
    EXPECT_EQ(losses_of_run(), alone);
    comm_barrier();
    const auto here = files_of(host_a());
    EXPECT_EQ(here.size(), 2 * (static_cast<std::size_t>(comm.world()) + 3));  // with the average
    EXPECT_TRUE(here == files_of(host_b()));
    EXPECT_FALSE(fs::exists(host_b() / "run/metrics.jsonl"));
}

TEST_F(TrainerOwnFolders, WhatOneHostHasLostComesFromAnother) {
    const auto alone = whole(6);
    run<ZeroStage<2>>("run", saving(4));
    on_disk([&] { fs::remove_all(host_a() / "run/checkpoints"); });
    run<ZeroStage<2>>("run", saving(6));
    expect_said("resuming from " + checkpoint("run", 4).string());
    EXPECT_EQ(losses_of_run(), alone);
    comm_barrier();
    auto there = files_of(host_b());
    std::erase_if(there, [](const auto& file) { return file.first.find("step_00000002") != std::string::npos; });
    EXPECT_EQ(there.size(), 2 * (static_cast<std::size_t>(comm.world()) + 2));
    EXPECT_TRUE(files_of(host_a()) == there) << "older ones than what was gone on from are not brought back";
}

TEST_F(TrainerOwnFolders, ADamagedCopyIsMendedWhereverItIs) {
    for (const bool first : {true, false}) {
        run<ZeroStage<2>>("run", saving(4));
        const fs::path host = first ? host_a() : host_b();
        on_disk([&] { fs::resize_file(host / "run/checkpoints/step_00000004/model.safetensors", 40); });
        run<ZeroStage<2>>("run", saving(4));
        expect_said("resuming from " + checkpoint("run", 4).string());
        expect_same_on_both(2);
        for (const auto& entry : fs::directory_iterator{root / "run/checkpoints"})
            EXPECT_TRUE(entry.path().filename().string().starts_with("step_") || entry.path().filename() == ".reserve")
                << entry.path();
        on_disk([&] {
            fs::remove_all(host_a());
            fs::remove_all(host_b());
        });
    }
}

TEST_F(TrainerOwnFolders, OneHostCanGoOnAlone) {
    run<ZeroStage<2>>("run", saving(4));
    if (comm.rank() == 1) {
        comm::SelfComm alone;
        const std::string output = (host_b() / "run").string();
        std::vector<std::string> words{"test", "--output", output};
        std::vector<char*> argv;
        for (std::string& word : words) argv.push_back(word.data());
        Session session{alone, static_cast<int>(argv.size()), argv.data()};
        Trainer<SmallNet, ZeroStage<2>, Ranks<comm::SelfComm>> trainer{session, SmallNet{}, saving(5)};
        std::int64_t steps = 0;
        trainer.every(1, [&](const train::StepMetrics&) { ++steps; });
        EXPECT_EQ(trainer.fit(FunctionSource{plain, 10, 8}).step, 5);
        EXPECT_EQ(steps, 1);
    }
    comm.barrier();
}

TEST_F(TrainerOwnFolders, AnotherRunsCheckpointOfTheSameStepIsSetAside) {
    run<ZeroStage<2>>("run", saving(4));
    on_disk([&] {
        fs::remove_all(host_a() / "run");
        fs::rename(host_b() / "run/checkpoints/step_00000004", host_b() / "kept");
        fs::remove_all(host_b() / "run");
    });
    Options other = saving(4);
    other.seed = 7;
    run<ZeroStage<2>>("run", other);
    on_disk([&] {
        fs::remove_all(host_b() / "run/checkpoints/step_00000004");
        fs::rename(host_b() / "kept", host_b() / "run/checkpoints/step_00000004");
    });
    other.max_steps = 5;
    run<ZeroStage<2>>("run", other);
    comm.barrier();
    EXPECT_TRUE(fs::exists(host_b() / "run/checkpoints/other_step_00000004/manifest.json"));
    EXPECT_EQ(text_of(host_a() / "run/checkpoints/step_00000004/manifest.json"),
              text_of(host_b() / "run/checkpoints/step_00000004/manifest.json"));
}

TEST_F(TrainerOwnFolders, FreshStartsOverOnAllHosts) {
    run<ZeroStage<2>>("run", saving(4));
    in_session(
        "run",
        [&](Session& session) {
            Trainer<SmallNet, ZeroStage<2>> trainer{session, SmallNet{}, options(1)};
            trainer.fit(FunctionSource{plain, 10, 8});
        },
        true);
    EXPECT_FALSE(fs::exists(checkpoint("run", 2)));
    EXPECT_FALSE(fs::exists(checkpoint("run", 4)));
    EXPECT_TRUE(fs::exists(checkpoint("run", 1)));
}

TEST_F(TrainerOwnFolders, ARunOnAnotherHostIsInTheWay) {
    core::FileLock lock;
    fs::create_directories(root / "run");
    if (comm.rank() == 1) {
        ASSERT_FALSE(lock.hold(root / "run/.lock"));
    }
    comm.barrier();
    const Error error = error_of([&] { in_session("run", [](Session& session) { session.output(); }); });
    EXPECT_EQ(error.code(), Errc::output_in_use) << error.what();
}

TEST_F(TrainerOwnFolders, ARefusedStartLeavesNothingOnAnyHost) {
    in_session("below/run", [&](Session& session) {
        EXPECT_TRUE(fs::exists(session.output()));
        comm.barrier();
        session.leave_no_trace();
    });
    comm.barrier();
    EXPECT_FALSE(fs::exists(root / "below"));
}

}  // namespace
