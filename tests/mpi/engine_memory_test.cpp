// What a rank holds at each stage: the formulas of the ZeRO paper, and no more than the buffers that are stated.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <strata/comm/mpi_comm.hpp>
#include <strata/core/error.hpp>
#include <strata/offload/host_memory.hpp>
#include <strata/offload/windows.hpp>
#include <strata/policy/ema.hpp>
#include <strata/zero/engine.hpp>
#include <strata/zero/parameters.hpp>
#include <strata/zero/unit.hpp>

#include "toy_engines.hpp"
#include "toy_model.hpp"

namespace {

using strata::Cpu;
using strata::Errc;
using strata::Nvme;
using strata::OffloadTarget;
using strata::OptimizerState;
using strata::Parameters;
using strata::Unit;
using strata::comm::MpiComm;
using strata::zero::MemoryKind;
using strata::zero::MemoryMeter;
using strata::zero::parameters_of;
using strata::zero::Place;
using namespace strata_test;

template <int stage, class... Policies>
using Half = EngineOf<ZeroStage<stage>, Precision<Bf16>, Policies...>;

constexpr int width = 12;
constexpr std::int64_t unit_numel = width * width + width;  // 156: shares of 1, 2, 3 and 4 ranks need no padding
constexpr std::int64_t units = 100;
constexpr std::int64_t numel = units * unit_numel;

/// Nothing but equal units.
struct Units : torch::nn::Module {
    Units() {
        for (int i = 0; i < units; ++i)
            row.push_back(register_module("unit" + std::to_string(i), std::make_shared<Unit<Block>>(width)));
    }
    torch::Tensor loss(torch::Tensor x) {
        for (const auto& unit : row) x = unit->forward(x);
        return x.to(torch::kFloat).square().mean();
    }
    std::vector<std::shared_ptr<Unit<Block>>> row;
};

/// Makes an engine, trains three steps and shows the meter: peaks are of the last two.
template <class AnyEngine, class Look>
void measure(MpiComm& comm, const Case& settings, Look&& look) {
    Units model;
    AnyEngine engine{comm, parameters_of(model), options_of<AnyEngine>(settings)};
    const auto x = torch::randn({2, width}).to(torch::kBFloat16);
    for (int step = 0; step < 3; ++step) {
        if (step == 1) engine.memory().reset_peaks();
        for (int micro = 0; micro < settings.accumulation; ++micro) engine.backward(model.loss(x));
        engine.step(1e-4);
    }
    look(std::as_const(engine).memory());
}

std::int64_t peak(const MemoryMeter& meter, MemoryKind kind, Place place = Place::device) {
    return meter.of(kind, place).peak;
}

void expect_between(std::int64_t low, std::int64_t value, std::int64_t high, const std::string& what) {
    EXPECT_LE(low, value) << what;
    EXPECT_LE(value, high) << what;
}

/// bf16 parameters and gradients, fp32 master and two moments: K = 12 of the paper (arXiv:1910.02054, section 3.1).
///
///   stated  of gradients on their way, and of whole units
template <int stage>
void expect_formula(MpiComm& comm, std::int64_t parameters, std::int64_t gradients, std::int64_t state,
                    std::int64_t most_buckets, std::int64_t whole_units) {
    const std::string name = "stage " + std::to_string(stage);
    const std::int64_t bucket = 2 * unit_numel;
    const std::int64_t fewest = most_buckets == 0 ? 0 : 1;
    measure<Half<stage>>(comm, {}, [&](const MemoryMeter& meter) {
        EXPECT_EQ(peak(meter, MemoryKind::parameters), parameters) << name;
        EXPECT_EQ(peak(meter, MemoryKind::state), state) << name;
        EXPECT_EQ(peak(meter, MemoryKind::gathered), whole_units * 2 * unit_numel) << name;
        EXPECT_EQ(peak(meter, MemoryKind::buffers), 0) << name;
        expect_between(gradients + fewest * bucket, peak(meter, MemoryKind::gradients),
                       gradients + most_buckets * bucket, name);
        const std::int64_t formula = parameters + gradients + state;
        const std::int64_t stated = (most_buckets + whole_units) * bucket;
        expect_between(formula, meter.total(Place::device).peak, formula + stated, name);
        EXPECT_LE(stated, formula / 50) << name << ": 2 %";
        EXPECT_EQ(meter.total(Place::host).peak + meter.total(Place::disk).peak, 0) << name;
    });
}

TEST(EngineMemory, IsWhatThePaperSays) {
    MpiComm comm;
    const std::int64_t world = comm.world();
    const std::int64_t share = numel / world;
    ASSERT_EQ(unit_numel % world, 0);
    expect_formula<0>(comm, 2 * numel, 2 * numel, 12 * numel, 0, 0);
    expect_formula<1>(comm, 2 * numel, 2 * numel, 12 * share, 0, 0);
    const std::int64_t in_flight = world == 1 ? 0 : Case{}.buckets_in_flight + 1;  // one rank's gradients are its sums
    expect_formula<2>(comm, 2 * numel, 2 * share, 12 * share, in_flight, 0);
    if (world == 1) {  // whole units are what a world of one keeps
        expect_formula<3>(comm, 2 * numel, 2 * numel, 12 * numel, 0, 0);
    } else {
        expect_formula<3>(comm, 2 * share, 2 * share, 12 * share, 2, 2);
    }
}

TEST(EngineMemory, MicroBatchesAddTheirSumsInFp32) {
    MpiComm comm;
    const std::int64_t share = numel / comm.world();
    const std::int64_t one = 4 * unit_numel / comm.world();  // a bucket's sum of one micro-batch
    measure<Half<1>>(comm, {.accumulation = 2}, [&](const MemoryMeter& meter) {
        EXPECT_EQ(peak(meter, MemoryKind::gradients), 2 * numel + 4 * share + one);
    });
    measure<Half<3>>(comm, {.accumulation = 2}, [&](const MemoryMeter& meter) {
        expect_between(4 * share + one, peak(meter, MemoryKind::gradients), 4 * share + one + 2 * 2 * unit_numel,
                       "stage 3");
    });
}

TEST(EngineMemory, OffloadedStateIsCountedWhereItIs) {
    MpiComm comm;
    const SharedFolder disk{comm};
    const std::int64_t world = comm.world();
    const std::int64_t share = numel / world;
    const Case settings{.nvme_path = disk.path};
    measure<Half<3, OffloadTarget<Cpu, OptimizerState, Parameters>>>(comm, settings, [&](const MemoryMeter& meter) {
        EXPECT_EQ(peak(meter, MemoryKind::state, Place::host), 12 * share);
        EXPECT_EQ(peak(meter, MemoryKind::state), 0);
        EXPECT_EQ(peak(meter, MemoryKind::parameters, Place::host), world == 1 ? 0 : 2 * share);
    });
    measure<Half<3, OffloadTarget<Nvme, OptimizerState, Parameters>>>(comm, settings, [&](const MemoryMeter& meter) {
        const auto of_unit = static_cast<std::size_t>(unit_numel / world);
        const auto payload = [](const strata::offload::WindowArrays& arrays) {
            return static_cast<std::int64_t>(strata::offload::payload_of(arrays));
        };
        EXPECT_EQ(peak(meter, MemoryKind::state, Place::disk),
                  units * payload({4 * of_unit, 4 * of_unit, 4 * of_unit}));
        EXPECT_EQ(peak(meter, MemoryKind::parameters, Place::disk), units * 2 * unit_numel / world);
        EXPECT_EQ(peak(meter, MemoryKind::parameters), 0);
        EXPECT_EQ(peak(meter, MemoryKind::state), 0);
        EXPECT_EQ(peak(meter, MemoryKind::gathered), (world == 1 ? 1 : 2) * 2 * unit_numel);
        EXPECT_GT(peak(meter, MemoryKind::buffers, Place::host), 0);
    });
}

/// What an average adds: 4 bytes a parameter over all ranks together, at every stage.
template <int stage, class Tier>
void expect_average_once(MpiComm& comm) {
    Units model, other;
    EngineOf<ZeroStage<stage>, strata::Ema<Tier>> with{comm, parameters_of(model)};
    EngineOf<ZeroStage<stage>> without{comm, parameters_of(other)};
    for (const Place place : {Place::device, Place::host}) {
        const bool there = (place == Place::host) == std::is_same_v<Tier, Cpu>;
        const auto bytes = [&](auto& engine) { return engine.memory().of(MemoryKind::state, place).now; };
        EXPECT_EQ(bytes(with) - bytes(without), there ? 4 * numel / comm.world() : 0) << "stage " << stage;
    }
}
TEST(EngineMemory, AnAverageIsKeptOnceAcrossAllRanks) {
    MpiComm comm;
    expect_average_once<0, Cpu>(comm);
    expect_average_once<1, Cpu>(comm);
    expect_average_once<2, strata::Device>(comm);
    expect_average_once<3, Cpu>(comm);
    expect_average_once<3, strata::Device>(comm);
}

TEST(EngineMemory, UnitsAreGatheredAheadAsFarAsTheBoundsGo) {
    MpiComm comm;
    if (comm.world() == 1) GTEST_SKIP() << "a world of one keeps its units whole";
    const std::int64_t bytes = 2 * unit_numel;
    const auto whole_units = [&](std::int64_t prefetch, std::int64_t live) {
        std::int64_t most = 0;
        measure<Half<3>>(comm, {.prefetch_bucket_bytes = prefetch, .max_live_parameters = live},
                         [&](const MemoryMeter& meter) { most = peak(meter, MemoryKind::gathered); });
        EXPECT_EQ(most % bytes, 0);
        return most / bytes;
    };
    EXPECT_EQ(whole_units(0, 0), 1);
    EXPECT_EQ(whole_units(bytes - 1, 0), 1);
    EXPECT_EQ(whole_units(bytes, 0), 2);
    EXPECT_EQ(whole_units(3 * bytes, 0), 4);
    EXPECT_EQ(whole_units(1'000'000'000, 0), units);
    EXPECT_EQ(whole_units(3 * bytes, 1), 1);
    EXPECT_EQ(whole_units(3 * bytes, 3 * unit_numel), 3);
    EXPECT_EQ(whole_units(3 * bytes, 4 * unit_numel - 1), 3);
    EXPECT_EQ(whole_units(-1, 10 * unit_numel), 2);
}

/// 2^40 elements in a unit that take 4 bytes: all are the same one. Beside it something small to train.
struct Huge : torch::nn::Module {
    struct Inner : torch::nn::Module {
        Inner() { one = register_parameter("one", torch::zeros({1}).expand({1 << 20, 1 << 20})); }
        torch::Tensor forward(const torch::Tensor& x) { return x + one[0][0]; }
        torch::Tensor one;
    };
    explicit Huge(bool trained) {
        small = register_module("small", std::make_shared<Unit<Block>>(4));
        unit = register_module("unit", std::make_shared<Unit<Inner>>());
        unit->one.requires_grad_(trained);
    }
    std::shared_ptr<Unit<Block>> small;
    std::shared_ptr<Unit<Inner>> unit;
};

/// The error of an engine that does not fit.
template <class AnyEngine>
strata::Error refusal_of(MpiComm& comm, bool trained, const std::filesystem::path& disk = {}) {
    Huge model{trained};
    const auto error = error_of([&] { AnyEngine{comm, parameters_of(model), {.tiers = {.nvme_path = disk}}}; });
    EXPECT_EQ(error.code(), Errc::not_enough_memory) << error.what();
    EXPECT_EQ(model.unit->one.storage().nbytes(), 4U) << "the model was touched";
    return error;
}
void expect_says(const strata::Error& error, const std::string& words) {
    EXPECT_NE(std::string{error.what()}.find(words), std::string::npos) << error.what() << "\nlacks " << words;
}

TEST(EngineMemory, WhatDoesNotFitIsRefusedBeforeAnyOfItIsAllocated) {
    MpiComm comm;
    const SharedFolder disk{comm};
    constexpr std::uint64_t tensor = std::uint64_t{4} << 40;  // bytes in fp32
    const auto world = static_cast<std::uint64_t>(comm.world());
    const auto needs = [](std::uint64_t bytes) {
        return "training this model needs " + strata::offload::in_gib(bytes) + " of host memory on this node, ";
    };
    // Parameters, gradients and, while one rank's values reach the others, fp32 values; two moments, sharded from stage 1.
    const auto zero = refusal_of<EngineOf<ZeroStage<0>>>(comm, true);
    expect_says(zero, needs(world * 5 * tensor));
    expect_says(zero,
                "GiB are free. Fix: shard more with a higher ZeroStage, keep state on disk with OffloadTarget<Nvme>");
    expect_says(refusal_of<EngineOf<ZeroStage<1>>>(comm, true), needs(world * 3 * tensor + 2 * tensor));
    expect_says(refusal_of<EngineOf<ZeroStage<2>>>(comm, true), "Fix: shard more with a higher ZeroStage");
    expect_says(refusal_of<EngineOf<ZeroStage<3>>>(comm, true),
                "Fix: keep state on disk with OffloadTarget<Nvme, OptimizerState, Parameters>, or use more nodes");
    expect_says(refusal_of<EngineOf<ZeroStage<3>, AllOnDisk>>(comm, true, disk.path),
                "Fix: use more ranks, or a smaller model");
}

TEST(EngineMemory, FrozenParametersThatDoNotFitAreRefusedToo) {
    MpiComm comm;
    const auto gib = [](std::uint64_t count) {
        return "needs " + std::to_string(4096 * count) + ".00 GiB of host memory";
    };
    const auto world = static_cast<std::uint64_t>(comm.world());
    expect_says(refusal_of<EngineOf<ZeroStage<0>>>(comm, false), gib(world));
    expect_says(refusal_of<EngineOf<ZeroStage<2>>>(comm, false), gib(world));
    expect_says(refusal_of<EngineOf<ZeroStage<3>>>(comm, false), gib(1));
}

}  // namespace
