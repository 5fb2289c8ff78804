// Whole runs on every number of ranks: what repeats bit by bit, what resumes, and what stops cleanly.

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <strata/strata.hpp>

#include "output_folder.hpp"

namespace {

using namespace strata;
namespace fs = std::filesystem;

struct Pair {
    torch::Tensor x, y;
};

/// Two units and parameters outside of them, 1,135 elements: no number of ranks above one divides that. Has dropout
/// and a buffer.
struct Net : torch::nn::Module {
    using Batch = Pair;
    struct Block : torch::nn::Module {
        torch::nn::Linear linear;
        explicit Block(int width) : linear{width, width} { register_module("linear", linear); }
        torch::Tensor forward(const torch::Tensor& x) { return torch::tanh(linear(x)); }
    };
    using Units = UnitList<Block>;
    torch::nn::Linear in{3, 21}, out{21, 1};
    std::shared_ptr<Unit<Block>> first = std::make_shared<Unit<Block>>(21), second = std::make_shared<Unit<Block>>(21);
    torch::Tensor calls = torch::zeros({1}, torch::kLong);
    Net() {
        register_module("in", in);
        register_module("first", first);
        register_module("second", second);
        register_module("out", out);
        register_buffer("calls", calls);
    }
    torch::Tensor loss(const Batch& batch) {
        calls += 1;
        const auto dtype = in->weight.scalar_type();
        auto h = first->forward(torch::tanh(in(batch.x.to(dtype))));
        h = torch::dropout(h, 0.1, is_training());
        return torch::mse_loss(out(second->forward(h)).to(torch::kFloat), batch.y);
    }
};

/// Computes in fp32 from fp16 parameters: libtorch on the CPU has few operations for fp16.
struct HalfNet : torch::nn::Module {
    using Batch = Pair;
    torch::Tensor in = torch::randn({3, 21}), out = torch::randn({21, 1});
    HalfNet() {
        in = register_parameter("in", in);
        out = register_parameter("out", out);
    }
    torch::Tensor loss(const Batch& batch) {
        const auto h = torch::tanh(batch.x.matmul(in.to(torch::kFloat)));
        return torch::mse_loss(h.matmul(out.to(torch::kFloat)), batch.y);
    }
};

Pair some_pairs(std::int64_t) {  // depends on the generator, which the trainer seeds by micro-batch
    const auto x = torch::rand({8, 3});
    return {x, (x * x).sum(1, true).sin()};
}

struct Trainer : strata_test::OutputFolder {
    /// The losses of all steps in metrics.jsonl after a run of this composition.
    template <class... Policies>
    std::vector<double> losses(const std::string& name, std::int64_t steps, int accumulation = 1, bool fresh = false) {
        run<Policies...>(name, steps, accumulation, fresh);
        std::vector<double> found;
        for (const auto& m : train::read_metrics(root / name / "metrics.jsonl")) found.push_back(m.loss);
        return found;
    }

    template <class... Policies>
    FitResult run(const std::string& name, std::int64_t steps, int accumulation = 1, bool fresh = false,
                  const std::function<void(const train::StepMetrics&)>& each_step = {}) {
        std::vector<std::string> words{"test", "--output", (root / name).string()};
        if (fresh) words.emplace_back("--fresh");
        std::vector<char*> argv;
        for (auto& word : words) argv.push_back(word.data());
        testing::internal::CaptureStdout();
        FitResult result;
        try {
            Session session{comm, static_cast<int>(argv.size()), argv.data()};
            torch::manual_seed(static_cast<std::uint64_t>(comm.rank()));  // ranks start apart: rank 0 decides
            strata::Trainer<Net, Policies...> trainer{
                session,
                Net{},
                {.max_steps = steps,
                 .schedule = {.lr = 1e-2},
                 .engine = {
                     .gradient_accumulation_steps = accumulation, .max_grad_norm = 0.5, .tiers = {.nvme_path = disk}}}};
            if (each_step) trainer.every(1, each_step);
            result = trainer.fit(FunctionSource{some_pairs, 10, 8});
            calls = trainer.model().calls.template item<std::int64_t>();
        } catch (...) {
            testing::internal::GetCapturedStdout();
            throw;
        }
        said = testing::internal::GetCapturedStdout();
        return result;
    }

