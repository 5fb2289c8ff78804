// A forecast of an engine's memory is what its meter shows: to the byte when it is made, and its peaks in steps.

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <strata/comm/mpi_comm.hpp>
#include <strata/core/error.hpp>
#include <strata/policy/ema.hpp>
#include <strata/zero/engine.hpp>
#include <strata/zero/memory_forecast.hpp>
#include <strata/zero/parameters.hpp>
#include <strata/zero/unit.hpp>

#include "toy_engines.hpp"
#include "toy_model.hpp"

namespace {

using strata::Adagrad;
using strata::Cpu;
using strata::Device;
using strata::Ema;
using strata::Except;
using strata::Fp32;
using strata::Nvme;
using strata::OffloadTarget;
using strata::Optimizer;
using strata::OptimizerState;
using strata::Unit;
using strata::comm::MpiComm;
using strata::zero::ForecastFor;
using strata::zero::MemoryForecast;
using strata::zero::MemoryKind;
using strata::zero::Parameter;
using strata::zero::parameters_of;
using strata::zero::Place;
using namespace strata_test;

constexpr std::int64_t widths[] = {5, 23, 11, 40, 40, 7, 19};

/// A layer whose bias may keep another number format than its weight.
torch::Tensor through(torch::nn::Linear& layer, const torch::Tensor& x) {
    const auto type = layer->weight.scalar_type();
    return (torch::matmul(x.to(type), layer->weight.t()) + layer->bias).to(type);
}

struct Layer : torch::nn::Module {
    Layer(std::int64_t in, std::int64_t out) : linear{register_module("linear", torch::nn::Linear(in, out))} {}
    torch::Tensor forward(const torch::Tensor& x) { return torch::tanh(through(linear, x)); }
    torch::nn::Linear linear;
};

/// Units of many sizes, between layers that are in none; something of each is frozen.
struct Uneven : torch::nn::Module {
    Uneven() {
        first = register_module("first", torch::nn::Linear(3, widths[0]));
        for (std::size_t i = 0; i + 1 < std::size(widths); ++i)
            units.push_back(
                register_module("unit" + std::to_string(i), std::make_shared<Unit<Layer>>(widths[i], widths[i + 1])));
        last = register_module("last", torch::nn::Linear(widths[6], 2));
        scale = register_parameter("scale", torch::ones({9}), false);
        units[2]->linear->bias.requires_grad_(false);
    }
    torch::Tensor loss(torch::Tensor x) {
        x = through(first, x);
        for (const auto& unit : units) x = unit->forward(x);
        return through(last, x).to(torch::kFloat).square().mean();
    }
    torch::nn::Linear first{nullptr}, last{nullptr};
    std::vector<std::shared_ptr<Unit<Layer>>> units;
    torch::Tensor scale;
};

constexpr MemoryKind kinds[] = {MemoryKind::parameters, MemoryKind::gradients, MemoryKind::state, MemoryKind::gathered,
                                MemoryKind::buffers};
constexpr Place places[] = {Place::device, Place::host, Place::disk};

struct EngineForecast : testing::Test {
    MpiComm comm;
    SharedFolder<MpiComm> disk{comm};

    [[nodiscard]] Case on_disk() const {
        Case settings{.bucket_numel = 20, .buckets_in_flight = 2, .nvme_path = disk.path};
        settings.nvme.budget_bytes = std::size_t{1} << 20;
        settings.nvme_units.budget_bytes = std::size_t{64} << 10;
        return settings;
    }
    [[nodiscard]] static std::string of(MemoryKind kind, Place place) {
        return std::string{strata::zero::name_of(kind)} + " on " + std::string{strata::zero::name_of(place)};
    }

