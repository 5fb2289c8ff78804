// The quickstart's model under every stage and tier: the same bits.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>
#include <unistd.h>

#include <strata/comm/mpi_comm.hpp>
#include <strata/models/small_flux.hpp>
#include <strata/optim/adamw.hpp>
#include <strata/policy/setup.hpp>
#include <strata/zero/engine.hpp>
#include <strata/zero/parameters.hpp>

#include "whole_weights.hpp"

namespace {

using namespace strata;
using models::SmallFlux;

/// The quickstart's blocks, narrower.
std::shared_ptr<SmallFlux> make_model(const comm::MpiComm& comm) {
    torch::manual_seed(static_cast<std::uint64_t>(1 + comm.rank()));
    const auto model = std::make_shared<SmallFlux>(models::SmallFluxOptions{.latent_channels = 4,
                                                                            .text_width = 32,
                                                                            .heads = 2,
                                                                            .rotary_axes = {4, 6, 6},
                                                                            .double_blocks = 2,
                                                                            .single_blocks = 3});
    const at::NoGradGuard no_gradients;  // what starts as zero takes part as well
    for (at::Tensor& parameter : model->parameters()) parameter.add_(at::randn_like(parameter) * 0.05);
    return model;
}

struct Trace {
    std::vector<double> losses, norms;
    std::vector<float> weights;
    friend bool operator==(const Trace&, const Trace&) = default;
};

template <class... Policies>
Trace train(comm::MpiComm& comm, const std::filesystem::path& disk) {
    const auto model = make_model(comm);
    zero::Engine<Setup<Policies...>, comm::MpiComm> engine{
        comm, zero::parameters_of(*model), {.bucket_numel = 3000, .max_grad_norm = 1.0, .tiers = {.nvme_path = disk}}};
    Trace trace;
    for (int step = 0; step < 4; ++step) {
        torch::manual_seed(static_cast<std::uint64_t>(100 * step + comm.rank()));
        SmallFlux::Batch batch;
        batch.latents_BCHW = at::randn({2, 4, 8, 8});
        batch.text_BTE = at::randn({2, 3, 32});
        batch.pooled_BE = at::randn({2, 32});
        const at::Tensor loss = model->loss(batch);
        trace.losses.push_back(loss.template item<double>());
        engine.backward(loss);
        trace.norms.push_back(engine.step(1e-3).grad_norm);
    }
    trace.weights = strata_test::whole_weights(engine, *model);
    return trace;
}

TEST(QuickstartModel, StagesAndTiersGiveTheSameBits) {
    comm::MpiComm comm;
    const auto name =
        (std::filesystem::path{testing::TempDir()} / ("strata_quickstart_" + std::to_string(::getpid()))).string();
    const std::filesystem::path disk = comm.all_gather_varied(name).front();
    if (comm.rank() == 0) std::filesystem::create_directories(disk);
    comm.barrier();
    const Trace zero = train<ZeroStage<0>>(comm, disk);
    EXPECT_NE(zero.losses.front(), zero.losses.back());
    EXPECT_TRUE(zero == (train<ZeroStage<1>>(comm, disk)));
    EXPECT_TRUE(zero == (train<ZeroStage<1>, OffloadTarget<Nvme>>(comm, disk)));
    EXPECT_TRUE(zero == (train<ZeroStage<2>, OffloadTarget<Cpu>>(comm, disk)));
    EXPECT_TRUE(zero == (train<ZeroStage<2>, OffloadTarget<Nvme>>(comm, disk)));
    EXPECT_TRUE(zero == (train<ZeroStage<3>>(comm, disk)));
    EXPECT_TRUE(zero == (train<ZeroStage<3>, OffloadTarget<Cpu, OptimizerState, Parameters>>(comm, disk)));
    EXPECT_TRUE(zero == (train<ZeroStage<3>, OffloadTarget<Nvme>>(comm, disk)));
    EXPECT_TRUE(zero == (train<ZeroStage<3>, OffloadTarget<Nvme, OptimizerState, Parameters>>(comm, disk)));
    EXPECT_TRUE(zero == (train<ZeroStage<3>, Recompute<Blocks>>(comm, disk)));
    comm.barrier();
    if (comm.rank() == 0) std::filesystem::remove_all(disk);
}

}  // namespace
