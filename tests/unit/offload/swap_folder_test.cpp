// Who holds a folder, within one process and between two.

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <strata/core/file_lock.hpp>
#include <strata/offload/swap_folder.hpp>
#include <strata/storage/atomic_file.hpp>

#include "../../support/other_process.hpp"
#include "../../support/temporary_folder.hpp"

namespace {

using strata::Errc;
using strata::offload::SwapFolder;
using strata_test::OtherProcess;
using strata_test::TemporaryFolder;
using strata_test::thrown_by;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

/// A process that holds rank 0 of a run, with a swap file, until it is ended.
auto a_run(const fs::path& disk, const std::string& run_id) {
    return [=] {
        auto folder = std::make_unique<SwapFolder>(disk, run_id, 0);
        strata::storage::write_file(folder->file("optimizer.swap"), "state");
        return folder;
    };
}

/// A process that holds the lock of the disk, as a run does that hangs while folders come and go.
auto the_door(const fs::path& disk) {
    return [=] {
        auto lock = std::make_unique<strata::core::FileLock>();
        return lock->hold(disk / ".strata-swap.lock") ? nullptr : std::move(lock);
    };
}

TEST(SwapFolder, ALivingRunIsLeftAloneAndADeadOneRemoved) {
    const TemporaryFolder disk;
    OtherProcess other{a_run(disk.path(), "other")};
    const fs::path file = disk.path() / "strata-swap-other/rank_00000.optimizer.swap";
    {
        const SwapFolder mine{disk.path(), "mine", 0};
        EXPECT_TRUE(mine.removed().empty());
        EXPECT_TRUE(fs::exists(file));
    }
    EXPECT_TRUE(fs::exists(file)) << "nor when this run ends";
    other.end();
    ASSERT_TRUE(fs::exists(file)) << "a killed run leaves its files";
    const SwapFolder mine{disk.path(), "mine", 0};
    EXPECT_EQ(mine.removed(), std::vector<fs::path>{disk.path() / "strata-swap-other"});
    EXPECT_FALSE(fs::exists(disk.path() / "strata-swap-other"));
}

TEST(SwapFolder, TheSameRunIdTwiceIsRefusedWhileTheFirstLives) {
    const TemporaryFolder disk;
    OtherProcess other{a_run(disk.path(), "same")};
    const auto error = thrown_by([&] { const SwapFolder mine{disk.path(), "same", 0}; });
    EXPECT_EQ(error.code, Errc::swap_in_use);
    EXPECT_TRUE(error.says(": " + other.name())) << error.message;
    EXPECT_TRUE(fs::exists(disk.path() / "strata-swap-same/rank_00000.optimizer.swap"));
    other.end();
    const SwapFolder mine{disk.path(), "same", 0};
    EXPECT_FALSE(fs::exists(mine.file("optimizer.swap"))) << "a dead run's state under the same id";
}

TEST(SwapFolder, ALockThatIsNotGivenBackEndsTheWaitAndNamesItsHolder) {
    const TemporaryFolder disk;
    const OtherProcess other{the_door(disk.path())};
    const auto error = thrown_by([&] { const SwapFolder mine{disk.path(), "mine", 0, 20ms}; });
    EXPECT_EQ(error.code, Errc::swap_lock_timeout);
    EXPECT_FALSE(strata::is_bad_input(error.code)) << "no other input mends it";
    for (const std::string& word :
         {(disk.path() / ".strata-swap.lock").string(), "was not free for 0.02 s, held by " + other.name()})
        EXPECT_TRUE(error.says(word)) << word << " in " << error.message;
    EXPECT_FALSE(fs::exists(disk.path() / "strata-swap-mine"));
}

TEST(SwapFolder, ALockThatIsNotGivenBackDoesNotKeepARunFromEnding) {
    const TemporaryFolder disk;
    auto mine = std::make_unique<SwapFolder>(disk.path(), "mine", 0, 20ms);
    strata::storage::write_file(mine->file("x.swap"), "0");
    OtherProcess other{the_door(disk.path())};
    mine.reset();
    EXPECT_FALSE(fs::exists(disk.path() / "strata-swap-mine/rank_00000.x.swap"));
    other.end();
    const SwapFolder next{disk.path(), "next", 0};
    EXPECT_EQ(next.removed(), std::vector<fs::path>{disk.path() / "strata-swap-mine"}) << "the empty folder";
}

TEST(SwapFolder, RanksOfOneRunShareAFolderAndTheLastOneRemovesIt) {
    const TemporaryFolder disk;
    auto first = std::make_unique<SwapFolder>(disk.path(), "run", 0);
    auto second = std::make_unique<SwapFolder>(disk.path(), "run", 1);
    EXPECT_EQ(first->path(), second->path());
    EXPECT_EQ(second->file("x.swap").filename(), "rank_00001.x.swap");
    strata::storage::write_file(first->file("x.swap"), "0");
    strata::storage::write_file(second->file("x.swap"), "1");
    const SwapFolder another{disk.path(), "another", 0};
    const fs::path of_second = second->file("x.swap");
    first.reset();
    EXPECT_EQ(thrown_by([&] { const SwapFolder again{disk.path(), "run", 1}; }).code, Errc::swap_in_use);
    EXPECT_TRUE(fs::exists(of_second));
    EXPECT_FALSE(fs::exists(disk.path() / "strata-swap-run/rank_00000.x.swap"));
    second.reset();
    EXPECT_FALSE(fs::exists(disk.path() / "strata-swap-run"));
}

TEST(SwapFolder, OneLivingRankKeepsTheFilesOfAllRanks) {
    const TemporaryFolder disk;
    const SwapFolder living{disk.path(), "run", 1};
    strata::storage::write_file(living.path() / "rank_00000.lock", "");  // of a rank that has just died
    strata::storage::write_file(living.path() / "rank_00000.x.swap", "0");
    const SwapFolder other{disk.path(), "other", 0};
    EXPECT_TRUE(fs::exists(living.path() / "rank_00000.x.swap"));
    EXPECT_TRUE(other.removed().empty());
}

TEST(SwapFolder, WhatIsNoSwapFileStays) {
    const TemporaryFolder disk;
    strata::storage::write_file(disk.path() / "strata-swap-dead/notes.txt", "mine");
    strata::storage::write_file(disk.path() / "strata-swap-dead/rank_00000.x.swap", "old");
    strata::storage::write_file(disk.path() / "photos/rank_00000.x.swap", "not ours");
    strata::storage::write_file(disk.path() / "elsewhere/rank_00000.x.swap", "behind a link");
    fs::create_directory_symlink(disk.path() / "elsewhere", disk.path() / "strata-swap-link");
    const SwapFolder mine{disk.path(), "run", 0};
    EXPECT_TRUE(fs::exists(disk.path() / "strata-swap-dead/notes.txt"));
    EXPECT_FALSE(fs::exists(disk.path() / "strata-swap-dead/rank_00000.x.swap"));
    EXPECT_TRUE(fs::exists(disk.path() / "photos/rank_00000.x.swap"));
    EXPECT_TRUE(fs::exists(disk.path() / "elsewhere/rank_00000.x.swap"));
    EXPECT_TRUE(mine.removed().empty());
}

TEST(SwapFolder, ADiskThatIsNotThereIsNotCreated) {
    const TemporaryFolder disk;
    const auto error = thrown_by([&] { const SwapFolder mine{disk.path() / "nvme", "run", 0}; });
    EXPECT_EQ(error.code, Errc::not_found);
    EXPECT_TRUE(error.says("nvme")) << error.message;
    EXPECT_FALSE(fs::exists(disk.path() / "nvme"));
}

TEST(SwapFolder, ARunIdIsAFileName) {
    const TemporaryFolder disk;
    for (const char* bad : {"", "../x", "a b", "a/b"}) {
        EXPECT_EQ(thrown_by([&] { const SwapFolder mine{disk.path(), bad, 0}; }).code, Errc::bad_value) << bad;
    }
    const std::string id = strata::offload::new_run_id();
    EXPECT_EQ(id.size(), 16U);
    EXPECT_NE(id, strata::offload::new_run_id());
    EXPECT_NO_THROW((SwapFolder{disk.path(), id, 0}));
}

}  // namespace
