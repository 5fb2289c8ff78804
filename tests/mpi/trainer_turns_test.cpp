// Several trainers in one session: their steps alternate, they save and resume together, and one's loss goes through another's model.

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "trainer_runs.hpp"
#include "two_nets.hpp"

namespace {

using namespace strata;
using strata_test::Critic;
using strata_test::Generator;
using strata_test::Noise;
namespace fs = std::filesystem;

struct TrainerTurns : strata_test::TrainerRuns {
    using NoiseOf = std::function<Noise(std::int64_t)>;
    static Noise noise(std::int64_t i) { return strata_test::some_noise(i); }
    static constexpr std::int64_t critic_steps = 2;

    struct Gan {
        std::int64_t rounds = 6;
        std::int64_t checkpoint_every = 0;  // rounds
        bool asks_a_copy = false;
        std::int64_t loses_gpu_at = -1;  // the last rank, in that micro-batch of the critic
        NoiseOf of_critic = noise, of_generator = noise;
    };

    template <int stage>
    std::array<FitResult, 2> train(const std::string& name, const Gan& gan, bool fresh = false) {
        std::array<FitResult, 2> results;
        in_session(
            name,
            [&](Session& session) {
                if (gan.loses_gpu_at >= 0) watch_gpu(session);
                const auto with = [&](std::int64_t a_turn, const std::string& its_name, std::uint64_t seed) {
                    Options given = options(gan.rounds * a_turn);
                    given.checkpoint_every = gan.checkpoint_every * a_turn;
                    given.name = its_name;
                    given.seed = seed;
                    return given;
                };
                Trainer<Critic, ZeroStage<stage>> critic{session, Critic{}, with(critic_steps, "critic", 1)};
                Trainer<Generator, ZeroStage<stage>> generator{session, Generator{}, with(1, "", 2)};
                critic.model().generator = &generator.model();
                generator.model().critic = &critic.model();
                generator.model().asks_a_copy = gan.asks_a_copy;
                generator.every(1, [&](const train::StepMetrics&) {
                    const auto gathered = critic.memory().of(zero::MemoryKind::gathered, zero::Place::device).now;
                    critic_stays_whole = critic_stays_whole || gathered > 0;
                });
                const auto of_the_critic = [&](std::int64_t i) {
                    if (i == gan.loses_gpu_at && is_last()) lose_gpu(session);
                    return gan.of_critic(i);
                };
                FunctionSource of_critic{of_the_critic, 10, 4};
                FunctionSource of_generator{gan.of_generator, 10, 4};
                results = fit_in_turns(Turn{critic, of_critic, critic_steps}, Turn{generator, of_generator});
                const torch::NoGradGuard no_grad;
                answer = generator.model().forward(torch::full({1, 2}, 0.5F)).mean().template item<float>();
            },
            fresh);
        return results;
    }
    void watch_gpu(Session& session) {
        session.watch_health({.poll_interval_seconds = 0.1},
                             {.gpu =
                                  [this] {
                                      health::GpuReading gpu;
                                      gpu.lost = gpu_is_lost;
                                      return std::optional{gpu};
                                  }},
                             "GPU 0");
    }
    /// Returns when it was seen.
    void lose_gpu(Session& session) {
        gpu_is_lost = true;
        while (!session.health().monitor()->ends_run()) std::this_thread::sleep_for(std::chrono::milliseconds{10});
    }
    void expect_equal(const std::string& name, const std::string& whole, std::int64_t rounds) {
        EXPECT_EQ(losses(name), losses(whole));
        EXPECT_EQ(losses(name + "/critic"), losses(whole + "/critic"));
        EXPECT_EQ(losses(name).size(), static_cast<std::size_t>(rounds));
        const int last = static_cast<int>(rounds);
        EXPECT_EQ(text_of(checkpoint(name, last) / "model.safetensors"),
                  text_of(checkpoint(whole, last) / "model.safetensors"));
        EXPECT_EQ(text_of(checkpoint(name + "/critic", 2 * last) / "model.safetensors"),
                  text_of(checkpoint(whole + "/critic", 2 * last) / "model.safetensors"));
    }
    std::atomic<bool> gpu_is_lost = false;
    bool critic_stays_whole = false;  // after a step of the generator
    float answer = 0;                 // what the generator answers in the end; real rows are around 2.5

