// Collectives on 1, 2 and 3 ranks: sizes nothing divides, windows and messages in pieces, sums in rank order.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <sys/resource.h>

#include <gtest/gtest.h>

#include <strata/comm/any_comm.hpp>
#include <strata/comm/channel.hpp>
#include <strata/comm/mpi_comm.hpp>
#include <strata/comm/wait_listener.hpp>
#include <strata/core/bf16.hpp>
#include <strata/core/error.hpp>

#include "bits.hpp"

namespace {

using strata::bf16;
using strata::to_bf16;
using strata::to_float;
using strata::comm::MpiComm;

const std::vector<std::size_t> odd_sizes{0, 1, 2, 3, 17, 255, 256, 257, 1000, 300'001};

/// Values that round differently in every order of addition.
float value_of(int rank, std::size_t i) {
    return std::ldexp(
               1.0F + static_cast<float>((i * 2654435761U + static_cast<std::size_t>(rank) * 40503U) % 8191) / 8192.0F,
               static_cast<int>((i + static_cast<std::size_t>(rank) * 7U) % 23) - 11) *
           (i % 2 == 0 ? 1.0F : -1.0F);
}

TEST(MpiComm, AllGatherPutsEveryRankInItsPlace) {
    MpiComm comm;
    const auto world = static_cast<std::size_t>(comm.world());
    for (const std::size_t n : odd_sizes) {
        std::vector<float> mine(n);
        for (std::size_t i = 0; i < n; ++i) mine[i] = value_of(comm.rank(), i);
        std::vector<float> all(n * world);
        comm.all_gather(std::as_bytes(std::span{mine}), std::as_writable_bytes(std::span{all}));
        for (std::size_t rank = 0; rank < world; ++rank) {
            for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(all[rank * n + i], value_of(static_cast<int>(rank), i));
        }
    }
}

TEST(MpiComm, AllGatherWorksInPlace) {
    MpiComm comm;
    const auto world = static_cast<std::size_t>(comm.world());
    std::vector<int> all(world * 5, -1);
    const std::span<int> mine = std::span{all}.subspan(static_cast<std::size_t>(comm.rank()) * 5, 5);
    std::fill(mine.begin(), mine.end(), comm.rank());
    comm.all_gather(std::as_bytes(mine), std::as_writable_bytes(std::span{all}));
    for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i], static_cast<int>(i / 5));
}

TEST(MpiComm, AllGatherVariedKeepsEveryLength) {
    MpiComm comm{{.shared_memory = false, .piece_bytes = 7}};
    const std::string mine(static_cast<std::size_t>(comm.rank()) * 10, static_cast<char>('a' + comm.rank()));
    const auto all = comm.all_gather_varied(mine);
    ASSERT_EQ(all.size(), static_cast<std::size_t>(comm.world()));
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
        EXPECT_EQ(all[rank], std::string(rank * 10, static_cast<char>('a' + rank)));
    }
}

TEST(MpiComm, BroadcastGivesEveryRootsBytes) {
    MpiComm comm{{.shared_memory = false, .piece_bytes = 64}};
    for (int root = 0; root < comm.world(); ++root) {
        std::vector<int> values(777, comm.rank());
        comm.broadcast(std::as_writable_bytes(std::span{values}), root);
        EXPECT_EQ(values, std::vector<int>(777, root));
    }
}

TEST(MpiComm, ReduceScatterSumsInRankOrder) {
    MpiComm comm;
    const auto world = static_cast<std::size_t>(comm.world());
    for (const std::size_t n : odd_sizes) {
        std::vector<float> all(n * world);
        for (std::size_t i = 0; i < all.size(); ++i) all[i] = value_of(comm.rank(), i);
        std::vector<float> mine(n);
        comm.reduce_scatter(std::span<const float>{all}, std::span<float>{mine});
        for (std::size_t i = 0; i < n; ++i) {
            const std::size_t at = static_cast<std::size_t>(comm.rank()) * n + i;
            float expected = value_of(0, at);
            for (int rank = 1; rank < comm.world(); ++rank) expected += value_of(rank, at);
            ASSERT_EQ(mine[i], expected) << "element " << at << " of " << all.size();
            ASSERT_EQ(all[at], value_of(comm.rank(), at)) << "the input was changed";
        }
    }
}

