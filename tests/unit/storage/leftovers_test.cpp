// What killed writers leave is removed, and nothing of living ones.

#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <thread>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <strata/storage/atomic_file.hpp>
#include <strata/storage/leftovers.hpp>
#include <strata/storage/local.hpp>

#include "../../support/temporary_folder.hpp"

namespace {

namespace fs = std::filesystem;
namespace storage = strata::storage;
using namespace std::chrono_literals;
using strata_test::TemporaryFolder;

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span{text.data(), text.size()}); }

/// A process that is killed while it writes `path`.
void write_and_die(const fs::path& path) {
    const pid_t child = ::fork();
    if (child == 0) {
        storage::AtomicFile file{path};
        file.write(bytes("half of it"));
        ::kill(::getpid(), SIGKILL);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
}

TEST(Leftovers, OfAKilledProcessAreRemovedAtOnce) {
    const TemporaryFolder folder;
    storage::write_file(folder.path() / "report.html", "old");
    write_and_die(folder.path() / "report.html");
    write_and_die(folder.path() / "deep" / "er" / "x.safetensors");
    EXPECT_EQ(folder.count_files(), 3);
    EXPECT_EQ(storage::remove_leftovers(folder.path(), 0), 1);
    EXPECT_EQ(storage::remove_leftovers(folder.path(), 1), 0);
    EXPECT_EQ(strata::Local{folder.path()}.remove_leftovers(), 1);
    EXPECT_EQ(folder.count_files(), 1);
    EXPECT_EQ(storage::read_file(folder.path() / "report.html").size(), 3U);
    EXPECT_EQ(storage::remove_leftovers(folder.path() / "nothing here"), 0);
}

TEST(Leftovers, ALivingWritersFileStays) {
    const TemporaryFolder folder;
    storage::AtomicFile file{folder.path() / "a"};
    file.write(bytes("all of it"));
    EXPECT_EQ(storage::remove_leftovers(folder.path(), 9, 0s), 0);
    file.publish();
    EXPECT_EQ(storage::read_file(folder.path() / "a").size(), 9U);

    int to_child[2];
    int to_test[2];
    ASSERT_EQ(::pipe(to_child) + ::pipe(to_test), 0);
    const pid_t child = ::fork();
    if (child == 0) {  // writes, waits until the test has swept, publishes
        storage::AtomicFile other{folder.path() / "b"};
        char byte = 'w';
        const bool told = ::write(to_test[1], &byte, 1) == 1 && ::read(to_child[0], &byte, 1) == 1;
        try {
            other.publish();
        } catch (...) {
            ::_exit(1);
        }
        ::_exit(told ? 0 : 2);
    }
    char byte = 0;
    ASSERT_EQ(::read(to_test[0], &byte, 1), 1);
    EXPECT_EQ(storage::remove_leftovers(folder.path(), 9, 0s), 0);
    ASSERT_EQ(::write(to_child[1], &byte, 1), 1);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    EXPECT_TRUE(fs::exists(folder.path() / "b"));
    for (const int end : {to_child[0], to_child[1], to_test[0], to_test[1]}) ::close(end);
}

TEST(Leftovers, OfOtherMachinesAndEarlierVersionsMustBeOldUnlessALockProtectsTheFolder) {
    const TemporaryFolder folder;
    const auto other = folder.path() / ".report.html.0badcafe-123.tmp";
    const auto earlier = folder.path() / ".report.html.1234567890.tmp";
    const auto make = [&] {
        for (const auto& file : {other, earlier}) {
            storage::write_file(folder.path() / "x", "half");
            fs::rename(folder.path() / "x", file);
        }
    };
    make();
    EXPECT_EQ(storage::remove_leftovers(folder.path()), 0);
    const int held = ::open(other.c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_EQ(::flock(held, LOCK_EX), 0);
    for (const auto& file : {other, earlier}) fs::last_write_time(file, fs::file_time_type::clock::now() - 2h);
    EXPECT_EQ(storage::remove_leftovers(folder.path()), 1) << "the other one is locked";
    EXPECT_TRUE(fs::exists(other));
    ::close(held);
    EXPECT_EQ(storage::remove_leftovers(folder.path()), 1);
    make();
    EXPECT_EQ(storage::remove_leftovers(folder.path(), 0, 0s), 2);
}

TEST(Leftovers, NoOtherFileIsTouched) {
    const TemporaryFolder folder;
    const auto old = fs::file_time_type::clock::now() - 48h;
    int files = 0;
    for (const char* name :
         {".tmp", ".a.tmp", ".123.tmp", "a.123.tmp", ".a.12b.tmp", ".a..tmp", ".a.0badcafe-.tmp", ".a.0badcafe-x.tmp",
          ".a.0BADCAFE-1.tmp", ".a.badcafe-1.tmp", ".a.123.tmp.bak", ".vimrc", ".a.123"}) {
        storage::write_file(folder.path() / "x", "mine");
        fs::rename(folder.path() / "x", folder.path() / name);
        fs::last_write_time(folder.path() / name, old);
        ++files;
    }
    fs::create_directory(folder.path() / ".folder.123.tmp");
    fs::create_symlink(folder.path() / ".vimrc", folder.path() / ".link.123.tmp");
    EXPECT_EQ(storage::remove_leftovers(folder.path(), 9, 0s), 0);
    int left = 0;
    for (const auto& entry : fs::directory_iterator{folder.path()})
        left += entry.is_symlink() || entry.is_regular_file();
    EXPECT_EQ(left, files + 1);
}

TEST(Leftovers, SweepingWhileOthersWriteLosesNothing) {
    const TemporaryFolder folder;
    std::atomic<bool> done{false};
    std::atomic<std::int64_t> swept{0};
    std::thread sweeper{[&] {
        while (!done) swept += storage::remove_leftovers(folder.path(), 0, 0s);
    }};
    for (int i = 0; i < 300; ++i)
        storage::write_file(folder.path() / std::to_string(i), bytes("text"), storage::Durability::process_end);
    done = true;
    sweeper.join();
    EXPECT_EQ(folder.count_files(), 300) << swept;
}

}  // namespace
