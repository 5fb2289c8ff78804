// A Flux with everything on under every stage, with tiers and recomputation: the same bits, and two units of memory at
// stage 3.

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <strata/comm/mpi_comm.hpp>
#include <strata/models/flux.hpp>
#include <strata/zero/engine.hpp>
#include <strata/zero/parameters.hpp>

#include "shared_folder.hpp"
#include "toy_engines.hpp"
#include "whole_weights.hpp"

namespace {

using namespace strata;
using namespace strata_test;
using models::Flux;

/// The sizes of the reference's cases: two blocks of each kind, four heads of 16, guidance embedding.
std::shared_ptr<Flux> make_model(const comm::MpiComm& comm, bool masks_text) {
    torch::manual_seed(static_cast<std::uint64_t>(1 + comm.rank()));
    models::FluxTraining training;
    training.masks_text = masks_text;
    training.most_guidance = 4;
    return std::make_shared<Flux>(models::FluxOptions{.token_values = 16,
                                                      .output_values = 16,
                                                      .text_width = 32,
                                                      .pooled_width = 24,
                                                      .heads = 4,
                                                      .rotary_axes = {4, 6, 6},
                                                      .double_blocks = 2,
                                                      .single_blocks = 2},
                                  training);
}

struct Trace {
    std::vector<double> losses, norms;
    std::vector<float> weights;
    friend bool operator==(const Trace&, const Trace&) = default;
};

/// Four steps; `gathered` is the most that was held of whole units in the last three, in bytes.
template <class AnyEngine>
Trace train(comm::MpiComm& comm, const std::filesystem::path& disk, bool masks_text = true,
            std::int64_t* gathered = nullptr) {
    const auto model = make_model(comm, masks_text);
    AnyEngine engine{
        comm, zero::parameters_of(*model), {.bucket_numel = 3000, .max_grad_norm = 1.0, .tiers = {.nvme_path = disk}}};
    Trace trace;
    for (int step = 0; step < 4; ++step) {
        if (step == 1) engine.memory().reset_peaks();
        torch::manual_seed(static_cast<std::uint64_t>(100 * step + comm.rank()));
        Flux::Batch batch;
        batch.latents_BCHW = at::randn({2, 4, 6, 4});
        batch.text_BTE = at::randn({2, 5, 32});
        batch.pooled_BE = at::randn({2, 24});
        batch.text_mask_BT = at::arange(5).unsqueeze(0).expand({2, 5}) < 3;
        const at::Tensor loss = model->loss(batch);
        trace.losses.push_back(loss.template item<double>());
        engine.backward(loss);
        trace.norms.push_back(engine.step(1e-3).grad_norm);
    }
    if (gathered != nullptr) *gathered = engine.memory().of(zero::MemoryKind::gathered, zero::Place::device).peak;
    trace.weights = strata_test::whole_weights(engine, *model);
    return trace;
}

TEST(FluxModel, StagesTiersAndRecomputationGiveTheSameBits) {
    comm::MpiComm comm;
    const SharedFolder folder{comm};
    const std::filesystem::path& disk = folder.path;
    const Trace zero = train<EngineOf<ZeroStage<0>>>(comm, disk);
    EXPECT_NE(zero.losses.front(), zero.losses.back());
    EXPECT_TRUE(zero == train<EngineOf<ZeroStage<1>>>(comm, disk));
    EXPECT_TRUE(zero == (train<EngineOf<ZeroStage<1>, StateOnDisk>>(comm, disk)));
    EXPECT_TRUE(zero == train<EngineOf<ZeroStage<2>>>(comm, disk));
    EXPECT_TRUE(zero == train<EngineOf<ZeroStage<3>>>(comm, disk));
    EXPECT_TRUE(zero == (train<EngineOf<ZeroStage<3>, AllOnDisk>>(comm, disk)));
    EXPECT_TRUE(zero == (train<EngineOf<ZeroStage<3>, Recompute<Blocks>>>(comm, disk)));
    using AllOnHost = OffloadTarget<Cpu, OptimizerState, Parameters>;
    EXPECT_TRUE(zero == (train<EngineOf<ZeroStage<3>, AllOnHost>>(comm, disk)));
}

TEST(FluxModel, StageThreeHoldsTwoUnits) {
    comm::MpiComm comm;
    const SharedFolder folder{comm};
    std::int64_t unit = 0;
    for (const auto& parameter : models::JointBlock{4, 16}.parameters()) unit += 4 * parameter.numel();
    const std::int64_t padding = 4 * comm.world();
    std::int64_t gathered = 0;
    const Trace kept = train<EngineOf<ZeroStage<3>>>(comm, folder.path, false, &gathered);
    if (comm.world() == 1) {
        EXPECT_EQ(gathered, 0) << "one rank keeps its units whole";
    } else {
        EXPECT_GE(gathered, 2 * unit);
        EXPECT_LE(gathered, 2 * (unit + padding));
    }
    EXPECT_TRUE(kept == (train<EngineOf<ZeroStage<3>, Recompute<Blocks>>>(comm, folder.path, false, &gathered)));
    EXPECT_LE(gathered, 2 * (unit + padding)) << "recomputed";
}

}  // namespace
