// Precision<Format, Except<Other>>: named parameters keep another number format, at every stage and on every tier.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <strata/comm/mpi_comm.hpp>
#include <strata/optim/lamb.hpp>
#include <strata/policy/recompute.hpp>
#include <strata/testing/training_conformance.hpp>
#include <strata/zero/engine.hpp>
#include <strata/zero/parameters.hpp>
#include <strata/zero/unit.hpp>

#include "shared_folder.hpp"
#include "toy_engines.hpp"
#include "toy_model.hpp"

namespace {

using strata::Blocks;
using strata::Cpu;
using strata::Ema;
using strata::Errc;
using strata::Except;
using strata::Fp32;
using strata::PureBf16;
using strata::Recompute;
using strata::Unit;
using strata::comm::MpiComm;
using strata::zero::MemoryKind;
using strata::zero::parameters_of;
using strata::zero::Place;
using torch::Tensor;
using namespace strata_test;

using NormsInFp32 = Precision<Bf16, Except<Fp32>>;

constexpr int width = 7;

/// A norm, which a bf16 run keeps in fp32, around a layer; half of it does not learn.
struct NormedBlock : torch::nn::Module {
    explicit NormedBlock(int n) {
        norm_gain = register_parameter("norm_gain", torch::rand({n}) + 0.5);
        linear = register_module("linear", torch::nn::Linear(n, n));
        norm_frozen = register_parameter("norm_frozen", torch::rand({n}), false);
        base = register_parameter("base", torch::randn({n, n}) * 0.3, false);
    }
    Tensor forward(const Tensor& x) {
        const Tensor wide = x.to(torch::kFloat);
        const Tensor normed = wide / (wide.square().mean(1, true) + 1e-3).sqrt() * norm_gain.to(torch::kFloat);
        const Tensor h = (normed + norm_frozen.to(torch::kFloat)).to(linear->weight.dtype());
        return x + torch::tanh(linear(h) + h.matmul(base));
    }
    Tensor norm_gain, norm_frozen, base;
    torch::nn::Linear linear{nullptr};
};

/// Sizes that nothing divides; parameters outside of units, too, in both formats.
struct Normed : ToyModel {
    Normed() {
        norm_first = register_parameter("norm_first", torch::rand({width}) + 0.5);
        in = register_module("in", torch::nn::Linear(5, width));
        for (int i = 0; i < 3; ++i)
            row.push_back(register_module("block" + std::to_string(i), std::make_shared<Unit<NormedBlock>>(width)));
        norm_last = register_parameter("norm_last", torch::rand({width}) + 0.5);
        out = register_module("out", torch::nn::Linear(width, 3));
    }
    Tensor loss(const Tensor& x) override {
        const auto type = in->weight.scalar_type();
        Tensor h = (in(x.to(type)).to(torch::kFloat) * norm_first.to(torch::kFloat)).to(type);
        for (const auto& block : row) h = block->forward(h);
        return loss_of(out((h.to(torch::kFloat) * norm_last.to(torch::kFloat)).to(type)), x);
    }
    Tensor norm_first, norm_last;
    torch::nn::Linear in{nullptr}, out{nullptr};
    std::vector<std::shared_ptr<Unit<NormedBlock>>> row;
};

Case with(const std::string& excepted, Case settings = {}) {
    settings.model = make<Normed>();
    settings.excepted_parameters = excepted;
    return settings;
}
template <int stage, class... Policies>
Trace run(MpiComm& comm, const Case& settings) {
    return train<EngineOf<ZeroStage<stage>, Policies...>>(comm, settings);
}

TEST(EngineExceptions, GradientsOnATierAndUpdatesInBackwardHaveTheirBits) {
    MpiComm comm;
    const SharedFolder disk{comm};
    Case settings = with("norm", {.nvme_path = disk.path});
    for (const bool freezes : {false, true}) {
        if (freezes) {
            settings.trainable = {{1, [](std::string_view name) { return name.find("norm") == name.npos; }},
                                  {3, [](std::string_view name) { return !name.starts_with("block1"); }}};
        }
        const Trace after = run<2, NormsInFp32>(comm, settings);
        EXPECT_TRUE(after ==
                    (run<2, NormsInFp32, strata::OffloadTarget<strata::Nvme, strata::Gradients>>(comm, settings)))
            << freezes;
        using AtOnce = strata::Update<strata::InBackward>;
        EXPECT_TRUE(after == (run<0, NormsInFp32, AtOnce>(comm, settings))) << freezes;
        EXPECT_TRUE(after == (run<3, NormsInFp32, AtOnce, strata::OffloadTarget<strata::Nvme>>(comm, settings)))
            << freezes;
    }
}

TEST(EngineExceptions, WithAllParametersExceptedTheBitsAreThoseOfTheirFormat) {
    MpiComm comm;
    for (const int accumulation : {1, 2}) {
        const Case usual = with("", {.accumulation = accumulation, .max_grad_norm = 0.1});
        const Case all = with("norm,weight,bias,base", usual);
        EXPECT_TRUE((run<0, Precision<Fp32>>(comm, usual) == run<0, NormsInFp32>(comm, all)));
        EXPECT_TRUE((run<1, Precision<Fp32>>(comm, usual) == run<1, NormsInFp32>(comm, all)));
        EXPECT_TRUE((run<2, Precision<Fp32>>(comm, usual) == run<2, NormsInFp32>(comm, all)));
        EXPECT_TRUE((run<3, Precision<Fp32>>(comm, usual) == run<3, NormsInFp32>(comm, all)));
    }
}

TEST(EngineExceptions, EveryStageAndTierHasTheSameBits) {
    MpiComm comm;
    const SharedFolder folder{comm};
    for (const int accumulation : {1, 2}) {
        Case settings = with("norm", {.accumulation = accumulation, .max_grad_norm = 0.1, .groups = true});
        settings.nvme_path = folder.path;
        const Trace expected = run<0, NormsInFp32>(comm, settings);
        EXPECT_FALSE((expected == run<0, Precision<Bf16>>(comm, with("", settings))))
            << "the exceptions make a difference";
        EXPECT_TRUE((expected == run<1, NormsInFp32>(comm, settings)));
        EXPECT_TRUE((expected == run<2, NormsInFp32>(comm, settings)));
        EXPECT_TRUE((expected == run<3, NormsInFp32>(comm, settings)));
        EXPECT_TRUE((expected == run<2, NormsInFp32, StateOnDisk>(comm, settings)));
        EXPECT_TRUE((expected == run<3, NormsInFp32, AllOnDisk>(comm, settings)));
        EXPECT_TRUE((expected == run<3, NormsInFp32, Recompute<Blocks>>(comm, settings)));
    }
}

TEST(EngineExceptions, RulesWithNormsAndStochasticRoundingHaveThemToo) {
    MpiComm comm;
    const Case settings = with("norm");
    using Pure = Precision<PureBf16, Except<Fp32>>;
    EXPECT_TRUE((run<0, Pure>(comm, settings) == run<3, Pure>(comm, settings)));
    using WithLamb = strata::Optimizer<strata::Lamb>;
    EXPECT_TRUE((run<0, NormsInFp32, WithLamb>(comm, settings) == run<3, NormsInFp32, WithLamb>(comm, settings)));
}

/// The engine of a model that was given a seed, and its model.
template <class Engine>
struct Trained {
    explicit Trained(MpiComm& comm_, const std::string& excepted = "norm") : comm{comm_} {
        torch::manual_seed(1);
        model = std::make_shared<Normed>();
        engine = std::make_unique<Engine>(comm, parameters_of(*model), options_of<Engine>(with(excepted)));
    }
    Trace train(int from, int to) {
        Trace trace;
        for (int step = from; step < to; ++step) train_step(*engine, *model, comm, {}, step, trace);
        trace.weights = weights_of(*engine, *model);
        return trace;
    }
    MpiComm& comm;
    std::shared_ptr<Normed> model;
    std::unique_ptr<Engine> engine;
};

TEST(EngineExceptions, TheyAreInTheirFormatWithoutASecondCopy) {
    MpiComm comm;
    Trained<EngineOf<ZeroStage<2>, NormsInFp32>> run{comm};
    EXPECT_EQ(run.model->norm_first.scalar_type(), torch::kFloat);
    EXPECT_EQ(run.model->row[1]->norm_gain.scalar_type(), torch::kFloat);
    EXPECT_EQ(run.model->row[1]->norm_frozen.scalar_type(), torch::kFloat);
    EXPECT_EQ(run.model->row[1]->base.scalar_type(), torch::kBFloat16);
    EXPECT_EQ(run.model->out->bias.scalar_type(), torch::kBFloat16);
    if (comm.world() > 1) return;
    const std::int64_t excepted = 5 * width, others = run.engine->numel() - excepted;
    const auto bytes = [&](MemoryKind kind) { return run.engine->memory().of(kind, Place::device).now; };
    EXPECT_EQ(bytes(MemoryKind::parameters), 2 * others + 4 * excepted);
    EXPECT_EQ(bytes(MemoryKind::state), 12 * others + 8 * excepted) << "no master beside what is in fp32";
}

TEST(EngineExceptions, ARunGoesOnExactlyAtAnotherStage) {
    MpiComm comm;
    using From = EngineOf<ZeroStage<1>, NormsInFp32, Ema<Cpu>>;
    using To = EngineOf<ZeroStage<3>, NormsInFp32, Ema<Cpu>>;
    Trained<From> whole{comm}, first{comm};
    Trained<To> second{comm};
    whole.train(0, 2);
    first.train(0, 2);
    move_state(comm, *first.engine, *second.engine);
    EXPECT_EQ(whole.train(2, 4), second.train(2, 4));
    EXPECT_EQ(all_state(comm, *whole.engine, strata::zero::average_kind),
              all_state(comm, *second.engine, strata::zero::average_kind));
}

TEST(EngineExceptions, TheAverageTakesTheirPlaceAndGivesItBack) {
    MpiComm comm;
    const auto check = [&]<class Engine>(std::type_identity<Engine>) {
        Trained<Engine> run{comm};
        const auto trained = run.train(0, 3).weights;
        run.engine->swap_average();
        const auto averaged = weights_of(*run.engine, *run.model);
        EXPECT_NE(averaged, trained);
        run.engine->swap_average();
        EXPECT_EQ(weights_of(*run.engine, *run.model), trained);
        return averaged;
    };
    const auto at_one = check(std::type_identity<EngineOf<ZeroStage<1>, NormsInFp32, Ema<Cpu>>>{});
    EXPECT_EQ(at_one, check(std::type_identity<EngineOf<ZeroStage<3>, NormsInFp32, Ema<Cpu>>>{}));
}

TEST(EngineExceptions, WhatAProgramWritesIsKept) {
    MpiComm comm;
    Trained<EngineOf<ZeroStage<3>, NormsInFp32>> run{comm};
    run.train(0, 1);
    run.engine->with_whole_model([&] {
        const torch::NoGradGuard no_grad;
        run.model->norm_last.fill_(0.1);
        run.model->row[0]->norm_gain.fill_(0.3);
    });
    run.engine->with_whole_model([&] {
        EXPECT_EQ(run.model->norm_last[0].item<float>(), 0.1F) << "all its digits";
        EXPECT_EQ(run.model->row[0]->norm_gain[6].item<float>(), 0.3F);
    });
    run.train(1, 2);
}

TEST(EngineExceptions, APrecisionWithExceptionsConforms) {
    MpiComm comm;
    EXPECT_EQ((strata::testing::training_failures<Precision<strata::Fp16, Except<Fp32>>, ZeroStage<3>>(comm)),
              std::vector<std::string>{});
}

TEST(EngineExceptions, NamesThatMeanNothingAreRefused) {
    MpiComm comm;
    const auto problem = [&]<class Engine>(std::type_identity<Engine>, const std::string& excepted) {
        const auto error = error_of([&] { Trained<Engine>{comm, excepted}; });
        EXPECT_EQ(error.code(), Errc::bad_value) << error.what();
        return error.problem();
    };
    constexpr std::type_identity<EngineOf<ZeroStage<1>, NormsInFp32>> mixed;
    EXPECT_EQ(problem(mixed, "norm, embed"), "excepted_parameters has \"embed\", which is in no parameter's name");
    EXPECT_EQ(problem(mixed, " "), "the precision has a format for exceptions, Except<...>, and no parameter is one");
    EXPECT_EQ(problem(std::type_identity<EngineOf<ZeroStage<1>, Precision<Bf16>>>{}, "norm"),
              "excepted_parameters or excepts names parameters, and the precision has no format for exceptions");
}

}  // namespace
