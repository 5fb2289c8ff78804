// The engine over ranks: stages give the same bits, repeats give the same bits, and what one process would give.

#include <cmath>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <strata/comm/mpi_comm.hpp>
#include <strata/optim/adagrad.hpp>
#include <strata/optim/adamw.hpp>
#include <strata/optim/lamb.hpp>
#include <strata/optim/lion.hpp>
#include <strata/policy/setup.hpp>
#include <strata/zero/engine.hpp>
#include <strata/zero/parameters.hpp>

#include "toy_engines.hpp"
#include "toy_model.hpp"

namespace {

using strata::Errc;
using strata::Fp16;
using strata::Optimizer;
using strata::PureBf16;
using strata::comm::MpiComm;
using strata::zero::parameters_of;
using namespace strata_test;

const MakeModel without_units = make<Model<Block>>();

std::vector<Case> cases_with(const MakeModel& model) {
    return {{.model = model},
            {.model = model, .accumulation = 2},
            {.model = model, .max_grad_norm = 0.1},
            {.model = model, .accumulation = 2, .max_grad_norm = 0.1, .bucket_numel = 1'000'000}};
}

/// Trains with every engine in every case.
template <class First, class... Others>
void expect_equal(const MakeModel& model) {
    MpiComm comm;
    for (const Case& settings : cases_with(model)) {
        const std::string name = "accumulation " + std::to_string(settings.accumulation) + ", max_grad_norm " +
                                 std::to_string(settings.max_grad_norm);
        const Trace first = train<First>(comm, settings);
        int number = 0;
        const auto expect_first = [&](const Trace& other) {
            EXPECT_TRUE(first == other) << name << ", engine " << ++number;
        };
        (expect_first(train<Others>(comm, settings)), ...);
        EXPECT_TRUE(first == train<First>(comm, settings)) << name << ", a repeat differs";
        EXPECT_GT(first.norms.front(), 0.1) << "clipping did nothing";
    }
}

TEST(Engine, StagesGiveTheSameBitsWithoutUnits) {
    expect_equal<EngineOf<ZeroStage<0>>, EngineOf<ZeroStage<1>>, EngineOf<ZeroStage<2>>>(without_units);
}
TEST(Engine, StagesGiveTheSameBitsWithUnits) {
    expect_equal<EngineOf<ZeroStage<0>>, EngineOf<ZeroStage<1>>, EngineOf<ZeroStage<2>>, EngineOf<ZeroStage<3>>>(
        make<UnitModel>());
}
TEST(Engine, StagesGiveTheSameBitsInBf16) {
    using Half = Precision<Bf16>;
    expect_equal<EngineOf<ZeroStage<0>, Half>, EngineOf<ZeroStage<1>, Half>, EngineOf<ZeroStage<2>, Half>,
                 EngineOf<ZeroStage<3>, Half>>(make<UnitModel>());
}
TEST(Engine, StagesGiveTheSameBitsInPureBf16) {
    using Pure = Precision<PureBf16>;
    expect_equal<EngineOf<ZeroStage<0>, Pure>, EngineOf<ZeroStage<1>, Pure>, EngineOf<ZeroStage<2>, Pure>,
                 EngineOf<ZeroStage<3>, Pure>>(make<UnitModel>());
}

// What an elementwise rule does to its runs is tested in optim; here, that one state or a first value of its own is
// sharded like the two states of AdamW.
TEST(Engine, StagesGiveTheSameBitsWithOneState) {
    using Rule = Optimizer<strata::Lion>;
    expect_equal<EngineOf<ZeroStage<0>, Rule>, EngineOf<ZeroStage<3>, Rule>>(make<UnitModel>());
}
TEST(Engine, StagesGiveTheSameBitsWithAStateThatDoesNotStartAtZero) {
    using Rule = Optimizer<strata::Adagrad>;
    expect_equal<EngineOf<ZeroStage<0>, Rule>, EngineOf<ZeroStage<3>, Rule>>(make<UnitModel>());
}
TEST(Engine, StagesGiveTheSameBitsWithNormsOfWholeParameters) {
    using Rule = Optimizer<strata::Lamb>;
    expect_equal<EngineOf<ZeroStage<0>, Rule>, EngineOf<ZeroStage<1>, Rule>, EngineOf<ZeroStage<2>, Rule>,
                 EngineOf<ZeroStage<3>, Rule>>(make<UnitModel>());
    using Pure = Precision<PureBf16>;
    expect_equal<EngineOf<ZeroStage<0>, Pure, Rule>, EngineOf<ZeroStage<3>, Pure, Rule>>(make<UnitModel>());
}

TEST(Engine, HowReductionsOverlapChangesNoBit) {
    MpiComm comm;
    for (const int accumulation : {1, 2}) {
        const Trace after = train<EngineOf<ZeroStage<1>>>(
            comm, {.model = without_units, .accumulation = accumulation, .overlap = false});
        for (const int in_flight : {1, 2, 100}) {
            const Case settings{.model = without_units, .accumulation = accumulation, .buckets_in_flight = in_flight};
            EXPECT_TRUE(after == train<EngineOf<ZeroStage<0>>>(comm, settings));
            EXPECT_TRUE(after == train<EngineOf<ZeroStage<1>>>(comm, settings));
            EXPECT_TRUE(after == train<EngineOf<ZeroStage<2>>>(comm, settings));
        }
    }
}

template <int stage>
std::vector<double> half_trace(MpiComm& comm, double scale) {
    HalfModel model;
    EngineOf<ZeroStage<stage>, Precision<Fp16>> engine{
        comm, parameters_of(model), {.bucket_numel = 10, .loss_scale = {.initial = scale}}};
    EXPECT_EQ(model.block->in.scalar_type(), torch::kHalf);
    std::vector<double> trace;
    for (int step = 0; step < 40; ++step) {
        const auto loss = model.loss(rows_of(comm, 0, 16));
        engine.backward(loss);
        trace.push_back(loss.template item<double>());
        trace.push_back(engine.step(1e-2).grad_norm);
    }
    return trace;
}

TEST(Engine, StagesGiveTheSameBitsInFp16AndTheLossFalls) {
    MpiComm comm;
    const auto zero = half_trace<0>(comm, 1024);
    EXPECT_EQ(zero, half_trace<1>(comm, 1024));
    EXPECT_EQ(zero, half_trace<2>(comm, 1024));
    EXPECT_EQ(zero, half_trace<3>(comm, 1024));
    EXPECT_LT(zero[zero.size() - 2], 0.9 * zero[0]);
    EXPECT_NEAR(zero[1], half_trace<2>(comm, 64)[1], 1e-3 * zero[1]) << "norms are those of the loss itself";
}

TEST(Engine, AnOverflowOnOneRankSkipsTheStepOnAll) {
    MpiComm comm;
    HalfModel model;
    EngineOf<ZeroStage<3>, Precision<Fp16>> engine{
        comm, parameters_of(model), {.loss_scale = {.initial = 256, .hysteresis = 2}}};
    const auto step = [&](bool overflow) {
        const bool here = overflow && comm.rank() == comm.world() - 1;
        engine.backward(model.loss(rows_of(comm, 0)) * (here ? 1e6 : 1.0));
        return engine.step(1e-2);
    };
    EXPECT_FALSE(step(false).skipped);
    const auto before = weights_of(engine, model);
    EXPECT_TRUE(step(true).skipped);
    EXPECT_EQ(engine.scalars().at("loss_scale"), 256) << "the first overflow only uses up the hysteresis";
    const auto second = step(true);
    EXPECT_TRUE(second.skipped);
    EXPECT_EQ(second.step, 1);
    EXPECT_EQ(second.loss_scale, 256);
    EXPECT_EQ(engine.scalars().at("loss_scale"), 128);
    EXPECT_EQ(before, weights_of(engine, model));
    const auto third = step(false);
    EXPECT_FALSE(third.skipped);
    EXPECT_EQ(third.step, 2);
    EXPECT_EQ(third.loss_scale, 128);
    EXPECT_NE(before, weights_of(engine, model));

    HalfModel other;
    EngineOf<ZeroStage<1>, Precision<Fp16>> resumed{comm, parameters_of(other)};
    resumed.restore_scalars(engine.scalars());
    EXPECT_EQ(resumed.scalars(), engine.scalars());
}

TEST(Engine, RanksEndWithTheSameWeights) {
    MpiComm comm;
    for (const Trace& mine : {train<EngineOf<ZeroStage<2>, Precision<Bf16>>>(comm, {}),
                              train<EngineOf<ZeroStage<3>, Precision<Bf16>>>(comm, {})}) {
        std::vector<float> all(mine.weights.size() * static_cast<std::size_t>(comm.world()));
        comm.all_gather(std::as_bytes(std::span{mine.weights}), std::as_writable_bytes(std::span{all}));
        for (std::size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], mine.weights[i % mine.weights.size()]);
    }
}