    /// Trains a few steps, several micro-batches each, and compares.
    template <class... Policies>
    void expect_as_foreseen(Case settings, const std::string& what) {
        using Its = EngineOf<Policies...>;
        SCOPED_TRACE(what + ", " + std::to_string(settings.accumulation) + " micro-batches");
        Uneven model;
        const auto options = options_of<Its>(settings);
        const ForecastFor whom{.world = comm.world()};
        const MemoryForecast forecast =
            strata::zero::forecast_memory<strata::Setup<Policies...>>(parameters_of(model), whom, options);
        EXPECT_EQ(forecast.inexact, std::vector<std::string>{});
        Its engine{comm, parameters_of(model), options};
        const auto& meter = std::as_const(engine).memory();
        for (const MemoryKind kind : kinds) {
            for (const Place place : places)
                EXPECT_EQ(meter.of(kind, place).now, forecast.made_of(kind)[place]) << of(kind, place);
        }
        for (int step = 0; step < 3; ++step) {
            if (step == 1) engine.memory().reset_peaks();
            for (int micro = 0; micro < settings.accumulation; ++micro)
                engine.backward(model.loss(torch::rand({2, 3})));
            engine.step(1e-4);
        }
        for (const MemoryKind kind : kinds) {
            for (const Place place : places) {
                const std::int64_t peak = meter.of(kind, place).peak;
                // Among several ranks a reduction may be over before the next gradients come.
                if (kind == MemoryKind::gradients && comm.world() > 1) {
                    EXPECT_LE(forecast.made_of(kind)[place], peak) << of(kind, place);
                    EXPECT_LE(peak, forecast.most_of(kind)[place]) << of(kind, place);
                } else {
                    EXPECT_EQ(peak, forecast.most_of(kind)[place]) << of(kind, place);
                }
            }
        }
    }
    template <class... Policies>
    void expect_as_foreseen(const std::string& what) {
        Case settings = on_disk();
        expect_as_foreseen<Policies...>(settings, what);
        settings.accumulation = 2;
        settings.prefetch_bucket_bytes = 1000;
        expect_as_foreseen<Policies...>(settings, what);
    }
};

TEST_F(EngineForecast, IsWhatStagesKeepInMemory) {
    expect_as_foreseen<ZeroStage<0>>("stage 0");
    expect_as_foreseen<ZeroStage<1>>("stage 1");
    expect_as_foreseen<ZeroStage<2>>("stage 2");
    expect_as_foreseen<ZeroStage<3>>("stage 3");
    expect_as_foreseen<ZeroStage<0>, Precision<Bf16>>("stage 0 in bf16");
    expect_as_foreseen<ZeroStage<1>, Precision<Bf16>>("stage 1 in bf16");
    expect_as_foreseen<ZeroStage<2>, Precision<Bf16>>("stage 2 in bf16");
    expect_as_foreseen<ZeroStage<3>, Precision<Bf16>>("stage 3 in bf16");
    expect_as_foreseen<ZeroStage<3>, Optimizer<Adagrad>>("one state");
}

TEST_F(EngineForecast, IsWhatTiersAndAveragesKeep) {
    expect_as_foreseen<ZeroStage<1>, OffloadTarget<Nvme>>("stage 1, state on disk");
    expect_as_foreseen<ZeroStage<2>, OffloadTarget<Nvme>>("stage 2, state on disk");
    expect_as_foreseen<ZeroStage<3>, OffloadTarget<Nvme>>("stage 3, state on disk");
    expect_as_foreseen<ZeroStage<3>, AllOnDisk>("stage 3, all on disk");
    expect_as_foreseen<ZeroStage<0>, Ema<Cpu>>("stage 0, average on the host");
    expect_as_foreseen<ZeroStage<2>, Ema<Device>>("stage 2, average");
    expect_as_foreseen<ZeroStage<3>, Ema<Cpu>>("stage 3, average on the host");
}

/// In every place at once, in two number formats.
TEST_F(EngineForecast, IsWhatMixturesKeep) {
    using strata::Gradients;
    using strata::Parameters;
    using strata::Split;
    Case settings = on_disk();
    settings.excepted_parameters = "bias";
    expect_as_foreseen<ZeroStage<3>, Precision<Bf16, Except<Fp32>>, Ema<Cpu>,
                       OffloadTarget<Split<Cpu, Nvme, 40>, OptimizerState, Parameters>, OffloadTarget<Cpu, Gradients>>(
        settings, "two formats on split tiers");
}

TEST_F(EngineForecast, ShapesAreEnough) {
    Uneven model;
    std::vector<Parameter> outlines;
    for (const Parameter& p : parameters_of(model))
        outlines.push_back(
            strata::zero::outlined_parameter(p.name, p.tensor.sizes().vec(), p.unit, p.tensor.requires_grad()));
    const ForecastFor whom{.world = 4};
    const auto of_model = strata::zero::forecast_memory<strata::Setup<ZeroStage<3>>>(parameters_of(model), whom);
    const auto of_shapes = strata::zero::forecast_memory<strata::Setup<ZeroStage<3>>>(outlines, whom);
    EXPECT_EQ(of_shapes.made, of_model.made);
    EXPECT_EQ(of_shapes.most, of_model.most);
    EXPECT_EQ(of_shapes.frozen, 9 * 4);
    EXPECT_GT(of_shapes.made_in_all()[Place::device], of_shapes.made_of(MemoryKind::state)[Place::device]);
    // 10^12 parameters, of which nothing is allocated.
    const auto huge = strata::zero::outlined_parameter("weight", {1'000'000, 1'000'000}, 0);
    const auto forecast = strata::zero::forecast_memory<strata::Setup<ZeroStage<3>>>({huge}, {.world = 1000});
    EXPECT_EQ(forecast.made_of(MemoryKind::parameters)[Place::device], 4'000'000'000);
    EXPECT_EQ(forecast.made_of(MemoryKind::state)[Place::device], 8'000'000'000);
}

/// Keeps its state as Cpu does, and says of it only what bytes() says.
struct Silent : Cpu {
    template <class Kept, std::size_t states, bool has_master>
    class state : public Cpu::state<Kept, states, has_master> {
    public:
        static strata::PlaceBytes bytes(std::span<const std::int64_t> numels) {
            return strata::PlaceBytes::at(Place::host, 100 * strata::zero::sum_of(numels));
        }
    };
};
TEST_F(EngineForecast, ATierOfAProgramsOwnThatSaysNothingIsNamed) {
    Uneven model;
    const auto forecast = strata::zero::forecast_memory<strata::Setup<ZeroStage<2>, OffloadTarget<Silent>>>(
        parameters_of(model), ForecastFor{.world = 1});
    EXPECT_EQ(forecast.inexact, std::vector<std::string>{"state"});
    std::int64_t trained = 0;
    for (const Parameter& p : parameters_of(model)) trained += p.tensor.requires_grad() ? p.tensor.numel() : 0;
    EXPECT_EQ(forecast.made_of(MemoryKind::state)[Place::host], 100 * trained);
}

TEST_F(EngineForecast, WhatTheEngineRefusesItRefuses) {
    torch::nn::Linear plain{3, 4};
    const auto error = error_of([&] {
        static_cast<void>(
            strata::zero::forecast_memory<strata::Setup<ZeroStage<3>>>(parameters_of(*plain), ForecastFor{}));
    });
    EXPECT_EQ(error.code(), strata::Errc::bad_parameter);
}

}  // namespace
