// What counts as standing still for other ranks: collectives, and waiting for a channel that is inside of one.

#include <strata/comm/wait_listener.hpp>

#include <future>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include <strata/comm/channel.hpp>
#include <strata/comm/collective_log.hpp>
#include <strata/comm/self_comm.hpp>

namespace {

namespace comm = strata::comm;

struct Listener final : comm::WaitListener {
    std::string heard;
    std::promise<void> begins, ends;  // of the first wait
    void wait_begins() noexcept override {
        heard += '(';
        if (heard.size() == 1) begins.set_value();
    }
    void wait_ends() noexcept override {
        heard += ')';
        if (heard.size() == 2) ends.set_value();
    }
};

/// A rank of a world of two.
struct TwoRanks : comm::SelfComm {
    [[nodiscard]] int world() const noexcept { return 2; }
};

TEST(WaitListener, ACollectiveOfTheCallerIsOneWait) {
    Listener listener;
    comm::CollectiveLog log;
    {
        const comm::ListenToWaits listening{listener};
        { const auto running = log.begin("barrier", 0); }
        EXPECT_EQ(listener.heard, "()");
        { const comm::InCollective of_its_own; }
        EXPECT_EQ(listener.heard, "()()");
    }
    { const auto running = log.begin("barrier", 0); }
    EXPECT_EQ(listener.heard, "()()") << "nobody listens any more";
}

TEST(WaitListener, TheOneBeforeListensAgain) {
    Listener outer, inner;
    const comm::ListenToWaits listening{outer};
    {
        const comm::ListenToWaits for_now{inner};
        const comm::InCollective one;
    }
    EXPECT_EQ(outer.heard, "");
    const comm::InCollective another;
    EXPECT_EQ(outer.heard, "(");
    EXPECT_EQ(inner.heard, "()");
}

TEST(WaitListener, AChannelsCollectiveIsAWaitWhileSomebodyWaitsForIt) {
    Listener listener;
    TwoRanks ranks;
    comm::Channel channel{ranks};
    comm::CollectiveLog log;
    const comm::ListenToWaits listening{listener};

    const auto alone = channel.post("with nobody waiting", [&] { const auto running = log.begin("all_gather", 8); });
    while (!alone.done()) std::this_thread::yield();
    EXPECT_EQ(listener.heard, "");
    std::promise<void> read;
    channel.post("reads a shard, gathers, copies", [&, reading = read.get_future().share()] {
        reading.wait();
        {
            const auto running = log.begin("all_gather", 8);
            listener.begins.get_future().wait();  // as soon as the caller waits, whichever of the two comes first
        }
        listener.ends.get_future().wait();  // though the caller still waits for this operation
    });
    read.set_value();
    channel.wait();
    EXPECT_EQ(listener.heard, "()");
}

TEST(WaitListener, AChannelThatIsInNoCollectiveIsNoWait) {
    Listener listener;
    TwoRanks ranks;
    comm::Channel channel{ranks};
    const comm::ListenToWaits listening{listener};
    channel.run("reads a shard", [] {});
    EXPECT_EQ(listener.heard, "");
}

}  // namespace
