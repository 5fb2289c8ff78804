// Who holds a lock, how long others wait for it, and what they are told.

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <strata/core/file_lock.hpp>
#include <strata/core/lock_holder.hpp>

#include "../../support/other_process.hpp"
#include "../../support/temporary_folder.hpp"

namespace {

using strata::core::FileLock;
using strata::core::lock_holder;
using strata::core::LockFileOf;
using strata_test::OtherProcess;
using strata_test::TemporaryFolder;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

constexpr auto busy = std::errc::operation_would_block;

/// Holds the lock as FileLock does.
auto with_lock(const fs::path& file) {
    return [file] {
        auto lock = std::make_unique<FileLock>();
        return lock->hold(file) ? nullptr : std::move(lock);
    };
}

std::string text_of(const fs::path& file) {
    std::ifstream in{file};
    return {std::istreambuf_iterator<char>{in}, {}};
}
std::string this_program() { return fs::read_symlink("/proc/self/exe").filename().string(); }
std::string this_host() {
    std::array<char, 256> name{};
    return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

TEST(FileLock, IsHeldOnceAndFreeAgainWhenItsHolderIsKilled) {
    const TemporaryFolder folder;
    const fs::path file = folder.path() / "lock";
    OtherProcess other{with_lock(file)};
    FileLock lock;
    EXPECT_EQ(lock.hold(file), busy);
    EXPECT_FALSE(lock.is_held());
    EXPECT_TRUE(FileLock::may_be_held(file));
    other.end();
    EXPECT_FALSE(FileLock::may_be_held(file));
    EXPECT_FALSE(lock.hold(file));
    FileLock second;
    EXPECT_EQ(second.hold(file), busy) << "in one process, too";
    second = std::move(lock);
    EXPECT_TRUE(second.is_held());
    second.release();
    EXPECT_FALSE(FileLock::may_be_held(file));
}

TEST(FileLock, WaitsUntilTheTimeIsUpAndNoLonger) {
    const TemporaryFolder folder;
    const fs::path file = folder.path() / "lock";
    const OtherProcess other{with_lock(file)};
    FileLock lock;
    const auto began = std::chrono::steady_clock::now();
    EXPECT_EQ(lock.hold(file, LockFileOf::one_user, 150ms), busy);
    EXPECT_GE(std::chrono::steady_clock::now() - began, 150ms);
}

TEST(FileLock, WhoWaitsGetsItWhenItIsGivenBack) {
    const TemporaryFolder folder;
    const fs::path file = folder.path() / "lock";
    FileLock first;
    ASSERT_FALSE(first.hold(file));
    std::thread later{[&] {
        std::this_thread::sleep_for(20ms);
        first.release();
    }};
    FileLock second;
    EXPECT_FALSE(second.hold(file, LockFileOf::one_user, 100s));
    later.join();
}

TEST(FileLock, TheHolderIsNamedWithProcessHostProgramAndTime) {
    const TemporaryFolder folder;
    const fs::path file = folder.path() / "lock";
    const OtherProcess other{with_lock(file)};
    const std::string holder = FileLock::holder(file);
    EXPECT_TRUE(holder.starts_with(other.name() + this_host() + " ('" + this_program() + "', since 20")) << holder;
    EXPECT_TRUE(holder.ends_with(" UTC)")) << holder;
}

TEST(FileLock, AHolderThatWroteNothingIsNamedAsTheKernelKnowsIt) {
    const TemporaryFolder folder;
    const fs::path file = folder.path() / "lock";
    std::ofstream{file} << "77 elsewhere 2020-01-01T00:00:00Z old\n";  // of a run that has ended
    const OtherProcess other{[&] {
        const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
        return descriptor >= 0 && ::flock(descriptor, LOCK_EX) == 0;
    }};
    EXPECT_EQ(FileLock::holder(file), other.name() + this_host() + " ('" + this_program() + "')");
}

TEST(FileLock, ALockOfFcntlHasAHolderToo) {
    const TemporaryFolder folder;
    const fs::path file = folder.path() / "lock";
    const OtherProcess other{[&] {
        const int descriptor = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
        struct ::flock range {};
        range.l_type = F_WRLCK;
        return ::fcntl(descriptor, F_SETLK, &range) == 0;
    }};
    EXPECT_EQ(lock_holder(file), other.name() + this_host() + " ('" + this_program() + "')");
}

TEST(FileLock, AHolderOnAnotherHostIsKnownByItsNote) {
    const TemporaryFolder folder;
    const fs::path file = folder.path() / "lock";
    std::ofstream{file} << "x";
    EXPECT_EQ(lock_holder(file, "77 gpu3 2026-11-22T03:53:10Z my train\n"),
              "a process that cannot be seen from here; the file names process 77 on host gpu3 ('my train', since "
              "2026-11-22 03:53:10 UTC)");
    for (const char* no_note : {"", "\n", "hello", "0 host 2026-11-22T03:53:10Z x", "-1 a b c"})
        EXPECT_EQ(lock_holder(file, no_note), "a process that cannot be seen from here") << no_note;
}

TEST(FileLock, AHolderInThisProcessIsSaidToBeThisOne) {
    const TemporaryFolder folder;
    FileLock lock;
    ASSERT_FALSE(lock.hold(folder.path() / "lock"));
    const std::string holder = FileLock::holder(folder.path() / "lock");
    EXPECT_TRUE(holder.ends_with(", which is this one")) << holder;
}

TEST(FileLock, ANoteIsReplacedByTheNextHolders) {
    const TemporaryFolder folder;
    const fs::path file = folder.path() / "lock";
    std::ofstream{file} << std::string(300, 'x') << "\n";
    FileLock lock;
    ASSERT_FALSE(lock.hold(file));
    const std::string note = text_of(file);
    EXPECT_TRUE(note.starts_with(std::to_string(::getpid()) + " " + this_host() + " 20")) << note;
    EXPECT_TRUE(note.ends_with("Z " + this_program() + "\n")) << note;
}

TEST(FileLock, AFileThatIsReplacedWhileSomebodyWaitsIsNotLockedInItsPlace) {
    const TemporaryFolder folder;
    const fs::path file = folder.path() / "lock";
    FileLock first;
    ASSERT_FALSE(first.hold(file));
    FileLock second;
    std::error_code failed;
    std::thread waiting{[&] { failed = second.hold(file, LockFileOf::one_user, 100s); }};
    std::this_thread::sleep_for(5ms);
    fs::remove(file);  // as a session does that leaves no trace
    first.release();
    waiting.join();
    EXPECT_FALSE(failed) << failed.message();
    FileLock third;
    EXPECT_EQ(third.hold(file), busy) << "the lock is on a file that nobody finds";
}

TEST(FileLock, AMissingFolderIsTheSystemsError) {
    const TemporaryFolder folder;
    FileLock lock;
    EXPECT_EQ(lock.hold(folder.path() / "nowhere/lock"), std::errc::no_such_file_or_directory);
    EXPECT_TRUE(FileLock::may_be_held(folder.path() / "lock"));
    EXPECT_FALSE(fs::exists(folder.path() / "lock"));
}

TEST(FileLock, AnotherUsersFileCanBeLockedWhereAllUsersShareIt) {
    if (::geteuid() != 0) GTEST_SKIP() << "takes root, who can become another user";
    const TemporaryFolder folder;
    const fs::path file = folder.path() / "lock";
    std::ofstream{file} << "";
    fs::permissions(folder.path(), fs::perms::all);
    const auto as_nobody = [&](LockFileOf whose) {
        const OtherProcess other{[&] {
            auto lock = std::make_unique<FileLock>();
            return ::seteuid(65534) == 0 && !lock->hold(file, whose) ? std::move(lock) : nullptr;
        }};
        return FileLock::holder(file).starts_with(other.name());
    };
    EXPECT_TRUE(as_nobody(LockFileOf::all_users));
    EXPECT_THROW(as_nobody(LockFileOf::one_user), std::runtime_error);
}

}  // namespace
