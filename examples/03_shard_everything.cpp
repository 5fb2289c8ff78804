// 03_shard_everything - the same spirals, by a deeper network of which a rank holds only what computes right now.
//
// Its blocks are units: between their uses parameters, master weights and moments are in a file on disk, and
// activations are computed again in backward. At the end it says what a rank held in memory and on disk.
//   ./03_shard_everything --output /tmp/spirals3 --fresh
//   strata launch -n 2 -- ./03_shard_everything --output /tmp/spirals3 --fresh

#include <concepts>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include <torch/torch.h>

#include <strata/strata.hpp>

using namespace strata;

//! [model]
struct Block : torch::nn::Module {
    torch::nn::Linear in{64, 256}, out{256, 64};
    Block() {
        register_module("in", in);
        register_module("out", out);
    }
    torch::Tensor forward(const torch::Tensor& x) {
        return x + out(torch::dropout(torch::tanh(in(x)), 0.05, is_training()));
    }
};
struct DeepSpirals : torch::nn::Module {
    struct Batch {
        torch::Tensor xy_B2, side_B;
    };
    using Units = UnitList<Block>;  // tells ZeroStage<3> and Recompute<Blocks> what to work on
    torch::nn::Linear first{2, 64}, last{64, 1};
    // Called as Unit<Block>: its parameters come and go around forward().
    std::vector<std::shared_ptr<Unit<Block>>> blocks;

    DeepSpirals() {
        register_module("first", first);
        for (int i = 0; i < 6; ++i)
            blocks.push_back(register_module("block" + std::to_string(i), std::make_shared<Unit<Block>>()));
        register_module("last", last);
    }
    torch::Tensor logits(const torch::Tensor& xy_B2) {
        auto h = torch::tanh(first(xy_B2.to(first->weight.scalar_type())));
        for (const auto& block : blocks) h = block->forward(h);
        return last(h).squeeze(1).to(torch::kFloat);
    }
    torch::Tensor loss(const Batch& batch) {
        return torch::binary_cross_entropy_with_logits(logits(batch.xy_B2), batch.side_B);
    }
};
//! [model]

// Where a GPU trains, the trainer looks for the tensors of a batch.
template <class Batch, class Call>
requires std::same_as<std::remove_const_t<Batch>, DeepSpirals::Batch>
void visit_tensors(Batch& points, Call&& call) {
    call(points.xy_B2);
    call(points.side_B);
}

DeepSpirals::Batch some_points(std::int64_t count) {
    const auto side_B = torch::randint(2, {count}).to(torch::kFloat);
    const auto turn_B = torch::rand({count}) * 4.7 + 0.5;
    const auto angle_B = turn_B + side_B * M_PI;
    return {torch::stack({turn_B * angle_B.cos(), turn_B * angle_B.sin()}, 1) / 3, side_B};
}

//! [compose]
using MyTrainer = Trainer<DeepSpirals,
                          ZeroStage<3>,  // parameters, gradients and state split over the ranks
                          OffloadTarget<Nvme, OptimizerState, Parameters>,  // state and parameters in files
                          Precision<Bf16>,                                  // fp32 master weights, on disk too
                          Recompute<Blocks>,                                // no activations kept inside of blocks
                          Ema<>>;                                           // a moving average of the weights
//! [compose]

//! [flags]
struct Flags {
    std::int64_t steps = 300;
    std::filesystem::path nvme_path;
    static void describe(auto& option) {  // the members' values are the defaults that --help shows
        option("steps", &Flags::steps, {20, 1e6}, "Optimizer steps of the run");
        option("nvme_path", &Flags::nvme_path,
               "Folder on a local disk for state and parameters; empty: the output directory");
    }
};
//! [flags]

int main(int argc, char** argv) {
    return strata::run<Flags>(argc, argv, [](Session& session, const Flags& flags) {
        const optim::Schedule cosine{
            .shape = optim::ScheduleShape::cosine, .lr = 3e-3, .warmup_steps = 20, .total_steps = flags.steps};
        MyTrainer trainer{
            session,
            DeepSpirals{},
            {.max_steps = flags.steps,
             .schedule = cosine,
             .engine = {.max_grad_norm = 1.0,
                        .ema = {.decay = 0.98},
                        .tiers = {.nvme_path = flags.nvme_path.empty() ? session.output() : flags.nvme_path}}}};
        trainer.fit(FunctionSource{[](std::int64_t) { return some_points(128); }, 100, 128});

        double right = 0;
        trainer.with_average([&] {  // every rank takes part: forward gathers the units
            trainer.model().eval();
            const torch::NoGradGuard no_gradients;
            const auto test = some_points(1000);
            const auto logits = trainer.model().logits(test.xy_B2.to(trainer.device())).cpu();
            right = (logits > 0).to(torch::kFloat).eq(test.side_B).to(torch::kFloat).mean().item<double>();
        });
        if (session.rank() != 0) return;
        const auto kib = [&](zero::MemoryKind kind, zero::Place place) {
            return static_cast<double>(trainer.memory().of(kind, place).peak) / 1024;
        };
        std::printf("%.1f %% of new points on the right side of the average\n", 100 * right);
        std::printf(
            "a rank held %.0f KiB of parameters and %.0f KiB of state on disk; %.0f KiB of parameters at once in memory\n",
            kib(zero::MemoryKind::parameters, zero::Place::disk), kib(zero::MemoryKind::state, zero::Place::disk),
            kib(zero::MemoryKind::parameters, zero::Place::device) +
                kib(zero::MemoryKind::gathered, zero::Place::device));
    });
}