TEST(MpiComm, ReduceScatterMayWriteIntoItsInput) {
    MpiComm comm;
    const auto world = static_cast<std::size_t>(comm.world());
    for (const std::size_t n : odd_sizes) {
        std::vector<float> all(n * world);
        for (std::size_t i = 0; i < all.size(); ++i) all[i] = value_of(comm.rank(), i);
        std::vector<float> apart(n);
        comm.reduce_scatter(std::span<const float>{all}, std::span<float>{apart});
        const std::span<float> mine = std::span{all}.subspan(static_cast<std::size_t>(comm.rank()) * n, n);
        comm.reduce_scatter(std::span<const float>{all}, mine);
        EXPECT_TRUE(std::equal(mine.begin(), mine.end(), apart.begin()));
    }
}

TEST(MpiComm, ReduceScatterOfBf16SumsInFp32AndRoundsOnce) {
    MpiComm comm;
    const auto world = static_cast<std::size_t>(comm.world());
    const std::size_t n = 1003;
    std::vector<bf16> all(n * world);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = to_bf16(value_of(comm.rank(), i));
    std::vector<bf16> half(n);
    std::vector<float> full(n);
    comm.reduce_scatter(std::span<const bf16>{all}, std::span<bf16>{half});
    comm.reduce_scatter(std::span<const bf16>{all}, std::span<float>{full});
    for (std::size_t i = 0; i < n; ++i) {
        const std::size_t at = static_cast<std::size_t>(comm.rank()) * n + i;
        float expected = to_float(to_bf16(value_of(0, at)));
        for (int rank = 1; rank < comm.world(); ++rank) expected += to_float(to_bf16(value_of(rank, at)));
        EXPECT_EQ(full[i], expected);
        EXPECT_EQ(half[i], to_bf16(expected));
    }
}

TEST(MpiComm, PiecesOfAnySizeGiveTheSameResult) {
    MpiComm whole;
    const auto world = static_cast<std::size_t>(whole.world());
    const std::size_t n = 1001;
    std::vector<float> all(n * world);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = value_of(whole.rank(), i);
    std::vector<float> expected(n);
    whole.reduce_scatter(std::span<const float>{all}, std::span<float>{expected});
    std::vector<float> expected_all(n * world);
    whole.all_gather(std::as_bytes(std::span{expected}), std::as_writable_bytes(std::span{expected_all}));
    for (const std::size_t piece : {std::size_t{3}, std::size_t{4}, std::size_t{40}, std::size_t{4004}}) {
        MpiComm comm{{.shared_memory = false, .piece_bytes = piece}};
        std::vector<float> mine(n);
        comm.reduce_scatter(std::span<const float>{all}, std::span<float>{mine});
        EXPECT_EQ(mine, expected) << piece;
        std::vector<float> gathered(n * world);
        comm.all_gather(std::as_bytes(std::span{mine}), std::as_writable_bytes(std::span{gathered}));
        EXPECT_EQ(gathered, expected_all) << piece;
    }
}