    Errc refusal(const std::function<void()>& work) {
        try {
            work();
        } catch (const Error& error) {
            return error.code();
        }
        return Errc{};
    }

    std::string said;
    std::int64_t calls = 0;
    fs::path disk;
};

TEST_F(Trainer, ARepeatedRunGivesTheSameLossesBitByBit) {
    const auto once = losses<ZeroStage<2>, OffloadTarget<Cpu>, Precision<Bf16>>("a", 12);
    const auto again = losses<ZeroStage<2>, OffloadTarget<Cpu>, Precision<Bf16>>("b", 12);
    ASSERT_EQ(once.size(), 12U);
    EXPECT_EQ(once, again);
    EXPECT_NE(once.front(), once.back());
}

TEST_F(Trainer, AllStagesGiveTheSameLossesBitByBit) {
    for (const int accumulation : {1, 2}) {
        const std::string tag = std::to_string(accumulation);
        const auto stage0 = losses<ZeroStage<0>>("s0_" + tag, 12, accumulation);
        ASSERT_EQ(stage0.size(), 12U);
        EXPECT_EQ(stage0, losses<ZeroStage<1>>("s1_" + tag, 12, accumulation));
        EXPECT_EQ(stage0, (losses<ZeroStage<2>, OffloadTarget<Cpu>>("s2_" + tag, 12, accumulation)));
        EXPECT_EQ(stage0, losses<ZeroStage<3>>("s3_" + tag, 12, accumulation));
        EXPECT_EQ((losses<ZeroStage<0>, Optimizer<Lion>>("l0_" + tag, 12, accumulation)),
                  (losses<ZeroStage<2>, Optimizer<Lion>>("l2_" + tag, 12, accumulation)));
    }
}

TEST_F(Trainer, OneRankWithAllMicroBatchesLearnsWhatManyLearn) {
    const auto together = losses<ZeroStage<2>>("together", 12, 2);
    comm::SelfComm alone;
    const fs::path folder = root / ("alone " + std::to_string(comm.rank()));
    std::string words[] = {"test", "--output", folder.string()};
    char* argv[] = {words[0].data(), words[1].data(), words[2].data()};
    testing::internal::CaptureStdout();
    {
        Session session{alone, 3, argv};
        torch::manual_seed(0);  // as on rank 0 above
        strata::Trainer<Net, ZeroStage<2>, Ranks<comm::SelfComm>> trainer{
            session,
            Net{},
            {.max_steps = 12,
             .schedule = {.lr = 1e-2},
             .engine = {.gradient_accumulation_steps = 2 * comm.world(), .max_grad_norm = 0.5}}};
        static_cast<void>(trainer.fit(FunctionSource{some_pairs, 10, 8}));
    }
    testing::internal::GetCapturedStdout();
    const auto metrics = train::read_metrics(folder / "metrics.jsonl");
    ASSERT_EQ(metrics.size(), together.size());
    for (std::size_t i = 0; i < metrics.size(); ++i)  // the same numbers, added up in another order
        EXPECT_NEAR(metrics[i].loss, together[i], 1e-5 * together[i]) << "step " << i + 1;
}

TEST_F(Trainer, AResumedRunGoesOnAsIfItHadNotStopped) {
    const auto whole = losses<ZeroStage<2>, Precision<Bf16>>("whole", 15);
    losses<ZeroStage<2>, Precision<Bf16>>("parts", 6);
    const auto parts = losses<ZeroStage<2>, Precision<Bf16>>("parts", 15);
    EXPECT_EQ(whole, parts);
    EXPECT_EQ(calls, 15) << "buffers come back with the checkpoint";
    if (comm.rank() == 0) {
        EXPECT_NE(said.find("resuming from"), std::string::npos) << said;
    }
}

TEST_F(Trainer, AResumedRunInPureBf16GoesOnAsIfItHadNotStopped) {
    const auto whole = losses<ZeroStage<2>, Precision<PureBf16>>("whole", 10);
    losses<ZeroStage<2>, Precision<PureBf16>>("parts", 4);
    EXPECT_EQ(whole, (losses<ZeroStage<1>, Precision<PureBf16>>("parts", 10)));
}

TEST_F(Trainer, StateOnDiskResumesAndChangesNoLoss) {
    const auto memory = losses<ZeroStage<2>, OffloadTarget<Cpu>, Precision<Bf16>>("memory", 10);
    EXPECT_EQ(refusal([&] { run<ZeroStage<2>, OffloadTarget<Nvme>, Precision<Bf16>>("disk", 4); }), Errc::bad_value);
    disk = root;
    losses<ZeroStage<2>, OffloadTarget<Nvme>, Precision<Bf16>>("disk", 4);
    EXPECT_EQ(memory, (losses<ZeroStage<1>, OffloadTarget<Nvme>, Precision<Bf16>>("disk", 10)));
}

TEST_F(Trainer, StageThreeWithEverythingOnDiskSavesAndResumes) {
    const auto memory = losses<ZeroStage<2>, Precision<Bf16>>("memory", 10);
    disk = root;
    using OnDisk = OffloadTarget<Nvme, OptimizerState, Parameters>;
    losses<ZeroStage<3>, OnDisk, Precision<Bf16>>("disk", 4);
    EXPECT_EQ(memory, (losses<ZeroStage<3>, OnDisk, Precision<Bf16>>("disk", 10)));
    // Each rank's slices differ by stage, the model does not.
    const auto model = [&](const char* name) {
        return storage::read_file(root / name / "checkpoints" / "step_00000010" / "model.safetensors");
    };
    EXPECT_EQ(model("memory"), model("disk"));
}

TEST_F(Trainer, TheAverageOfTheWeightsComesBackWithTheCheckpoint) {
    const auto average = [&](const char* name) {
        return storage::read_file(root / name / "checkpoints" / "step_00000010" / "model_ema.safetensors");
    };
    losses<ZeroStage<1>, Ema<>>("whole", 10);
    losses<ZeroStage<3>, Ema<>>("parts", 4);
    const auto parts = losses<ZeroStage<2>, Ema<>>("parts", 10);
    EXPECT_EQ(parts, losses<ZeroStage<0>>("without", 10)) << "the average changed the run";
    EXPECT_EQ(average("whole"), average("parts"));
    EXPECT_NE(average("whole"),
              storage::read_file(root / "whole" / "checkpoints" / "step_00000010" / "model.safetensors"));
    run<ZeroStage<0>, Ema<>>("without", 12);
    if (comm.rank() == 0) {
        EXPECT_NE(said.find("has no moving average"), std::string::npos) << said;
    }
}

TEST_F(Trainer, StepsWhoseFp16GradientsOverflowAreSkippedAndNotLogged) {
    const auto train_half = [&](const std::string& name, std::int64_t steps) {
        std::vector<std::string> words{"test", "--output", (root / name).string()};
        std::vector<char*> argv;
        for (auto& word : words) argv.push_back(word.data());
        testing::internal::CaptureStdout();
        {
            Session session{comm, 3, argv.data()};
            strata::Trainer<HalfNet, ZeroStage<2>, Precision<Fp16>> trainer{
                session,
                HalfNet{},
                {.max_steps = steps, .schedule = {.lr = 1e-2}, .engine = {.loss_scale = {.initial = 0x1p24}}}};
            EXPECT_EQ(trainer.fit(FunctionSource{some_pairs, 100, 8}).step, steps);
        }
        said = testing::internal::GetCapturedStdout();
        std::vector<double> found;
        for (const auto& m : train::read_metrics(root / name / "metrics.jsonl")) found.push_back(m.loss);
        return found;
    };
    const auto whole = train_half("whole", 8);
    ASSERT_EQ(whole.size(), 8U);
    if (comm.rank() == 0) {
        EXPECT_NE(said.find("step 1 is skipped"), std::string::npos) << said;
    }
    train_half("parts", 3);
    EXPECT_EQ(whole, train_half("parts", 8));
    EXPECT_EQ(said.find("is skipped"), std::string::npos) << "the loss scale comes back with the checkpoint";
}

TEST_F(Trainer, ACheckpointOfOneStageResumesAtAnother) {
    const auto whole = losses<ZeroStage<1>>("whole", 10);
    losses<ZeroStage<2>>("mixed", 4);
    losses<ZeroStage<0>>("mixed", 5);
    losses<ZeroStage<3>>("mixed", 8);
    EXPECT_EQ(whole, losses<ZeroStage<1>>("mixed", 10));
}

TEST_F(Trainer, EveryRankSeesTheSameMetrics) {
    std::vector<double> seen;
    run<ZeroStage<1>>("run", 5, 1, false, [&](const train::StepMetrics& m) {
        for (const double value : {m.loss, m.grad_norm, m.seconds, m.samples_per_second, m.epoch})
            seen.push_back(value);
    });
    std::vector<double> all(seen.size() * static_cast<std::size_t>(comm.world()));
    comm.all_gather(std::as_bytes(std::span{seen}), std::as_writable_bytes(std::span{all}));
    for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i], seen[i % seen.size()]);
}

