// fit() told to go on: more steps, counted over all runs.

#include <csignal>
#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "trainer_runs.hpp"
#include "two_nets.hpp"

namespace {

using namespace strata;
using strata_test::Critic;
using strata_test::Generator;
using strata_test::Noise;
using Trained = Trainer<Critic, ZeroStage<2>>;
struct TrainerGoesOn : strata_test::TrainerRuns {
    static Noise noise(std::int64_t i) { return strata_test::some_noise(i); }

    /// A program that trains max_steps = 3 and then `more` twice; stops at micro-batch `stops`.
    std::vector<std::int64_t> program(const std::string& name, std::int64_t more, std::int64_t stops = -1) {
        std::vector<std::int64_t> steps;
        in_session(name, [&](Session& session) {
            Trained trainer{session, Critic{}, options(3)};
            Generator generator;
            trainer.model().generator = &generator;
            FunctionSource source{[stops, last = is_last()](std::int64_t i) {
                                      if (i == stops && last) std::raise(SIGUSR1);
                                      return noise(i);
                                  },
                                  10, 4};
            const auto note = [&](const FitResult& result) {
                steps.push_back(result.step);
                return !result.interrupted;
            };
            if (note(trainer.fit(source)) && note(trainer.fit(source, more))) note(trainer.fit(source, more));
        });
        return steps;
    }
};

TEST_F(TrainerGoesOn, ForMoreStepsWithTheBitsOfOneLongRun) {
    EXPECT_EQ(program("run", 2), (std::vector<std::int64_t>{3, 5, 7}));
    in_session("whole", [&](Session& session) {
        Trained trainer{session, Critic{}, options(7)};
        Generator generator;
        trainer.model().generator = &generator;
        trainer.fit(FunctionSource{noise, 10, 4});
    });
    EXPECT_EQ(losses("run"), losses("whole"));
    EXPECT_EQ(losses("run").size(), 7U);
    EXPECT_EQ(text_of(checkpoint("run", 7) / "model.safetensors"),
              text_of(checkpoint("whole", 7) / "model.safetensors"));
}

TEST_F(TrainerGoesOn, AProgramThatIsStartedAgainCountsTheStepsOfEarlierRuns) {
    program("whole", 2);
    EXPECT_EQ(program("run", 2, 3), (std::vector<std::int64_t>{3, 4})) << "stopped in the second call";
    EXPECT_EQ(program("run", 2), (std::vector<std::int64_t>{4, 5, 7}));
    EXPECT_EQ(losses("run"), losses("whole"));
    EXPECT_EQ(program("run", 2), (std::vector<std::int64_t>{7, 7, 7})) << "all is done";
}

TEST_F(TrainerGoesOn, NotInsideOfItsOwnSteps) {
    const Error error = error_of([&] {
        in_session("run", [&](Session& session) {
            Trained trainer{session, Critic{}, options(3)};
            Generator generator;
            trainer.model().generator = &generator;
            FunctionSource source{noise, 10, 4};
            trainer.every(2, [&](const train::StepMetrics&) { trainer.fit(source, 4); });
            trainer.fit(source);
        });
    });
    EXPECT_EQ(error.code(), Errc::wrong_call_order) << error.what();
    EXPECT_NE(error.problem().find("inside of a step of the same trainer"), std::string::npos) << error.what();
    EXPECT_NE(error.problem().find("step 2 is saved"), std::string::npos) << error.what();
}

/// A source that one rank cannot move to where the run is.
struct Stuck {
    bool fails;
    Noise next() { return noise_; }
    void seek(std::int64_t) {
        if (fails) throw std::runtime_error{"the tape is torn"};
    }
    [[nodiscard]] static std::int64_t micro_batches_per_epoch() { return 10; }
    [[nodiscard]] static std::int64_t samples_per_micro_batch() { return 4; }
    Noise noise_ = strata_test::some_noise(0);
};

TEST_F(TrainerGoesOn, NotWhereASourceCannotFollow) {
    std::string ended_with;
    try {
        in_session("run", [&](Session& session) {
            Trained trainer{session, Critic{}, options(3)};
            Stuck source{is_last()};
            trainer.fit(source);
        });
    } catch (const std::exception& error) {
        ended_with = error.what();
    }
    EXPECT_NE(ended_with.find("the tape is torn"), std::string::npos) << ended_with;
}

TEST_F(TrainerGoesOn, BeyondAScheduleThatWouldRiseAgainIsRefused) {
    const Error error = error_of([&] {
        in_session("run", [&](Session& session) {
            Options cosine = options(3);
            cosine.schedule.shape = optim::ScheduleShape::cosine;
            Trained trainer{session, Critic{}, cosine};
            trainer.fit(FunctionSource{noise, 10, 4}, 4);
        });
    });
    EXPECT_EQ(error.code(), Errc::bad_value);
    EXPECT_NE(error.problem().find("schedule.total_steps is 3, below step 4 of fit(source, steps)"), std::string::npos)
        << error.what();
    EXPECT_NE(error.fix().find("at least 4"), std::string::npos) << error.what();
}

}  // namespace