/// The bits of every collective at odd sizes, through one communicator.
std::vector<std::uint32_t> everything(MpiComm& comm) {
    const auto world = static_cast<std::size_t>(comm.world());
    std::vector<std::uint32_t> bits;
    const strata_test::AppendBits keep{bits};
    for (const std::size_t n : {0, 1, 2, 3, 17, 31, 32, 33, 257, 5003}) {
        std::vector<float> all(n * world);
        std::vector<bf16> halves(n * world);
        for (std::size_t i = 0; i < all.size(); ++i) all[i] = value_of(comm.rank(), i);
        for (std::size_t i = 0; i < all.size(); ++i) halves[i] = to_bf16(all[i]);
        std::vector<float> sum(n);
        std::vector<bf16> half_sum(n);
        comm.reduce_scatter(std::span<const float>{all}, std::span<float>{sum});
        keep(sum);
        comm.reduce_scatter(std::span<const bf16>{halves}, std::span<float>{sum});
        keep(sum);
        comm.reduce_scatter(std::span<const bf16>{halves}, std::span<bf16>{half_sum});
        keep(half_sum);
        comm.all_gather(std::as_bytes(std::span{half_sum}), std::as_writable_bytes(std::span{halves}));
        keep(halves);
        std::vector<float> sent = sum;
        comm.broadcast(std::as_writable_bytes(std::span{sent}), comm.world() - 1);
        keep(sent);
        for (const std::string& text :
             comm.all_gather_varied(std::string(n * static_cast<std::size_t>(comm.rank()), 'x'))) {
            bits.push_back(static_cast<std::uint32_t>(text.size()));
            keep(text);
        }
    }
    return bits;
}

TEST(MpiComm, SharedMemoryGivesTheSameBitsAsMessages) {
    MpiComm messages{{.shared_memory = false}};
    const std::vector<std::uint32_t> expected = everything(messages);
    ASSERT_GT(expected.size(), 5000U);
    for (const std::size_t window : {64U, 128U, 4096U, 1U << 19U}) {
        MpiComm shared{{.window_bytes = window}};
        if (shared.world() > 1) {
            ASSERT_EQ(shared.transport(), "shared memory");
        }
        EXPECT_EQ(everything(shared), expected) << window;
    }
    EXPECT_EQ(messages.transport(), messages.world() > 1 ? "MPI, because shared memory is switched off" : "MPI");
}

TEST(MpiComm, FallsBackToMessagesWhenOneRankCannotMapTheMemory) {
    for (int unlucky = 0; unlucky < 2; ++unlucky) {
        rlimit files{};
        getrlimit(RLIMIT_NOFILE, &files);
        const rlimit none{0, files.rlim_max};
        int rank = 0;
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        if (rank == unlucky) setrlimit(RLIMIT_NOFILE, &none);
        MpiComm comm;
        setrlimit(RLIMIT_NOFILE, &files);
        if (comm.world() > 1) {
            EXPECT_TRUE(comm.transport().starts_with("MPI, because ")) << comm.transport();
            EXPECT_TRUE(comm.transport().ends_with(" on rank " + std::to_string(unlucky))) << comm.transport();
        }
        std::vector<double> one{1.0};
        comm.all_reduce_sum(one);
        EXPECT_EQ(one[0], 1.0 * comm.world());
    }
}

TEST(MpiComm, RanksThatDisagreeOnSharedMemoryAllThrow) {
    MpiComm comm{{.window_bytes = 64}};
    if (comm.world() == 1) GTEST_SKIP() << "one rank agrees with itself";
    std::vector<std::byte> bytes(static_cast<std::size_t>(comm.rank() == 0 ? 640 : 320));
    try {
        comm.broadcast(bytes, 0);
        FAIL();
    } catch (const strata::Error& error) {
        EXPECT_EQ(error.code(), strata::Errc::rank_mismatch);
        EXPECT_NE(error.problem().find("broadcast of 640 bytes"), std::string::npos) << error.what();
        EXPECT_NE(error.problem().find("broadcast of 320 bytes"), std::string::npos) << error.what();
    }
    EXPECT_THROW(comm.barrier(), strata::Error);  // and no collective is right after that
}

TEST(MpiComm, InterruptEndsACollectiveOnBothTransports) {
    for (const bool shared : {true, false}) {
        MpiComm comm{{.shared_memory = shared}};
        if (comm.world() == 1) GTEST_SKIP() << "one rank never waits";
        MpiComm other;
        if (comm.rank() == 0) {
            strata::Errc code{};
            std::thread waiting{[&] {
                try {
                    comm.barrier();
                } catch (const strata::Error& error) {
                    code = error.code();
                }
            }};
            comm.interrupt();
            waiting.join();
            EXPECT_EQ(code, strata::Errc::rank_failed);
        }
        other.barrier();
        comm.interrupt();  // on all ranks, so that none waits for the others to give the communicator back
    }
}

