// What is read back is what was written last, or an error says what is wrong with it.

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <strata/offload/host_arena.hpp>
#include <strata/offload/swap_file.hpp>

#include "../../support/temporary_folder.hpp"

namespace {

using strata::Errc;
using strata::offload::Coverage;
using strata::offload::HostArena;
using strata::offload::SwapFile;
using strata::offload::SwapFileOptions;
using strata::offload::SwapFolder;
using strata::offload::Transfer;
using strata_test::TemporaryFolder;
using strata_test::thrown_by;
namespace fs = std::filesystem;

/// A file of three windows that do not divide by anything, and a buffer that holds any of them.
struct Fixture {
    explicit Fixture(SwapFileOptions options = {}, const std::string& run = "run")
        : folder{disk.path(), run, 0}, file{folder, "s.swap", {10'000, 1, 4096}, std::move(options)} {}

    void move(const Transfer& order) {
        const auto io = strata::offload::make_block_io();
        Transfer transfer = order;
        io->submit(transfer);
        io->wait_one();
        ASSERT_EQ(transfer.error, 0);
    }
    void write(std::size_t window, int value) {
        std::memset(memory(), value, file.window_bytes(window));
        move(file.write_order(window, buffer.bytes()));
    }
    /// The first byte of a window that is as it was written.
    int read(std::size_t window) {
        std::memset(memory(), 0xee, file.window_bytes(window));
        move(file.read_order(window, buffer.bytes()));
        file.verify(window, buffer.bytes());
        return static_cast<int>(buffer.bytes()[0]);
    }
    /// Overwrites bytes of the file behind its back.
    void damage(std::uint64_t offset, std::span<const std::byte> bytes) {
        const int other = ::open(file.path().c_str(), O_WRONLY);
        EXPECT_EQ(::pwrite(other, bytes.data(), bytes.size(), static_cast<::off_t>(offset)),
                  static_cast<::ssize_t>(bytes.size()));
        ::close(other);
    }
    std::vector<std::byte> raw(std::uint64_t offset, std::size_t size) {
        std::vector<std::byte> bytes(size);
        const int other = ::open(file.path().c_str(), O_RDONLY);
        EXPECT_EQ(::pread(other, bytes.data(), size, static_cast<::off_t>(offset)), static_cast<::ssize_t>(size));
        ::close(other);
        return bytes;
    }
    std::byte* memory() { return buffer.bytes().data(); }

    TemporaryFolder disk;
    SwapFolder folder;
    SwapFile file;
    HostArena buffer{"a test", SwapFile::bytes_of(10'000)};
};

TEST(SwapFile, GivesBackEachWindowAsItWasWrittenLast) {
    for (const bool direct : {true, false}) {
        Fixture f{{.direct = direct}};
        for (const int step : {1, 2}) {
            for (std::size_t w = 0; w < 3; ++w) f.write(w, static_cast<int>(w) + 10 * step);
        }
        for (std::size_t w = 0; w < 3; ++w) {
            EXPECT_EQ(f.read(w), static_cast<int>(w) + 20);
            EXPECT_EQ(f.file.generation(w), 2U);
        }
        if (!direct) {
            EXPECT_FALSE(f.file.direct());
        }
    }
}

TEST(SwapFile, OwnsItsBlocksFromTheStartAndLeavesNothing) {
    fs::path path;
    {
        Fixture f;
        path = f.file.path();
        struct ::stat status {};
        ASSERT_EQ(::stat(path.c_str(), &status), 0);
        EXPECT_EQ(f.file.file_bytes(), std::uint64_t{12'288 + 4096 + 2 * 8192});
        EXPECT_GE(static_cast<std::uint64_t>(status.st_blocks) * 512, f.file.file_bytes());
    }
    EXPECT_FALSE(fs::exists(path));
}

TEST(SwapFile, AWindowThatWasNeverWrittenIsNotRead) {
    Fixture f;
    EXPECT_EQ(thrown_by([&] { (void)f.read(0); }).code, Errc::wrong_call_order);
}

TEST(SwapFile, AFlippedBitIsNoticedInEveryPartOfAWindow) {
    Fixture f{{.coverage = Coverage::every_byte}};
    for (const std::uint64_t at : {0UL, 3000UL, 9'999UL, 12'288UL + 24, 12'288UL + 40}) {
        f.write(0, 5);
        std::vector<std::byte> byte = f.raw(at, 1);
        byte[0] ^= std::byte{1};
        f.damage(at, byte);
        const auto error = thrown_by([&] { (void)f.read(0); });
        EXPECT_EQ(error.code, Errc::stale_swap) << at;
        EXPECT_TRUE(error.says(f.file.path().string())) << error.message;
    }
    f.write(0, 6);
    EXPECT_EQ(f.read(0), 6);
}

TEST(SwapFile, WithoutCheckSumsGenerationsAreStillCompared) {
    Fixture f{{.coverage = Coverage::none}};
    f.write(0, 5);
    const auto old = f.raw(0, f.file.window_bytes(0));
    f.damage(0, std::vector<std::byte>(1, std::byte{9}));
    EXPECT_EQ(f.read(0), 9);
    f.write(0, 6);
    f.damage(0, old);
    EXPECT_EQ(thrown_by([&] { (void)f.read(0); }).code, Errc::stale_swap);
}

TEST(SwapFile, AnEarlierGenerationIsSaidSo) {
    Fixture f;
    f.write(1, 5);
    const std::uint64_t at = f.file.window_bytes(0);
    const auto old = f.raw(at, f.file.window_bytes(1));
    f.write(1, 6);
    f.damage(at, old);  // a write that the disk acknowledged and lost
    const auto error = thrown_by([&] { (void)f.read(1); });
    EXPECT_EQ(error.code, Errc::stale_swap);
    EXPECT_TRUE(error.says("is generation 1 where generation 2 was written last")) << error.message;
}

TEST(SwapFile, AWindowTornBetweenTwoGenerationsIsNoticed) {
    Fixture f;
    for (std::uint64_t at = 0; at < 9'728; at += 512) {  // one sector of the old one, under the new seal
        f.write(0, 5);
        const auto old = f.raw(at, 512);
        f.write(0, 6);
        f.damage(at, old);
        EXPECT_EQ(thrown_by([&] { (void)f.read(0); }).code, Errc::stale_swap) << at;
    }
}

TEST(SwapFile, ABlockOfAnotherRunIsNoticed) {
    Fixture f;
    Fixture other{{}, "other"};
    f.write(0, 5);
    other.write(0, 5);
    f.damage(0, other.raw(0, f.file.window_bytes(0)));
    EXPECT_EQ(thrown_by([&] { (void)f.read(0); }).code, Errc::stale_swap);
}

TEST(SwapFile, AnOrderThatFailedIsToldByWindowAndFile) {
    Fixture f;
    Transfer order = f.file.write_order(0, f.buffer.bytes());
    order.error = EIO;
    auto error = thrown_by([&] { f.file.check(0, order); });
    EXPECT_EQ(error.code, Errc::io_failed);
    EXPECT_TRUE(error.says("cannot write window 0 of " + f.file.path().string())) << error.message;
    order.error = ENOSPC;
    EXPECT_EQ(thrown_by([&] { f.file.check(0, order); }).code, Errc::no_space);
    order = f.file.read_order(0, f.buffer.bytes());
    order.ended = true;
    EXPECT_EQ(thrown_by([&] { f.file.check(0, order); }).code, Errc::stale_swap);
    order.ended = false;
    EXPECT_NO_THROW(f.file.check(0, order));
}

TEST(SwapFile, ADiskTooSmallIsToldBeforeAnythingIsWritten) {
    const TemporaryFolder disk;
    const SwapFolder folder{disk.path(), "run", 0};
    const auto error = thrown_by([&] { const SwapFile file{folder, "s.swap", {std::size_t{1} << 50}}; });
    EXPECT_EQ(error.code, Errc::no_space);
    EXPECT_TRUE(error.says("needs 1048576.00 GiB on ")) << error.message;
    EXPECT_FALSE(fs::exists(folder.file("s.swap")));
}

TEST(SwapFile, ADiskThatFillsUpWhileBlocksAreAllocatedLeavesNothing) {
    const TemporaryFolder disk;
    const SwapFolder folder{disk.path(), "run", 0};
    const auto error = thrown_by([&] {
        const SwapFile file{folder, "s.swap", {4096}, {.preallocate = [](int, std::uint64_t) { return ENOSPC; }}};
    });
    EXPECT_EQ(error.code, Errc::no_space);
    EXPECT_FALSE(fs::exists(folder.file("s.swap")));
}

TEST(SwapFile, AFileThatIsThereAlreadyIsNotTouched) {
    Fixture f;
    f.write(0, 5);
    EXPECT_EQ(thrown_by([&] { const SwapFile second{f.folder, "s.swap", {4096}}; }).code, Errc::io_failed);
    EXPECT_EQ(f.read(0), 5);
}

TEST(SwapFile, WorksOnARealSmallDiskAndRefusesWhatDoesNotFit) {
    const TemporaryFolder mountpoint;
    if (::mount("tmpfs", mountpoint.path().c_str(), "tmpfs", 0, "size=256k") != 0) {
        GTEST_SKIP() << "mounting a small disk needs root; the error numbers were checked";
    }
    {
        const SwapFolder folder{mountpoint.path(), "run", 0};
        const auto predicted = thrown_by([&] { const SwapFile file{folder, "s.swap", {300'000}}; });
        EXPECT_EQ(predicted.code, Errc::no_space);
        EXPECT_TRUE(predicted.says("needs 0.00 GiB on")) << predicted.message;
        const SwapFile first{folder, "a.swap", {150'000}};
        EXPECT_EQ(thrown_by([&] { const SwapFile second{folder, "b.swap", {150'000}}; }).code, Errc::no_space);
    }
    ::umount(mountpoint.path().c_str());
}

}  // namespace