    /// Noise of which one micro-batch does something on the last rank.
    [[nodiscard]] NoiseOf spoilt(std::int64_t at, const std::function<void(Noise&)>& spoil) const {
        return [=, last = is_last()](std::int64_t i) {
            Noise made = noise(i);
            if (i == at && last) spoil(made);
            return made;
        };
    }
};

TEST_F(TrainerTurns, StagesGiveTheSameBitsAndBothLearn) {
    train<2>("first", {.rounds = 1});
    const float at_first = answer;
    const auto results = train<2>("s2", {.rounds = 60});
    EXPECT_GT(answer, at_first + 0.2F) << "the generator comes closer to what is real";
    EXPECT_LT(losses("s2/critic")[5], losses("s2/critic")[0]) << "and the critic learns";
    train<3>("s3", {.rounds = 60});
    expect_equal("s3", "s2", 60);
    EXPECT_EQ(results[0].step, 120);
    EXPECT_EQ(results[1].step, 60);
}

TEST_F(TrainerTurns, TheCriticsOwnStepsDoNotSeeWhatTheGeneratorsLossGivesIt) {
    train<2>("through", {});
    train<2>("copy", {.asks_a_copy = true});
    expect_equal("through", "copy", 6);
}

TEST_F(TrainerTurns, TheCriticIsInShardsAgainWhenTheGeneratorsLossHasGoneThroughIt) {
    train<3>("s3", {});
    EXPECT_FALSE(critic_stays_whole);
}

TEST_F(TrainerTurns, AStopInTheMiddleOfARoundSavesBothAndTheRestFollowsWithTheSameBits) {
    const auto stops = spoilt(5, [](Noise&) { std::raise(SIGUSR1); });
    train<2>("whole2", {});
    const auto stopped = train<2>("s2", {.of_critic = stops});
    EXPECT_TRUE(stopped[0].interrupted);
    EXPECT_EQ(stopped[0].step, 6);
    EXPECT_EQ(stopped[1].step, 2) << "its third turn comes next";
    EXPECT_TRUE(fs::exists(checkpoint("s2/critic", 6)));
    EXPECT_TRUE(fs::exists(checkpoint("s2", 2)));
    train<2>("s2", {});
    expect_said("resuming from " + checkpoint("s2/critic", 6).string());
    expect_equal("s2", "whole2", 6);

    train<3>("whole3", {});
    train<3>("s3", {.of_generator = spoilt(3, [](Noise&) { std::raise(SIGUSR1); })});
    train<3>("s3", {});
    expect_equal("s3", "whole3", 6);
}

TEST_F(TrainerTurns, AStopBeforeTheOthersFirstStepLosesNothing) {
    train<2>("whole", {});
    train<2>("run", {.of_critic = spoilt(0, [](Noise&) { std::raise(SIGUSR1); })});
    EXPECT_TRUE(fs::exists(checkpoint("run/critic", 1)));
    train<2>("run", {});
    expect_equal("run", "whole", 6);
}

TEST_F(TrainerTurns, AStepThatFailsSavesBothAtOneMoment) {
    train<2>("whole", {});
    const auto fails = spoilt(4, [](Noise&) {
        throw Error{Errc::store_unreachable, "the bucket went away", "look for it"};
    });
    const Error error = error_of([&] { train<2>("run", {.of_generator = fails}); });
    EXPECT_EQ(error.code(), Errc::store_unreachable);
    EXPECT_EQ(error.problem(), "the bucket went away; critic: step 10 is saved in " +
                                   checkpoint("run/critic", 10).string() +
                                   "; the trainer without a name: step 4 is saved in " + checkpoint("run", 4).string());
    train<2>("run", {});
    expect_equal("run", "whole", 6);
}

TEST_F(TrainerTurns, WhatOneHasSavedAloneIsPassedOver) {
    train<2>("whole", {});
    train<2>("run", {.rounds = 4, .checkpoint_every = 2});
    on_disk([&] { fs::remove_all(checkpoint("run", 4)); });
    train<2>("run", {});
    expect_said("passed over " + checkpoint("run/critic", 8).string() +
                ": the other trainers have no checkpoint of its moment; it is kept as alone_step_00000008");
    expect_said("resuming from " + checkpoint("run", 2).string());
    expect_equal("run", "whole", 6);
}

TEST_F(TrainerTurns, ADamagedCheckpointOfOneTakesBothBack) {
    train<2>("whole", {});
    train<2>("run", {.rounds = 4, .checkpoint_every = 2});
    on_disk([&] { fs::resize_file(checkpoint("run", 4) / "manifest.json", 100); });
    train<2>("run", {});
    expect_said("it is kept as damaged_step_00000004");
    expect_said("it is kept as alone_step_00000008");
    expect_equal("run", "whole", 6);
}

TEST_F(TrainerTurns, WhereNoMomentIsWholeTheRunIsRefusedAndNothingTouched) {
    train<2>("run", {.rounds = 2});
    on_disk([&] { fs::remove_all(root / "run/checkpoints"); });
    const Error error = error_of([&] { train<2>("run", {}); });
    EXPECT_EQ(error.code(), Errc::turns_out_of_step) << error.what();
    EXPECT_EQ(
        error.problem(),
        "no moment has a whole checkpoint of every trainer: critic has one of step 4, the trainer without a name has none");
    EXPECT_TRUE(fs::exists(checkpoint("run/critic", 4)));
    train<2>("run", {}, true);
    EXPECT_EQ(losses("run").size(), 6U) << "--fresh starts over";
}

TEST_F(TrainerTurns, TurnsThatAreNotAsManyAreRefusedBeforeAnythingIsWritten) {
    const Error error = error_of([&] {
        in_session("run", [&](Session& session) {
            Options seven = options(7), six = options(6);
            six.name = "six";
            Trainer<Critic, ZeroStage<2>> one{session, Critic{}, seven};
            Trainer<Critic, ZeroStage<2>> other{session, Critic{}, six};
            FunctionSource source{noise, 10, 4};
            fit_in_turns(Turn{one, source}, Turn{other, source});
        });
    });
    EXPECT_EQ(error.code(), Errc::bad_value);
    EXPECT_EQ(
        error.problem(),
        "trainers that take turns have as many turns each, and the trainer without a name has max_steps = 7 and 1 a turn, "
        "six has max_steps = 6 and 1 a turn");
    EXPECT_FALSE(fs::exists(root / "run/checkpoints"));
}

TEST_F(TrainerTurns, WhatAFaultMayHaveSpoiltOfOneIsSavedOfNone) {
    train<2>("whole", {});
    const auto results = train<2>("lost", {.checkpoint_every = 1, .loses_gpu_at = 2});
    EXPECT_TRUE(results[0].interrupted && results[1].interrupted);
    expect_said("step 3 is not saved, because a fault may have spoilt it (rank ");
    expect_said("checkpoints/step_00000002 and does 1 step again");
    EXPECT_TRUE(fs::exists(checkpoint("lost", 1)) && fs::exists(checkpoint("lost/critic", 2)));
    EXPECT_FALSE(fs::exists(checkpoint("lost/critic", 3)));
    gpu_is_lost = false;
    train<2>("lost", {});
    expect_equal("lost", "whole", 6);
}

}  // namespace
