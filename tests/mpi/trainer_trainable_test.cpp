// Trainer::set_trainable(): models that are frozen and unfrozen while they train, and runs that resume in any phase.

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer_runs.hpp"

namespace {

using namespace strata;
using strata_test::Rows;
using strata_test::SmallNet;
using strata_test::some_rows;
using strata_test::TrainerRuns;

//! [gradually]
/// The head for 4 steps, then the block as well, then all.
template <class AnyTrainer, class Source>
void fine_tune(AnyTrainer& trainer, Source& source) {
    for (const std::string_view first : {"out", "block", ""}) {
        trainer.set_trainable(
            [&](std::string_view name) { return name.starts_with("out") || name.starts_with(first); });
        trainer.fit(source, 4);
    }
}
//! [gradually]

bool of_head(std::string_view name) { return name.starts_with("out"); }
bool of_block(std::string_view name) { return name.starts_with("block"); }
bool all_of_it(std::string_view) { return true; }

struct TrainerTrainable : TrainerRuns {
    using Steps = std::function<void(const train::StepMetrics&)>;

    static std::vector<float> weights_of(SmallNet& net) {
        std::vector<float> values;
        for (const auto& parameter : net.parameters()) {
            const auto flat = parameter.detach().to(torch::kFloat).contiguous();
            values.insert(values.end(), flat.data_ptr<float>(), flat.data_ptr<float>() + flat.numel());
        }
        return values;
    }
    /// Trains by what `drive` does with a trainer and a source; returns the weights at the end.
    template <class... Policies>
    std::vector<float> trained(const std::string& name, Options given, const auto& drive) {
        std::vector<float> weights;
        in_session(name, [&](Session& session) {
            Trainer<SmallNet, Policies...> trainer{session, SmallNet{}, given};
            FunctionSource source{plain, 10, 8};
            drive(trainer, source);
            trainer.with_whole_model([&] { weights = weights_of(trainer.model()); });
        });
        return weights;
    }
    /// A run that is left alone after so many steps, as if it had been killed, with a checkpoint of each.
    template <class... Policies>
    void broken_off(const std::string& name, std::int64_t after, const auto& drive) {
        Options given = options(12);
        given.checkpoint_every = 1;
        const Error error = error_of([&] {
            trained<Policies...>(name, given, [&](auto& trainer, auto& source) {
                trainer.every(1, [&](const train::StepMetrics& metrics) {
                    if (metrics.step == after + 1) throw Error{Errc::bad_value, "the test ends it", "nothing"};
                });
                drive(trainer, source);
            });
        });
        EXPECT_EQ(error.code(), Errc::bad_value) << error.what();
    }
};

const auto gradually = [](auto& trainer, auto& source) { fine_tune(trainer, source); };

TEST_F(TrainerTrainable, HasTheSameBitsAtEveryStageAndPrecisionsTrain) {
    const auto expected = trained<ZeroStage<0>>("s0", options(12), gradually);
    EXPECT_EQ(losses("s0").size(), 12U);
    EXPECT_EQ(trained<ZeroStage<2>>("s2", options(12), gradually), expected);
    EXPECT_EQ((trained<ZeroStage<3>, Recompute<Blocks>>("s3", options(12), gradually)), expected);
    EXPECT_EQ(losses("s3"), losses("s0"));
    const auto half = trained<ZeroStage<1>, Precision<Bf16>, Ema<>>("half1", options(12), gradually);
    EXPECT_EQ((trained<ZeroStage<3>, Precision<Bf16>, Ema<>>("half3", options(12), gradually)), half);
}

TEST_F(TrainerTrainable, ARunResumesInAnyPhase) {
    const auto expected = trained<ZeroStage<2>, Precision<Bf16>, Ema<>>("whole", options(12), gradually);
    for (const int after : {1, 3, 4, 7, 10}) {
        const std::string name = "broken" + std::to_string(after);
        broken_off<ZeroStage<2>, Precision<Bf16>, Ema<>>(name, after, gradually);
        EXPECT_EQ((trained<ZeroStage<3>, Precision<Bf16>, Ema<>>(name, options(12), gradually)), expected) << after;
        EXPECT_EQ(losses(name), losses("whole")) << after;
        if (after > 3) expect_said("changes nothing: the run resumed after them");
    }
}

/// What was trained for a while and is frozen now is in no state, but has the values that it had.
TEST_F(TrainerTrainable, WhatIsFrozenMeanwhileComesBackWithItsValues) {
    const auto there_and_back = [](auto& trainer, auto& source) {
        trainer.set_trainable(of_head);
        trainer.fit(source, 4);
        trainer.set_trainable(of_block);
        trainer.fit(source, 4);
        trainer.set_trainable(of_head);
        trainer.fit(source, 4);
    };
    const auto expected = trained<ZeroStage<2>>("whole", options(12), there_and_back);
    for (const int after : {5, 9}) {
        const std::string name = "broken" + std::to_string(after);
        broken_off<ZeroStage<3>>(name, after, there_and_back);
        EXPECT_EQ(trained<ZeroStage<2>>(name, options(12), there_and_back), expected) << after;
        EXPECT_EQ(trained<ZeroStage<3>>(name, options(12), there_and_back), expected) << "once more, when all is done";
    }
}

TEST_F(TrainerTrainable, AnActionMayChangeIt) {
    const auto by_action = [](auto& trainer, auto& source) {
        trainer.set_trainable(of_head);
        trainer.every(1, [&](const train::StepMetrics& metrics) {
            if (metrics.step == 4) trainer.set_trainable(all_of_it);
        });
        trainer.fit(source);
    };
    const auto expected = trained<ZeroStage<2>>("calls", options(8), [](auto& trainer, auto& source) {
        trainer.set_trainable(of_head);
        trainer.fit(source, 4);
        trainer.set_trainable(all_of_it);
        trainer.fit(source, 4);
    });
    EXPECT_EQ(trained<ZeroStage<2>>("action", options(8), by_action), expected);
    broken_off<ZeroStage<2>>("broken", 5, by_action);
    EXPECT_EQ(trained<ZeroStage<2>>("broken", options(8), by_action), expected);
}

/// A failed phase is tried again in the same program: the checkpoint is of the phase before.
TEST_F(TrainerTrainable, AFitThatIsTriedAgainTrainsWhatWasChosenLast) {
    const auto two_phases = [](bool fails) {
        return [fails](auto& trainer, auto& source) {
            bool fail = fails;
            trainer.set_trainable(of_head);
            trainer.fit(source, 4);
            trainer.set_trainable(all_of_it);
            trainer.every(1, [&](const train::StepMetrics& metrics) {
                if (metrics.step == 6 && std::exchange(fail, false))
                    throw Error{Errc::bad_value, "the test ends it", "nothing"};
            });
            try {
                trainer.fit(source, 4);
            } catch (const Error&) {
                trainer.fit(source, 4);
            }
        };
    };
    const auto expected = trained<ZeroStage<2>>("whole", options(8), two_phases(false));
    EXPECT_EQ(trained<ZeroStage<2>>("again", options(8), two_phases(true)), expected);
}

/// The checkpoint is of a step before the choice: what an action chose comes back where the action does, and what was chosen
/// between two calls behind the step that it was chosen behind.
TEST_F(TrainerTrainable, AChoiceIsRepeatedBehindItsStepAndNotBefore) {
    using AtOnce = Update<InBackward>;
    Options given = options(9);
    given.engine.max_grad_norm = 0;
    given.checkpoint_every = 3;
    const auto phases = [&](const std::string& name, bool fails, bool by_action) {
        return [=, this](auto& trainer, auto&) {
            bool fail = fails;
            const auto make = [&fail](std::int64_t micro_batch) {
                Rows rows = some_rows();
                if (micro_batch == 7 && std::exchange(fail, false)) rows.x.fill_(NAN);
                return rows;
            };
            FunctionSource source{make, 10, 8};
            trainer.set_trainable(of_head);
            if (by_action) {
                trainer.every(1, [&](const train::StepMetrics& metrics) {
                    if (metrics.step == 5) trainer.set_trainable(all_of_it);
                });
            } else {
                trainer.fit(source, 5);
                trainer.set_trainable(all_of_it);
            }
            try {
                by_action ? trainer.fit(source) : trainer.fit(source, 4);
                EXPECT_FALSE(fails);
            } catch (const Error& error) {
                EXPECT_EQ(error.code(), Errc::non_finite) << error.what();
                on_disk([&] { std::filesystem::remove_all(checkpoint(name, by_action ? 6 : 5)); });
                by_action ? trainer.fit(source) : trainer.fit(source, 4);
            }
        };
    };
    for (const bool by_action : {true, false}) {
        const std::string how = by_action ? "action" : "between";
        const auto expected = trained<ZeroStage<2>, AtOnce>(how, given, phases(how, false, by_action));
        EXPECT_EQ((trained<ZeroStage<2>, AtOnce>(how + "2", given, phases(how + "2", true, by_action))), expected)
            << how;
    }
}

TEST_F(TrainerTrainable, ATrainerThatWasMadeWithOtherParametersFrozenIsRefused) {
    trained<ZeroStage<1>>("run", options(4), [](auto& trainer, auto& source) { trainer.fit(source); });
    const Error error = error_of([&] {
        in_session("run", [&](Session& session) {
            const auto net = std::make_shared<SmallNet>();
            net->in->weight.requires_grad_(false);
            Trainer<SmallNet, ZeroStage<1>> trainer{session, net, options(8)};
            trainer.fit(FunctionSource{plain, 10, 8});
        });
    });
    EXPECT_EQ(error.code(), Errc::checkpoint_mismatch);
    EXPECT_NE(error.problem().find("trains the parameter in.weight, and this trainer was made with it frozen"),
              std::string::npos)
        << error.what();
}

}  // namespace
