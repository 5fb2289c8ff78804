// Both engines move the same bytes, go on after short answers, and report what the system reports.

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <mutex>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <strata/offload/block_io.hpp>
#include <strata/storage/atomic_file.hpp>

#include "../../support/temporary_folder.hpp"

namespace {

using strata::Errc;
using strata::offload::IoDirection;
using strata::offload::IoEngine;
using strata::offload::IoOptions;
using strata::offload::make_block_io;
using strata::offload::Transfer;
using strata_test::TemporaryFolder;
using strata_test::thrown_by;

constexpr std::size_t page = 4096;

struct Aligned {
    explicit Aligned(std::size_t size)
        : memory{static_cast<std::byte*>(std::aligned_alloc(page, size)), &std::free}, bytes{memory.get(), size} {
        std::fill(bytes.begin(), bytes.end(), std::byte{});
    }
    std::unique_ptr<std::byte, decltype(&std::free)> memory;
    std::span<std::byte> bytes;
};

Aligned random_bytes(std::size_t size, unsigned seed) {
    Aligned memory{size};
    std::mt19937 random{seed};
    for (std::byte& byte : memory.bytes) byte = static_cast<std::byte>(random());
    return memory;
}

class BlockIo : public testing::TestWithParam<IoEngine> {
protected:
    void SetUp() override {
        if (GetParam() == IoEngine::uring && !strata::offload::has_uring()) {
            GTEST_SKIP() << "this kernel refuses io_uring; the threads are tested";
        }
        path_ = folder_.path() / "file";
        file_ = ::open(path_.c_str(), O_RDWR | O_CREAT, 0600);
        ASSERT_GE(file_, 0);
        options_.engine = GetParam();
        options_.block_bytes = 2 * page;
    }
    void TearDown() override {
        if (file_ >= 0) ::close(file_);
    }
    Transfer order(IoDirection direction, std::uint64_t offset, std::span<std::byte> bytes) const {
        Transfer transfer;
        transfer.direction = direction;
        transfer.descriptor = file_;
        transfer.offset = offset;
        transfer.bytes = bytes;
        return transfer;
    }
    /// Runs one transfer to its end.
    Transfer transferred(IoDirection direction, std::uint64_t offset, std::span<std::byte> bytes) const {
        const auto io = make_block_io(options_);
        Transfer transfer = order(direction, offset, bytes);
        io->submit(transfer);
        EXPECT_FALSE(transfer.finished) << "only poll() and wait_one() may say so";
        io->wait_one();
        EXPECT_TRUE(transfer.finished);
        EXPECT_EQ(io->in_flight(), 0U);
        return transfer;
    }

