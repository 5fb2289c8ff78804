// Losses, norms and weights over ranks are those that DeepSpeed 0.16.2 and one process of libtorch compute.

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <strata/comm/mpi_comm.hpp>
#include <strata/optim/adagrad.hpp>
#include <strata/policy/setup.hpp>
#include <strata/zero/engine.hpp>
#include <strata/zero/parameters.hpp>
#include <strata/zero/unit.hpp>

#include "toy_engines.hpp"
#include "toy_model.hpp"

namespace {

using strata::Cpu;
using strata::OffloadTarget;
using strata::Optimizer;
using strata::Unit;
using strata::comm::MpiComm;
using strata::zero::parameters_of;
using torch::Tensor;
using namespace strata_test;

/// Rows of the global batch, (2 W, 10) each on W ranks.
struct Batch {
    Tensor x, y;
    [[nodiscard]] Batch rows_of(const MpiComm& comm) const {
        const std::int64_t from = 2 * comm.rank();
        return {x.slice(0, from, from + 2), y.slice(0, from, from + 2)};
    }
};
std::vector<Batch> batches_of(std::uint64_t seed, int count, const MpiComm& comm) {
    torch::manual_seed(seed);
    std::vector<Batch> batches;
    for (int i = 0; i < count; ++i) {
        const Tensor x = torch::randn({2 * comm.world(), 10});  // before y
        batches.push_back({x, torch::randn({2 * comm.world(), 10})});
    }
    return batches;
}

template <class Layer>
struct Layers : torch::nn::Module {
    Layers() {
        for (int i = 0; i < 3; ++i)
            row.push_back(register_module("l" + std::to_string(i), std::make_shared<Layer>(10, 10)));
    }
    Tensor loss(const Batch& batch) {
        const Tensor h = torch::tanh(row[1]->forward(torch::tanh(row[0]->forward(batch.x))));
        return torch::mse_loss(row[2]->forward(h), batch.y);
    }
    std::vector<std::shared_ptr<Layer>> row;
};
using Plain = Layers<torch::nn::LinearImpl>;
using InUnits = Layers<Unit<torch::nn::LinearImpl>>;

template <class AnyModel>
std::shared_ptr<AnyModel> seeded() {
    torch::manual_seed(1234);
    return std::make_shared<AnyModel>();
}

/// Of some steps: losses and norms over all ranks, and sums over all weights at the end.
struct Numbers {
    std::vector<double> losses, norms;
    double sum = 0;
    double absolute = 0;
    friend bool operator==(const Numbers&, const Numbers&) = default;
};

void expect_near(const Numbers& got, const Numbers& wanted, const std::string& whose) {
    constexpr double tolerance = 2e-6;
    const auto near = [&](double value, double other, const std::string& what) {
        EXPECT_NEAR(value, other, tolerance * std::abs(other)) << what << ", against " << whose;
    };
    ASSERT_EQ(got.losses.size(), wanted.losses.size());
    for (std::size_t i = 0; i < got.losses.size(); ++i) {
        near(got.losses[i], wanted.losses[i], "loss of step " + std::to_string(i + 1));
        near(got.norms[i], wanted.norms[i], "norm of step " + std::to_string(i + 1));
    }
    near(got.sum, wanted.sum, "sum of weights");
    near(got.absolute, wanted.absolute, "sum of absolute weights");
}

void add_weight(Numbers& numbers, double weight) {
    numbers.sum += weight;
    numbers.absolute += std::abs(weight);
}

/// Micro-batches of 2, clipping at 1, learning rate 0.01, weight decay 0.01 with AdamW and none with Adagrad.
template <class AnyEngine, class AnyModel = InUnits>
struct Together {
    Together(MpiComm& comm_, const std::filesystem::path& disk)
        : comm{comm_},
          engine{comm, parameters_of(*model),
                 options_of<AnyEngine>({.max_grad_norm = 1.0, .bucket_numel = 64, .nvme_path = disk})} {}
    Numbers train(const std::vector<Batch>& batches) {
        Numbers numbers;
        for (const Batch& batch : batches) {
            const Tensor loss = model->loss(batch.rows_of(comm));
            engine.backward(loss);
            std::vector<double> mean{loss.template item<double>() / comm.world()};
            comm.all_reduce_sum(mean);
            numbers.losses.push_back(mean[0]);
            numbers.norms.push_back(engine.step(1e-2).grad_norm);
        }
        for (const double weight : all_state(comm, engine, "weight")) add_weight(numbers, weight);
        return numbers;
    }
    MpiComm& comm;
    std::shared_ptr<AnyModel> model = seeded<AnyModel>();
    AnyEngine engine;
};

/// One process on the whole batch.
template <class TorchRule, class TorchOptions>
struct Alone {
    Numbers train(const std::vector<Batch>& batches) {
        Numbers numbers;
        for (const Batch& batch : batches) {
            rule.zero_grad();
            const Tensor loss = model->loss(batch);
            loss.backward();
            numbers.losses.push_back(loss.template item<double>());
            numbers.norms.push_back(torch::nn::utils::clip_grad_norm_(model->parameters(), 1.0));
            rule.step();
        }
        for (const float weight : values_of(*model)) add_weight(numbers, weight);
        return numbers;
    }
    std::shared_ptr<Plain> model = seeded<Plain>();
    TorchRule rule{model->parameters(), TorchOptions(1e-2)};
};
using AloneWithAdamW = Alone<torch::optim::AdamW, torch::optim::AdamWOptions>;
using AloneWithAdagrad = Alone<torch::optim::Adagrad, torch::optim::AdagradOptions>;

/// What DeepSpeed 0.16.2 printed, at stages 0 to 3 alike; the norms of Adagrad are those of a replay in libtorch.
const Numbers on_one_rank{{1.68167496, 1.11728573, 1.01014495, 1.08780396},
                          {1.10174847, .697810352, .587876379, .782102704},
                          3.72285191,
                          49.3471099};
const Numbers on_two_ranks{{1.15057969, 1.29260862, 1.23715568, 1.17355704, 1.2362833},
                           {.540195584, .647198617, .724531174, .514607012, .778817952},
                           2.85212997,
                           49.7514096};
const Numbers first_three_steps{
    {1.15057969, 1.29260862, 1.23715568}, {.540195584, .647198617, .724531174}, 3.02094016, 49.8199671};
const Numbers resumed_on_two_ranks{
    {1.29998779, .767487109, 1.16785383}, {.723453879, .462156981, .636317968}, 2.75332933, 49.7527275};
const Numbers with_adagrad{{1.15057969, 1.29260778, 1.24093282, 1.17800307},
                           {.540195567, .647269092, .72417322, .513275371},
                           2.94274203,
                           49.6111871};

template <class AnyEngine, class AnyModel>
void expect_traces(MpiComm& comm, const std::filesystem::path& disk) {
    SCOPED_TRACE(__PRETTY_FUNCTION__);
    const int steps = comm.world() == 1 ? 4 : 5;
    const auto batches = batches_of(777, steps, comm);
    const Numbers together = Together<AnyEngine, AnyModel>{comm, disk}.train(batches);
    expect_near(together, AloneWithAdamW{}.train(batches), "libtorch");
    if (comm.world() == 1) expect_near(together, on_one_rank, "DeepSpeed");
    if (comm.world() == 2) expect_near(together, on_two_ranks, "DeepSpeed");
}

TEST(EngineTraces, EveryStageInMemory) {
    MpiComm comm;
    expect_traces<EngineOf<ZeroStage<0>>, InUnits>(comm, {});
    expect_traces<EngineOf<ZeroStage<1>>, InUnits>(comm, {});
    expect_traces<EngineOf<ZeroStage<2>>, InUnits>(comm, {});
    expect_traces<EngineOf<ZeroStage<3>>, InUnits>(comm, {});
}

TEST(EngineTraces, EveryStageWithoutUnitsInBucketsOfSixtyFour) {
    MpiComm comm;
    expect_traces<EngineOf<ZeroStage<0>>, Plain>(comm, {});
    expect_traces<EngineOf<ZeroStage<1>>, Plain>(comm, {});
    expect_traces<EngineOf<ZeroStage<2>>, Plain>(comm, {});
}

TEST(EngineTraces, EveryStageWithStateInHostMemory) {
    MpiComm comm;
    expect_traces<EngineOf<ZeroStage<1>, OffloadTarget<Cpu>>, InUnits>(comm, {});
    expect_traces<EngineOf<ZeroStage<2>, OffloadTarget<Cpu>>, InUnits>(comm, {});
    expect_traces<EngineOf<ZeroStage<3>, OffloadTarget<Cpu>>, InUnits>(comm, {});
}

TEST(EngineTraces, EveryStageOnDisk) {
    MpiComm comm;
    const SharedFolder disk{comm};
    expect_traces<EngineOf<ZeroStage<1>, StateOnDisk>, InUnits>(comm, disk.path);
    expect_traces<EngineOf<ZeroStage<2>, StateOnDisk>, InUnits>(comm, disk.path);
    expect_traces<EngineOf<ZeroStage<3>, StateOnDisk>, InUnits>(comm, disk.path);
    expect_traces<EngineOf<ZeroStage<3>, AllOnDisk>, InUnits>(comm, disk.path);
}

TEST(EngineTraces, Adagrad) {
    MpiComm comm;
    using Rule = Optimizer<strata::Adagrad>;
    const auto batches = batches_of(777, 4, comm);
    const Numbers zero = Together<EngineOf<ZeroStage<0>, Rule>>{comm, {}}.train(batches);
    EXPECT_EQ(zero, (Together<EngineOf<ZeroStage<3>, Rule>>{comm, {}}.train(batches)));
    expect_near(zero, AloneWithAdagrad{}.train(batches), "libtorch");
    if (comm.world() == 2) expect_near(zero, with_adagrad, "DeepSpeed");
}

/// Three steps, then a new engine for three more.
template <class From, class To>
void expect_resumed(MpiComm& comm, const std::filesystem::path& disk) {
    SCOPED_TRACE(__PRETTY_FUNCTION__);
    const auto batches = batches_of(777, 3, comm);
    const auto later = batches_of(778, 3, comm);
    AloneWithAdamW alone;
    Together<From> first{comm, disk};
    const Numbers before = first.train(batches);
    expect_near(before, alone.train(batches), "libtorch");
    if (comm.world() == 2) expect_near(before, first_three_steps, "DeepSpeed");

    Together<To> second{comm, disk};
    move_state(comm, first.engine, second.engine);
    const Numbers resumed = second.train(later);
    EXPECT_EQ(resumed, first.train(later)) << "going on without a break has other bits";
    expect_near(resumed, alone.train(later), "libtorch");
    if (comm.world() == 2) expect_near(resumed, resumed_on_two_ranks, "DeepSpeed");
}

TEST(EngineTraces, AResumedRunAtAnyStageGoesOnAsWithoutABreak) {
    MpiComm comm;
    const SharedFolder disk{comm};
    expect_resumed<EngineOf<ZeroStage<0>>, EngineOf<ZeroStage<1>>>(comm, disk.path);
    expect_resumed<EngineOf<ZeroStage<1>>, EngineOf<ZeroStage<2>, StateOnDisk>>(comm, disk.path);
    expect_resumed<EngineOf<ZeroStage<2>, StateOnDisk>, EngineOf<ZeroStage<3>>>(comm, disk.path);
    expect_resumed<EngineOf<ZeroStage<3>>, EngineOf<ZeroStage<3>, AllOnDisk>>(comm, disk.path);
    expect_resumed<EngineOf<ZeroStage<3>, AllOnDisk>, EngineOf<ZeroStage<0>>>(comm, disk.path);
}

}  // namespace