// A session's comm() after a forward pass that gathers ahead: without waiting, two threads would be inside of one communicator.
TEST(MpiComm, WhatIsCalledThroughAnyCommWaitsForTheChannelsOfItsCommunicator) {
    strata::comm::MpiComm comm;
    strata::comm::AnyComm any{comm};
    strata::comm::Channel channel{comm};
    double posted = 1;
    const auto ticket = channel.post("gathers ahead", [&] {
        std::this_thread::sleep_for(std::chrono::milliseconds{100});
        comm.all_reduce_sum(std::span{&posted, 1});
        std::this_thread::sleep_for(std::chrono::milliseconds{100});
    });
    double sum = 10;
    any.all_reduce_sum(std::span{&sum, 1});
    EXPECT_TRUE(ticket.done());
    EXPECT_EQ(posted, comm.world());
    EXPECT_EQ(sum, 10 * comm.world());

    channel.post("of another", [&] { any.all_reduce_sum(std::span{&posted, 1}); });
    channel.wait();
    EXPECT_EQ(posted, comm.world() * comm.world()) << "the channel's own thread does not wait for itself";

    channel.post("slow", [&] {
        std::this_thread::sleep_for(std::chrono::milliseconds{100});
        comm.barrier();
    });
    strata::comm::settle(comm);
    comm.all_reduce_sum(std::span{&sum, 1});
    EXPECT_EQ(sum, 10 * comm.world() * comm.world());
}

TEST(MpiComm, AChannelRunsItsCollectives) {
    MpiComm comm;
    strata::comm::Channel channel{comm};
    std::vector<double> sums(50, 1.0);
    for (double& sum : sums) channel.post("sum", [&] { comm.all_reduce_sum(std::span{&sum, 1}); });
    channel.wait();
    EXPECT_EQ(sums, std::vector<double>(50, comm.world()));
}

TEST(MpiComm, AllReduceSumGivesEveryRankTheSameBits) {
    MpiComm comm;
    std::vector<double> values{0.1 * (comm.rank() + 1), 1e300, std::ldexp(1.0, -comm.rank() * 30), 1.0};
    if (comm.rank() == comm.world() - 1) values[3] = std::numeric_limits<double>::quiet_NaN();
    comm.all_reduce_sum(values);
    double expected = 0.1;
    for (int rank = 1; rank < comm.world(); ++rank) expected += 0.1 * (rank + 1);
    EXPECT_EQ(values[0], expected);
    EXPECT_TRUE(std::isnan(values[3]));
}

/// Counts waits, and whether one is under way.
struct Waits final : strata::comm::WaitListener {
    int begun = 0, under_way = 0;
    void wait_begins() noexcept override { ++begun, ++under_way; }
    void wait_ends() noexcept override { --under_way; }
};

TEST(MpiComm, EveryCollectiveOfTheCallerIsAWaitForOtherRanks) {
    MpiComm comm;
    Waits waits;
    const strata::comm::ListenToWaits listening{waits};
    comm.barrier();
    std::vector<double> sum{1};
    comm.all_reduce_sum(sum);
    (void)comm.all_gather_varied("text");
    EXPECT_EQ(waits.begun, 3);
    strata::comm::Channel channel{comm};
    channel.run("barrier", [&] { comm.barrier(); });
    EXPECT_LE(waits.begun, 4) << "a channel's is one as far as it is waited for";
    EXPECT_EQ(waits.under_way, 0);
}

TEST(MpiComm, SeveralLiveSideBySide) {
    MpiComm first;
    MpiComm second;
    std::vector<double> a{1.0};
    std::vector<double> b{2.0};
    second.all_reduce_sum(b);
    first.all_reduce_sum(a);
    first.barrier();
    EXPECT_EQ(b[0], 2.0 * first.world());
    EXPECT_EQ(a[0], 1.0 * first.world());
}

}  // namespace