    TemporaryFolder folder_;
    std::filesystem::path path_;
    int file_ = -1;
    IoOptions options_;
};

TEST_P(BlockIo, ReadsBackWhatItWroteAtAnyOffset) {
    const Aligned out = random_bytes(5 * page, 1);
    EXPECT_EQ(transferred(IoDirection::write, 3 * page, out.bytes).error, 0);
    const Aligned in{5 * page};
    EXPECT_EQ(transferred(IoDirection::read, 3 * page, in.bytes).error, 0);
    EXPECT_TRUE(std::equal(in.bytes.begin(), in.bytes.end(), out.bytes.begin()));
    EXPECT_EQ(strata::storage::read_file(path_).size(), 8 * page);
}

TEST_P(BlockIo, TakesMoreTransfersThanItsQueueIsDeep) {
    options_.queue_depth = 4;
    options_.threads = 3;
    options_.block_bytes = page;
    const Aligned out = random_bytes(64 * page, 2);
    const Aligned in{64 * page};
    const auto io = make_block_io(options_);
    for (const IoDirection direction : {IoDirection::write, IoDirection::read}) {
        const std::span<std::byte> memory = direction == IoDirection::write ? out.bytes : in.bytes;
        std::vector<Transfer> transfers;
        for (std::size_t i = 0; i < 16; ++i) {
            transfers.push_back(order(direction, i * 4 * page, memory.subspan(i * 4 * page, 4 * page)));
        }
        for (Transfer& transfer : transfers) io->submit(transfer);
        while (io->in_flight() > 0) io->wait_one();
        for (const Transfer& transfer : transfers) EXPECT_TRUE(transfer.finished && transfer.error == 0);
    }
    EXPECT_TRUE(std::equal(in.bytes.begin(), in.bytes.end(), out.bytes.begin()));
}

TEST_P(BlockIo, GoesOnAfterShortReadsAndWrites) {
    std::atomic<int> calls = 0;
    options_.block_bytes = 8 * page;
    options_.faults.block = [&calls](IoDirection, std::uint64_t, std::size_t length) {
        ++calls;
        return static_cast<std::int64_t>(std::min(length, 3 * page));
    };
    const Aligned out = random_bytes(8 * page, 3);
    EXPECT_EQ(transferred(IoDirection::write, 0, out.bytes).error, 0);
    EXPECT_EQ(calls, 3);
    const Aligned in{8 * page};
    EXPECT_EQ(transferred(IoDirection::read, 0, in.bytes).error, 0);
    EXPECT_EQ(calls, 6);
    EXPECT_TRUE(std::equal(in.bytes.begin(), in.bytes.end(), out.bytes.begin()));
}

TEST_P(BlockIo, OneBadBlockFailsItsTransferAndNoOther) {
    options_.faults.block = [](IoDirection, std::uint64_t offset, std::size_t length) {
        return offset == 2 * page ? -std::int64_t{EIO} : static_cast<std::int64_t>(length);
    };
    const Aligned memory{8 * page};
    const auto io = make_block_io(options_);
    Transfer bad = order(IoDirection::write, 0, memory.bytes.first(4 * page));
    Transfer good = order(IoDirection::write, 4 * page, memory.bytes.last(4 * page));
    io->submit(bad);
    io->submit(good);
    while (io->in_flight() > 0) io->wait_one();
    EXPECT_EQ(bad.error, EIO);
    EXPECT_EQ(good.error, 0);
}

TEST_P(BlockIo, SaysThatTheFileEndedInsideOfARead) {
    const Aligned memory{6 * page};
    EXPECT_EQ(transferred(IoDirection::write, 0, memory.bytes).error, 0);
    for (const ::off_t size : {::off_t{5 * page}, ::off_t{5 * page + 100}, ::off_t{0}}) {
        ASSERT_EQ(::ftruncate(file_, size), 0);
        const Transfer transfer = transferred(IoDirection::read, 0, memory.bytes);
        EXPECT_TRUE(transfer.ended) << size;
        EXPECT_EQ(transfer.error, 0);
    }
}

TEST_P(BlockIo, ReportsTheSystemsOwnErrors) {
    const Aligned memory{page};
    ::close(file_);
    file_ = ::open(path_.c_str(), O_RDONLY);
    EXPECT_EQ(transferred(IoDirection::write, 0, memory.bytes).error, EBADF);
}

TEST_P(BlockIo, ItsEndWaitsForWhatIsUnderWay) {
    const Aligned out = random_bytes(64 * page, 4);
    Transfer transfer = order(IoDirection::write, 0, out.bytes);
    { make_block_io(options_)->submit(transfer); }
    EXPECT_TRUE(transfer.finished);
    const auto written = strata::storage::read_file(path_);
    EXPECT_TRUE(std::equal(written.begin(), written.end(), out.bytes.begin(), out.bytes.end()));
}

TEST_P(BlockIo, IsTheEngineThatWasAskedFor) { EXPECT_EQ(make_block_io(options_)->engine(), GetParam()); }

TEST_P(BlockIo, RefusesBlocksThatDirectIoCannotMove) {
    for (const std::size_t size : {std::size_t{0}, std::size_t{1000}, std::size_t{1} << 31}) {
        options_.block_bytes = size;
        EXPECT_EQ(thrown_by([&] { (void)make_block_io(options_); }).code, Errc::bad_value) << size;
    }
}

INSTANTIATE_TEST_SUITE_P(Engines, BlockIo, testing::Values(IoEngine::uring, IoEngine::threads),
                         [](const auto& instance) { return instance.param == IoEngine::uring ? "Uring" : "Threads"; });

}  // namespace