TEST(Engine, TrainsAsOneProcessOnTheWholeBatchWould) {
    MpiComm comm;
    torch::manual_seed(1);
    Model<Block> alone;
    torch::optim::AdamW adamw{alone.parameters(), torch::optim::AdamWOptions(1e-2)};
    std::vector<double> norms;
    for (int step = 0; step < 4; ++step) {
        torch::manual_seed(static_cast<std::uint64_t>(100 + step));
        adamw.zero_grad();
        alone.loss(torch::randn({4 * comm.world(), 5})).backward();
        alone.unused.mutable_grad() = torch::zeros_like(alone.unused);  // the engine decays what has gradient zero
        norms.push_back(torch::nn::utils::clip_grad_norm_(alone.parameters(), 1e9));
        adamw.step();
    }
    const std::vector<float> weights = values_of(alone);
    const auto expect_near = [&](const Trace& together) {
        for (std::size_t i = 0; i < weights.size(); ++i) EXPECT_NEAR(together.weights[i], weights[i], 2e-5);
        for (std::size_t i = 0; i < norms.size(); ++i) EXPECT_NEAR(together.norms[i], norms[i], 1e-5 * norms[i]);
    };
    expect_near(train<EngineOf<ZeroStage<2>>>(comm, {.model = without_units}));
    expect_near(train<EngineOf<ZeroStage<3>>>(comm, {}));
}

