// Ema<...>: the average has the same bits at every stage, follows the formula, and takes the weights' place and leaves
// it.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <strata/comm/mpi_comm.hpp>
#include <strata/optim/ema.hpp>
#include <strata/optim/lamb.hpp>
#include <strata/policy/ema.hpp>
#include <strata/policy/setup.hpp>
#include <strata/zero/engine.hpp>
#include <strata/zero/parameters.hpp>

#include "toy_engines.hpp"
#include "toy_model.hpp"

namespace {

using strata::Cpu;
using strata::Device;
using strata::Ema;
using strata::Errc;
using strata::Fp16;
using strata::Optimizer;
using strata::PureBf16;
using strata::comm::MpiComm;
using strata::optim::EmaOptions;
using strata::zero::parameters_of;
using strata::zero::Place;
using namespace strata_test;

using Half = Precision<Bf16>;
using ZeroOnCpu = EngineOf<ZeroStage<0>, Ema<Cpu>>;
using OneOnCpu = EngineOf<ZeroStage<1>, Ema<Cpu>>;
using OneOnDevice = EngineOf<ZeroStage<1>, Ema<Device>>;
using TwoOnCpu = EngineOf<ZeroStage<2>, Ema<Cpu>>;
using TwoOnDevice = EngineOf<ZeroStage<2>, Ema<Device>>;
using ThreeOnCpu = EngineOf<ZeroStage<3>, Ema<Cpu>>;
using ThreeOnDevice = EngineOf<ZeroStage<3>, Ema<Device>>;
using BesideDisk = EngineOf<ZeroStage<3>, Ema<Cpu>, AllOnDisk>;
using ZeroInHalf = EngineOf<ZeroStage<0>, Half, Ema<Cpu>>;
using BesideDiskInHalf = EngineOf<ZeroStage<3>, Half, Ema<Device>, AllOnDisk>;

struct Averaging {
    EmaOptions decay{};
    std::int64_t interval = 1;
};
/// Averages that differ from the weights after three steps.
const Averaging usual{.decay = {.decay = 0.7}};

/// A model and its engine.
template <class AnyEngine, class AnyModel = UnitModel>
struct Averaged {
    Averaged(MpiComm& comm_, const Averaging& averaging = usual, const std::filesystem::path& disk = {})
        : comm{comm_}, engine{comm, parameters_of(*model), options(averaging, disk)} {}
    static typename AnyEngine::Options options(const Averaging& averaging, const std::filesystem::path& disk) {
        auto options = options_of<AnyEngine>({.nvme_path = disk});
        options.ema = averaging.decay;
        options.ema.interval = averaging.interval;
        options.loss_scale.initial = 256;
        return options;
    }
    static std::shared_ptr<AnyModel> seeded(const MpiComm& comm) {
        torch::manual_seed(static_cast<std::uint64_t>(1 + comm.rank()));  // rank 0's weights must win
        return std::make_shared<AnyModel>();
    }
    void train(int steps) {
        for (int i = 0; i < steps; ++i) train_step(engine, *model, comm, {}, step++, trace);
    }
    std::vector<double> average() { return all_state(comm, engine, "average"); }
    std::vector<double> weights() { return all_state(comm, engine, "weight"); }