TEST_F(Trainer, AResumedRunForgetsSamplesThatItsCheckpointNeverSaw) {
    run<ZeroStage<1>>("run", 4);
    if (comm.rank() == 0) {
        fs::create_directories(root / "run/samples");
        for (const char* name : {"step_00000003.png", "step_00000005.png"})
            std::ofstream{root / "run/samples" / name} << "x";
    }
    comm.barrier();
    run<ZeroStage<1>>("run", 6);
    EXPECT_TRUE(fs::exists(root / "run/samples/step_00000003.png"));
    EXPECT_FALSE(fs::exists(root / "run/samples/step_00000005.png"));
}

TEST_F(Trainer, FreshStartsOver) {
    const auto first = losses<ZeroStage<1>>("run", 5);
    const auto second = losses<ZeroStage<1>>("run", 5, 1, true);
    EXPECT_EQ(first, second);
    EXPECT_EQ(said.find("resuming"), std::string::npos);
}

TEST_F(Trainer, AStopSignalOnOneRankSavesOnAllAndTheRestFollowsLater) {
    const auto whole = losses<ZeroStage<2>>("whole", 10);
    const int last_rank = comm.world() - 1;
    const FitResult stopped = run<ZeroStage<2>>("stopped", 10, 1, false, [&](const train::StepMetrics& m) {
        if (m.step == 4 && comm.rank() == last_rank) std::raise(SIGTERM);
    });
    EXPECT_TRUE(stopped.interrupted);
    EXPECT_EQ(stopped.step, 5);
    EXPECT_TRUE(fs::exists(root / "stopped/checkpoints/step_00000005/manifest.json"));
    EXPECT_EQ(whole, losses<ZeroStage<2>>("stopped", 10));
}

