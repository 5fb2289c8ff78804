// The micro-batches of a step over an engine that only writes down what it is asked for.

#include <strata/train/step_pass.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <strata/comm/self_comm.hpp>
#include <strata/zero/compute_device.hpp>

namespace {

using namespace strata;

struct Engine {
    using compute_device = zero::CpuDevice;
    bool gathers = false, fails_backward = false;
    std::vector<std::string> calls{};
    [[nodiscard]] bool gathers_units() const { return gathers; }
    [[nodiscard]] std::int64_t step_count() const { return 4; }
    void backward(const at::Tensor& loss) {
        calls.push_back("backward " + std::to_string(std::lround(loss.item<double>())));
        if (fails_backward) throw std::runtime_error{"no backward"};
    }
    void backward_without_loss() { calls.emplace_back("zeros"); }
};
struct GivenLoss {
    double loss = 0;
    std::vector<std::string> samples{};
};
struct Model {
    using Batch = GivenLoss;
    at::Tensor loss(const Batch& batch) const {
        if (batch.loss < 0) throw std::runtime_error{"no answer"};
        return at::full({}, batch.loss, at::kDouble);
    }
};
/// Batches in order; "throws" where there are no more.
struct Source {
    std::vector<GivenLoss> batches;
    std::size_t at = 0;
    GivenLoss next() {
        if (at == batches.size()) throw std::runtime_error{"no more rows"};
        return batches[at++];
    }
};

struct StepPass : testing::Test {
    comm::SelfComm comm;
    Model model;
    Engine engine;
    train::RanksTogether together;

    train::StepSums run(std::vector<GivenLoss> batches, int micro_batches, std::string* samples = nullptr) {
        Source source{std::move(batches)};
        train::StepPass pass{comm,
                             model,
                             engine,
                             together,
                             {.seed = 1, .micro_batches = micro_batches, .device = at::kCPU, .who = "step 5"}};
        const auto sums = pass.run(
            source, [] { return true; }, [] { return 2.5; }, [] { return 1.5; });
        if (samples != nullptr) *samples = pass.samples().text(std::isfinite(sums.loss));
        return sums;
    }
    std::string failure(std::vector<GivenLoss> batches, int micro_batches) {
        try {
            run(std::move(batches), micro_batches);
        } catch (const std::exception& error) {
            return error.what();
        }
        return "nothing was thrown";
    }
    using Calls = std::vector<std::string>;
};

TEST_F(StepPass, TheLossIsTheMeanOfItsMicroBatches) {
    const auto sums = run({{3}, {5}, {10}}, 3);
    EXPECT_EQ(sums.loss, 6);
    EXPECT_TRUE(sums.stop);
    EXPECT_EQ(sums.seconds, 2.5);
    EXPECT_EQ(engine.calls, (Calls{"backward 3", "backward 5", "backward 10"}));
    EXPECT_TRUE(together);
}

TEST_F(StepPass, ASourceThatFailsGivesZerosForTheRestOfTheStep) {
    EXPECT_EQ(failure({{3}}, 3), "no more rows");
    EXPECT_EQ(engine.calls, (Calls{"backward 3", "zeros", "zeros"}));
}

TEST_F(StepPass, AModelThatFailsGivesZerosForItsMicroBatchToo) {
    EXPECT_EQ(failure({{3}, {-1}, {4}}, 3), "no answer");
    EXPECT_EQ(engine.calls, (Calls{"backward 3", "zeros", "zeros"}));
}

TEST_F(StepPass, ABackwardThatFailsHasDoneItsPartForTheOthers) {
    engine.fails_backward = true;
    EXPECT_EQ(failure({{3}, {4}}, 2), "no backward");
    EXPECT_EQ(engine.calls, (Calls{"backward 3", "zeros"}));
}

TEST_F(StepPass, WhereForwardPassesAreCollectiveAFailureEndsTheStepAtOnce) {
    engine.gathers = true;
    EXPECT_EQ(failure({{3}}, 3), "no more rows");
    EXPECT_EQ(engine.calls, (Calls{"backward 3"}));
    engine.calls.clear();
    EXPECT_EQ(failure({{-1}, {4}}, 2), "no answer");
    EXPECT_TRUE(engine.calls.empty());
    EXPECT_FALSE(together) << "other ranks may be inside of the model";
}

TEST_F(StepPass, SamplesOfALossThatIsNotFiniteAreKnown) {
    std::string samples;
    run({{3, {"a"}}, {std::numeric_limits<double>::infinity(), {"b"}}}, 2, &samples);
    EXPECT_EQ(samples, "b");
}

TEST_F(StepPass, TheWaitForEachBatchIsAddedUp) {
    double now = 100;
    struct SlowSource {
        double& now;
        int made = 0;
        GivenLoss next() {
            now += ++made;  // seconds
            return {.loss = 1};
        }
    } source{now};
    train::StepPass pass{
        comm, model, engine, together, {.seed = 1, .micro_batches = 3, .device = at::kCPU, .who = "step 5"}};
    const auto sums = pass.run(
        source, [] { return false; }, [&] { return now; }, [&] { return now - 100; });
    EXPECT_EQ(sums.data_wait, 1 + 2 + 3);
    EXPECT_EQ(sums.seconds, 106);
    ASSERT_EQ(sums.ranks.size(), 1U);
    EXPECT_EQ(sums.ranks[0].work, 6);
    EXPECT_EQ(sums.ranks[0].data_wait, 6);
}

/// Rank 1 of three whose others tell what they are given.
struct ThreeRanks : comm::SelfComm {
    std::vector<train::detail::RankShare> others{2};
    [[nodiscard]] int rank() const noexcept { return 1; }
    [[nodiscard]] int world() const noexcept { return 3; }
    void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) const noexcept {
        std::memcpy(all.data(), &others[0], mine.size());
        std::memcpy(all.data() + mine.size(), mine.data(), mine.size());
        std::memcpy(all.data() + 2 * mine.size(), &others[1], mine.size());
    }
};

TEST_F(StepPass, EveryRankKnowsTheTimesOfAll) {
    ThreeRanks ranks;
    ranks.others[0] = {.loss = 10, .seconds = 7, .times = {.work = 0.5, .data_wait = 0.25}};
    ranks.others[1] = {.loss = 20, .seconds = 8, .stop = 1, .times = {.work = 4, .data_wait = 3}};
    Source source{{{3}, {3}}};
    train::StepPass pass{
        ranks, model, engine, together, {.seed = 1, .micro_batches = 2, .device = at::kCPU, .who = "step 5 on rank 1"}};
    const auto sums = pass.run(
        source, [] { return false; }, [] { return 2.5; }, [] { return 1.5; });
    EXPECT_EQ(sums.loss, (10 + 6 + 20) / 6.0);
    EXPECT_TRUE(sums.stop);
    EXPECT_EQ(sums.seconds, 7) << "rank 0's";
    EXPECT_EQ(sums.data_wait, 3);
    ASSERT_EQ(sums.ranks.size(), 3U);
    EXPECT_EQ(sums.ranks[0].work, 0.5);
    EXPECT_EQ(sums.ranks[1].work, 1.5);
    EXPECT_EQ(sums.ranks[1].data_wait, 0);
    EXPECT_EQ(sums.ranks[2].work, 4);
    EXPECT_EQ(sums.ranks[2].data_wait, 3);
}

}  // namespace
