// Recompute<Blocks>: with dropout and at every stage a run has the bits of one that keeps its activations.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <strata/comm/mpi_comm.hpp>
#include <strata/core/error.hpp>
#include <strata/policy/recompute.hpp>
#include <strata/policy/setup.hpp>
#include <strata/zero/engine.hpp>
#include <strata/zero/parameters.hpp>
#include <strata/zero/unit.hpp>

#include "../../examples/own_recompute.hpp"
#include "toy_engines.hpp"
#include "toy_model.hpp"

namespace {

using strata::Errc;
using strata::Unit;
using strata::comm::MpiComm;
using strata::zero::MemoryKind;
using strata::zero::parameters_of;
using strata::zero::Place;
using torch::Tensor;
using namespace strata_test;
using Again = strata::Recompute<strata::Blocks>;
using Some = strata::Recompute<strata::EveryOther<2>>;
using Half = Precision<Bf16>;

constexpr int width = 7;

/// Counts its runs and draws random numbers in them.
struct DropoutBlock : Block {
    explicit DropoutBlock(int n) : Block(n) {}
    Tensor forward(const Tensor& x) {
        ++runs;
        const Tensor y = torch::dropout(Block::forward(x), 0.2, is_training());
        return y + torch::dropout(torch::tanh(linear(y)), 0.5, is_training());
    }
    int runs = 0;
};
/// Its linear layer is frozen, and a scale is trained.
struct FrozenDropoutBlock : DropoutBlock {
    explicit FrozenDropoutBlock(int n) : DropoutBlock(n) {
        for (Tensor& parameter : linear->parameters()) parameter.requires_grad_(false);
        scale = register_parameter("scale", torch::full({n}, 1.1));
    }
    Tensor forward(const Tensor& x) { return DropoutBlock::forward(x) * scale; }
    Tensor scale;
};

struct Dropping : ToyModel {
    Dropping() {
        in = register_module("in", torch::nn::Linear(5, width));
        first = register_module("first", std::make_shared<Unit<DropoutBlock>>(width));
        frozen = register_module("frozen", std::make_shared<Unit<FrozenDropoutBlock>>(width));
        last = register_module("last", std::make_shared<Unit<DropoutBlock>>(width));
    }
    Tensor loss(const Tensor& x) override {
        const Tensor h =
            frozen->forward(first->forward(torch::dropout(in(x.to(in->weight.dtype())), 0.1, is_training())));
        return loss_of(last->forward(h), x);
    }
    torch::nn::Linear in{nullptr};
    std::shared_ptr<Unit<DropoutBlock>> first, last;
    std::shared_ptr<Unit<FrozenDropoutBlock>> frozen;
};

/// Random numbers are never seeded again after the start, and differ between ranks: batches and masks of later steps
/// show whether recomputation leaves the generator where it was.
Case usual(int accumulation = 1) {
    return {.model = make<Dropping>(), .accumulation = accumulation, .max_grad_norm = 0.1, .batch = [](int) {
                return torch::randn({4, 5});
            }};
}

TEST(EngineRecompute, ChangesNoBitAtAnyStage) {
    MpiComm comm;
    const SharedFolder disk{comm};
    for (const int accumulation : {1, 2}) {
        Case settings = usual(accumulation);
        settings.nvme_path = disk.path;
        const Trace kept = train<EngineOf<ZeroStage<0>>>(comm, settings);
        EXPECT_TRUE(kept == train<EngineOf<ZeroStage<3>>>(comm, settings));
        EXPECT_TRUE((kept == train<EngineOf<ZeroStage<0>, Again>>(comm, settings)));
        EXPECT_TRUE((kept == train<EngineOf<ZeroStage<1>, Again>>(comm, settings)));
        EXPECT_TRUE((kept == train<EngineOf<ZeroStage<2>, Again>>(comm, settings)));
        EXPECT_TRUE((kept == train<EngineOf<ZeroStage<3>, Again>>(comm, settings)));
        EXPECT_TRUE((kept == train<EngineOf<ZeroStage<3>, Again, AllOnDisk>>(comm, settings)));
        for (const std::int64_t prefetch : {0, 1'000'000}) {
            settings.prefetch_bucket_bytes = prefetch;
            EXPECT_TRUE((kept == train<EngineOf<ZeroStage<3>, Again>>(comm, settings))) << prefetch;
        }
        const Trace half = train<EngineOf<ZeroStage<2>, Half>>(comm, settings);
        EXPECT_TRUE((half == train<EngineOf<ZeroStage<2>, Half, Again>>(comm, settings)));
        EXPECT_TRUE((half == train<EngineOf<ZeroStage<3>, Half, Again>>(comm, settings)));
    }
}

template <class AnyEngine>
void expect_runs(MpiComm& comm, int forward, int training) {
    SCOPED_TRACE(__PRETTY_FUNCTION__);
    Dropping model;
    AnyEngine engine{comm, parameters_of(model)};
    const Tensor loss = model.loss(rows_of(comm, 0));
    EXPECT_EQ(model.last->runs, forward);
    engine.backward(loss);
    EXPECT_EQ(model.last->runs, training);
    EXPECT_EQ(model.frozen->runs, training);
    EXPECT_EQ(engine.memory().of(MemoryKind::gathered, Place::device).now, 0);
    engine.step(1e-2);
    const torch::NoGradGuard no_grad;
    model.loss(rows_of(comm, 1));
    EXPECT_EQ(model.last->runs, training + 1);
}

/// A policy of its own, without Recompute.
struct OnlyTheLast {
    using slot = strata::slot::Activations;
    static constexpr bool any = true;
    static bool recomputes(std::int32_t unit, std::int32_t units) { return unit == units - 1; }
};

// Units that run again stand beside units that keep what they computed, whose random numbers lie between.
TEST(EngineRecompute, SomeUnitsAreRecomputedAndNoBitChanges) {
    MpiComm comm;
    for (const int accumulation : {1, 2}) {
        const Case settings = usual(accumulation);
        const Trace kept = train<EngineOf<ZeroStage<0>>>(comm, settings);
        EXPECT_TRUE((kept == train<EngineOf<ZeroStage<0>, Some>>(comm, settings)));
        EXPECT_TRUE((kept == train<EngineOf<ZeroStage<3>, Some>>(comm, settings)));
        EXPECT_TRUE((kept == train<EngineOf<ZeroStage<2>, strata::Recompute<my::FirstHalf>>>(comm, settings)));
        EXPECT_TRUE((kept == train<EngineOf<ZeroStage<3>, OnlyTheLast>>(comm, settings)));
    }
}

/// How often the three units of Dropping run in a pass, in registration order.
template <class... Policies>
std::vector<int> runs_in_a_pass(MpiComm& comm) {
    Dropping model;
    EngineOf<ZeroStage<0>, Policies...> engine{comm, parameters_of(model)};
    engine.backward(model.loss(rows_of(comm, 0)));
    return {model.first->runs, model.frozen->runs, model.last->runs};
}

TEST(EngineRecompute, RunsAgainTheUnitsThatThePolicyNames) {
    MpiComm comm;
    using strata::EveryOther;
    using strata::Recompute;
    EXPECT_EQ(runs_in_a_pass<Some>(comm), (std::vector{2, 1, 2}));
    EXPECT_EQ(runs_in_a_pass<Recompute<EveryOther<1>>>(comm), (std::vector{2, 2, 2}));
    EXPECT_EQ(runs_in_a_pass<Recompute<EveryOther<3>>>(comm), (std::vector{2, 1, 1}));
    EXPECT_EQ(runs_in_a_pass<Recompute<my::FirstHalf>>(comm), (std::vector{2, 2, 1}));
    EXPECT_EQ(runs_in_a_pass<OnlyTheLast>(comm), (std::vector{1, 1, 2}));
    EXPECT_EQ(runs_in_a_pass<Recompute<strata::Nothing>>(comm), (std::vector{1, 1, 1}));
}

TEST(EngineRecompute, RunsEveryUnitAgainInBackwardAndOnceWithoutGradients) {
    MpiComm comm;
    expect_runs<EngineOf<ZeroStage<3>>>(comm, 1, 1);
    expect_runs<EngineOf<ZeroStage<0>, Again>>(comm, 1, 2);
    expect_runs<EngineOf<ZeroStage<2>, Again>>(comm, 1, 2);
    expect_runs<EngineOf<ZeroStage<3>, Again>>(comm, 1, 2);
}

/// Calls its unit twice in a pass.
struct CalledTwice : ToyModel {
    CalledTwice() {
        in = register_module("in", torch::nn::Linear(5, width));
        block = register_module("block", std::make_shared<Unit<Block>>(width));
    }
    Tensor loss(const Tensor& x) override {
        return loss_of(block->forward(block->forward(in(x.to(in->weight.dtype())))), x);
    }
    torch::nn::Linear in{nullptr};
    std::shared_ptr<Unit<Block>> block;
};

/// A block that is looped over, as in a universal transformer.
struct Looped : CalledTwice {
    Tensor loss(const Tensor& x) override {
        Tensor h = in(x.to(in->weight.dtype()));
        for (int i = 0; i < 5; ++i) h = block->forward(h);
        return loss_of(h, x);
    }
};

/// As direct preference optimization calls a model: two answers, and beside each what the model says without gradients.
struct Preference : CalledTwice {
    Tensor loss(const Tensor& x) override {
        const Tensor chosen = in(x.to(in->weight.dtype())), rejected = chosen.flip(0) * 0.5;
        const auto gain = [&](const Tensor& answer) {
            Tensor reference;
            {
                const torch::NoGradGuard no_grad;
                reference = block->forward(answer);
            }
            return (block->forward(answer) - reference.mul(0.9)).to(torch::kFloat);
        };
        return torch::softplus(gain(rejected) - gain(chosen)).mean();
    }
};

/// A call whose output the loss does not use comes back in no backward pass.
struct PartlyUsed : CalledTwice {
    Tensor loss(const Tensor& x) override {
        const Tensor h = block->forward(in(x.to(in->weight.dtype())));
        const Tensor unused = block->forward(h);
        return loss_of(block->forward(h) + 0 * unused.detach(), x);
    }
};

/// A unit that loops over a unit of its own.
struct LoopingBlock : torch::nn::Module {
    explicit LoopingBlock(int n)
        : inner{register_module("inner", std::make_shared<Unit<Block>>(n))},
          own{register_module("own", torch::nn::Linear(n, n))} {}
    Tensor forward(const Tensor& x) {
        Tensor h = own(x);
        for (int i = 0; i < 3; ++i) h = inner->forward(h);
        return h;
    }
    std::shared_ptr<Unit<Block>> inner;
    torch::nn::Linear own;
};
struct Nested : ToyModel {
    Nested() {
        in = register_module("in", torch::nn::Linear(5, width));
        outer = register_module("outer", std::make_shared<Unit<LoopingBlock>>(width));
    }
    Tensor loss(const Tensor& x) override { return loss_of(outer->forward(in(x.to(in->weight.dtype()))), x); }
    torch::nn::Linear in{nullptr};
    std::shared_ptr<Unit<LoopingBlock>> outer;
};

/// Two units that share a parameter, which is used outside of both, too.
struct TiedBlock : Block {
    TiedBlock(int n, const Tensor& of_both) : Block(n), shared{register_parameter("shared", of_both)} {}
    Tensor forward(const Tensor& x) { return Block::forward(x * shared); }
    Tensor shared;
};
struct Tied : ToyModel {
    Tied() {
        in = register_module("in", torch::nn::Linear(5, width));
        const Tensor shared = torch::rand({width}) + 0.5;
        for (int i = 0; i < 2; ++i) {
            blocks.push_back(register_module("block" + std::to_string(i),
                                             std::make_shared<Unit<TiedBlock>>(width, shared.requires_grad_())));
        }
    }
    Tensor loss(const Tensor& x) override {
        Tensor h = in(x.to(in->weight.dtype())) * blocks[0]->shared;
        for (int i = 0; i < 4; ++i) h = blocks[static_cast<std::size_t>(i % 2)]->forward(h);
        return loss_of(h / blocks[0]->shared, x);
    }
    torch::nn::Linear in{nullptr};
    std::vector<std::shared_ptr<Unit<TiedBlock>>> blocks;
};

/// Its one layer may go unused, on this rank and in this pass.
struct SkippingBlock : LoopingBlock {
    using LoopingBlock::LoopingBlock;
    Tensor forward(const Tensor& x) { return uses_inner ? inner->forward(own(x)) : own(x); }
    bool uses_inner = true;
};
struct Skipping : ToyModel {
    Skipping() {
        in = register_module("in", torch::nn::Linear(5, width));
        block = register_module("block", std::make_shared<Unit<SkippingBlock>>(width));
    }
    Tensor loss(const Tensor& x) override {
        block->uses_inner = MpiComm{}.rank() != 0;
        const Tensor h = in(x.to(in->weight.dtype()));
        return loss_of(block->forward(h) + block->forward(h.flip(0)), x);
    }
    torch::nn::Linear in{nullptr};
    std::shared_ptr<Unit<SkippingBlock>> block;
};

TEST(EngineRecompute, AUnitMayBeCalledSeveralTimesInAPass) {
    MpiComm comm;
    const std::pair<const char*, MakeModel> models[] = {
        {"called twice", make<CalledTwice>()}, {"looped", make<Looped>()}, {"preference", make<Preference>()},
        {"partly used", make<PartlyUsed>()},   {"nested", make<Nested>()}, {"tied", make<Tied>()},
        {"skipping", make<Skipping>()}};
    for (const auto& [name, model] : models) {
        SCOPED_TRACE(name);
        for (const int accumulation : {1, 2}) {
            Case settings{.model = model, .accumulation = accumulation, .max_grad_norm = 0.1};
            const Trace kept = train<EngineOf<ZeroStage<0>>>(comm, settings);
            for (const bool overlap : {true, false}) {
                settings.overlap = overlap;
                EXPECT_TRUE((kept == train<EngineOf<ZeroStage<0>, Again>>(comm, settings)));
                EXPECT_TRUE((kept == train<EngineOf<ZeroStage<1>, Again>>(comm, settings)));
                EXPECT_TRUE((kept == train<EngineOf<ZeroStage<2>, Again>>(comm, settings)));
                EXPECT_TRUE((kept == train<EngineOf<ZeroStage<3>, Again>>(comm, settings)));
            }
            EXPECT_TRUE((kept == train<EngineOf<ZeroStage<3>, Some>>(comm, settings)));
            const Trace half = train<EngineOf<ZeroStage<2>, Half>>(comm, settings);
            EXPECT_TRUE((half == train<EngineOf<ZeroStage<2>, Half, Again>>(comm, settings)));
            EXPECT_TRUE((half == train<EngineOf<ZeroStage<3>, Half, Again>>(comm, settings)));
        }
    }
}

/// Uses a parameter of another module, which it has not registered.
struct BorrowingBlock : Block {
    BorrowingBlock(int n, Tensor lent) : Block(n), borrowed{std::move(lent)} {}
    Tensor forward(const Tensor& x) { return Block::forward(x * borrowed); }
    Tensor borrowed;
};
struct Borrowing : ToyModel {
    Borrowing() {
        in = register_module("in", torch::nn::Linear(5, width));
        block = register_module("block", std::make_shared<Unit<BorrowingBlock>>(width, in->bias));
    }
    Tensor loss(const Tensor& x) override { return loss_of(block->forward(block->forward(in(x))), x); }
    torch::nn::Linear in{nullptr};
    std::shared_ptr<Unit<BorrowingBlock>> block;
};

TEST(EngineRecompute, AParameterThatAUnitUsesWithoutRegisteringItIsNamed) {
    MpiComm comm;
    Borrowing model;
    EngineOf<ZeroStage<2>, Again> engine{comm, parameters_of(model), {.bucket_numel = 7}};
    const Tensor loss = model.loss(rows_of(comm, 0));
    const auto error = error_of([&] { engine.backward(loss); });
    EXPECT_EQ(error.code(), Errc::bad_parameter);
    EXPECT_NE(error.problem().find("in.bias got a second gradient"), std::string::npos) << error.what();
    EXPECT_NE(std::string{error.what()}.find("register it"), std::string::npos) << error.what();
}

TEST(EngineRecompute, AfterTheEngineUnitsKeepTheirActivationsAgain) {
    MpiComm comm;
    Dropping model;
    {
        EngineOf<ZeroStage<0>, Again> engine{comm, parameters_of(model)};
        engine.backward(model.loss(rows_of(comm, 0)));
        engine.step(1e-2);
    }
    const int before = model.last->runs;
    model.loss(rows_of(comm, 1)).backward();
    EXPECT_EQ(model.last->runs, before + 1);
}

}  // namespace