TEST_F(Trainer, ADamagedCheckpointIsRefusedOnAllRanks) {
    run<ZeroStage<1>>("run", 3);
    if (comm.rank() == 0) {
        std::fstream file{root / "run/checkpoints/step_00000003/model.safetensors",
                          std::ios::in | std::ios::out | std::ios::binary};
        file.seekp(-5, std::ios::end);
        file.put('\x55');
    }
    comm.barrier();
    EXPECT_EQ(refusal([&] { run<ZeroStage<1>>("run", 6); }), Errc::corrupt_checkpoint);
}

TEST_F(Trainer, AMissingStateFileIsRefusedOnAllRanks) {
    run<ZeroStage<1>>("run", 3);
    if (comm.rank() == 0)
        for (const auto& entry : fs::directory_iterator{root / "run/checkpoints/step_00000003"})
            if (entry.path().filename().string().starts_with("state_00000")) fs::remove(entry.path());
    comm.barrier();
    EXPECT_EQ(refusal([&] { run<ZeroStage<1>>("run", 6); }), Errc::corrupt_checkpoint);
}

TEST_F(Trainer, TheStateOfAnotherUpdateRuleIsRefused) {
    run<Optimizer<AdamW>>("run", 3);
    EXPECT_EQ(refusal([&] { run<Optimizer<Lion>>("run", 6); }), Errc::checkpoint_mismatch);
}

