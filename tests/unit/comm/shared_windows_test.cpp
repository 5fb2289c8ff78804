// Windows of shared memory between ranks, which are threads here: the protocol is the same.

#include <atomic>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <strata/comm/shared_windows.hpp>

namespace {

using strata::Errc;
using strata::Error;
using strata::comm::CollectiveLog;
using strata::comm::CollectiveRecord;
using strata::comm::SharedMemory;
using strata::comm::SharedWindows;

constexpr std::size_t window_bytes = 64;

/// Calls `body` on `world` threads with windows of their own over the same memory.
void on_ranks(int world, const std::function<void(int, SharedWindows&, std::atomic<bool>&)>& body) {
    const SharedMemory memory = SharedMemory::create(SharedWindows::bytes_for(world, window_bytes));
    std::vector<std::thread> ranks;
    for (int rank = 0; rank < world; ++rank) {
        ranks.emplace_back([&, rank] {
            std::atomic<bool> interrupted = false;
            SharedWindows windows{memory.data(), rank, world, window_bytes, interrupted};
            body(rank, windows, interrupted);
        });
    }
    for (std::thread& rank : ranks) rank.join();
}

CollectiveRecord named(std::string_view op, std::uint64_t bytes) {
    CollectiveLog log;
    return log.begin(op, bytes).record();
}

Errc code_of(const std::function<void()>& body) {
    try {
        body();
    } catch (const Error& error) {
        return error.code();
    }
    return Errc{};
}

TEST(SharedWindows, EveryRankReadsEveryWindowOfEveryRound) {
    for (const int world : {2, 3, 5}) {
        std::atomic<int> wrong = 0;
        on_ranks(world, [&](int rank, SharedWindows& windows, std::atomic<bool>&) {
            const auto value = [](int of, std::size_t collective, std::size_t round) {
                return static_cast<std::uint64_t>(of) + 100 * round + 100000 * collective;
            };
            for (std::size_t collective = 0; collective < 300; ++collective) {
                windows.exchange(
                    named("all_gather", 8), 1 + collective % 5,
                    [&](std::size_t round, std::byte* to) {
                        const auto mine = value(rank, collective, round);
                        std::memcpy(to, &mine, sizeof mine);
                    },
                    [&](std::size_t round) {
                        for (int other = 0; other < world; ++other) {
                            std::uint64_t theirs = 0;
                            std::memcpy(&theirs, windows.window_of(other), sizeof theirs);
                            if (theirs != value(other, collective, round)) ++wrong;
                        }
                    });
            }
        });
        EXPECT_EQ(wrong, 0) << world;
    }
}

TEST(SharedWindows, RanksThatMeanDifferentThingsAllThrowRankMismatch) {
    std::vector<Errc> codes(3);
    std::atomic<int> taken = 0;
    on_ranks(3, [&](int rank, SharedWindows& windows, std::atomic<bool>&) {
        codes[static_cast<std::size_t>(rank)] = code_of([&] {
            windows.exchange(
                named("all_gather", rank == 1 ? 8 : 16), 2, [](std::size_t, std::byte*) {},
                [&](std::size_t) { ++taken; });
        });
    });
    EXPECT_EQ(codes, std::vector<Errc>(3, Errc::rank_mismatch));
    EXPECT_EQ(taken, 0);
}

TEST(SharedWindows, AWaitingRankCanBeInterrupted) {
    const SharedMemory memory = SharedMemory::create(SharedWindows::bytes_for(2, window_bytes));
    std::atomic<bool> interrupted = false;
    SharedWindows windows{memory.data(), 0, 2, window_bytes, interrupted};
    Errc code{};
    std::thread waiting{[&] {
        code = code_of([&] {
            windows.exchange(
                named("barrier", 0), 1, [](std::size_t, std::byte*) {}, [](std::size_t) {});
        });
    }};
    interrupted = true;
    waiting.join();
    EXPECT_EQ(code, Errc::rank_failed);
}

TEST(SharedWindows, MemoryIsSeenByAnotherProcess) {
    const SharedMemory memory = SharedMemory::create(4096);
    const pid_t parent = ::getpid();
    const pid_t child = ::fork();
    if (child == 0) {
        const SharedMemory same = SharedMemory::open(parent, memory.file(), 4096);
        same.data()[17] = std::byte{42};
        ::_exit(0);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(memory.data()[17], std::byte{42});
}

TEST(SharedWindows, MemoryThatIsNotThereIsIoFailed) {
    const SharedMemory memory = SharedMemory::create(4096);
    EXPECT_EQ(code_of([&] { (void)SharedMemory::open(::getpid(), memory.file(), 8192); }),
              Errc::io_failed);  // another size
    EXPECT_EQ(code_of([] { (void)SharedMemory::open(::getpid(), 1'000'000, 4096); }), Errc::io_failed);
    EXPECT_EQ(code_of([] { (void)SharedMemory::create(std::numeric_limits<std::size_t>::max()); }), Errc::io_failed);
}

}  // namespace