template <class AnyEngine>
void expect_loss_falls() {
    MpiComm comm;
    torch::manual_seed(1);
    UnitModel model;
    AnyEngine engine{comm, parameters_of(model)};
    const auto x = rows_of(comm, 0, 16);
    const auto mean_loss = [&] {
        std::vector<double> loss{model.loss(x).item<double>() / comm.world()};
        comm.all_reduce_sum(loss);
        return loss[0];
    };
    const double before = mean_loss();
    for (int step = 0; step < 60; ++step) {
        engine.backward(model.loss(x));
        engine.step(3e-3);
    }
    EXPECT_LT(mean_loss(), 0.5 * before);
}

TEST(Engine, LossFalls) { expect_loss_falls<EngineOf<ZeroStage<3>>>(); }
TEST(Engine, LossFallsInBf16) { expect_loss_falls<EngineOf<ZeroStage<2>, Precision<Bf16>>>(); }
TEST(Engine, LossFallsInPureBf16) { expect_loss_falls<EngineOf<ZeroStage<3>, Precision<PureBf16>>>(); }

TEST(Engine, ParametersThatOnlySomeRanksUseAreReducedAllTheSame) {
    MpiComm comm;
    torch::manual_seed(1);
    UnitModel model;
    EngineOf<ZeroStage<2>> engine{comm, parameters_of(model)};
    const auto before = model.first->linear->weight.detach().clone();
    const bool last = comm.rank() == comm.world() - 1;
    engine.backward(last ? model.loss(rows_of(comm, 0)) : model.in(rows_of(comm, 0)).square().mean());
    engine.step(1e-2);
    EXPECT_FALSE(torch::equal(before, model.first->linear->weight));
}

TEST(Engine, ARankThatThrewInTheMiddleOfAStepLeavesNobodyWaiting) {
    MpiComm comm;
    for (const bool once : {false, true}) {
        UnitModel model;
        EngineOf<ZeroStage<1>> engine{
            comm, parameters_of(model), {.gradient_accumulation_steps = 4, .reduce_once_a_step = once}};
        const bool fails = comm.rank() == comm.world() - 1;
        const auto loss_of = [&](int i) {
            auto loss = model.loss(rows_of(comm, i));
            if (fails && i == 1)
                loss.register_hook([](const torch::Tensor&) -> torch::Tensor { throw std::runtime_error{"half way"}; });
            return loss * 1.0;
        };
        engine.backward(loss_of(0));
        if (fails) {
            EXPECT_THROW(engine.backward(loss_of(1)), std::runtime_error);
            if (comm.world() > 1) engine.backward_without_loss();
        } else {
            engine.backward(loss_of(1));
            engine.backward(loss_of(2));
        }
        if (comm.world() > 1) {
            if (fails) {
                engine.backward_without_loss();
            } else {
                engine.backward(loss_of(3));
            }
        }
        engine.discard_step();
        for (int i = 2; i < 6; ++i) engine.backward(loss_of(i));
        EXPECT_EQ(engine.step(1e-2).step, 1);
    }
}

