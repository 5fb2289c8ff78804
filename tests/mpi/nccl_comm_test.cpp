// NcclComm on 1 to 4 ranks without a GPU: support/nccl_on_host.hpp stands in for CUDA and NCCL. Bits, waiting,
// failures.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <strata/comm/channel.hpp>
#include <strata/comm/mpi_comm.hpp>
#include <strata/comm/nccl_comm.hpp>
#include <strata/comm/self_comm.hpp>
#include <strata/core/bf16.hpp>
#include <strata/core/error.hpp>

#include "../support/nccl_on_host.hpp"
#include "bits.hpp"

namespace {

using nccl_on_host::counts;
using nccl_on_host::faults;
using strata::bf16;
using strata::Errc;
using strata::Error;
using strata::to_bf16;
using strata::to_float;
using strata::comm::MpiComm;
using strata::comm::NcclComm;
using strata::comm::SelfComm;

/// Values that round differently in every order of addition.
float value_of(int rank, std::size_t i) {
    return std::ldexp(
               1.0F + static_cast<float>((i * 2654435761U + static_cast<std::size_t>(rank) * 40503U) % 8191) / 8192.0F,
               static_cast<int>((i + static_cast<std::size_t>(rank) * 7U) % 23) - 11) *
           (i % 2 == 0 ? 1.0F : -1.0F);
}

/// What `work` throws: its number and its words; a test that fails when it throws nothing.
template <class Work>
Error error_of(Work&& work) {
    try {
        work();
    } catch (const Error& error) {
        return error;
    }
    ADD_FAILURE() << "nothing was thrown";
    return Error{Errc::io_failed, "nothing was thrown", ""};
}

/// The bits of the three collectives on parts of up to `most` elements, in buffers that begin `offset` elements after
/// an aligned address.
template <class Comm>
std::vector<std::uint32_t> everything(Comm& comm, std::size_t most, std::size_t offset) {
    const auto world = static_cast<std::size_t>(comm.world());
    const auto self = static_cast<std::size_t>(comm.rank());
    std::vector<std::uint32_t> bits;
    const strata_test::AppendBits keep{bits};
    for (const std::size_t n : {0, 1, 2, 3, 8, 17, 32, 33, 257, 5003}) {
        if (n > most) break;
        std::vector<float> floats(n * world + offset);
        std::vector<bf16> halves(n * world + offset);
        for (std::size_t i = 0; i < n * world; ++i) floats[offset + i] = value_of(comm.rank(), i);
        for (std::size_t i = 0; i < n * world; ++i) halves[offset + i] = to_bf16(floats[offset + i]);
        const std::span<float> all = std::span{floats}.subspan(offset);
        const std::span<bf16> all_halves = std::span{halves}.subspan(offset);
        std::vector<float> sum(n + offset);
        std::vector<bf16> half_sum(n + offset);
        const std::span<float> mine = std::span{sum}.subspan(offset);
        const std::span<bf16> my_half = std::span{half_sum}.subspan(offset);

        comm.reduce_scatter(std::span<const float>{all}, mine);
        keep(sum);
        comm.reduce_scatter(std::span<const bf16>{all_halves}, mine);
        keep(sum);
        comm.reduce_scatter(std::span<const bf16>{all_halves}, my_half);
        keep(half_sum);
        keep(floats);  // none of it has changed
        keep(halves);

        comm.reduce_scatter(std::span<const float>{all}, all.subspan(self * n, n));  // in place
        keep(floats);
        comm.all_gather(std::as_bytes(all.subspan(self * n, n)), std::as_writable_bytes(all));
        keep(floats);
        comm.reduce_scatter(std::span<const bf16>{all_halves}, all_halves.subspan(self * n, n));
        keep(halves);
        for (bf16& value : my_half) value = to_bf16(-3.0F * to_float(value));
        comm.all_gather(std::as_bytes(my_half), std::as_writable_bytes(all_halves));
        keep(halves);
        for (int root = 0; root < comm.world(); ++root) {
            for (float& value : mine) value += static_cast<float>(comm.rank());
            comm.broadcast(std::as_writable_bytes(mine), root);
            keep(sum);
        }
    }
    return bits;
}

TEST(NcclComm, GivesTheBitsOfMpiCommInWindowsOfAnySize) {
    MpiComm host{{.shared_memory = false}};
    for (const std::size_t offset : {0U, 1U}) {
        const auto expect_equal = [&](std::size_t window, std::size_t most) {
            const std::vector<std::uint32_t> expected = everything(host, most, offset);
            ASSERT_GT(expected.size(), 10 * most);
            NcclComm comm{host, {.window_bytes = window}};
            EXPECT_EQ(everything(comm, most, offset), expected)
                << "windows of " << window << " bytes, offset " << offset;
        };
        expect_equal(1, 33);  // one load of the GPU a rank
        expect_equal(200, 257);
        expect_equal(4096, 5003);
        expect_equal(std::size_t{32} << 20, 5003);
    }
}

TEST(NcclComm, ReceivesNoMoreThanAWindowAtOnce) {
    MpiComm host;
    if (host.world() == 1) GTEST_SKIP() << "one rank receives nothing";
    const auto others = static_cast<std::size_t>(host.world() - 1);
    NcclComm comm{host, {.window_bytes = 64 * others}};
    const int before = counts().groups;
    std::vector<float> all(100 * (others + 1), 1.0F);
    std::vector<float> mine(100);
    comm.reduce_scatter(std::span<const float>{all}, std::span<float>{mine});
    EXPECT_EQ(counts().groups - before, 7);  // 16 of 100 elements at a time
}

TEST(NcclComm, TheHostCommunicatorHasTheRest) {
    MpiComm host;
    NcclComm comm{host};
    std::vector<double> sums{1.0 * comm.rank()};
    comm.all_reduce_sum(sums);
    EXPECT_EQ(sums[0], comm.world() * (comm.world() - 1) / 2.0);
    EXPECT_EQ(comm.all_gather_varied(std::to_string(comm.rank())).back(), std::to_string(comm.world() - 1));
    comm.barrier();
    EXPECT_EQ(&comm.host(), &host);
    EXPECT_EQ(&strata::comm::host_of(comm), &host);
    EXPECT_EQ(&strata::comm::host_of(host), &host);
    EXPECT_TRUE(strata::comm::takes_device_memory_v<NcclComm<MpiComm>>);
    EXPECT_FALSE(strata::comm::takes_device_memory_v<MpiComm>);
}

TEST(NcclComm, AChannelRunsItsCollectivesAndNamesThem) {
    MpiComm host;
    NcclComm comm{host};
    const auto world = static_cast<std::size_t>(comm.world());
    std::vector<std::vector<float>> all(20, std::vector<float>(world * 7));
    for (std::size_t k = 0; k < all.size(); ++k) {
        for (float& value : all[k]) value = static_cast<float>(k);
    }
    strata::comm::Channel channel{comm};
    for (std::vector<float>& values : all) {
        channel.post("gradients", [&comm, &values, world] {
            const std::span<float> mine =
                std::span{values}.subspan(static_cast<std::size_t>(comm.rank()) * values.size() / world, 7);
            comm.reduce_scatter(std::span<const float>{values}, mine);
            comm.all_gather(std::as_bytes(mine), std::as_writable_bytes(std::span{values}));
        });
    }
    channel.wait();
    for (std::size_t k = 0; k < all.size(); ++k) {
        EXPECT_EQ(all[k], std::vector<float>(world * 7, static_cast<float>(k * world)));
    }
    const auto latest = host.latest_collective();
    EXPECT_STREQ(latest.op.data(), "all_gather");
    EXPECT_STREQ(latest.label.data(), "gradients");
    EXPECT_EQ(latest.bytes, 28U);
}

/// While it lives this process sees these GPUs of its host only.
class Visible {
public:
    explicit Visible(std::vector<int> gpus) : before_{std::exchange(faults().visible, std::move(gpus))} {}
    ~Visible() { faults().visible = std::move(before_); }
    Visible(const Visible&) = delete;
    Visible& operator=(const Visible&) = delete;

private:
    std::vector<int> before_;
};

/// The GPU of its host that a rank has.
int gpu_of(const NcclComm<MpiComm>& comm) { return faults().visible.at(static_cast<std::size_t>(comm.device())); }

TEST(NcclComm, RanksOfAHostTakeItsGpusInTurn) {
    MpiComm host;
    EXPECT_EQ(NcclComm{host}.device(), host.rank());
    const NcclComm told{host, {.device = 10 - host.rank()}};
    EXPECT_EQ(told.device(), 10 - host.rank());
}

TEST(NcclComm, ARankThatIsShownOneGpuTakesIt) {
    MpiComm host{{.shared_memory = false}};
    const Visible one{{7 - host.rank()}};
    for (const int told : {-1, 0}) {
        NcclComm comm{host, {.device = told}};
        EXPECT_EQ(comm.device(), 0);
        EXPECT_EQ(everything(comm, 33, 0), everything(host, 33, 0));
    }
}

TEST(NcclComm, WhereListsOverlapEveryRankHasAGpuOfItsOwn) {
    MpiComm host;
    {
        const Visible neighbours{nccl_on_host::gpus(std::max(0, host.rank() - 1), 2)};  // 0 1, 0 1, 1 2, 2 3
        const NcclComm comm{host};
        EXPECT_EQ(gpu_of(comm), host.rank());
        EXPECT_EQ(comm.device(), host.rank() == 0 ? 0 : 1);
    }
    const NcclComm last_was_told{host, {.device = host.rank() == host.world() - 1 ? 0 : -1}};
    EXPECT_EQ(gpu_of(last_was_told), (host.rank() + 1) % host.world());
}

TEST(NcclComm, WithFewerGpusThanRanksAllRanksSaySo) {
    MpiComm host;
    if (host.world() == 1) GTEST_SKIP() << "one rank needs one GPU";
    const auto before = counts();
    const Visible one_too_few{nccl_on_host::gpus(0, host.world() - 1)};
    const Error error = error_of([&] { NcclComm{host}; });
    EXPECT_EQ(error.code(), Errc::no_gpu);
    EXPECT_TRUE(error.problem().starts_with("rank " + std::to_string(host.world() - 1) + " on ")) << error.problem();
    std::string seen = " finds no free GPU; it sees GPU 0 (0000:00:00.0, taken by rank 0)";
    for (const std::string k : {"1", "2"}) {
        if (std::stoi(k) < host.world() - 1) seen += ", GPU " + k + " (0000:0" + k + ":00.0, taken by rank " + k + ")";
    }
    EXPECT_TRUE(error.problem().ends_with(seen)) << error.problem();
    EXPECT_EQ(counts().pieces_of_memory, before.pieces_of_memory);
    EXPECT_EQ(counts().streams, before.streams);
    host.barrier();
}

TEST(NcclComm, RanksThatAreShownOrToldTheSameGpuAllSaySo) {
    MpiComm host;
    if (host.world() == 1) GTEST_SKIP() << "one rank may take any GPU";
    {
        const Visible same{{5}};
        const Error shown = error_of([&] { NcclComm{host}; });
        EXPECT_EQ(shown.code(), Errc::no_gpu);
        EXPECT_TRUE(shown.problem().starts_with("rank 1 on ")) << shown.problem();
        EXPECT_TRUE(shown.problem().ends_with(" finds no free GPU; it sees GPU 0 (0000:05:00.0, taken by rank 0)"))
            << shown.problem();
    }
    const bool last = host.rank() == host.world() - 1;
    const Visible two{last ? std::vector{8, 3} : std::vector{3, 20 + host.rank()}};
    const Error told = error_of([&] { NcclComm{host, {.device = host.rank() == 0 ? 0 : 1}}; });
    EXPECT_EQ(told.code(), Errc::no_gpu);
    EXPECT_TRUE(told.problem().starts_with("rank " + std::to_string(host.world() - 1) + " on ")) << told.problem();
    EXPECT_TRUE(
        told.problem().ends_with(" cannot take GPU 1 as NcclOptions::device says; it sees GPU 0 "
                                 "(0000:08:00.0), GPU 1 (0000:03:00.0, taken by rank 0)"))
        << told.problem();
}

TEST(NcclComm, WithoutADriverOrWithAWrongNumberItSaysSo) {
    MpiComm host;
    const int last = host.world() - 1;
    {
        const Visible none{host.rank() == last ? std::vector<int>{} : nccl_on_host::gpus(0, 64)};
        const Error error = error_of([&] { NcclComm{host}; });
        EXPECT_EQ(error.code(), Errc::no_gpu);
        EXPECT_TRUE(error.problem().starts_with("rank " + std::to_string(last) + " on ")) << error.problem();
        EXPECT_TRUE(error.problem().ends_with(" finds no GPU: no CUDA-capable device is detected")) << error.problem();
    }
    const Visible two{nccl_on_host::gpus(2 * host.rank(), 2)};
    const Error wrong = error_of([&] { NcclComm{host, {.device = host.rank() == 0 ? 2 : 1}}; });
    EXPECT_EQ(wrong.code(), Errc::no_gpu);
    EXPECT_TRUE(wrong.problem().starts_with("rank 0 on ")) << wrong.problem();
    EXPECT_TRUE(
        wrong.problem().ends_with(" cannot take GPU 2 as NcclOptions::device says; it sees GPU 0 "
                                  "(0000:00:00.0), GPU 1 (0000:01:00.0)"))
        << wrong.problem();
}

TEST(NcclComm, GivesEverythingBack) {
    MpiComm host;
    const auto before = counts();
    {
        NcclComm comm{host};
        EXPECT_EQ(counts().connected, before.connected + (comm.world() > 1 ? 1 : 0));
        EXPECT_EQ(counts().streams, before.streams + 1);
    }
    EXPECT_EQ(counts().destroyed, before.destroyed + (host.world() > 1 ? 1 : 0));
    EXPECT_EQ(counts().aborted, before.aborted);
    EXPECT_EQ(counts().pieces_of_memory, before.pieces_of_memory);
    EXPECT_EQ(counts().streams, before.streams);
}

TEST(NcclComm, WhileAnExceptionUnwindsItAbortsAndWaitsForNobody) {
    for (const bool hangs : {false, true}) {
        MpiComm host;
        if (host.world() == 1) GTEST_SKIP() << "one rank has no NCCL";
        const auto before = counts();
        faults().abort_hangs = hangs;
        try {
            NcclComm comm{host};
            throw std::runtime_error{"the loss is a banana"};
        } catch (const std::runtime_error&) {
        }
        EXPECT_EQ(counts().aborted, before.aborted + 1);
        EXPECT_EQ(counts().destroyed, before.destroyed);
        faults().abort_hangs = false;
    }
}

TEST(NcclComm, AnErrorThatNcclReportsLaterEndsTheCollective) {
    MpiComm host;
    if (host.world() == 1) GTEST_SKIP() << "one rank has no NCCL";
    auto before = counts();
    {
        NcclComm comm{host};
        before = counts();
        std::vector<float> values(8);
        if (comm.rank() == 0) {  // waits for rank 1, which never comes
            Error error{Errc::io_failed, "", ""};
            std::thread waiting{
                [&] { error = error_of([&] { comm.broadcast(std::as_writable_bytes(std::span{values}), 1); }); }};
            while (counts().groups == before.groups) std::this_thread::yield();  // until it is on the stream
            faults().async_error = ncclRemoteError;
            waiting.join();
            faults().async_error = ncclSuccess;
            EXPECT_EQ(error.code(), Errc::rank_failed);
            EXPECT_EQ(
                error.problem(),
                "NCCL failed on rank 0: remote process exited or there was a network error (the stand-in says so)");
            EXPECT_EQ(counts().aborted, before.aborted + 1);
            const Error later = error_of([&] { comm.broadcast(std::as_writable_bytes(std::span{values}), 0); });
            EXPECT_EQ(later.code(), Errc::rank_failed);
            EXPECT_EQ(counts().groups, before.groups + 1);  // and NCCL has not heard of it
        }
        host.barrier();
        comm.interrupt();  // on all ranks, so that none waits for the others to give the communicators back
    }
    EXPECT_EQ(counts().aborted, before.aborted + 1);
    EXPECT_EQ(counts().destroyed, before.destroyed);
}

TEST(NcclComm, InterruptFreesARankWhosePeersNeverCome) {
    MpiComm other;
    if (other.world() == 1) GTEST_SKIP() << "one rank never waits";
    for (const std::string what : {"all_gather", "broadcast", "reduce_scatter"}) {
        MpiComm host;
        NcclComm comm{host};
        const auto before = counts();
        if (comm.rank() == 0) {
            std::vector<float> all(static_cast<std::size_t>(comm.world()) * 8, 1.0F);
            const std::span<float> mine = std::span{all}.first(8);
            std::thread waiting{[&] {
                const Error error = error_of([&] {
                    if (what == "all_gather")
                        comm.all_gather(std::as_bytes(mine), std::as_writable_bytes(std::span{all}));
                    if (what == "broadcast") comm.broadcast(std::as_writable_bytes(mine), 1);
                    if (what == "reduce_scatter") comm.reduce_scatter(std::span<const float>{all}, mine);
                });
                EXPECT_EQ(error.code(), Errc::rank_failed) << what;
                EXPECT_NE(error.problem().find("(" + what + " of "), std::string::npos) << error.problem();
            }};
            while (counts().groups == before.groups) std::this_thread::yield();  // until it is on the stream
            comm.interrupt();
            waiting.join();
            EXPECT_EQ(counts().aborted, before.aborted + 1);
        }
        other.barrier();
        comm.interrupt();
        EXPECT_EQ(error_of([&] { comm.barrier(); }).code(), Errc::rank_failed);
    }
}

TEST(NcclComm, OneRankNeedsNoNccl) {
    SelfComm host;
    const auto before = counts();
    {
        NcclComm comm{host};
        EXPECT_EQ(comm.world(), 1);
        EXPECT_EQ(everything(comm, 257, 1), everything(host, 257, 1));
        comm.label("named");
        comm.set_collective_timeout(std::chrono::milliseconds{1});
        comm.interrupt();
        std::vector<float> values(3, 1.0F);
        EXPECT_EQ(error_of([&] { comm.broadcast(std::as_writable_bytes(std::span{values}), 0); }).code(),
                  Errc::rank_failed);
    }
    EXPECT_EQ(counts().connected, before.connected);
    EXPECT_EQ(counts().groups, before.groups);
}

}  // namespace