TEST_F(Trainer, AnUnfinishedCheckpointIsNeverResumedAndGoesAway) {
    run<ZeroStage<1>>("run", 3);
    if (comm.rank() == 0) {
        fs::create_directories(root / "run/checkpoints/.step_00000009.partial");
        std::ofstream{root / "run/checkpoints/.step_00000009.partial/manifest.json"} << "{";
    }
    comm.barrier();
    EXPECT_EQ(run<ZeroStage<1>>("run", 5).step, 5);
    EXPECT_FALSE(fs::exists(root / "run/checkpoints/.step_00000009.partial"));
}

TEST_F(Trainer, AResumedRunSaysWhatItSetAsideFromItsLog) {
    run<ZeroStage<1>>("run", 3);
    if (comm.rank() == 0)
        std::ofstream{root / "run/metrics.jsonl", std::ios::app} << "strange\n{\"step\": 4, \"loss\": 1}\n";
    comm.barrier();
    EXPECT_EQ(losses<ZeroStage<1>>("run", 5).size(), 5U);
    if (comm.rank() == 0) {
        EXPECT_NE(
            said.find(
                "metrics.jsonl: set aside in metrics.jsonl.kept-1: 1 line that cannot be read (line 4) and 1 line of step 4, to be done again\n"),
            std::string::npos)
            << said;
    }
    EXPECT_TRUE(fs::exists(root / "run/metrics.jsonl.kept-1"));
}

TEST_F(Trainer, ARunThatIsDoneSaysSoAndChangesNothing) {
    const auto before = losses<ZeroStage<1>>("run", 4);
    const FitResult done = run<ZeroStage<1>>("run", 4);
    EXPECT_EQ(done.step, 4);
    EXPECT_EQ(done.loss, before.back());
    if (comm.rank() == 0) {
        EXPECT_NE(said.find("already done"), std::string::npos) << said;
    }
    EXPECT_EQ(before, losses<ZeroStage<1>>("run", 4));
}

TEST_F(Trainer, TwoRunsCannotShareAnOutputDirectory) {
    std::vector<std::string> words{"test", "--output", (root / "run").string()};
    std::vector<char*> argv;
    for (auto& word : words) argv.push_back(word.data());
    Session first{comm, 3, argv.data()};
    first.output();
    EXPECT_EQ(refusal([&] { run<ZeroStage<1>>("run", 2); }), Errc::output_in_use);
}

TEST_F(Trainer, ANonFiniteLossNamesItsStepOnAllRanks) {
    const auto broken = [&] {
        std::vector<std::string> words{"test", "--output", (root / "run").string()};
        std::vector<char*> argv;
        for (auto& word : words) argv.push_back(word.data());
        Session session{comm, 3, argv.data()};
        strata::Trainer<Net, ZeroStage<2>> trainer{session, Net{}, {.max_steps = 3, .schedule = {.lr = 1e-2}}};
        const int rank = comm.rank();
        trainer.fit(FunctionSource{[rank](std::int64_t i) {
                                       Pair pair = some_pairs(i);
                                       if (i == 1 && rank == 0) pair.y.fill_(NAN);
                                       return pair;
                                   },
                                   10, 8});
    };
    testing::internal::CaptureStdout();
    EXPECT_EQ(refusal(broken), Errc::non_finite);
    testing::internal::GetCapturedStdout();
}

}  // namespace