    MpiComm& comm;
    std::shared_ptr<AnyModel> model = seeded(comm);
    AnyEngine engine;
    Trace trace;
    int step = 0;
};

/// Weights and average at the start and after each of six steps.
struct Moves {
    std::vector<std::vector<double>> weights, averages;
    friend bool operator==(const Moves&, const Moves&) = default;
};
template <class AnyEngine>
Moves moves_of(MpiComm& comm, const Averaging& averaging, const std::filesystem::path& disk = {}) {
    Averaged<AnyEngine> run{comm, averaging, disk};
    Moves moves;
    for (int step = 0; step <= 6; ++step) {
        run.train(step == 0 ? 0 : 1);
        moves.weights.push_back(run.weights());
        moves.averages.push_back(run.average());
    }
    return moves;
}

/// docs/training.md, and strata/optim/ema.hpp for what it leaves out.
double decay_of(const EmaOptions& ema, int step) {
    const double n = step - static_cast<double>(ema.update_after_step);
    if (n <= 1) return 0;
    const double growing = ema.use_warmup ? 1 - std::pow(1 + (n - 1) / ema.inv_gamma, -ema.power) : n / (9 + n);
    return std::clamp(growing, ema.min_decay, ema.decay);
}
void expect_formula(const Moves& moves, const Averaging& averaging) {
    std::vector<double> average = moves.weights.front();
    EXPECT_EQ(moves.averages.front(), average) << "it starts with the weights";
    for (int step = 1; step <= 6; ++step) {
        const auto& weights = moves.weights[static_cast<std::size_t>(step)];
        const auto& found = moves.averages[static_cast<std::size_t>(step)];
        const double decay = decay_of(averaging.decay, step);
        for (std::size_t i = 0; i < average.size(); ++i) {
            if (step % averaging.interval == 0) average[i] -= (1 - decay) * (average[i] - weights[i]);
            ASSERT_NEAR(found[i], average[i], 1e-6) << "element " << i << " after step " << step;
        }
    }
    EXPECT_NE(moves.averages.back(), moves.weights.back());
}

const std::vector<Averaging> averagings{
    {},
    {.decay = {.decay = 0.3, .update_after_step = 2}},
    {.decay = {.decay = 0.9, .min_decay = 0.5, .update_after_step = 1}},
    {.decay = {.decay = 0.8, .use_warmup = true, .inv_gamma = 2.0, .power = 0.75}, .interval = 2},
};

TEST(EngineAverage, FollowsTheFormulaWithTheSameBitsAtEveryStage) {
    MpiComm comm;
    const SharedFolder disk{comm};
    for (const Averaging& averaging : averagings) {
        const Moves zero = moves_of<ZeroOnCpu>(comm, averaging);
        expect_formula(zero, averaging);
        EXPECT_TRUE(zero == moves_of<OneOnCpu>(comm, averaging));
        EXPECT_TRUE(zero == moves_of<OneOnDevice>(comm, averaging));
        EXPECT_TRUE(zero == moves_of<TwoOnCpu>(comm, averaging));
        EXPECT_TRUE(zero == moves_of<TwoOnDevice>(comm, averaging));
        EXPECT_TRUE(zero == moves_of<ThreeOnCpu>(comm, averaging));
        EXPECT_TRUE(zero == moves_of<ThreeOnDevice>(comm, averaging));
        EXPECT_TRUE(zero == moves_of<BesideDisk>(comm, averaging, disk.path));
    }
}

TEST(EngineAverage, LookedAtInsideOfAWholeModelLeavesTheMasters) {
    MpiComm comm;
    UnitModel model;
    EngineOf<ZeroStage<1>, Precision<Bf16>, Ema<Cpu>> engine{comm, parameters_of(model)};
    engine.backward(model.loss(rows_of(comm, 0)));
    engine.step(1e-2);
    const auto masters = [&] {
        std::vector<float> all;
        engine.read_state([&](std::string_view, std::int64_t, std::span<const float> values) {
            all.insert(all.end(), values.begin(), values.end());
        });
        return all;
    };
    const auto before = masters();
    engine.with_whole_model([&] {
        engine.swap_average();
        engine.swap_average();
    });
    EXPECT_EQ(masters(), before);
}

TEST(EngineAverage, IsThatOfTheWeightsAsTheyAreUpdated) {
    MpiComm comm;
    const SharedFolder disk{comm};
    const Moves half = moves_of<ZeroInHalf>(comm, usual);  // of the fp32 master copy
    expect_formula(half, usual);
    EXPECT_TRUE(half == moves_of<BesideDiskInHalf>(comm, usual, disk.path));
    expect_formula(moves_of<EngineOf<ZeroStage<2>, Precision<PureBf16>, Ema<Cpu>>>(comm, usual), usual);
    expect_formula(moves_of<EngineOf<ZeroStage<3>, Optimizer<strata::Lamb>, Ema<Cpu>>>(comm, usual), usual);
}

/// The loss of a model without an engine whose parameters are `values`, in the precision of `like`.
double loss_with(const std::vector<float>& values, const torch::Tensor& like, const torch::Tensor& x) {
    const torch::NoGradGuard no_grad;
    Model<Block> model;
    model.to(like.scalar_type());
    std::int64_t at = 0;
    for (torch::Tensor& parameter : model.parameters()) {
        const auto all = torch::tensor(values);
        parameter.copy_(all.slice(0, at, at + parameter.numel()).view(parameter.sizes()));
        at += parameter.numel();
    }
    return model.loss(x).item<double>();
}

template <class AnyEngine>
void expect_swaps(MpiComm& comm, const std::filesystem::path& disk = {}) {
    SCOPED_TRACE(__PRETTY_FUNCTION__);
    Averaged<AnyEngine> undisturbed{comm, usual, disk};
    undisturbed.train(6);
    Averaged<AnyEngine> run{comm, usual, disk};
    run.train(3);
    const auto average = run.average();
    const auto weights = weights_of(run.engine, *run.model);
    const auto memory = [&] {
        return run.engine.memory().total(Place::device).now + run.engine.memory().total(Place::host).now;
    };
    const auto before = memory();
    run.engine.swap_average();
    EXPECT_TRUE(run.engine.average_is_in());
    const auto shown = weights_of(run.engine, *run.model);
    ASSERT_EQ(shown.size(), average.size());
    for (std::size_t i = 0; i < shown.size(); ++i) {
        const auto value = static_cast<float>(average[i]);
        ASSERT_EQ(shown[i], run.model->gain.scalar_type() == torch::kFloat ? value : float{c10::BFloat16{value}}) << i;
    }
    EXPECT_NE(shown, weights);
    const auto x = rows_of(comm, 50);
    const auto loss = [&] {
        const torch::NoGradGuard no_grad;
        return run.model->loss(x).template item<double>();
    };
    EXPECT_EQ(loss(), loss_with(shown, run.model->gain, x));
    run.engine.swap_average();
    EXPECT_FALSE(run.engine.average_is_in());
    EXPECT_EQ(loss(), loss_with(weights, run.model->gain, x));
    EXPECT_EQ(weights_of(run.engine, *run.model), weights);
    EXPECT_EQ(run.average(), average);
    EXPECT_EQ(memory(), before) << "what was set aside is still there";
    run.train(3);
    EXPECT_TRUE(run.trace == undisturbed.trace);
    EXPECT_EQ(run.weights(), undisturbed.weights());
    EXPECT_EQ(run.average(), undisturbed.average());
}

TEST(EngineAverage, TakesTheWeightsPlaceAndLeavesIt) {
    MpiComm comm;
    const SharedFolder disk{comm};
    expect_swaps<ZeroOnCpu>(comm);
    expect_swaps<OneOnDevice>(comm);
    expect_swaps<TwoOnCpu>(comm);
    expect_swaps<ThreeOnCpu>(comm);
    expect_swaps<ThreeOnDevice>(comm);
    expect_swaps<BesideDisk>(comm, disk.path);
    expect_swaps<ZeroInHalf>(comm);
    expect_swaps<BesideDiskInHalf>(comm, disk.path);
}

TEST(EngineAverage, TrainingAndStateWaitWhileItIsInTheWeightsPlace) {
    MpiComm comm;
    Averaged<ThreeOnCpu> run{comm};
    run.train(2);
    const auto refused = [&](auto&& call) {
        const auto error = error_of(call);
        EXPECT_EQ(error.code(), Errc::wrong_call_order);
        EXPECT_NE(error.problem().find("while the average is in"), std::string::npos) << error.what();
    };
    run.engine.swap_average();
    const auto loss = run.model->loss(rows_of(comm, 2));
    refused([&] { run.engine.backward(loss); });
    refused([&] { run.engine.read_state([](auto&&...) {}); });
    refused([&] { run.engine.write_state([](auto&&...) {}); });
    run.engine.swap_average();
    run.engine.backward(run.model->loss(rows_of(comm, 2)));
    run.engine.swap_average();
    refused([&] { run.engine.step(1e-2); });
    run.engine.swap_average();
    EXPECT_EQ(run.engine.step(1e-2).step, 3);
    Averaged<ThreeOnCpu> undisturbed{comm};
    undisturbed.train(3);
    EXPECT_EQ(run.weights(), undisturbed.weights());
    EXPECT_EQ(run.average(), undisturbed.average());
}

TEST(EngineAverage, StartsAnewFromTheWeights) {
    MpiComm comm;
    const SharedFolder disk{comm};
    const auto expect_anew = [&](auto&& run) {
        run.train(3);
        const auto weights = run.weights();
        EXPECT_NE(run.average(), weights);
        run.engine.restart_average();
        EXPECT_EQ(run.average(), weights);
        EXPECT_EQ(run.weights(), weights);
    };
    expect_anew(Averaged<ZeroOnCpu>{comm});
    expect_anew(Averaged<ThreeOnDevice>{comm});
    expect_anew(Averaged<BesideDisk>{comm, usual, disk.path});
    expect_anew(Averaged<BesideDiskInHalf>{comm, usual, disk.path});
}

template <class From, class To>
void expect_moves_on(MpiComm& comm, const std::filesystem::path& disk) {
    SCOPED_TRACE(__PRETTY_FUNCTION__);
    Averaged<From> first{comm, usual, disk};
    first.train(3);
    Averaged<To> second{comm, usual, disk};
    second.train(1);  // all of it is overwritten
    move_state(comm, first.engine, second.engine);
    second.step = first.step;
    EXPECT_EQ(first.average(), second.average());
    std::vector<double> outlined{0};
    for (const auto& run : second.engine.state_outline())
        outlined[0] += static_cast<double>(run.kind == "average" ? run.numel : 0);
    comm.all_reduce_sum(outlined);
    EXPECT_EQ(outlined[0], static_cast<double>(second.engine.numel()));
    first.train(3);
    second.train(3);
    EXPECT_EQ(first.weights(), second.weights());
    EXPECT_EQ(first.average(), second.average());
}

TEST(EngineAverage, MovesBetweenStagesWithTheState) {
    MpiComm comm;
    const SharedFolder disk{comm};
    expect_moves_on<ZeroOnCpu, OneOnDevice>(comm, disk.path);
    expect_moves_on<OneOnDevice, ThreeOnCpu>(comm, disk.path);
    expect_moves_on<ThreeOnCpu, BesideDisk>(comm, disk.path);
    expect_moves_on<BesideDisk, ZeroOnCpu>(comm, disk.path);
    expect_moves_on<ZeroInHalf, BesideDiskInHalf>(comm, disk.path);
    expect_moves_on<BesideDiskInHalf, ZeroInHalf>(comm, disk.path);
}

TEST(EngineAverage, StateOfACheckpointWithoutOneLeavesItAlone) {
    MpiComm comm;
    Averaged<TwoOnCpu> run{comm};
    run.train(3);
    const auto average = run.average();
    const auto fill = [](std::string_view kind, std::int64_t, std::span<float> values) {
        EXPECT_NE(kind, "average");
        std::fill(values.begin(), values.end(), 0.5F);
    };
    run.engine.write_state(fill, false);
    EXPECT_EQ(run.average(), average);
    EXPECT_EQ(run.weights(), std::vector<double>(average.size(), 0.5));
}

TEST(EngineAverage, AStepThatOverflowsDoesNotMoveIt) {
    MpiComm comm;
    Averaged<EngineOf<ZeroStage<3>, Precision<Fp16>, Ema<Cpu>>, HalfModel> run{comm};
    run.train(3);
    const auto average = run.average();
    EXPECT_NE(average, run.weights());
    const bool here = comm.rank() == comm.world() - 1;
    run.engine.backward(run.model->loss(rows_of(comm, 0)) * (here ? 1e6 : 1.0));
    EXPECT_TRUE(run.engine.step(1e-2).skipped);
    EXPECT_EQ(run.average(), average);
    run.train(1);
    EXPECT_NE(run.average(), average);
}

TEST(EngineAverage, AStepThatIsNotFiniteDoesNotMoveIt) {
    MpiComm comm;
    Averaged<TwoOnCpu> run{comm};
    run.train(3);
    const auto average = run.average();
    const double factor = comm.rank() == comm.world() - 1 ? std::numeric_limits<double>::quiet_NaN() : 1.0;
    run.engine.backward(run.model->loss(rows_of(comm, 9)) * factor);
    EXPECT_EQ(error_of([&] { run.engine.step(1e-2); }).code(), Errc::non_finite);
    EXPECT_EQ(run.average(), average);
    run.train(2);
    Averaged<TwoOnCpu> undisturbed{comm};
    undisturbed.train(5);
    EXPECT_EQ(run.average(), undisturbed.average()) << "and the next step counts as if that one had not been";
}

}  // namespace
