// Tiers of a program's own, and tiers made of two: no bit changes, each part is where it says, and what fails on one
// rank is one error on all.

#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <strata/optim/adamw.hpp>
#include <strata/zero/layout.hpp>

#include "../../examples/compressed_tier.hpp"
#include "../support/engine_runs.hpp"
#include "../support/far_device.hpp"

namespace {

using strata::offload::Access;
using namespace strata_test;

/// With one micro-batch and with two, and where a unit and biases are frozen for a while.
template <class Memory, class... Others>
void expect_the_bits_of(MpiComm& comm) {
    const SharedFolder disk{comm};
    Case usual = wide_case(disk.path);
    usual.max_grad_norm = 0.1;
    Case twice = usual, freezes = usual;
    twice.accumulation = 2;
    twice.groups = true;
    freezes.trainable = {
        {1, [](std::string_view name) { return !name.starts_with("unit1") && !name.ends_with("bias"); }},
        {3, [](std::string_view) { return true; }}};
    strata_test::expect_the_bits_of<Memory, Others...>(
        comm, {{"one micro-batch", usual}, {"two micro-batches", twice}, {"freezing", freezes}});
}

using OnBoth = OffloadTarget<Split<Cpu, Nvme, 30>>;

/// An offload policy of a user's own.
struct BesideTheHost {
    using slot = strata::slot::Offload;
    using tier = Cpu;
};

TEST(EngineTiers, ATierOfAUsersOwnChangesNoBit) {
    MpiComm comm;
    expect_the_bits_of<EngineOf<ZeroStage<2>>, EngineOf<ZeroStage<1>, OffloadTarget<Compressed>>,
                       EngineOf<ZeroStage<3>, OffloadTarget<Compressed, OptimizerState, Parameters>>,
                       EngineOf<ZeroStage<1>, BesideTheHost>>(comm);
}

TEST(EngineTiers, ASplitTierChangesNoBit) {
    MpiComm comm;
    expect_the_bits_of<EngineOf<ZeroStage<2>>, EngineOf<ZeroStage<2>, OnBoth>,
                       EngineOf<ZeroStage<1>, OffloadTarget<Split<Device, Cpu, 40>>>>(comm);
    using Half = Precision<Bf16>;
    using Mixed = OffloadTarget<Split<Compressed, Nvme, 30>, OptimizerState, Parameters>;
    expect_the_bits_of<EngineOf<ZeroStage<3>, Half>, EngineOf<ZeroStage<3>, Half, Mixed>>(comm);
}

template <class... Policies>
using Far = strata::zero::Engine<strata::Setup<Policies...>, MpiComm, far::Device>;

TEST(EngineTiers, ASplitBetweenADeviceAndItsHostGivesTheBitsOfTheCpu) {
    MpiComm comm;
    using Both = OffloadTarget<Split<Device, Cpu, 40>, OptimizerState, Parameters>;
    expect_the_bits_of<EngineOf<ZeroStage<2>>, Far<ZeroStage<2>, OffloadTarget<Split<Device, Cpu, 40>>>,
                       Far<ZeroStage<3>, Both>>(comm);
}

TEST(EngineTiers, WhatIsSplitIsCountedWhereItIs) {
    MpiComm comm;
    const SharedFolder disk{comm};
    WideModel model;
    using Mixed = OffloadTarget<Split<Compressed, Nvme, 30>, OptimizerState, Parameters>;
    using Engine = EngineOf<ZeroStage<3>, Precision<Bf16>, Mixed>;
    Engine engine{comm, parameters_of(model), {.bucket_numel = 1'000'000, .tiers = {.nvme_path = disk.path}}};
    const auto bytes = [&](MemoryKind kind, Place place) { return engine.memory().of(kind, place).now; };
    const std::int64_t unit = strata::zero::share_numel(wide_width * (wide_width + 1), comm.world());
    EXPECT_EQ(bytes(MemoryKind::parameters, Place::host), 2 * unit) << "one unit of four: 30 % hold no second one";
    EXPECT_EQ(bytes(MemoryKind::parameters, Place::disk), 3 * 2 * unit);
    const std::int64_t all = 12 * (4 * unit + strata::zero::share_numel(6 * wide_width, comm.world()));
    EXPECT_GE(bytes(MemoryKind::state, Place::disk), all / 100 * 70);
    EXPECT_LE(bytes(MemoryKind::state, Place::disk), all / 100 * 75) << "a bucket is cut at whole lines";
    EXPECT_GT(bytes(MemoryKind::state, Place::host), 0);
    EXPECT_LT(bytes(MemoryKind::state, Place::host), all / 100 * 30 / 2) << "moments that are zero take little room";
    EXPECT_EQ(bytes(MemoryKind::state, Place::device), 0);
}

TEST(EngineTiers, StateMovesInAndOutOfASplit) {
    MpiComm comm;
    const SharedFolder disk{comm};
    const Case settings{.model = make<WideModel>(), .bucket_numel = 1'000'000, .nvme_path = disk.path};
    const Trace whole = train<EngineOf<ZeroStage<2>>>(comm, settings);
    const auto in_two_halves = [&]<class First, class Second>(std::type_identity<First>, std::type_identity<Second>) {
        torch::manual_seed(static_cast<std::uint64_t>(1 + comm.rank()));
        Trace trace;
        const auto model = settings.model();
        First first{comm, parameters_of(*model), options_of<First>(settings)};
        for (int step = 0; step < 2; ++step) train_step(first, *model, comm, settings, step, trace);
        const auto other = settings.model();
        Second second{comm, parameters_of(*other), options_of<Second>(settings)};
        move_state(comm, first, second);
        for (int step = 2; step < settings.steps; ++step) train_step(second, *other, comm, settings, step, trace);
        trace.weights = weights_of(second, *other);
        return trace;
    };
    using Memory = std::type_identity<EngineOf<ZeroStage<2>>>;
    using Parts = std::type_identity<EngineOf<ZeroStage<2>, OnBoth>>;
    EXPECT_TRUE(whole == in_two_halves(Memory{}, Parts{}));
    EXPECT_TRUE(whole == in_two_halves(Parts{}, Memory{}));
}

// ---- gradients between their reduction and the update ------------------------------------------------------------------

/// A tier of a user's own for gradients: vectors, counted by hand.
struct Vectors : Cpu {
    template <class Element>
    class shards;
};
template <class Element>
class Vectors::shards : public Cpu::shards<Element> {
public:
    void make(const strata::zero::TierContext& context, std::span<const std::int64_t> numels) {
        for (const std::int64_t numel : numels) shards_.emplace_back(static_cast<std::size_t>(numel));
        context.meter().add(context.kind(), Place::host, Cpu::shards<Element>::bytes(numels)[Place::host]);
    }
    std::span<Element> open(std::size_t shard, Access access) {
        if (access == Access::write) std::fill(shards_[shard].begin(), shards_[shard].end(), Element(7.0F));
        return shards_[shard];
    }
    [[nodiscard]] std::size_t count() const { return shards_.size(); }

private:
    std::vector<std::vector<Element>> shards_;
};

TEST(EngineTiers, WhereGradientsWaitChangesNoBit) {
    MpiComm comm;
    using Mixed = OffloadTarget<Split<Cpu, Nvme, 30>, OptimizerState, Parameters, Gradients>;
    expect_the_bits_of<EngineOf<ZeroStage<2>>, EngineOf<ZeroStage<2>, OffloadTarget<Cpu, Gradients>>,
                       EngineOf<ZeroStage<2>, OffloadTarget<Nvme, OptimizerState, Gradients>>,
                       EngineOf<ZeroStage<3>, OffloadTarget<Vectors, Gradients>>, EngineOf<ZeroStage<3>, Mixed>>(comm);
    using Half = Precision<Bf16>;
    expect_the_bits_of<EngineOf<ZeroStage<2>, Half>, EngineOf<ZeroStage<3>, Half, OffloadTarget<Nvme, Gradients>>,
                       EngineOf<ZeroStage<2>, Half, OffloadTarget<Vectors, Gradients>>>(comm);
    using Pure = Precision<strata::PureBf16>;
    expect_the_bits_of<EngineOf<ZeroStage<2>, Pure>, EngineOf<ZeroStage<2>, Pure, OffloadTarget<Nvme, Gradients>>>(
        comm);
    using Norms = strata::Optimizer<strata::Lamb>;
    expect_the_bits_of<EngineOf<ZeroStage<3>, Norms>, EngineOf<ZeroStage<3>, Norms, OffloadTarget<Nvme, Gradients>>>(
        comm);
}

TEST(EngineTiers, GradientsOfAFarDeviceWaitOnTheHostWithTheBitsOfTheCpu) {
    MpiComm comm;
    expect_the_bits_of<EngineOf<ZeroStage<2>>, Far<ZeroStage<2>, OffloadTarget<Cpu, OptimizerState, Gradients>>,
                       Far<ZeroStage<3>, OffloadTarget<Nvme, Gradients>>,
                       Far<ZeroStage<2>, OffloadTarget<Split<Device, Cpu, 40>, Gradients>>>(comm);
}

TEST(EngineTiers, SkippedStepsAndLossScaleAreThoseWithoutATierOfGradients) {
    MpiComm comm;
    const SharedFolder disk{comm};
    const auto run = [&]<class AnyEngine>(std::type_identity<AnyEngine>) {
        HalfModel model;
        AnyEngine engine{comm,
                         parameters_of(model),
                         {.loss_scale = {.initial = 1 << 22, .hysteresis = 1}, .tiers = {.nvme_path = disk.path}}};
        std::vector<double> scales;
        std::int64_t skipped = 0;
        for (int step = 0; step < 12; ++step) {
            engine.backward(model.loss(rows_of(comm, step)));
            const auto result = engine.step(1e-2);
            scales.push_back(result.loss_scale);
            skipped += result.skipped ? 1 : 0;
        }
        EXPECT_GT(skipped, 0) << "gradients overflow in fp16";
        EXPECT_GT(engine.step_count(), 0);
        return std::pair{scales, weights_of(engine, model)};
    };
    using Scaled = Precision<strata::Fp16>;
    EXPECT_TRUE(run(std::type_identity<EngineOf<ZeroStage<2>, Scaled>>{}) ==
                run(std::type_identity<EngineOf<ZeroStage<2>, Scaled, OffloadTarget<Nvme, Gradients>>>{}));
}

TEST(EngineTiers, GradientsOnATierCanBeLookedAtAndChanged) {
    MpiComm comm;
    const SharedFolder disk{comm};
    const auto trained = [&]<class AnyEngine>(std::type_identity<AnyEngine>) {
        torch::manual_seed(3);
        WideModel model;
        AnyEngine engine{comm, parameters_of(model), {.bucket_numel = 1'000'000, .tiers = {.nvme_path = disk.path}}};
        std::vector<double> norms;
        for (int step = 0; step < 3; ++step) {
            engine.backward(model.loss(rows_of(comm, step)));
            engine.for_each_gradient([](const strata::zero::GradientPiece& piece) {
                if (piece.parameter.name.ends_with("bias")) at::Tensor{piece.sum}.mul_(0.5);
            });
            for (const double norm : engine.gradient_norms()) norms.push_back(norm);
            engine.step(1e-2);
        }
        return std::pair{norms, weights_of(engine, model)};
    };
    const auto plain = trained(std::type_identity<EngineOf<ZeroStage<2>>>{});
    EXPECT_TRUE(plain == trained(std::type_identity<EngineOf<ZeroStage<2>, OffloadTarget<Nvme, Gradients>>>{}));
    EXPECT_TRUE(plain == trained(std::type_identity<EngineOf<ZeroStage<3>, OffloadTarget<Vectors, Gradients>>>{}));
}

TEST(EngineTiers, GradientsAreCountedWhereTheyAre) {
    MpiComm comm;
    const SharedFolder disk{comm};
    const auto unit = static_cast<std::int64_t>(strata::zero::share_numel(wide_width * (wide_width + 1), comm.world()));
    const std::int64_t all = 4 * unit + strata::zero::share_numel(6 * wide_width, comm.world());
    const auto expect = [&]<class AnyEngine>(std::type_identity<AnyEngine>, std::int64_t host, std::int64_t on_disk) {
        WideModel model;
        AnyEngine engine{comm,
                         parameters_of(model),
                         {.bucket_numel = 1'000'000, .buckets_in_flight = 1, .tiers = {.nvme_path = disk.path}}};
        engine.memory().reset_peaks();
        engine.backward(model.loss(rows_of(comm, 0)));
        engine.step(1e-3);
        const auto peak = [&](Place place) { return engine.memory().of(MemoryKind::gradients, place).peak; };
        EXPECT_EQ(peak(Place::host), host);
        EXPECT_EQ(peak(Place::disk), on_disk);
        const std::int64_t padded =
            strata::zero::share_numel(wide_width * (wide_width + 1), comm.world()) * comm.world();
        EXPECT_LE(peak(Place::device), 2 * 2 * padded) << "a bucket that is reduced, and one that is filled";
        EXPECT_GT(peak(Place::device), 0);
    };
    using Half = Precision<Bf16>;
    expect(std::type_identity<EngineOf<ZeroStage<2>, Half, OffloadTarget<Cpu, Gradients>>>{}, 2 * all, 0);
    expect(std::type_identity<EngineOf<ZeroStage<3>, Half, OffloadTarget<Vectors, Gradients>>>{}, 2 * all, 0);
    expect(std::type_identity<EngineOf<ZeroStage<3>, Half, OffloadTarget<Nvme, Gradients>>>{}, 0, 2 * all);
}

// ---- tiers that go wrong
// ------------------------------------------------------------------------------------------------

bool goes_wrong = false;

/// Its passes fail when they are told to.
struct Flaky : Cpu {
    template <class Kept, std::size_t states, bool has_master>
    class state;
};
template <class Kept, std::size_t states, bool has_master>
class Flaky::state : public Cpu::state<Kept, states, has_master> {
public:
    static constexpr bool fails_alone = true;
    template <class Call>
    void run(Access access, Call&& call) {
        Cpu::state<Kept, states, has_master>::run(access, [&](const auto& run) {
            if (goes_wrong && run.bucket == 2) throw std::runtime_error{"the far shelf is empty"};
            call(run);
        });
    }
};

TEST(EngineTiers, WhatFailsOnOneRankIsReportedByAll) {
    MpiComm comm;
    WideModel model;
    using Engine = EngineOf<ZeroStage<2>, OffloadTarget<Flaky>>;
    Engine engine{comm, parameters_of(model), {.bucket_numel = 1'000'000}};
    const auto step = [&] {
        engine.backward(model.loss(rows_of(comm, 0)));
        engine.step(1e-3);
    };
    step();
    goes_wrong = comm.rank() == comm.world() - 1;
    const auto error = error_of(step);
    goes_wrong = false;
    EXPECT_EQ(error.code(), Errc::rank_failed);
    EXPECT_EQ(error.problem(), "rank " + std::to_string(comm.world() - 1) + " failed: the far shelf is empty");
    EXPECT_EQ(error_of(step).code(), Errc::rank_failed) << "the run is over";
}

/// Loses a bucket.
struct Forgetful : Cpu {
    template <class Kept, std::size_t states, bool has_master>
    class state;
};
template <class Kept, std::size_t states, bool has_master>
class Forgetful::state : public Cpu::state<Kept, states, has_master> {
public:
    template <class Call>
    void run(Access access, Call&& call) {
        Cpu::state<Kept, states, has_master>::run(access, [&](const auto& run) {
            if (run.bucket != 1) call(run);
        });
    }
};

TEST(EngineTiers, APassThatLeavesElementsOutIsRefused) {
    MpiComm comm;
    WideModel model;
    using Engine = EngineOf<ZeroStage<1>, OffloadTarget<Forgetful>>;
    Engine engine{comm, parameters_of(model), {.bucket_numel = 1'000'000}};
    const auto error =
        error_of([&] { engine.read_state([](std::string_view, std::int64_t, std::span<const float>) {}); });
    EXPECT_EQ(error.code(), Errc::wrong_call_order);
    EXPECT_EQ(error.problem(),
              "a pass of the tier that keeps the state gave element 0 of bucket 2 where element 0 of bucket 1 was due");
}

}  // namespace
