// What a person can give a trainer wrongly: refused on all ranks, before anything is written; and what it completes.

#include <array>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <strata/config/trainer_config.hpp>
#include <strata/storage/atomic_file.hpp>
#include <strata/strata.hpp>
#include <strata/train/command_line.hpp>
#include <strata/train/config_for.hpp>
#include <strata/train/options_from_config.hpp>

#include "output_folder.hpp"

namespace {

using namespace strata;
namespace fs = std::filesystem;

struct Line : torch::nn::Module {
    using Batch = torch::Tensor;
    torch::nn::Linear layer{3, 1};
    std::function<torch::Tensor(const torch::Tensor&)> spoiled{};  // what becomes of the losses of the samples
    Line() { register_module("layer", layer); }
    torch::Tensor loss(const Batch& batch) {
        const auto losses = (layer(batch) - batch.sum(1, true)).square();
        return spoiled ? spoiled(losses) : losses.mean();
    }
};
torch::Tensor some_rows(std::int64_t) { return torch::rand({8, 3}); }

/// Signs of gradients: a rule without state, and with a number that no rule of strata has.
struct Signs {
    struct Options {
        double share = 1;
        static void describe(auto& option) { option("share", &Options::share, {0.5, 2}, "Of the learning rate"); }
    };
    struct Scalars {
        float lr;
    };
    static constexpr std::array<std::string_view, 0> state_names{};
    static Scalars scalars(const Options& options, double lr, std::int64_t) noexcept {
        return {static_cast<float>(lr * options.share)};
    }
    [[gnu::always_inline]] static void apply(float& weight, float gradient, float*, const Scalars& s) noexcept {
        weight = weight - s.lr * (static_cast<float>(gradient > 0.0F) - static_cast<float>(gradient < 0.0F));
    }
};

struct TrainerOptions : strata_test::OutputFolder {
    template <class... Policies>
    using Trained = Trainer<Line, Policies...>;

    /// Runs `body` in a session of its own that writes to `name`.
    void in_session(const std::string& name, const std::function<void(Session&)>& body) {
        std::vector<std::string> words{"test", "--output", (root / name).string()};
        std::vector<char*> argv;
        for (auto& word : words) argv.push_back(word.data());
        testing::internal::CaptureStdout();
        try {
            Session session{comm, static_cast<int>(argv.size()), argv.data()};
            body(session);
        } catch (...) {
            testing::internal::GetCapturedStdout();
            throw;
        }
        testing::internal::GetCapturedStdout();
    }

    /// The error of a run, which must leave nothing behind.
    Error refusal(const std::function<void(Session&)>& body) {
        try {
            in_session("refused", body);
        } catch (const Error& error) {
            comm.barrier();
            return error;
        }
        ADD_FAILURE() << "nothing was refused";
        return {Errc::bad_value, "", ""};
    }
    template <class... Policies>
    Error refused_options(typename Trained<Policies...>::Options options) {
        const Error error = refusal([&](Session& session) {
            Trained<Policies...>{session, Line{}, std::move(options)};
        });
        EXPECT_FALSE(fs::exists(root / "refused")) << error.what();
        return error;
    }

