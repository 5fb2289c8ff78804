// FrozenWeights<Int8> and FrozenWeights<Nf4>: frozen matrices of units are kept as bytes and compute as what these stand for.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <strata/policy/adapter.hpp>
#include <strata/policy/frozen_weights.hpp>
#include <strata/zero/codecs/int8.hpp>
#include <strata/zero/codecs/nf4.hpp>
#include <strata/zero/in_units.hpp>
#include <strata/zero/layout.hpp>
#include <strata/zero/memory_forecast.hpp>

#include "../support/engine_runs.hpp"

namespace {

using namespace strata_test;
using strata::FrozenWeights;
using strata::Int8;
using strata::Nf4;
using strata::zero::ForecastFor;
using strata::zero::MatrixShape;

constexpr int width = 13;

/// Frozen matrices of odd sizes, a frozen kernel and a frozen vector, and two trained matrices of low rank beside them.
struct AdaptedBlock : torch::nn::Module {
    explicit AdaptedBlock(int n) {
        base = register_module("base", torch::nn::Linear(n, n));
        kernel = register_parameter("kernel", torch::randn({3, 2, 2, n}) * 0.4);
        norm = register_parameter("norm", torch::rand({n}) + 0.5);
        for (Tensor& parameter : parameters()) parameter.requires_grad_(false);
        down = register_parameter("down", torch::randn({n, 2}) * 0.3);
        up = register_parameter("up", torch::randn({2, n}) * 0.3);
    }
    Tensor forward(const Tensor& x) {
        const Tensor kept = base(x * norm) + kernel.sum({0, 1, 2});
        return x + torch::tanh(kept + x.matmul(down).matmul(up));
    }
    torch::nn::Linear base{nullptr};
    Tensor kernel, norm, down, up;
};

struct Adapted : ToyModel {
    Adapted() {
        in = register_module("in", torch::nn::Linear(5, width));
        in->weight.requires_grad_(false);  // outside of units: stays as it is
        for (int i = 0; i < 3; ++i)
            row.push_back(register_module("block" + std::to_string(i), std::make_shared<Unit<AdaptedBlock>>(width)));
    }
    Tensor loss(const Tensor& x) override {
        Tensor h = in(x.to(in->weight.dtype()));
        for (const auto& block : row) h = block->forward(h);
        return loss_of(h, x);
    }
    torch::nn::Linear in{nullptr};
    std::vector<std::shared_ptr<Unit<AdaptedBlock>>> row;
};

/// What a codec makes of a matrix and back, in fp32.
template <class Format>
void round_trip(Tensor matrix) {
    using Codec = typename Format::codec;
    const torch::NoGradGuard no_grad;
    const MatrixShape shape{matrix.size(0), matrix.numel() / matrix.size(0)};
    std::vector<std::byte> bytes(static_cast<std::size_t>(Codec::bytes(shape)));
    ASSERT_TRUE(Codec::quantise(matrix.data_ptr<float>(), shape, bytes.data()));
    Codec::dequantise(bytes.data(), shape, matrix.data_ptr<float>());
}
/// The same model with weights that lost already what the format loses.
template <class Format>
struct Rounded : Adapted {
    Rounded() {
        for (const auto& block : row) {
            round_trip<Format>(block->base->weight);
            round_trip<Format>(block->kernel);
        }
    }
};

/// What ST0151 asks for; an engine trains what requires a gradient, and reads nothing of it.
using UnderAnAdapter = strata::Adapter<strata::Lora>;
using Eight = EngineOf<ZeroStage<3>, FrozenWeights<Int8>, UnderAnAdapter>;
using Four = EngineOf<ZeroStage<3>, Precision<Bf16>, Recompute<Blocks>, FrozenWeights<Nf4>, UnderAnAdapter>;
using FourPlain = EngineOf<ZeroStage<3>, Precision<Bf16>>;
using FourOnDisk = EngineOf<ZeroStage<3>, FrozenWeights<Nf4>, UnderAnAdapter, AllOnDisk>;

struct EngineFrozenWeights : testing::Test {
    MpiComm comm;
    SharedFolder<MpiComm> disk{comm};

