#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <strata/core/kept_blocks.hpp>

namespace {

using strata::core::KeptBlocks;
constexpr std::size_t mib = std::size_t{1} << 20;

TEST(KeptBlocks, ABlockServesTheNextRequestOfItsSizeAndOfAnEighthLess) {
    KeptBlocks blocks;
    void* const first = blocks.take(8 * mib);
    ASSERT_NE(first, nullptr);
    EXPECT_TRUE(blocks.give(first));
    EXPECT_EQ(blocks.bytes_kept(), 8 * mib);
    void* const smaller = blocks.take(8 * mib - 8 * mib / 9);
    EXPECT_EQ(smaller, first);
    EXPECT_EQ(blocks.bytes_in_use(), 8 * mib) << "all of the block counts";
    EXPECT_TRUE(blocks.give(smaller));
    EXPECT_EQ(blocks.bytes_kept(), 8 * mib);
}

TEST(KeptBlocks, WhatIsHeldIsNeverMoreThanWhatWasInUseAtOnce) {
    KeptBlocks blocks;
    const auto held = [&] { return blocks.bytes_in_use() + blocks.bytes_kept(); };
    std::vector<void*> used;
    for (int i = 0; i < 4; ++i) used.push_back(blocks.take(4 * mib));
    for (void* const block : used) EXPECT_TRUE(blocks.give(block));
    EXPECT_EQ(held(), 16 * mib);
    void* const large = blocks.take(12 * mib);  // none of 12 is kept: those of 4 make room
    EXPECT_EQ(blocks.bytes_in_use(), 12 * mib);
    EXPECT_EQ(blocks.bytes_kept(), 4 * mib);
    void* const larger = blocks.take(20 * mib);
    EXPECT_EQ(blocks.bytes_kept(), 0U);
    EXPECT_TRUE(blocks.give(large));
    EXPECT_TRUE(blocks.give(larger));
    EXPECT_EQ(held(), 32 * mib);
}

TEST(KeptBlocks, APeakOfLongAgoIsForgotten) {
    KeptBlocks blocks;
    EXPECT_TRUE(blocks.give(blocks.take(64 * mib)));
    blocks.start_period();  // in the period before 64 MiB were in use
    EXPECT_EQ(blocks.bytes_kept(), 64 * mib);
    EXPECT_TRUE(blocks.give(blocks.take(2 * mib)));
    blocks.start_period();
    EXPECT_EQ(blocks.bytes_kept(), 2 * mib);
}

TEST(KeptBlocks, AQuarterMoreIsKeptOfWhatComesAndGoes) {
    KeptBlocks blocks;
    void* const stays = blocks.take(100 * mib);
    blocks.start_period();
    void* const first = blocks.take(8 * mib);
    EXPECT_TRUE(blocks.give(blocks.take(2 * mib)));
    EXPECT_TRUE(blocks.give(first));
    EXPECT_EQ(blocks.bytes_kept(), 10 * mib);
    void* const other = blocks.take(10 * mib);  // where 12.5 may be held beside what stays
    EXPECT_EQ(blocks.bytes_kept(), 2 * mib);
    EXPECT_TRUE(blocks.give(other));
    EXPECT_EQ(blocks.bytes_kept(), 12 * mib);
    EXPECT_TRUE(blocks.give(stays));
}

TEST(KeptBlocks, WhereABlockWouldHaveToGoItServesASmallerRequest) {
    KeptBlocks blocks;
    void* const stays = blocks.take(64 * mib);
    void* const large = blocks.take(32 * mib);
    EXPECT_TRUE(blocks.give(large));
    void* const small = blocks.take(8 * mib);  // beside 32 kept it would be more than was in use at once
    EXPECT_EQ(small, large);
    EXPECT_EQ(blocks.bytes_in_use(), 72 * mib);
    EXPECT_EQ(blocks.bytes_kept(), 24 * mib) << "what the request leaves of it";
    std::memset(small, 7, 8 * mib);
    EXPECT_TRUE(blocks.give(small));
    EXPECT_EQ(blocks.bytes_kept(), 32 * mib);
    EXPECT_EQ(blocks.take(32 * mib), large) << "all of it is there again";
    EXPECT_TRUE(blocks.give(large));
    EXPECT_TRUE(blocks.give(stays));
}

TEST(KeptBlocks, WhatARequestLeavesOfABlockGoesBeforeMoreIsHeldThanWasInUse) {
    KeptBlocks blocks;
    void* const stays = blocks.take(64 * mib);
    void* const large = blocks.take(32 * mib);
    std::memset(large, 7, 32 * mib);
    EXPECT_TRUE(blocks.give(large));
    auto* const small = static_cast<unsigned char*>(blocks.take(8 * mib));
    ASSERT_EQ(small, large);
    void* const other = blocks.take(20 * mib);
    EXPECT_EQ(blocks.bytes_in_use(), 92 * mib);
    EXPECT_EQ(blocks.bytes_kept(), 0U);
    EXPECT_EQ(small[8 * mib - 1], 7) << "what is in use stays";
    EXPECT_EQ(small[8 * mib], 0) << "what is not was given back, and its pages would be new";
    EXPECT_TRUE(blocks.give(small));
    EXPECT_TRUE(blocks.give(other));
    EXPECT_EQ(blocks.bytes_kept(), 28 * mib);
    // It still has room for as much as once: the pages beyond 8 MiB are new.
    void* const again = blocks.take(30 * mib);
    EXPECT_EQ(blocks.bytes_in_use() + blocks.bytes_kept(), 96 * mib - 2 * mib);
    static_cast<unsigned char*>(again)[30 * mib - 1] = 1;
    EXPECT_TRUE(blocks.give(again));
    EXPECT_TRUE(blocks.give(stays));
}

TEST(KeptBlocks, WhatStaysHoldsNoMoreThanItUses) {
    KeptBlocks blocks;
    EXPECT_TRUE(blocks.give(blocks.take(32 * mib)));
    void* const stays = blocks.take(8 * mib);
    EXPECT_EQ(blocks.bytes_kept(), 24 * mib);
    blocks.start_period();
    EXPECT_EQ(blocks.bytes_in_use(), 8 * mib);
    EXPECT_EQ(blocks.bytes_kept(), 0U);
    EXPECT_TRUE(blocks.give(stays));
}

TEST(KeptBlocks, TrimGivesAllBackAndUsersKeepTheirs) {
    KeptBlocks blocks;
    void* const used = blocks.take(3 * mib);
    EXPECT_TRUE(blocks.give(blocks.take(5 * mib)));
    std::memset(used, 7, 3 * mib);
    blocks.trim();
    EXPECT_EQ(blocks.bytes_kept(), 0U);
    EXPECT_EQ(static_cast<unsigned char*>(used)[3 * mib - 1], 7);
    EXPECT_TRUE(blocks.give(used));
    EXPECT_EQ(blocks.bytes_kept(), 3 * mib);
}

TEST(KeptBlocks, WhatIsNoBlockAndWhatNobodyHasAreSaid) {
    KeptBlocks blocks;
    std::array<std::byte, 16> own{};
    EXPECT_FALSE(blocks.give(own.data()));
    EXPECT_EQ(blocks.take(std::numeric_limits<std::size_t>::max() / 4), nullptr);
    EXPECT_EQ(blocks.bytes_in_use(), 0U);
    EXPECT_TRUE(blocks.give(blocks.take(2 * mib)));
    EXPECT_TRUE(blocks.give(blocks.take(4 * mib)));
    EXPECT_EQ(blocks.bytes_kept(), 4 * mib) << "what nobody got was not in use";
}

TEST(KeptBlocks, ThreadsDoNotShareABlock) {
    KeptBlocks blocks;
    const auto work = [&](unsigned char mark) {
        for (int round = 0; round < 200; ++round) {
            auto* const block = static_cast<unsigned char*>(blocks.take(mib));
            block[0] = block[mib - 1] = mark;
            std::this_thread::yield();
            EXPECT_EQ(block[0], mark);
            EXPECT_EQ(block[mib - 1], mark);
            EXPECT_TRUE(blocks.give(block));
        }
    };
    std::thread other{work, static_cast<unsigned char>(1)};
    work(2);
    other.join();
    EXPECT_EQ(blocks.bytes_in_use(), 0U);
}

}  // namespace
