// Whole runs on a device whose memory the host may not touch: the same losses, and checkpoints that change places.

#include <concepts>
#include <filesystem>
#include <string>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <strata/strata.hpp>

#include "../../examples/undumped_device.hpp"
#include "../support/far_device.hpp"
#include "output_folder.hpp"

namespace {

using namespace strata;
namespace fs = std::filesystem;

struct Pair {
    torch::Tensor x, y;
};
template <class Batch, class Call>
requires std::same_as<std::remove_const_t<Batch>, Pair>
void visit_tensors(Batch& pair, Call&& call) {
    call(pair.x);
    call(pair.y);
}

/// Units, parameters outside of them, dropout, and a buffer that training changes.
struct Net : torch::nn::Module {
    using Batch = Pair;
    struct Block : torch::nn::Module {
        torch::nn::Linear linear{21, 21};
        Block() { register_module("linear", linear); }
        torch::Tensor forward(const torch::Tensor& x) { return torch::tanh(linear(x)); }
    };
    using Units = UnitList<Block>;
    torch::nn::Linear in{3, 21}, out{21, 1};
    std::shared_ptr<Unit<Block>> block = std::make_shared<Unit<Block>>();
    torch::Tensor calls = torch::zeros({1}, torch::kLong);
    Net() {
        register_module("in", in);
        register_module("block", block);
        register_module("out", out);
        register_buffer("calls", calls);
    }
    torch::Tensor loss(const Batch& batch) {
        calls += 1;
        const auto h = torch::dropout(block->forward(torch::tanh(in(batch.x))), 0.1, is_training());
        return torch::mse_loss(out(h), batch.y);
    }
};

using OnFarDevice = Compute<strata_test::far::Device>;
using OnCpu = Compute<Host>;

struct TrainerDevice : strata_test::OutputFolder {
    /// The losses of all steps that this run and those before it in the same folder have logged.
    template <class... Policies>
    std::vector<double> losses(const std::string& name, std::int64_t steps) {
        std::vector<std::string> words{"test", "--output", (root / name).string()};
        std::vector<char*> argv;
        for (auto& word : words) argv.push_back(word.data());
        testing::internal::CaptureStdout();
        {
            Session session{comm, static_cast<int>(argv.size()), argv.data()};
            Trainer<Net, Policies...> trainer{
                session, Net{}, {.max_steps = steps, .schedule = {.lr = 1e-2}, .engine = {.max_grad_norm = 0.5}}};
            trainer.fit(FunctionSource{[](std::int64_t) {
                                           const auto x = torch::rand({8, 3});
                                           return Pair{x, (x * x).sum(1, true).sin()};
                                       },
                                       10, 8});
            EXPECT_EQ(trainer.model().calls.device(), trainer.device());
            EXPECT_EQ(trainer.model().calls.template item<std::int64_t>(), steps);
        }
        testing::internal::GetCapturedStdout();
        comm.barrier();
        std::vector<double> found;
        for (const auto& m : train::read_metrics(root / name / "metrics.jsonl")) found.push_back(m.loss);
        return found;
    }
};

TEST_F(TrainerDevice, TrainsAndResumesWithTheBitsOfTheCpu) {
    const std::vector<double> expected = losses<OnCpu, ZeroStage<3>, Ema<>>("cpu", 6);
    ASSERT_EQ(expected.size(), 6U);
    EXPECT_EQ((losses<OnFarDevice, ZeroStage<3>, Ema<>>("far", 6)), expected);
    EXPECT_EQ((losses<OnFarDevice, ZeroStage<2>, OffloadTarget<Cpu>>("offloaded", 6)), expected);

    EXPECT_EQ((losses<Compute<my::Undumped>, ZeroStage<3>, Ema<>>("undumped", 6)), expected);
    EXPECT_EQ((losses<Compute<my::Undumped>, ZeroStage<1>, OffloadTarget<Cpu>>("undumped state", 6)), expected);

    losses<OnCpu, ZeroStage<3>, Ema<>>("moves", 3);
    EXPECT_EQ((losses<OnFarDevice, ZeroStage<3>, Ema<>>("moves", 6)), expected) << "from the CPU to the device";
    losses<OnFarDevice, ZeroStage<2>, OffloadTarget<Cpu>>("moves back", 3);
    EXPECT_EQ((losses<OnCpu, ZeroStage<3>, Ema<>>("moves back", 6)), expected) << "and back";
}

}  // namespace