TEST(Engine, OnceAStepGivesTheSumsOfEveryMicroBatchAndIsRefusedWithoutWholeGradients) {
    MpiComm comm;
    const auto norm = [&]<class AnyEngine>(std::type_identity<AnyEngine>, bool once) {
        torch::manual_seed(5);
        UnitModel model;
        AnyEngine engine{comm, parameters_of(model), {.gradient_accumulation_steps = 4, .reduce_once_a_step = once}};
        for (int step = 0; step < 3; ++step) {
            for (int i = 0; i < 4; ++i) engine.backward(model.loss(rows_of(comm, 4 * step + i)));
            if (step == 2) return engine.step(1e-2).grad_norm;
            engine.step(1e-2);
        }
        return 0.0;
    };
    const double often = norm(std::type_identity<EngineOf<ZeroStage<1>>>{}, false);
    EXPECT_NEAR(norm(std::type_identity<EngineOf<ZeroStage<0>>>{}, true), often, 1e-5 * often);
    EXPECT_EQ(norm(std::type_identity<EngineOf<ZeroStage<1>>>{}, true),
              norm(std::type_identity<EngineOf<ZeroStage<0>>>{}, true));
    EXPECT_EQ(error_of([&] { norm(std::type_identity<EngineOf<ZeroStage<2>>>{}, true); }).code(), Errc::bad_value);
}

template <class AnyEngine>
void expect_non_finite_is_reported() {
    MpiComm comm;
    UnitModel model;
    AnyEngine engine{comm, parameters_of(model)};
    engine.backward(model.loss(rows_of(comm, 0)));
    engine.step(1e-2);
    const auto before = weights_of(engine, model);
    const auto moments = own_state(engine, "exp_avg");
    const double factor = comm.rank() == comm.world() - 1 ? std::numeric_limits<double>::quiet_NaN() : 1.0;
    engine.backward(model.loss(rows_of(comm, 1)) * factor);
    const auto error = error_of([&] { engine.step(1e-2); });
    EXPECT_EQ(error.code(), Errc::non_finite);
    EXPECT_NE(std::string{error.what()}.find("step 2 "), std::string::npos) << error.what();
    EXPECT_EQ(before, weights_of(engine, model));
    EXPECT_EQ(moments, own_state(engine, "exp_avg"));

    engine.backward(model.loss(rows_of(comm, 1)));  // and training can go on
    EXPECT_EQ(engine.step(1e-2).step, 2);
    EXPECT_NE(before, weights_of(engine, model));
}

TEST(Engine, ANonFiniteGradientOnOneRankIsReportedByAllAndChangesNothing) {
    expect_non_finite_is_reported<EngineOf<ZeroStage<2>>>();
    expect_non_finite_is_reported<EngineOf<ZeroStage<3>>>();
}

TEST(Engine, DifferentModelsOnTheRanksAreRefusedByAll) {
    MpiComm comm;
    if (comm.world() == 1) GTEST_SKIP() << "one rank cannot differ from itself";
    const torch::nn::Linear model(3, comm.rank() == 0 ? 4 : 5);
    const auto error = error_of([&] { EngineOf<ZeroStage<2>>{comm, parameters_of(*model)}; });
    EXPECT_EQ(error.code(), Errc::rank_mismatch);
    EXPECT_NE(std::string{error.what()}.find("rank 1 has \"parameter weight [5, 3]"), std::string::npos)
        << error.what();
}

TEST(Engine, OptionsThatChangeTheOrderOfExchangesAreTheSameOnAllRanks) {
    MpiComm comm;
    if (comm.world() == 1) GTEST_SKIP() << "one rank cannot differ from itself";
    const auto refusal = [&](const Case& settings) {
        UnitModel model;
        using Three = EngineOf<ZeroStage<3>>;
        return error_of([&] { Three{comm, parameters_of(model), options_of<Three>(settings)}; }).code();
    };
    EXPECT_EQ(refusal({.accumulation = 1 + comm.rank()}), Errc::rank_mismatch);
    EXPECT_EQ(refusal({.bucket_numel = 60 + comm.rank()}), Errc::rank_mismatch);
    EXPECT_EQ(refusal({.prefetch_bucket_bytes = comm.rank()}), Errc::rank_mismatch);
    EXPECT_EQ(refusal({.max_live_parameters = comm.rank()}), Errc::rank_mismatch);
}

}  // namespace
