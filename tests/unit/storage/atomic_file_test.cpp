#include <cerrno>
#include <csignal>
#include <string>

#include <sys/mount.h>
#include <sys/resource.h>

#include <gtest/gtest.h>

#include <strata/storage/atomic_file.hpp>
#include <strata/storage/local.hpp>

#include "../../support/temporary_folder.hpp"

namespace {

using strata::Errc;
using strata_test::TemporaryFolder;
using strata_test::thrown_by;
namespace storage = strata::storage;

TEST(AtomicFile, AnUnpublishedFileLeavesTheOldOneAndNothingElse) {
    const TemporaryFolder folder;
    storage::write_file(folder.path() / "a", "old");
    {
        storage::AtomicFile file{folder.path() / "a"};
        file.write(std::as_bytes(std::span{"new", 3}));
        EXPECT_EQ(folder.count_files(), 2);
        EXPECT_EQ(strata::Local{folder.path()}.list("").size(), 1U);  // the temporary file is hidden from stores
    }
    EXPECT_EQ(folder.count_files(), 1);
    EXPECT_EQ(storage::read_file(folder.path() / "a").size(), 3U);
}

TEST(AtomicFile, AFailingWriteLeavesNothing) {
    const TemporaryFolder folder;
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
    const rlimit small{4096, before.rlim_max};
    const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
    const auto error = thrown_by([&] { storage::write_file(folder.path() / "big", std::string(10'000, 'x')); });
    ::setrlimit(RLIMIT_FSIZE, &before);
    std::signal(SIGXFSZ, old_handler);
    EXPECT_EQ(error.code, Errc::io_failed);
    EXPECT_TRUE(error.says("big")) << error.message;
    EXPECT_EQ(folder.count_files(), 0);
}

TEST(AtomicFile, AFullDiskIsSaidSoAndLeavesNothing) {
    EXPECT_EQ(storage::detail::file_error(ENOSPC, "write", "x").code(), Errc::no_space);
    EXPECT_EQ(storage::detail::file_error(EDQUOT, "write", "x").code(), Errc::no_space);
    const TemporaryFolder folder;
    const std::filesystem::path disk = folder.path() / "disk";
    std::filesystem::create_directory(disk);
    if (::mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=64k") != 0)
        GTEST_SKIP() << "mounting a small disk needs root; the error numbers were checked";
    storage::write_file(disk / "before", "kept");
    const auto error = thrown_by([&] { storage::write_file(disk / "big", std::string(200'000, 'x')); });
    const int files = folder.count_files();
    ::umount(disk.c_str());
    EXPECT_EQ(error.code, Errc::no_space);
    EXPECT_EQ(files, 1);
}

TEST(AtomicFile, AFolderThatCannotBeMadeIsNamed) {
    const TemporaryFolder folder;
    storage::write_file(folder.path() / "file", "1");
    const auto error = thrown_by([&] { storage::write_file(folder.path() / "file" / "x", "1"); });
    EXPECT_EQ(error.code, Errc::io_failed);
    EXPECT_TRUE(error.says("file")) << error.message;
    EXPECT_EQ(thrown_by([&] { (void)storage::read_file(folder.path()); }).code, Errc::io_failed);
}

}  // namespace
