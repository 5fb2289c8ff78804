// Sets that are evaluated while a run trains: the loss is the model's own, the same each time, and no bit of the run changes.

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "trainer_runs.hpp"

namespace {

using namespace strata;
using strata_test::Rows;
using strata_test::SmallNet;

/// Rows that follow from their number alone, whichever rank has them.
Rows held_out(std::int64_t number) {
    const auto x = torch::linspace(0, 1, 24).reshape({8, 3}) * (0.1 * static_cast<double>(number + 1));
    return {x, (x * x).sum(1, true).sin()};
}

/// Judges itself without randomness; in training mode it has noise.
struct JudgingNet : SmallNet {
    torch::Tensor loss(const Rows& batch) {
        calls += 1;  // in evaluation mode, too: a buffer that changes
        return SmallNet::loss({batch.x + 0.1 * torch::randn_like(batch.x), batch.y});
    }
    torch::Tensor evaluation_loss(const Rows& batch) {
        calls += 1;
        return SmallNet::loss(batch);
    }
};
static_assert(train::JudgesItself<JudgingNet> && !train::JudgesItself<SmallNet>);

struct TrainerEvaluation : strata_test::TrainerRuns {
    [[nodiscard]] std::vector<nlohmann::json> lines(const std::string& name) const {
        comm_barrier();
        std::ifstream in{root / name / "metrics.jsonl"};
        std::vector<nlohmann::json> found;
        for (std::string line; std::getline(in, line);) found.push_back(nlohmann::json::parse(line));
        return found;
    }
    /// This rank's part of four micro-batches in all, or of as many as there are ranks.
    [[nodiscard]] auto held_out_source() const {
        const std::int64_t mine = std::max<std::int64_t>(1, 4 / comm.world());
        return FunctionSource{[rank = comm.rank(), mine](std::int64_t i) { return held_out(rank * mine + i % mine); },
                              mine, 8};
    }
    template <class Net, class... Policies>
    FitResult run_evaluated(const std::string& name, const Options& given, std::int64_t every) {
        FitResult result;
        in_session(name, [&](Session& session) {
            Trainer<Net, Policies...> trainer{session, Net{}, given};
            auto source = held_out_source();
            if (every > 0) trainer.evaluate_every(every, "held_out", source);
            result = trainer.fit(FunctionSource{plain, 10, 8});
            calls = trainer.model().calls.template item<std::int64_t>();
        });
        return result;
    }
};

TEST_F(TrainerEvaluation, NoBitOfARunChangesAtAnyStage) {
    const auto expect_unchanged = [&]<class... Policies>(const std::string& name) {
        run_evaluated<JudgingNet, Policies...>(name, options(5), 0);
        const std::int64_t before = calls;
        run_evaluated<JudgingNet, Policies...>(name + "_evaluated", options(5), 2);
        EXPECT_EQ(losses(name), losses(name + "_evaluated"));
        EXPECT_EQ(calls, before) << "a buffer";
        const auto log = lines(name + "_evaluated");
        ASSERT_EQ(log.size(), 5U);
        for (const auto& line : log)
            EXPECT_EQ(line.contains("evaluations"), line["step"] == 2 || line["step"] == 4 || line["step"] == 5)
                << line;
    };
    expect_unchanged.operator()<ZeroStage<0>>("s0");
    expect_unchanged.operator()<ZeroStage<2>>("s2");
    expect_unchanged.operator()<ZeroStage<3>>("s3");
}

TEST_F(TrainerEvaluation, TheLossIsTheModelsOverAllOfTheSet) {
    in_session("run", [&](Session& session) {
        Trainer<JudgingNet, ZeroStage<3>, OffloadTarget<Cpu>> trainer{session, JudgingNet{}, options(3)};
        auto source = held_out_source();
        trainer.evaluate_every(0, "held_out", source);
        (void)trainer.fit(FunctionSource{plain, 10, 8});
        double sum = 0;
        const int count = std::max(4 / comm.world(), 1) * comm.world();
        trainer.with_whole_model([&] {
            const torch::NoGradGuard no_gradients;
            trainer.model().eval();
            for (int i = 0; i < count; ++i) sum += trainer.model().evaluation_loss(held_out(i)).template item<double>();
            trainer.model().train();
        });
        const auto log = lines("run");
        ASSERT_EQ(log.size(), 3U);
        EXPECT_NEAR(log[2]["evaluations"]["held_out"].get<double>(), sum / count, 1e-6 * sum);
        EXPECT_FALSE(log[1].contains("evaluations"));
    });
    expect_said("step 3: held_out 0.");
    if (comm.rank() == 0) {
        EXPECT_NE(text_of(root / "run" / "report.html").find("held_out</b>: lowest"), std::string::npos);
    }
}

/// Seven samples, dealt to the ranks two at a time: the last batches are short, and a rank that has nothing left shows
/// one that does not count.
struct SevenSamples {
    std::int64_t rank;
    std::int64_t world;
    std::int64_t position = 0;
    Rows next() {
        const std::int64_t begin = first(position);
        const std::int64_t count = std::max<std::int64_t>(samples_in(position++), 1);
        const Rows all = held_out(2);
        return {all.x.narrow(0, std::min<std::int64_t>(begin, 7), count),
                all.y.narrow(0, std::min<std::int64_t>(begin, 7), count)};
    }
    void seek(std::int64_t micro_batch) { position = micro_batch; }
    [[nodiscard]] std::int64_t micro_batches_per_epoch() const { return (7 + 2 * world - 1) / (2 * world); }
    [[nodiscard]] static std::int64_t samples_per_micro_batch() { return 2; }
    [[nodiscard]] std::int64_t first(std::int64_t micro_batch) const { return (micro_batch * world + rank) * 2; }
    [[nodiscard]] std::int64_t samples_in(std::int64_t micro_batch) const {
        return std::clamp<std::int64_t>(7 - first(micro_batch), 0, 2);
    }
};

/// The bound: float sums of a mean over two samples and over seven differ in their last bits.
TEST_F(TrainerEvaluation, EverySampleCountsTheSameInShortBatchesToo) {
    const auto expect_mean_of_all = [&]<class... Policies>(const std::string& name) {
        in_session(name, [&](Session& session) {
            Trainer<JudgingNet, Policies...> trainer{session, JudgingNet{}, options(1)};
            SevenSamples source{comm.rank(), comm.world()};
            trainer.evaluate_every(1, "held_out", source);
            (void)trainer.fit(FunctionSource{plain, 10, 8});
            double expected = 0;
            trainer.with_whole_model([&] {
                const torch::NoGradGuard no_gradients;
                trainer.model().eval();
                const Rows all = held_out(2);
                expected = trainer.model()
                               .evaluation_loss({all.x.narrow(0, 0, 7), all.y.narrow(0, 0, 7)})
                               .template item<double>();
                trainer.model().train();
            });
            const auto log = lines(name);
            ASSERT_EQ(log.size(), 1U);
            EXPECT_NEAR(log[0]["evaluations"]["held_out"].template get<double>(), expected, 1e-6 * expected);
        });
    };
    expect_mean_of_all.operator()<ZeroStage<1>>("s1");
    expect_mean_of_all.operator()<ZeroStage<3>>("s3");  // forward passes are collective: nobody may leave one out
}

TEST_F(TrainerEvaluation, AModelThatDoesNotJudgeItselfMeetsTheSameRandomnessEachTime) {
    auto given = options(4);
    given.schedule.lr = 0;  // the weights stay, and so must the loss
    run_evaluated<SmallNet, ZeroStage<1>>("run", given, 1);
    const auto log = lines("run");
    ASSERT_EQ(log.size(), 4U);
    for (const auto& line : log) EXPECT_EQ(line["evaluations"], log[0]["evaluations"]);
}

TEST_F(TrainerEvaluation, TheAverageIsEvaluatedBesideTheWeights) {
    run_evaluated<JudgingNet, ZeroStage<2>, Ema<>>("run", options(6), 3);
    const auto log = lines("run");
    ASSERT_EQ(log.size(), 6U);
    ASSERT_TRUE(log[5]["evaluations"].contains("held_out_ema")) << log[5];
    EXPECT_NE(log[5]["evaluations"]["held_out_ema"], log[5]["evaluations"]["held_out"]);
    run_evaluated<JudgingNet, ZeroStage<2>, Ema<>>("without", options(6), 0);
    EXPECT_EQ(losses("run"), losses("without"));
}

TEST_F(TrainerEvaluation, AResumedRunKeepsWhatWasFound) {
    run_evaluated<JudgingNet, ZeroStage<1>>("run", options(2), 1);
    const auto before = lines("run");
    run_evaluated<JudgingNet, ZeroStage<1>>("run", options(4), 1);
    const auto after = lines("run");
    ASSERT_EQ(after.size(), 4U);
    EXPECT_EQ(after[1], before[1]);
    if (comm.rank() == 0) {
        const std::string report = text_of(root / "run" / "report.html");
        const auto at = report.find("aria-label=\"loss of evaluated sets");
        ASSERT_NE(at, std::string::npos);
        std::size_t dots = 0;
        for (std::size_t dot = report.find("<circle", at); dot != std::string::npos;
             dot = report.find("<circle", dot + 1))
            ++dots;
        EXPECT_EQ(dots, 4U);
    }
}

TEST_F(TrainerEvaluation, WhatFailsInASetEndsTheRunWithItsStepLoggedAndSaved) {
    const Error error = error_of([&] {
        in_session("run", [&](Session& session) {
            Trainer<SmallNet, ZeroStage<2>> trainer{session, SmallNet{}, options(5)};
            FunctionSource source{[last = is_last()](std::int64_t) {
                                      if (last) throw Error{Errc::io_failed, "the set is gone", "bring it back"};
                                      return held_out(0);
                                  },
                                  2, 8};
            trainer.evaluate_every(2, "held_out", source);
            (void)trainer.fit(FunctionSource{plain, 10, 8});
        });
    });
    EXPECT_EQ(error.code(), Errc::io_failed);
    EXPECT_NE(error.problem().find("the set is gone"), std::string::npos) << error.what();
    EXPECT_EQ(losses("run").size(), 2U);
    EXPECT_TRUE(std::filesystem::exists(checkpoint("run", 2)));
}

TEST_F(TrainerEvaluation, NamesAndStepsAreChecked) {
    in_session("run", [&](Session& session) {
        Trainer<SmallNet> trainer{session, SmallNet{}, options(1)};
        auto source = held_out_source();
        trainer.evaluate_every(1, "held_out", source);
        EXPECT_EQ(error_of([&] { trainer.evaluate_every(1, "held_out", source); }).code(), Errc::bad_value);
        EXPECT_EQ(error_of([&] { trainer.evaluate_every(1, "", source); }).code(), Errc::bad_value);
        EXPECT_EQ(error_of([&] { trainer.evaluate_every(1, "a \"b\"", source); }).code(), Errc::bad_value);
        EXPECT_EQ(error_of([&] { trainer.evaluate_every(-1, "other", source); }).code(), Errc::bad_value);
    });
}

}  // namespace
