// Operations in the order they were posted, on a thread when there is somebody to wait for.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <strata/comm/channel.hpp>
#include <strata/comm/self_comm.hpp>

namespace {

namespace comm = strata::comm;
using comm::SelfComm;

/// A rank of a world of two whose collectives are waited for by tests; remembers what a channel asks of it.
class FakeComm : public SelfComm {
public:
    [[nodiscard]] int world() const noexcept { return 2; }
    void label(std::string_view text) { labels.emplace_back(text); }
    void interrupt() noexcept { interrupted.set_value(); }

    std::vector<std::string> labels;
    std::promise<void> interrupted;
};
static_assert(strata::comm::Communicator<FakeComm>);

template <class Comm>
struct Channel : testing::Test {};
using Comms = testing::Types<SelfComm, FakeComm>;
class CommNames {
public:
    template <class Comm>
    static std::string GetName(int) {
        return std::is_same_v<Comm, SelfComm> ? "OneRank" : "TwoRanks";
    }
};
TYPED_TEST_SUITE(Channel, Comms, CommNames);

TYPED_TEST(Channel, RunsOperationsInTheOrderTheyWerePosted) {
    TypeParam mine;
    comm::Channel channel{mine};
    std::vector<int> order;
    for (int i = 0; i < 1000; ++i) channel.post("append", [&order, i] { order.push_back(i); });
    const auto last = channel.post("append", [&order] { order.push_back(1000); });
    last.wait();
    ASSERT_EQ(order.size(), 1001U);
    for (int i = 0; i <= 1000; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
    EXPECT_TRUE(last.done());
    EXPECT_EQ(last.number(), 1001U);
}

TYPED_TEST(Channel, RunReturnsWhatTheWorkReturns) {
    TypeParam mine;
    comm::Channel channel{mine};
    EXPECT_EQ(channel.run("gather", [&] { return mine.all_gather_varied("abc"); }), std::vector<std::string>{"abc"});
    int done = 0;
    channel.run("count", [&] { ++done; });
    EXPECT_EQ(done, 1);
}

TYPED_TEST(Channel, AFailureIsThrownByItsTicketAndAllLaterOnes) {
    TypeParam mine;
    comm::Channel channel{mine};
    const auto before = channel.post("good", [] {});
    const auto bad = channel.post("bad", [] { throw std::runtime_error{"first"}; });
    bool ran = false;
    const auto after = channel.post("after", [&] { ran = true; });
    EXPECT_NO_THROW(before.wait());
    for (const auto& ticket : {bad, after, bad, channel.post("later", [&] { ran = true; })}) {
        try {
            ticket.wait();
            ADD_FAILURE() << "ticket " << ticket.number() << " did not throw";
        } catch (const std::runtime_error& error) {
            EXPECT_STREQ(error.what(), "first");
        }
        EXPECT_TRUE(ticket.done());
    }
    EXPECT_THROW(channel.wait(), std::runtime_error);
    EXPECT_THROW(channel.run("later", [&] { ran = true; }), std::runtime_error);
    EXPECT_NO_THROW(before.wait());
    EXPECT_FALSE(ran);
}

TYPED_TEST(Channel, WhatAnOperationHoldsIsGoneWhenItsTicketIsDone) {
    TypeParam mine;
    comm::Channel channel{mine};
    auto held = std::make_shared<int>(1);
    const std::weak_ptr<int> seen = held;
    channel.post("hold", [held = std::move(held)] {}).wait();
    EXPECT_TRUE(seen.expired());
}

TYPED_TEST(Channel, WhatADroppedOperationHoldsIsGoneToo) {
    TypeParam mine;
    comm::Channel channel{mine};
    auto held = std::make_shared<int>(1);
    const std::weak_ptr<int> seen = held;
    channel.post("bad", [] { throw 1; });
    const auto dropped = channel.post("hold", [held = std::move(held)] {});
    EXPECT_THROW(dropped.wait(), int);
    EXPECT_TRUE(seen.expired());
}

TYPED_TEST(Channel, DestructionDrains) {
    TypeParam mine;
    int done = 0;
    {
        comm::Channel channel{mine};
        for (int i = 0; i < 100; ++i) channel.post("count", [&] { ++done; });
    }
    EXPECT_EQ(done, 100);
}

TYPED_TEST(Channel, ADefaultTicketIsDone) {
    const typename comm::Channel<TypeParam>::Ticket none;
    EXPECT_TRUE(none.done());
    EXPECT_NO_THROW(none.wait());
}

TEST(Channel, OneRankRunsInlineAndTwoRanksOnAnotherThread) {
    SelfComm one;
    FakeComm two;
    comm::Channel inline_channel{one};
    comm::Channel threaded_channel{two};
    const auto here = std::this_thread::get_id();
    EXPECT_EQ(inline_channel.run("who", [] { return std::this_thread::get_id(); }), here);
    const auto first = threaded_channel.run("who", [] { return std::this_thread::get_id(); });
    EXPECT_NE(first, here);
    EXPECT_EQ(threaded_channel.run("who", [] { return std::this_thread::get_id(); }), first);
}

TEST(Channel, LabelsTheCollectivesOfAnOperation) {
    FakeComm mine;
    comm::Channel channel{mine};
    channel.run("gradients 3", [&] { mine.labels.emplace_back("work"); });
    EXPECT_EQ(mine.labels, (std::vector<std::string>{"gradients 3", "work", ""}));
}

TEST(Channel, PostDoesNotWait) {
    FakeComm mine;
    comm::Channel channel{mine};
    std::promise<void> go;
    const auto ticket = channel.post("wait", [&] { go.get_future().wait(); });
    EXPECT_FALSE(ticket.done());
    go.set_value();
    ticket.wait();
}

TEST(Channel, TwoOfOneCommunicatorAreNeverInsideOfItTogether) {
    FakeComm mine;
    comm::Channel first{mine}, second{mine};
    std::atomic<int> inside = 0;
    std::atomic<bool> met = false;
    std::vector<int> order;  // no lock: who comes later has waited
    const auto operation = [&](int number) {
        return [&, number] {
            if (++inside > 1) met = true;
            std::this_thread::sleep_for(std::chrono::microseconds{50});
            order.push_back(number);
            --inside;
        };
    };
    for (int i = 0; i < 60; ++i) (i % 3 == 0 ? first : second).post("work", operation(i));
    first.wait();  // for both
    EXPECT_FALSE(met);
    ASSERT_EQ(order.size(), 60U);
    EXPECT_TRUE(std::is_sorted(order.begin(), order.end())) << "the order of the program";
}

TEST(Channel, OneThatFailedOrIsGoneHoldsNobodyUp) {
    FakeComm mine;
    comm::Channel second{mine};
    {
        comm::Channel first{mine};
        first.post("bad", [] { throw std::runtime_error{"first"}; });
        bool ran = false;
        second.run("good", [&] { ran = true; });
        EXPECT_TRUE(ran);
        EXPECT_THROW(first.wait(), std::runtime_error);
    }
    second.run("good", [] {});
}

TEST(Channel, UnwindingDropsWhatHasNotBegunAndInterruptsWhatHas) {
    FakeComm mine;
    bool ran = false;
    std::promise<void> begun;
    try {
        comm::Channel channel{mine};
        // A collective that never ends, unless it is interrupted.
        channel.post("stuck", [&] {
            begun.set_value();
            mine.interrupted.get_future().wait();
        });
        channel.post("never", [&] { ran = true; });
        begun.get_future().wait();
        throw std::runtime_error{"user code failed"};
    } catch (const std::runtime_error& error) {
        EXPECT_STREQ(error.what(), "user code failed");
    }
    EXPECT_FALSE(ran);
}

TEST(Channel, UnwindingWithNothingPendingInterruptsNothing) {
    FakeComm mine;
    try {
        comm::Channel channel{mine};
        channel.run("done", [] {});
        throw 1;
    } catch (int) {
    }
    mine.interrupt();  // would throw, had it been called before: a promise is kept once
}

}  // namespace