    template <class... Policies>
    std::vector<train::StepMetrics> metrics(const std::string& name, typename Trained<Policies...>::Options options) {
        in_session(name, [&](Session& session) {
            Trained<Policies...> trainer{session, Line{}, std::move(options)};
            trainer.fit(FunctionSource{some_rows, 10, 8});
        });
        return train::read_metrics(root / name / "metrics.jsonl");
    }
};

TEST_F(TrainerOptions, NumbersOutOfTheirRangeAreRefusedOnAllRanksBeforeAnythingIsWritten) {
    const Error error =
        refused_options<ZeroStage<1>>({.max_steps = 3, .schedule = {.lr = std::nan("")}, .checkpoints_kept = 0});
    EXPECT_STREQ(error.what(),
                 "[ST2103] schedule.lr is nan; checkpoints_kept is 0. Fix: use schedule.lr from 0 to 10; use "
                 "checkpoints_kept from 1 to 1e+12.");
    EXPECT_TRUE(is_bad_input(error.code()));
    EXPECT_EQ(refused_options<ZeroStage<2>>({.max_steps = -1}).problem(), "max_steps is -1");
    EXPECT_EQ((refused_options<ZeroStage<2>, Optimizer<Signs>>({.engine = {.update = {.share = 3}}}).problem()),
              "engine.update.share is 3");
}

TEST_F(TrainerOptions, OneRankWithAWrongNumberTakesTheOthersAlong) {
    const int last = comm.world() - 1;
    EXPECT_EQ(refused_options<ZeroStage<1>>({.engine = {.max_grad_norm = comm.rank() == last ? -1.0 : 1.0}}).problem(),
              "engine.max_grad_norm is -1");
}

TEST_F(TrainerOptions, WhatASourceSaysOfItselfIsRefusedBeforeAnythingIsWritten) {
    for (const auto& [per_epoch, samples, says] : {std::tuple{10, 0, "the source's samples_per_micro_batch is 0"},
                                                   std::tuple{0, 8, "the source's micro_batches_per_epoch is 0"}}) {
        const Error error = refusal([&, per_epoch = per_epoch, samples = samples](Session& session) {
            Trained<ZeroStage<1>> trainer{session, Line{}, {.max_steps = 3}};
            trainer.fit(FunctionSource{some_rows, per_epoch, samples});
        });
        EXPECT_EQ(error.code(), Errc::bad_value);
        EXPECT_EQ(error.problem(), says);
        EXPECT_FALSE(fs::exists(root / "refused"));
    }
}

TEST_F(TrainerOptions, AnIntervalOrActionThatCannotBeIsRefused) {
    const auto every = [&](std::int64_t steps, std::function<void(const train::StepMetrics&)> action) {
        return refusal([&](Session& session) { Trained<ZeroStage<0>>{session, Line{}, {}}.every(steps, action); });
    };
    EXPECT_EQ(every(-5, [](const train::StepMetrics&) {}).problem(), "every(steps, action) was given -5 steps");
    EXPECT_EQ(every(5, nullptr).problem(), "every(steps, action) was given an empty action");
}

TEST_F(TrainerOptions, ALossWithoutAGradientIsOneSentence) {
    const auto spoil = [&](std::function<torch::Tensor(const torch::Tensor&)> with) {
        const Error error = refusal([&](Session& session) {
            Trained<ZeroStage<2>> trainer{session, Line{}, {.max_steps = 3}};
            trainer.model().spoiled = with;
            trainer.fit(FunctionSource{some_rows, 10, 8});
        });
        EXPECT_EQ(error.code(), Errc::bad_loss);
        return error.problem();
    };
    const std::string nothing_lost = "; no step was done before, so nothing is lost";
    EXPECT_EQ(spoil([](const auto& losses) { return losses; }),
              "loss(batch) returned 8 numbers (shape [8, 1], Float) instead of one" + nothing_lost);
    EXPECT_EQ(spoil([](const auto& losses) { return losses.mean().detach(); }),
              "loss(batch) returned a tensor that no parameter leads to (shape [], Float)" + nothing_lost);
    EXPECT_EQ(spoil([](const auto& losses) { return (losses > 1).sum(); }),
              "loss(batch) returned a tensor whose type has no gradient (shape [], Long)" + nothing_lost);
    EXPECT_EQ(spoil([](const auto&) { return torch::Tensor{}; }),
              "loss(batch) returned a tensor that was never assigned" + nothing_lost);
}

TEST_F(TrainerOptions, ACosineWithoutATotalFallsOverTheWholeRun) {
    const optim::Schedule open{.shape = optim::ScheduleShape::cosine, .lr = 1e-2, .warmup_steps = 2};
    optim::Schedule whole = open;
    whole.total_steps = 8;
    const auto left_out = metrics<ZeroStage<1>>("left_out", {.max_steps = 8, .schedule = open});
    const auto given = metrics<ZeroStage<1>>("given", {.max_steps = 8, .schedule = whole});
    ASSERT_EQ(left_out.size(), 8U);
    for (std::size_t i = 0; i < left_out.size(); ++i) {
        EXPECT_EQ(left_out[i].learning_rate, whole.at(static_cast<std::int64_t>(i)));
        EXPECT_EQ(left_out[i].loss, given[i].loss);
    }
    EXPECT_LT(left_out.back().learning_rate, 1e-3);
    // The same of a rate that is a type: DeepSpeed's, whose total was left out.
    const optim::WarmupDecayLr decay{.max_lr = 1e-2, .warmup_steps = 2};
    const auto decayed = metrics<ZeroStage<1>>("decayed", {.max_steps = 8, .schedule = optim::Schedule::of(decay)});
    ASSERT_EQ(decayed.size(), 8U);
    EXPECT_EQ(decayed.back().learning_rate,
              (optim::WarmupDecayLr{.max_lr = 1e-2, .warmup_steps = 2, .total_steps = 8}.at(7)));
    EXPECT_EQ(refused_options<ZeroStage<1>>(
                  {.max_steps = 8, .schedule = optim::Schedule::of(optim::WarmupLr{.warmup_steps = 0})})
                  .problem(),
              "schedule.warmup_steps is 0");
}

/// Good for two steps, then a division by zero.
struct Breaking {
    double numerator;
    [[nodiscard]] double at(std::int64_t step) const { return step < 2 ? 1e-3 : numerator / 0.0; }
};

TEST_F(TrainerOptions, ARateThatBreaksWhileTrainingStopsBeforeItsStep) {
    for (const double numerator : {0.0, 1.0}) {
        const Error error = refusal([&](Session& session) {
            Trained<ZeroStage<1>> trainer{
                session, Line{}, {.max_steps = 5, .schedule = optim::Schedule::of(Breaking{numerator})}};
            trainer.fit(FunctionSource{some_rows, 10, 8});
        });
        EXPECT_EQ(error.code(), Errc::bad_learning_rate);
        EXPECT_EQ(error.problem().find("the learning rate of step 3 is "), 0U) << error.what();
        EXPECT_FALSE(fs::exists(root / "refused/checkpoints/step_00000003"));
        comm.barrier();
        if (comm.rank() == 0) fs::remove_all(root / "refused");
        comm.barrier();
    }
}

TEST_F(TrainerOptions, ARuleWithoutAFilesNumbersTrainsFromAFile) {
    using Mine = Trained<ZeroStage<2>, Optimizer<Signs>>;
    config::TrainerConfig config;
    config.max_train_steps = 40;
    config.options.schedule.lr = 1e-2;
    config.optimizer.set("optimizer_weight_decay", "0.1");
    const auto found = metrics<ZeroStage<2>, Optimizer<Signs>>("signs", train::options_from<Mine>(config, 10));
    ASSERT_EQ(found.size(), 40U);
    EXPECT_LT(found.back().loss, 0.5 * found.front().loss);
}

TEST_F(TrainerOptions, ARuleOfOnesOwnTrainsWithItsOwnKeysFromAFileAndFromTheCommandLine) {
    using Mine = Trained<ZeroStage<2>, Optimizer<Signs>>;
    const auto write = [&](const char* name, const std::string& more) {
        if (comm.rank() == 0)
            storage::write_file(root / name,
                                R"({"max_train_steps": 12, "learning_rate": 1e-2, "max_grad_norm": 0)" + more + "}");
        comm.barrier();
        return (root / name).string();
    };
    const std::string plain = write("plain.json", "");
    const std::string halved = write("halved.json", R"(, "optimizer_share": 0.5)");
    const auto losses = [](const std::vector<train::StepMetrics>& found) {
        std::vector<double> all;
        for (const train::StepMetrics& step : found) all.push_back(step.loss);
        return all;
    };
    /// Of a program that is started with these words and takes its settings from its session.
    const auto started = [&]<class Settings>(std::type_identity<Settings>, const std::string& name,
                                             std::vector<std::string> words) {
        words.insert(words.begin(), {"test", "--output", (root / name).string()});
        std::vector<const char*> argv;
        for (const auto& word : words) argv.push_back(word.c_str());
        const std::array keys{train::SettingsKeys::of<Settings>()};
        testing::internal::CaptureStdout();
        {
            Session session{comm, train::CommandLine::parse(static_cast<int>(argv.size()), argv.data(), keys)};
            Mine trainer{session, Line{}, train::options_from<Mine>(session.settings<Settings>(), 10)};
            trainer.fit(FunctionSource{some_rows, 10, 8});
        }
        testing::internal::GetCapturedStdout();
        return losses(train::read_metrics(root / name / "metrics.jsonl"));
    };
    const auto by_rule = std::type_identity<train::ConfigFor<Mine>>{};
    const auto by_any = std::type_identity<config::TrainerConfig>{};

    const auto given = [&](const char* name, double share) {
        return losses(metrics<ZeroStage<2>, Optimizer<Signs>>(
            name, {.max_steps = 12,
                   .schedule = {.shape = ScheduleShape::constant_with_warmup, .lr = 1e-2},
                   .engine = {.update = {.share = share}}}));
    };
    const auto whole = given("whole", 1.0);
    const auto half = given("half", 0.5);
    ASSERT_EQ(whole.size(), 12U);
    ASSERT_NE(whole, half) << "the number acts";

    EXPECT_EQ(started(by_rule, "a", {"--config", plain}), whole);
    EXPECT_EQ(started(by_rule, "b", {"--config", halved}), half) << "from the file";
    EXPECT_EQ(started(by_rule, "c", {"--config", plain, "--optimizer_share", "0.5"}), half) << "from the command line";
    EXPECT_EQ(started(by_any, "d", {"--config", halved}), half) << "settings that do not know the rule";
    EXPECT_EQ(started(by_any, "e", {"--config", halved, "--optimizer_share=1"}), whole)
        << "the command line goes before the file";
}

/// A trainer's options are settings too: every one of them is a flag.
TEST_F(TrainerOptions, AProgramWithoutAFileCanTakeATrainersOptionsAsItsFlags) {
    using Mine = Trained<ZeroStage<1>, Optimizer<Signs>>;
    const std::array keys{train::SettingsKeys::of<Mine::Options>()};
    const std::string help = train::help_text("mine", keys);
    for (const char* flag :
         {"  --max_steps  integer >= 1; default 1000\n", "  --optimizer_share  number 0.5 to 2; default 1\n",
          "  --learning_rate  number 0 to 10; default 1e-04\n",
          "  --offload_nvme_path or --nvme_path  text; default \"\"\n"})
        EXPECT_NE(help.find(flag), std::string::npos) << flag << help;
    const std::vector<const char*> words{"mine", "--max_steps", "3", "--optimizer_share=0.5", "--learning_rate",
                                         "0.01"};
    const auto line = train::CommandLine::parse(static_cast<int>(words.size()), words.data(), keys);
    const auto options = config::schema_of<Mine::Options>().read(line.overrides);
    EXPECT_EQ(options.engine.update.share, 0.5);
    EXPECT_EQ((metrics<ZeroStage<1>, Optimizer<Signs>>("flags", options).size()), 3U);
}

}  // namespace
