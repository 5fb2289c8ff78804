// Room that is kept is there when it is given back, and what cannot be kept is said with numbers.

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>

#include <sys/stat.h>

#include <gtest/gtest.h>

#include <strata/core/error.hpp>
#include <strata/storage/reserved_room.hpp>

#include "../../support/temporary_folder.hpp"

namespace {

using strata::Errc;
using strata::storage::ReservedRoom;

std::uint64_t blocks_of(const std::filesystem::path& file) {
    struct ::stat status {};
    return ::stat(file.c_str(), &status) == 0 ? static_cast<std::uint64_t>(status.st_blocks) * 512 : 0;
}

TEST(ReservedRoom, HasItsBlocksUntilItIsReleased) {
    const strata_test::TemporaryFolder folder;
    const auto file = folder.path() / "below/.reserve";
    ReservedRoom room{file, "a test"};
    EXPECT_FALSE(std::filesystem::exists(file)) << "made before it was asked for";
    if (!room.make(3 << 20)) GTEST_SKIP() << "this file system cannot reserve room";
    EXPECT_GE(blocks_of(file), 3U << 20U);
    ASSERT_TRUE(room.make(1 << 20)) << "again, for less";
    EXPECT_EQ(std::filesystem::file_size(file), 1U << 20U);
    room.release();
    EXPECT_FALSE(std::filesystem::exists(file));
    room.release();
    ASSERT_TRUE(room.make(4096));
    EXPECT_TRUE(std::filesystem::exists(file));
}

TEST(ReservedRoom, TakesOverWhatAKilledRunLeft) {
    const strata_test::TemporaryFolder folder;
    const auto file = folder.path() / ".reserve";
    std::ofstream{file} << std::string(10000, 'x');
    {
        ReservedRoom room{file, "a test"};
        if (!room.make(5000)) GTEST_SKIP() << "this file system cannot reserve room";
        EXPECT_EQ(std::filesystem::file_size(file), 5000U);
    }
    EXPECT_FALSE(std::filesystem::exists(file));
}

TEST(ReservedRoom, AFullDiskIsAnErrorWithNumbers) {
    const strata_test::TemporaryFolder folder;
    for (const int error : {ENOSPC, EDQUOT}) {
        ReservedRoom room{folder.path() / ".reserve", "one checkpoint", [error](int, std::uint64_t) { return error; }};
        try {
            (void)room.make(5'000'000'000);
            FAIL() << "nothing was thrown";
        } catch (const strata::Error& thrown) {
            EXPECT_EQ(thrown.code(), Errc::no_space);
            EXPECT_NE(thrown.problem().find("lacks room for one checkpoint, which takes 5.0 GB; "), std::string::npos)
                << thrown.what();
            EXPECT_NE(thrown.problem().find(" are free"), std::string::npos) << thrown.what();
        }
        EXPECT_FALSE(std::filesystem::exists(folder.path() / ".reserve"));
    }
}

TEST(ReservedRoom, AFileSystemThatCannotIsNoError) {
    const strata_test::TemporaryFolder folder;
    for (const int error : {EOPNOTSUPP, ENOSYS}) {
        ReservedRoom room{folder.path() / ".reserve", "a test", [error](int, std::uint64_t) { return error; }};
        EXPECT_FALSE(room.make(4096));
        EXPECT_FALSE(std::filesystem::exists(folder.path() / ".reserve"));
    }
    ReservedRoom broken{folder.path() / ".reserve", "a test", [](int, std::uint64_t) { return EIO; }};
    EXPECT_THROW((void)broken.make(4096), strata::Error);
}

}  // namespace
