// What an engine can do, mixed: weights that are written and frozen in turns, units that look through others, passes that fail.

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "../support/engine_runs.hpp"

namespace {

using namespace strata_test;

using Disk = EngineOf<ZeroStage<3>, AllOnDisk>;

/// Steps between which weights, trained and frozen, are written, and others are trained.
template <class AnyEngine>
Trace written_and_frozen_in_turns(MpiComm& comm, const std::filesystem::path& disk) {
    torch::manual_seed(1);
    UnitModel model;
    model.first->linear->bias.requires_grad_(false);
    const Case settings{.nvme_path = disk};
    AnyEngine engine{comm, parameters_of(model), options_of<AnyEngine>(settings)};
    Trace trace;
    const auto write = [&](const auto& change) {
        engine.with_whole_model([&] {
            const torch::NoGradGuard no_grad;
            change();
        });
    };
    train_step(engine, model, comm, settings, 0, trace);
    write([&] {
        model.first->linear->bias.fill_(0.25);
        model.second->linear->weight.mul_(0.5);
        model.gain.add_(0.1);
    });
    train_step(engine, model, comm, settings, 1, trace);
    engine.set_trainable([](std::string_view name) {
        return name.find("bias") != name.npos || name == "gain" || name.starts_with("first");
    });
    train_step(engine, model, comm, settings, 2, trace);
    write([&] {
        model.second->linear->weight.mul_(0.5);
        model.first->linear->bias.mul_(2);
        model.unused.fill_(3);
    });
    train_step(engine, model, comm, settings, 3, trace);
    engine.set_trainable([](std::string_view) { return true; });
    write([&] { model.second->linear->weight.add_(0.5); });
    train_step(engine, model, comm, settings, 4, trace);
    trace.weights = weights_of(engine, model);
    return trace;
}

TEST(EngineMixtures, WhatIsWrittenAndFrozenInTurnsHasTheSameBitsEverywhere) {
    MpiComm comm;
    const SharedFolder disk{comm};
    const Trace two = written_and_frozen_in_turns<Two>(comm, disk.path);
    EXPECT_TRUE(two == written_and_frozen_in_turns<Three>(comm, disk.path));
    EXPECT_TRUE(two == written_and_frozen_in_turns<Disk>(comm, disk.path));
    EXPECT_TRUE(two == written_and_frozen_in_turns<EngineOf<ZeroStage<0>>>(comm, disk.path));
}

/// A unit that looks through another one without gradients, inside of its own forward.
struct LookingBlock : Block {
    using Block::Block;
    Tensor forward(const Tensor& x) {
        Tensor seen = x;
        if (other) {
            const torch::NoGradGuard no_grad;
            seen = other->forward(x);
        }
        return Block::forward(x) + seen;
    }
    std::shared_ptr<Unit<LookingBlock>> other;
};
struct LookingModel : ToyModel {
    LookingModel() {
        in = register_module("in", torch::nn::Linear(5, 7));
        for (int i = 0; i < 3; ++i)
            row.push_back(register_module("block" + std::to_string(i), std::make_shared<Unit<LookingBlock>>(7)));
        row[0]->other = row[1]->other = row[2];
    }
    Tensor loss(const Tensor& x) override {
        Tensor h = in(x);
        for (const auto& block : row) h = block->forward(h);
        return loss_of(h, x);
    }
    torch::nn::Linear in{nullptr};
    std::vector<std::shared_ptr<Unit<LookingBlock>>> row;
};

TEST(EngineMixtures, AUnitMayLookThroughAnotherInsideOfItsForward) {
    MpiComm comm;
    for (const std::int64_t prefetch : {-1, 0, 1'000'000}) {
        const Case settings{.model = make<LookingModel>(), .prefetch_bucket_bytes = prefetch};
        const Trace two = train<Two>(comm, settings);
        EXPECT_TRUE(two == train<Three>(comm, settings)) << prefetch;
        EXPECT_TRUE(two == (train<EngineOf<ZeroStage<3>, Recompute<Blocks>>>(comm, settings))) << prefetch;
    }
}

TEST(EngineMixtures, InferenceModeBetweenStepsChangesNothing) {
    MpiComm comm;
    const SharedFolder disk{comm};
    Case settings{.nvme_path = disk.path};
    const Trace plain = train<Two>(comm, settings);
    settings.before_backward = [](ToyModel& model, int) {
        const c10::InferenceMode guard;
        static_cast<void>(model.loss(torch::ones({2, 5})));
    };
    EXPECT_TRUE(plain == train<Two>(comm, settings));
    EXPECT_TRUE(plain == train<Three>(comm, settings));
    EXPECT_TRUE(plain == train<Disk>(comm, settings));
}

TEST(EngineMixtures, BackwardDoesNotAskWhetherItsCallerRecords) {
    MpiComm comm;
    const auto weights = [&](bool records) {
        torch::manual_seed(1);
        UnitModel model;
        Two engine{comm, parameters_of(model), {.bucket_numel = 60, .gradient_accumulation_steps = 2}};
        for (int i = 0; i < 2; ++i) {
            const Tensor loss = model.loss(rows_of(comm, i));
            const at::AutoGradMode mode{records};
            engine.backward(loss);
        }
        engine.step(1e-2);
        return weights_of(engine, model);
    };
    EXPECT_EQ(weights(false), weights(true));
}

TEST(EngineMixtures, ALossThatIsNotFiniteInAnyMicroBatchLeavesNothingBehind) {
    MpiComm comm;
    const auto weights = [&]<class AnyEngine>(std::type_identity<AnyEngine>, bool spoils) {
        torch::manual_seed(1);
        UnitModel model;
        AnyEngine engine{comm,
                         parameters_of(model),
                         {.bucket_numel = 60, .gradient_accumulation_steps = 3, .on_non_finite = OnNonFinite::skip}};
        const auto step = [&](int number, bool spoilt) {
            for (int i = 0; i < 3; ++i) {
                const Tensor loss = model.loss(rows_of(comm, 3 * number + i));
                engine.backward(spoilt && i == 1 && comm.rank() == 0 ? loss * NAN : loss);
            }
            return engine.step(1e-2).skipped;
        };
        EXPECT_FALSE(step(0, false));
        if (spoils) {
            EXPECT_TRUE(step(1, true));
        }
        EXPECT_FALSE(step(1, false) || step(2, false));
        return weights_of(engine, model);
    };
    const auto expected = weights(std::type_identity<Two>{}, false);
    EXPECT_EQ(weights(std::type_identity<EngineOf<ZeroStage<1>>>{}, true), expected);
    EXPECT_EQ(weights(std::type_identity<Two>{}, true), expected);
    EXPECT_EQ(weights(std::type_identity<Three>{}, true), expected);
}

TEST(EngineMixtures, AChangeThatIsRefusedChangesNothing) {
    MpiComm comm;
    UnitModel model;
    Three engine{comm, parameters_of(model)};
    const auto nothing = error_of([&] { engine.set_trainable([](std::string_view) { return false; }); });
    EXPECT_EQ(nothing.code(), Errc::no_parameters) << nothing.what();
    engine.with_whole_model([&] {
        const auto inside = error_of([&] { engine.set_trainable([](std::string_view) { return true; }); });
        EXPECT_EQ(inside.code(), Errc::wrong_call_order) << inside.what();
    });
    engine.backward(model.loss(rows_of(comm, 0)));
    EXPECT_EQ(engine.step(1e-2).step, 1);
}

}  // namespace
