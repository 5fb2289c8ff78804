// Work that is posted for a device's channel begins after what was queued before it, and its ticket waits for what it queued.

#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <strata/comm/self_comm.hpp>
#include <strata/zero/parts/exchange.hpp>

namespace {

using strata::bf16;

/// What happened, in order; with the thread that the test runs on as "main".
struct Story {
    std::mutex mutex;
    std::vector<std::string> lines;
    std::thread::id main = std::this_thread::get_id();
    void tell(const std::string& what) {
        const std::lock_guard lock{mutex};
        lines.push_back((std::this_thread::get_id() == main ? "main: " : "channel: ") + what);
    }
};
Story* story = nullptr;

/// A device that only says what it is asked.
struct Teller {
    static constexpr bool is_host = false;
    struct Fence {
        int number = 0;
        void wait() const { story->tell("wait for fence " + std::to_string(number)); }
    };
    struct Operation {
        explicit Operation(const Teller&) { story->tell("own stream"); }
        Operation(const Operation&) = delete;
        Operation& operator=(const Operation&) = delete;
        ~Operation() { story->tell("leave stream"); }
    };
    [[nodiscard]] at::Device device() const { return at::kCPU; }
    [[nodiscard]] strata::offload::Pinning pinning() const { return {}; }
    [[nodiscard]] Fence fence() const {
        static std::atomic<int> fences = 0;
        const Fence made{++fences};
        story->tell("fence");
        return made;
    }
    void finish() const { story->tell("finish"); }
    [[nodiscard]] std::uint64_t free_memory() const { return 0; }
    void release_cached() const {}
};
static_assert(strata::zero::ComputeDevice<Teller>);

/// Says that it has several ranks: the channel then has a thread.
struct Pretender : strata::comm::SelfComm {
    [[nodiscard]] int world() const noexcept { return 2; }
};

struct Exchange : testing::Test {
    Story told;
    void SetUp() override { story = &told; }
    void TearDown() override { story = nullptr; }
};

TEST_F(Exchange, AnOperationIsBetweenItsFenceAndItsEnd) {
    Pretender comm;
    strata::zero::DeviceChannel<Pretender, Teller> channel{comm, {}};
    channel.post("weights", [] { story->tell("work"); }).wait();
    ASSERT_EQ(told.lines.size(), 6U);
    EXPECT_EQ(told.lines[0], "main: fence");
    EXPECT_EQ(told.lines[1], "channel: own stream");
    EXPECT_TRUE(told.lines[2].starts_with("channel: wait for fence"));
    EXPECT_EQ(told.lines[3], "channel: work");
    EXPECT_EQ(told.lines[4], "channel: finish");
    EXPECT_EQ(told.lines[5], "channel: leave stream");
}

TEST_F(Exchange, AFailureLeavesTheStreamToo) {
    Pretender comm;
    strata::zero::DeviceChannel<Pretender, Teller> channel{comm, {}};
    EXPECT_THROW(channel.post("weights", [] { throw std::runtime_error{"no"}; }).wait(), std::runtime_error);
    EXPECT_EQ(told.lines.back(), "channel: leave stream");
}

TEST_F(Exchange, AloneWorkRunsAtOnceAndNobodyWaits) {
    strata::comm::SelfComm comm;
    strata::zero::DeviceChannel<strata::comm::SelfComm, Teller> channel{comm, {}};
    channel.post("weights", [] { story->tell("work"); }).wait();
    EXPECT_EQ(told.lines, std::vector<std::string>{"main: work"});
}

}  // namespace