    [[nodiscard]] Case settings(MakeModel model) const {
        Case found{
            .model = std::move(model), .steps = 3, .accumulation = 2, .bucket_numel = 20, .nvme_path = disk.path};
        found.nvme.budget_bytes = std::size_t{1} << 20;
        found.nvme_units.budget_bytes = std::size_t{64} << 10;
        return found;
    }
    template <class Its>
    [[nodiscard]] std::unique_ptr<Its> engine_of(ToyModel& model) const {
        return std::make_unique<Its>(const_cast<MpiComm&>(comm), parameters_of(model), options_of<Its>(settings({})));
    }
};

TEST_F(EngineFrozenWeights, TrainsWithTheBitsOfWhatItDequantisesTo) {
    for (const std::int64_t prefetch : {std::int64_t{-1}, std::int64_t{0}, std::int64_t{1} << 20}) {
        SCOPED_TRACE(prefetch);
        const auto with = [&](MakeModel model) {
            Case found = settings(std::move(model));
            found.prefetch_bucket_bytes = prefetch;
            return found;
        };
        EXPECT_TRUE(train<Three>(comm, with(make<Rounded<Int8>>())) == train<Eight>(comm, with(make<Adapted>())));
        EXPECT_TRUE(train<FourPlain>(comm, with(make<Rounded<Nf4>>())) == train<Four>(comm, with(make<Adapted>())));
        EXPECT_TRUE(train<Three>(comm, with(make<Rounded<Nf4>>())) == train<FourOnDisk>(comm, with(make<Adapted>())));
    }
    EXPECT_FALSE(train<Three>(comm, settings(make<Adapted>())) == train<Eight>(comm, settings(make<Adapted>())));
}

TEST_F(EngineFrozenWeights, KeepsItsShareOfTheBytesAndNothingElse) {
    Adapted model;
    const auto engine = engine_of<Four>(model);
    // Each at a multiple of 16, in the order of registration; vectors take two bytes an element in bf16.
    const std::int64_t matrix = Nf4::codec::bytes({width, width});
    const std::int64_t kernel = Nf4::codec::bytes({3, 4 * width});
    const auto aligned = [](std::int64_t bytes) { return (bytes + 15) / 16 * 16; };
    std::int64_t unit = 0;
    for (const auto& parameter : parameters_of(model)) {
        if (!parameter.name.starts_with("block0.") || parameter.tensor.requires_grad()) continue;
        unit = aligned(unit);
        unit += parameter.name.ends_with("base.weight") ? matrix
                : parameter.name.ends_with("kernel")    ? kernel
                                                        : 2 * width;
    }
    const std::int64_t adapters = strata::zero::share_numel(4 * width, comm.world()) * 2;
    // The bias of the layer outside is trained too, and whole.
    const auto use = engine->memory().of(MemoryKind::parameters, Place::device);
    EXPECT_EQ(use.now, 3 * (strata::zero::share_numel(unit, comm.world()) + adapters) +
                           2 * ((width + comm.world() - 1) / comm.world() * comm.world()));
    EXPECT_EQ(engine->memory().of(MemoryKind::gathered, Place::device).now, 0);
}

template <class Its, class Setup>
void expect_as_foreseen(MpiComm& comm, const Case& settings) {
    SCOPED_TRACE(__PRETTY_FUNCTION__);
    Adapted model;
    const auto options = options_of<Its>(settings);
    const auto forecast =
        strata::zero::forecast_memory<Setup>(parameters_of(model), ForecastFor{.world = comm.world()}, options);
    Its engine{comm, parameters_of(model), options};
    Trace trace;
    for (const MemoryKind kind : {MemoryKind::parameters, MemoryKind::gradients, MemoryKind::state,
                                  MemoryKind::gathered, MemoryKind::buffers}) {
        for (const Place place : {Place::device, Place::host, Place::disk})
            EXPECT_EQ(engine.memory().of(kind, place).now, forecast.made_of(kind)[place])
                << strata::zero::name_of(kind) << " on " << strata::zero::name_of(place);
    }
    for (int step = 0; step < 3; ++step) {
        if (step == 1) engine.memory().reset_peaks();
        train_step(engine, model, comm, settings, step, trace);
    }
    const auto peak = engine.memory().of(MemoryKind::gathered, Place::device).peak;
    EXPECT_LE(peak, forecast.most_of(MemoryKind::gathered)[Place::device]);
    if (comm.world() == 1) {
        EXPECT_EQ(peak, forecast.most_of(MemoryKind::gathered)[Place::device]);
    }
}
TEST_F(EngineFrozenWeights, TakesWhatTheForecastSays) {
    expect_as_foreseen<Eight, strata::Setup<ZeroStage<3>, FrozenWeights<Int8>, UnderAnAdapter>>(comm, settings({}));
    expect_as_foreseen<
        Four, strata::Setup<ZeroStage<3>, Precision<Bf16>, Recompute<Blocks>, FrozenWeights<Nf4>, UnderAnAdapter>>(
        comm, settings({}));
    expect_as_foreseen<FourOnDisk, strata::Setup<ZeroStage<3>, FrozenWeights<Nf4>, UnderAnAdapter, AllOnDisk>>(
        comm, settings({}));
}

TEST_F(EngineFrozenWeights, UnitsThatAreMadeOneByOneGiveTheSameBytes) {
    torch::manual_seed(3);
    Adapted at_once;
    const auto whole = engine_of<Four>(at_once);
    torch::manual_seed(3);
    const auto model = strata::in_units([] { return std::make_shared<Adapted>(); });
    const auto engine = engine_of<Four>(*model);
    EXPECT_EQ(weights_of(*engine, *model), weights_of(*whole, at_once));
}

TEST_F(EngineFrozenWeights, ValuesThatAreNotFiniteAreRefusedByName) {
    for (const bool is_nan : {true, false}) {
        Adapted model;
        {
            const torch::NoGradGuard no_grad;
            model.row[1]->kernel.index_put_({2, 1, 0, 5}, is_nan ? std::numeric_limits<float>::quiet_NaN()
                                                                 : -std::numeric_limits<float>::infinity());
        }
        const auto error = error_of([&] { static_cast<void>(engine_of<Eight>(model)); });
        EXPECT_EQ(error.code(), Errc::bad_parameter) << error.what();
        EXPECT_NE(error.problem().find("block1.kernel"), std::string::npos) << error.what();
        EXPECT_NE(error.problem().find("int8"), std::string::npos) << error.what();
    }
}

/// All frozen values of a model, by name.
template <class Its>
std::vector<float> of_parameter(Its& engine, Adapted& model, std::string_view name) {
    std::vector<float> found;
    engine.with_whole_model([&] {
        for (const auto& parameter : model.named_parameters()) {
            if (parameter.key() != name) continue;
            const Tensor values = parameter.value().detach().to(torch::kFloat).contiguous();
            found.assign(values.data_ptr<float>(), values.data_ptr<float>() + values.numel());
        }
    });
    return found;
}

TEST_F(EngineFrozenWeights, WrittenOnesAreQuantisedAnewAndOthersStay) {
    torch::manual_seed(5);
    Adapted model;
    const auto engine = engine_of<Four>(model);
    const auto kernel = of_parameter(*engine, model, "block1.kernel");
    const auto norm = of_parameter(*engine, model, "block1.norm");
    torch::manual_seed(6);
    const Tensor wanted = torch::randn({width, width});
    const Tensor expected = wanted.to(torch::kBFloat16).to(torch::kFloat);
    round_trip<Nf4>(expected);
    const Tensor rounded = expected.to(torch::kBFloat16).to(torch::kFloat);
    const std::vector<float> numbers(rounded.data_ptr<float>(), rounded.data_ptr<float>() + rounded.numel());
    engine->write_frozen([](std::string_view name) { return name == "block1.base.weight"; },
                         [&](const std::string&, at::Tensor values) { values.copy_(wanted); });
    EXPECT_EQ(of_parameter(*engine, model, "block1.base.weight"), numbers);
    EXPECT_EQ(of_parameter(*engine, model, "block1.kernel"), kernel);
    EXPECT_EQ(of_parameter(*engine, model, "block1.norm"), norm);
    engine->with_whole_model([&] {
        const torch::NoGradGuard no_grad;
        model.row[2]->base->weight.copy_(wanted);
        model.row[2]->norm.fill_(1.5);
    });
    EXPECT_EQ(of_parameter(*engine, model, "block2.base.weight"), numbers);
    EXPECT_EQ(of_parameter(*engine, model, "block2.norm"), std::vector<float>(width, 1.5F));
}

TEST_F(EngineFrozenWeights, WhatStaysFrozenKeepsItsBitsWhenOthersAreTrained) {
    torch::manual_seed(7);
    Adapted model;
    const auto engine = engine_of<Four>(model);
    engine->set_trainable([](std::string_view name) { return name == "block1.norm" || name.ends_with("up"); });
    EXPECT_EQ(of_parameter(*engine, model, "block0.kernel").size(), static_cast<std::size_t>(12 * width));
    const auto kernel = of_parameter(*engine, model, "block0.kernel");
    engine->set_trainable([](std::string_view name) { return name.ends_with("norm") || name.ends_with("kernel"); });
    engine->set_trainable([](std::string_view name) { return name.ends_with("up"); });
    EXPECT_EQ(of_parameter(*engine, model, "block0.base.weight").size(), static_cast<std::size_t>(width * width));
    torch::manual_seed(7);
    Adapted again;
    const auto fresh = engine_of<Four>(again);
    for (const char* name : {"block0.base.weight", "block1.base.weight", "block2.base.weight", "block2.norm"})
        EXPECT_EQ(of_parameter(*engine, model, name), of_parameter(*fresh, again, name)) << name;
    EXPECT_EQ(kernel, of_parameter(*fresh, again, "block0.kernel"));
}

}  // namespace
