// The reference's tiny SDXL under every stage and tier and with recomputation: the same bits; and what stage 3 keeps
// whole.

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <strata/comm/mpi_comm.hpp>
#include <strata/models/unet.hpp>
#include <strata/policy/recompute.hpp>
#include <strata/policy/setup.hpp>
#include <strata/zero/engine.hpp>
#include <strata/zero/memory_meter.hpp>
#include <strata/zero/parameters.hpp>

#include "shared_folder.hpp"
#include "toy_engines.hpp"
#include "whole_weights.hpp"

namespace {

using namespace strata;
using models::Unet;
using zero::MemoryKind;

/// The sizes of the reference's cases, golden/unet_sdxl.json.
models::UnetOptions tiny_sdxl() {
    models::UnetOptions options;
    options.levels = {{16, 2, 1, false}, {32, 4, 1, true}, {32, 4, 2, true}};
    options.cross_attention_dim = 24;
    options.norm_groups = 8;
    options.linear_projection = true;
    options.addition_time_dim = 8;
    options.addition_input_dim = 68;
    return options;
}

struct Trace {
    std::vector<double> losses, norms;
    std::vector<float> weights;
    std::int64_t gathered = 0;  ///< most bytes of units that were whole at once
    bool operator==(const Trace& other) const {
        return losses == other.losses && norms == other.norms && weights == other.weights;
    }
};

template <class... Policies>
Trace train(comm::MpiComm& comm, const std::filesystem::path& disk) {
    torch::manual_seed(static_cast<std::uint64_t>(1 + comm.rank()));
    const auto model = std::make_shared<Unet>(tiny_sdxl());
    strata_test::EngineOf<Policies...> engine{
        comm, zero::parameters_of(*model), {.bucket_numel = 40000, .max_grad_norm = 1.0, .tiers = {.nvme_path = disk}}};
    Trace trace;
    for (int step = 0; step < 2; ++step) {
        torch::manual_seed(static_cast<std::uint64_t>(100 * step + comm.rank()));
        const at::Tensor sample = at::randn({1, 4, 8, 6});
        const at::Tensor answer = at::randn({1, 4, 8, 6});
        const at::Tensor predicted = model->forward(sample, at::randint(0, 1000, {1}), at::randn({1, 3, 24}),
                                                    {at::randn({1, 20}), at::randint(0, 512, {1, 6}).to(at::kFloat)});
        const at::Tensor loss = (predicted - answer).square().mean();
        trace.losses.push_back(loss.item<double>());
        engine.backward(loss);
        trace.norms.push_back(engine.step(1e-3).grad_norm);
    }
    trace.gathered = engine.memory().of(MemoryKind::gathered, zero::Place::device).peak;
    trace.weights = strata_test::whole_weights(engine, *model);
    return trace;
}

TEST(UnetStages, StagesTiersAndRecomputationGiveTheSameBits) {
    comm::MpiComm comm;
    const strata_test::SharedFolder<comm::MpiComm> disk{comm};
    const Trace zero = train<ZeroStage<0>>(comm, disk.path);
    EXPECT_NE(zero.losses.front(), zero.losses.back());
    EXPECT_TRUE(zero == (train<ZeroStage<1>>(comm, disk.path)));
    EXPECT_TRUE(zero == (train<ZeroStage<2>>(comm, disk.path)));
    EXPECT_TRUE(zero == (train<ZeroStage<2>, OffloadTarget<Nvme>>(comm, disk.path)));
    const Trace three = train<ZeroStage<3>>(comm, disk.path);
    EXPECT_TRUE(zero == three);
    EXPECT_TRUE(zero == (train<ZeroStage<3>, OffloadTarget<Nvme, OptimizerState, Parameters>>(comm, disk.path)));
    EXPECT_TRUE(zero == (train<ZeroStage<3>, Recompute<Blocks>>(comm, disk.path)));

    // A world of one keeps its units whole. Others hold the one that computes and the next; of this model's the largest
    // is an up block's first residual block.
    if (comm.world() == 1) return;
    std::int64_t largest = 0;
    Unet model{tiny_sdxl()};
    for (const auto& module : model.modules(false)) {
        if (dynamic_cast<const zero::UnitBase*>(module.get()) == nullptr) continue;
        std::int64_t numel = 0;
        for (const at::Tensor& parameter : module->parameters()) numel += parameter.numel();
        largest = std::max(largest, numel);
    }
    EXPECT_GT(three.gathered, 0);
    // A unit is padded to a multiple of the world's number of ranks and of its alignment.
    EXPECT_LE(three.gathered, 2 * 4 * (largest + 256));
}

}  // namespace
