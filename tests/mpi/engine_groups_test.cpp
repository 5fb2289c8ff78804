// Parameter groups: learning rates and weight decays of their own, as torch's groups have them, at every stage.

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <strata/comm/mpi_comm.hpp>
#include <strata/optim/adagrad.hpp>
#include <strata/optim/adamw.hpp>
#include <strata/optim/lamb.hpp>
#include <strata/zero/engine.hpp>
#include <strata/zero/parameters.hpp>

#include "toy_engines.hpp"
#include "toy_model.hpp"

namespace {

using strata::Errc;
using strata::Optimizer;
using strata::comm::MpiComm;
using strata::zero::parameters_of;
using namespace strata_test;

constexpr int steps = 5;
constexpr double lr = 1e-2;

bool is_bias(std::string_view name) { return name.ends_with("bias"); }
bool is_of_first(std::string_view name) { return name.starts_with("first."); }

/// Biases learn three times as fast and do not decay, other parameters of the first block learn slowly and decay more.
template <class AnyEngine>
typename AnyEngine::Options grouped() {
    auto options = options_of<AnyEngine>({.max_grad_norm = 0.5});
    options.update.weight_decay = 0.1;
    options.groups = {{.takes = is_bias, .lr_factor = 3.0, .update = {.weight_decay = 0.0}},
                      {.takes = is_of_first, .lr_factor = 0.25, .update = {.weight_decay = 0.5}}};
    return options;
}

template <class AnyEngine>
Trace train_grouped(MpiComm& comm, typename AnyEngine::Options options) {
    torch::manual_seed(static_cast<std::uint64_t>(1 + comm.rank()));
    UnitModel model;
    AnyEngine engine{comm, parameters_of(model), std::move(options)};
    Trace trace;
    for (int step = 0; step < steps; ++step) train_step(engine, model, comm, {}, step, trace);
    trace.weights = weights_of(engine, model);
    return trace;
}

/// One process of libtorch on the whole batch.
Trace alone(const MpiComm& comm) {
    torch::manual_seed(1);
    Model<Block> model;
    std::vector<torch::Tensor> biases, of_first, others;
    for (const auto& item : model.named_parameters()) {
        (is_bias(item.key()) ? biases : is_of_first(item.key()) ? of_first : others).push_back(item.value());
    }
    const auto group = [](std::vector<torch::Tensor> tensors, double rate, double decay) {
        return torch::optim::OptimizerParamGroup{
            std::move(tensors),
            std::make_unique<torch::optim::AdamWOptions>(torch::optim::AdamWOptions(rate).weight_decay(decay))};
    };
    torch::optim::AdamW adamw{{group(biases, 3 * lr, 0), group(of_first, 0.25 * lr, 0.5), group(others, lr, 0.1)}};
    Trace trace;
    for (int step = 0; step < steps; ++step) {
        torch::manual_seed(static_cast<std::uint64_t>(100 + step));
        adamw.zero_grad();
        model.loss(torch::randn({4 * comm.world(), 5})).backward();
        model.unused.mutable_grad() = torch::zeros_like(model.unused);  // the engine decays what has gradient zero
        trace.norms.push_back(torch::nn::utils::clip_grad_norm_(model.parameters(), 0.5));
        adamw.step();
    }
    trace.weights = values_of(model);
    return trace;
}

TEST(EngineGroups, AreThoseOfTorchAtEveryStage) {
    MpiComm comm;
    using Zero = EngineOf<ZeroStage<0>>;
    const Trace zero = train_grouped<Zero>(comm, grouped<Zero>());
    const Trace expected = alone(comm);
    ASSERT_EQ(zero.weights.size(), expected.weights.size());
    for (std::size_t i = 0; i < zero.weights.size(); ++i) EXPECT_NEAR(zero.weights[i], expected.weights[i], 2e-5) << i;
    for (std::size_t i = 0; i < zero.norms.size(); ++i)
        EXPECT_NEAR(zero.norms[i], expected.norms[i], 1e-5 * expected.norms[i]);
    EXPECT_TRUE(zero == train_grouped<EngineOf<ZeroStage<1>>>(comm, grouped<EngineOf<ZeroStage<1>>>()));
    EXPECT_TRUE(zero == train_grouped<EngineOf<ZeroStage<2>>>(comm, grouped<EngineOf<ZeroStage<2>>>()));
    EXPECT_TRUE(zero == train_grouped<EngineOf<ZeroStage<3>>>(comm, grouped<EngineOf<ZeroStage<3>>>()));
}

TEST(EngineGroups, HaveTheSameBitsAtEveryStageWithNormsOfWholeParameters) {
    MpiComm comm;
    using Zero = EngineOf<ZeroStage<0>, Optimizer<strata::Lamb>>;
    using Three = EngineOf<ZeroStage<3>, Optimizer<strata::Lamb>>;
    const Trace zero = train_grouped<Zero>(comm, grouped<Zero>());
    EXPECT_TRUE(zero == train_grouped<Three>(comm, grouped<Three>()));
    EXPECT_FALSE(zero == train_grouped<Zero>(comm, {.bucket_numel = 60, .max_grad_norm = 0.5}));
}

TEST(EngineGroups, AGroupThatTakesNothingChangesNothing) {
    MpiComm comm;
    using Three = EngineOf<ZeroStage<3>>;
    auto options = grouped<Three>();
    options.groups = {{.takes = [](std::string_view) { return false; }, .lr_factor = 100.0}};
    auto without = options;
    without.groups.clear();
    EXPECT_TRUE(train_grouped<Three>(comm, options) == train_grouped<Three>(comm, without));
}

TEST(EngineGroups, StartTheirStateWithTheSameValue) {
    MpiComm comm;
    UnitModel model;
    using Any = EngineOf<ZeroStage<0>, Optimizer<strata::Adagrad>>;
    const auto error = error_of([&] {
        Any{comm, parameters_of(model), {.groups = {{.takes = is_bias, .update = {.initial_accumulator_value = 0.5}}}}};
    });
    EXPECT_EQ(error.code(), Errc::bad_value);
    EXPECT_NE(error.problem().find("the state sum"), std::string::npos) << error.what();
}

TEST(EngineGroups, TakeTheSameParametersOnAllRanks) {
    MpiComm comm;
    if (comm.world() == 1) GTEST_SKIP() << "one rank cannot differ from itself";
    UnitModel model;
    using Three = EngineOf<ZeroStage<3>>;
    const auto takes = [last = comm.rank() == comm.world() - 1](std::string_view name) {
        return last && name == "gain";
    };
    const auto error = error_of([&] { Three{comm, parameters_of(model), {.groups = {{.takes = takes}}}}; });
    EXPECT_EQ(error.code(), Errc::rank_mismatch);
    EXPECT_NE(error.problem().find("gain"), std::string::npos) << error.what();
}

}  // namespace
