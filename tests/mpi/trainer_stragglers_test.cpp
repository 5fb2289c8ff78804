// Ranks whose clocks go as a test wants: a run that knows the times of all names the slow one, and trains the same bits.

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "../support/fake_http_server.hpp"
#include "trainer_runs.hpp"

namespace {

using namespace strata;
using strata_test::FakeHttpServer;
using strata_test::FakeReply;
using strata_test::FakeRequest;
using strata_test::Rows;
using strata_test::SmallNet;

/// Seconds of a rank that nothing moves on but its own batches and passes: waiting for others takes none of them.
using Clock = std::shared_ptr<double>;

struct TimedNet : SmallNet {
    Clock now;
    double pass_seconds;
    TimedNet(Clock given, double seconds) : now{std::move(given)}, pass_seconds{seconds} {}
    torch::Tensor loss(const Batch& batch) {
        *now += pass_seconds;
        return SmallNet::loss(batch);
    }
};

struct TrainerStragglers : strata_test::TrainerRuns {
    FakeHttpServer server{[](const FakeRequest&) { return FakeReply::answer(200); }};

    [[nodiscard]] int last_rank() const { return comm.world() - 1; }

    /// Ranks take so long for a batch and for a pass. The last one takes more for the first `slow_steps` steps.
    template <class... Policies>
    void timed_run(const std::string& name, double factor, double slow_batch, double slow_pass, int slow_steps = 99) {
        in_session(name, [&](Session& session) {
            webhooks::WebhookOptions webhook;
            webhook.url = server.url();
            webhook.allow_private_addresses = true;
            webhook.closing_seconds = 600;
            session.events().set({webhook});
            Options given = options(20);
            given.health.straggler_factor = factor;
            given.health.straggler_steps = 5;
            const auto now = std::make_shared<double>(1000);
            const bool is_last = comm.rank() == last_rank();
            const auto net = std::make_shared<TimedNet>(now, is_last ? slow_pass : 0.5);
            Trainer<TimedNet, Policies...> trainer{session, net, given};
            trainer.run().use_clock([now] { return *now; });
            trainer.every(1, [&](const train::StepMetrics& metrics) {
                if (metrics.step == slow_steps) net->pass_seconds = 0.5;
            });
            static_cast<void>(trainer.fit(FunctionSource{[&](std::int64_t) {
                                                             *now += is_last ? slow_batch : 0.25;
                                                             return strata_test::some_rows();
                                                         },
                                                         10, 8}));
        });
    }
    [[nodiscard]] std::vector<nlohmann::json> stragglers_of(const std::string& name) const {
        comm_barrier();
        std::vector<nlohmann::json> found;
        std::ifstream log{root / name / "metrics.jsonl"};
        for (std::string line; std::getline(log, line);)
            if (auto json = nlohmann::json::parse(line); json.contains("straggler")) found.push_back(std::move(json));
        return found;
    }
    [[nodiscard]] std::vector<std::string> titles() const {
        std::vector<std::string> titles;
        for (const FakeRequest& request : server.seen())
            if (const auto event = nlohmann::json::parse(request.body); event["type"] == "notification")
                titles.push_back(event["title"]);
        return titles;
    }
    [[nodiscard]] std::string told_of(bool is_slow) const {
        return "rank " + std::to_string(last_rank()) + "/" + std::to_string(comm.world()) + " on " +
               train::RankCondition::here(nullptr).host +
               (is_slow ? " is slower than the others: over 5 steps its own work takes "
                        : " keeps up with the others again: over 5 steps its own work takes ");
    }

    template <class... Policies>
    void expect_the_slow_pass_named(const std::string& stage) {
        timed_run<Policies...>(stage, 1.3, 0.25, 1.5);
        const auto found = stragglers_of(stage);
        ASSERT_EQ(found.size(), comm.world() > 1 ? 1U : 0U);
        if (found.empty()) return;
        EXPECT_EQ(found[0]["step"], 5);
        EXPECT_EQ(found[0]["straggler"]["rank"], last_rank());
        EXPECT_EQ(found[0]["straggler"]["host"], train::RankCondition::here(nullptr).host);
        EXPECT_EQ(found[0]["straggler"]["is_slow"], true);
        EXPECT_EQ(found[0]["straggler"]["work"], 1.75);
        EXPECT_EQ(found[0]["straggler"]["others"], 0.75) << "without the time in which they waited for the slow one";
        EXPECT_EQ(found[0]["straggler"]["data_wait"], 0.25);
        EXPECT_EQ(found[0]["straggler"]["others_data_wait"], 0.25);
    }
};

TEST_F(TrainerStragglers, ARankThatComputesSlowerIsNamedAtEveryStage) {
    expect_the_slow_pass_named<ZeroStage<0>>("stage0");
    if (comm.rank() == 0 && comm.world() > 1) {
        EXPECT_NE(said.find("warning: " + told_of(true)), std::string::npos) << said;
    }
    expect_the_slow_pass_named<ZeroStage<2>>("stage2");
    expect_the_slow_pass_named<ZeroStage<3>>("stage3");
}

TEST_F(TrainerStragglers, BatchesThatComeLateAreItsReason) {
    timed_run<ZeroStage<1>>("batches", 1.3, 1.25, 0.5);
    const auto found = stragglers_of("batches");
    ASSERT_EQ(found.size(), comm.world() > 1 ? 1U : 0U);
    if (found.empty()) return;
    EXPECT_EQ(found[0]["straggler"]["rank"], last_rank());
    EXPECT_EQ(found[0]["straggler"]["data_wait"], 1.25);
    EXPECT_EQ(found[0]["straggler"]["others_data_wait"], 0.25);
    EXPECT_EQ(found[0]["straggler"]["reasons"][0], "data_wait");
}

TEST_F(TrainerStragglers, OneThatKeepsUpAgainIsToldAndSoAreWebhooks) {
    timed_run<ZeroStage<2>>("again", 1.3, 0.25, 1.5, 10);
    const auto found = stragglers_of("again");
    ASSERT_EQ(found.size(), comm.world() > 1 ? 2U : 0U);
    if (found.empty()) return;
    EXPECT_EQ(found[1]["step"], 13) << "in the middle of the window are steps that were not slow";
    EXPECT_EQ(found[1]["straggler"]["is_slow"], false);
    if (comm.rank() != 0) {
        EXPECT_TRUE(titles().empty()) << "rank 0 tells it for all";
        return;
    }
    EXPECT_NE(said.find(told_of(false)), std::string::npos) << said;
    const std::string who = "Rank " + std::to_string(last_rank()) + " on " + train::RankCondition::here(nullptr).host;
    EXPECT_EQ(titles(), (std::vector<std::string>{who + " is slow", who + " keeps up again"}));
}

TEST_F(TrainerStragglers, ComparingChangesNoBit) {
    timed_run<ZeroStage<3>>("on", 1.3, 0.25, 1.5);
    timed_run<ZeroStage<3>>("off", 1, 0.25, 1.5);
    EXPECT_TRUE(stragglers_of("off").empty());
    EXPECT_EQ(losses("on"), losses("off"));
    run<ZeroStage<3>>("plain", options(20));
    EXPECT_EQ(losses("on"), losses("plain"));
}

}  // namespace
