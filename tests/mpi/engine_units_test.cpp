// ZeroStage<3>: whatever a model does with its units, the bits are those of stage 2, and units are whole only in use.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "../support/engine_runs.hpp"

namespace {

using namespace strata_test;

constexpr int width = 7;

/// Blocks between two layers that are no units.
struct Chain : ToyModel {
    Chain() {
        in = register_module("in", torch::nn::Linear(5, width));
        out = register_module("out", torch::nn::Linear(width, 3));
    }
    virtual Tensor blocks(const Tensor& h) = 0;
    Tensor loss(const Tensor& x) override {
        const Tensor h = in(x.to(in->weight.dtype()));
        if (at_input && h.requires_grad()) h.register_hook([this](const Tensor&) { at_input(); });
        return loss_of(out(blocks(h)), x);
    }
    torch::nn::Linear in{nullptr}, out{nullptr};
    std::function<void()> at_input;  ///< called when backward has left the blocks
};

/// `count` blocks, one after the other.
template <class Inner>
struct Row : Chain {
    explicit Row(int count = 3) {
        for (int i = 0; i < count; ++i)
            row.push_back(register_module("block" + std::to_string(i), std::make_shared<Unit<Inner>>(width)));
    }
    Tensor blocks(const Tensor& h) override {
        Tensor y = h;
        for (const auto& block : row) y = block->forward(y);
        return y;
    }
    std::vector<std::shared_ptr<Unit<Inner>>> row;
};

struct CalledTwice : Row<Block> {
    Tensor blocks(const Tensor& h) override {
        return row[2]->forward(row[0]->forward(row[1]->forward(row[0]->forward(h))));
    }
};

struct SpareBlock : Block {
    explicit SpareBlock(int n) : Block(n) { spare = register_parameter("spare", torch::full({n}, 1.5)); }
    Tensor forward(const Tensor& x) { return uses_spare ? Block::forward(x) * spare : Block::forward(x); }
    bool uses_spare = false;
    Tensor spare;
};

struct TiedBlock : Block {
    explicit TiedBlock(int n) : Block(n) { tied = register_parameter("tied", linear->weight); }
    Tensor forward(const Tensor& x) { return Block::forward(x).matmul(tied); }
    Tensor tied;
};

/// Two units that share a tensor.
struct ScaledBlock : Block {
    ScaledBlock(int n, Tensor scale_) : Block(n) { scale = register_parameter("scale", std::move(scale_)); }
    Tensor forward(const Tensor& x) { return Block::forward(x) * scale; }
    Tensor scale;
};
struct SharedBetweenUnits : Chain {
    SharedBetweenUnits() {
        const Tensor scale = torch::full({width}, 1.1).requires_grad_();
        first = register_module("first", std::make_shared<Unit<ScaledBlock>>(width, scale));
        second = register_module("second", std::make_shared<Unit<ScaledBlock>>(width, scale));
    }
    Tensor blocks(const Tensor& h) override { return second->forward(first->forward(h)); }
    std::shared_ptr<Unit<ScaledBlock>> first, second;
};

/// A frozen layer and a trained one of low rank beside it. Backward makes the trained gradients first, and needs the
/// frozen weights after that.
struct LoraBlock : torch::nn::Module {
    explicit LoraBlock(int n) {
        base = register_module("base", torch::nn::Linear(n, n));
        for (Tensor& parameter : base->parameters()) parameter.requires_grad_(false);
        down = register_parameter("down", torch::randn({n, 2}) * 0.3);
        up = register_parameter("up", torch::randn({2, n}) * 0.3);
    }
    Tensor forward(const Tensor& x) {
        const Tensor kept = base(x);
        return x + torch::tanh(kept + x.matmul(down).matmul(up));
    }
    torch::nn::Linear base{nullptr};
    Tensor down, up;
};
struct FrozenBlock : Block {
    explicit FrozenBlock(int n) : Block(n) {
        for (Tensor& parameter : parameters()) parameter.requires_grad_(false);
    }
};
/// Adapters with a frozen unit between them and one in front, which backward never enters.
struct Adapters : Chain {
    Adapters() {
        front = register_module("front", std::make_shared<Unit<FrozenBlock>>(5));
        first = register_module("first", std::make_shared<Unit<LoraBlock>>(width));
        frozen = register_module("frozen", std::make_shared<Unit<FrozenBlock>>(width));
        second = register_module("second", std::make_shared<Unit<LoraBlock>>(width));
    }
    Tensor loss(const Tensor& x) override {
        return Chain::loss(front->forward(x.to(in->weight.dtype())).to(torch::kFloat));
    }
    Tensor blocks(const Tensor& h) override { return second->forward(frozen->forward(first->forward(h))); }
    std::shared_ptr<Unit<FrozenBlock>> front, frozen;
    std::shared_ptr<Unit<LoraBlock>> first, second;
};

/// Several inputs, some of which go through as they are, in a struct of the model's own; a default argument; every unit
/// uses `shared` several times, and so does the model outside of them.
struct Streams {
    Tensor image;
    std::vector<Tensor> texts;
};
template <class Self, class Call>
requires std::same_as<std::remove_const_t<Self>, Streams>
void visit_tensors(Self& streams, Call&& call) {
    call(streams.image);
    call(streams.texts);
}
struct StreamBlock : torch::nn::Module {
    explicit StreamBlock(int n) : linear{register_module("linear", torch::nn::Linear(n, n))} {}
    Streams forward(const Streams& in, const Tensor& shared, double factor = 0.5) const {
        torch::nn::Linear layer = linear;
        const Tensor image = in.image + torch::tanh(layer(in.image * shared)) * shared * factor;
        return {image, {in.texts[0], layer(in.texts[1]) + image}};
    }
    torch::nn::Linear linear;
};
struct TwoStreams : Chain {
    TwoStreams() {
        for (int i = 0; i < 3; ++i)
            row.push_back(register_module("block" + std::to_string(i), std::make_shared<Unit<StreamBlock>>(width)));
    }
    Tensor blocks(const Tensor& h) override {
        const Tensor shared = torch::sigmoid(h);
        Streams streams{h * shared, {h.sin(), h.cos()}};
        streams = row[0]->forward(streams, shared);
        streams = row[1]->forward(streams, shared, 0.7);
        streams = row[2]->forward(streams, shared);
        return streams.image + streams.texts[0] * shared + streams.texts[1];
    }
    std::vector<std::shared_ptr<Unit<StreamBlock>>> row;
};

struct InSequence : Chain {
    InSequence() {
        sequence = register_module("sequence", torch::nn::Sequential(Unit<Block>(width), torch::nn::Tanh(),
                                                                     Unit<torch::nn::LinearImpl>(width, width)));
    }
    Tensor blocks(const Tensor& h) override { return sequence->forward(h); }
    torch::nn::Sequential sequence{nullptr};
};

/// Two models with the same values.
template <class AnyModel>
std::pair<std::shared_ptr<AnyModel>, std::shared_ptr<AnyModel>> twins() {
    torch::manual_seed(1);
    auto first = std::make_shared<AnyModel>();
    torch::manual_seed(1);
    return {std::move(first), std::make_shared<AnyModel>()};
}

struct Kind {
    std::string name;
    MakeModel make;
};
std::vector<Kind> kinds(const MpiComm& comm) {
    const auto spare = [rank = comm.rank()](bool on_first_rank) {
        return [=] {
            auto model = std::make_shared<Row<SpareBlock>>();
            model->row[1]->uses_spare = on_first_rank && rank == 0;
            return model;
        };
    };
    return {{"plain", make<Row<Block>>()},
            {"called twice", make<CalledTwice>()},
            {"unused parameters", spare(false)},
            {"a parameter that one rank uses", spare(true)},
            {"tied weights", make<Row<TiedBlock>>()},
            {"shared between units", make<SharedBetweenUnits>()},
            {"adapters", make<Adapters>()},
            {"streams", make<TwoStreams>()},
            {"sequence", make<InSequence>()}};
}

TEST(EngineUnits, WhateverAModelDoesWithUnitsTheBitsAreThoseOfStageTwo) {
    MpiComm comm;
    for (const Kind& kind : kinds(comm)) {
        const Case usual{.model = kind.make, .max_grad_norm = 0.1};
        expect_bits_of_stage_two(comm, {kind.name, usual}, {-1, 0, 200, 1'000'000}, {0, 1, 130});
        using Half = Precision<Bf16>;
        EXPECT_TRUE(
            (train<EngineOf<ZeroStage<2>, Half>>(comm, usual) == train<EngineOf<ZeroStage<3>, Half>>(comm, usual)))
            << kind.name;
    }
}

TEST(EngineUnits, AUnitIsWholeOnlyWhileItIsInUse) {
    MpiComm comm;
    if (comm.world() == 1) GTEST_SKIP() << "a world of one keeps its units whole";
    for (const Kind& kind : kinds(comm)) {
        const auto model = std::dynamic_pointer_cast<Chain>(kind.make());
        Three engine{comm, parameters_of(*model), {.prefetch_bucket_bytes = 0}};
        const auto gathered = [&] { return engine.memory().of(MemoryKind::gathered, Place::device).now; };
        std::vector<std::int64_t> seen;
        model->at_input = [&] { seen.push_back(gathered()); };
        for (int step = 0; step < 3; ++step) {
            engine.backward(model->loss(rows_of(comm, step)));
            EXPECT_EQ(gathered(), 0) << kind.name << " after backward";
            engine.step(1e-2);
        }
        EXPECT_EQ(seen, (std::vector<std::int64_t>{0, 0, 0})) << kind.name << " when backward had left the units";
        const torch::NoGradGuard no_grad;
        model->loss(rows_of(comm, 0));
        EXPECT_EQ(gathered(), 0) << kind.name;
    }
}

TEST(EngineUnits, ATensorOfTwoUnitsStaysWhole) {
    MpiComm comm;
    SharedBetweenUnits model;
    Three engine{comm, parameters_of(model)};
    engine.backward(model.loss(rows_of(comm, 0)));
    engine.step(1e-2);
    EXPECT_TRUE(model.first->scale.is_same(model.second->scale));
    EXPECT_NE(model.first->scale.sum().item<float>(), 1.1F * width);
}

TEST(EngineUnits, FrozenParametersAreShardedAndKeepTheValuesOfRankZero) {
    MpiComm comm;
    torch::manual_seed(1);
    const auto expected = std::make_shared<Adapters>();
    torch::manual_seed(static_cast<std::uint64_t>(1 + comm.rank()));
    const auto model = std::make_shared<Adapters>();
    Three engine{comm, parameters_of(*model), {.bucket_numel = 1'000'000}};
    for (int step = 0; step < 2; ++step) {
        engine.backward(model->loss(rows_of(comm, step)));
        engine.step(1e-2);
    }
    engine.with_whole_model([&] {
        EXPECT_TRUE(torch::equal(model->frozen->linear->weight, expected->frozen->linear->weight));
        EXPECT_TRUE(torch::equal(model->first->base->weight, expected->first->base->weight));
        EXPECT_TRUE(torch::equal(model->front->linear->bias, expected->front->linear->bias));
        EXPECT_FALSE(torch::equal(model->first->down, expected->first->down));
    });
    if (comm.world() == 1) return;  // units stay whole
    const auto share = [&](std::int64_t numel) { return (numel + comm.world() - 1) / comm.world(); };
    const std::int64_t frozen = 2 * share(7 * 7 + 7) + share(7 * 7 + 7) + share(5 * 5 + 5);
    const std::int64_t trained = 2 * share(7 * 2 + 2 * 7);
    const std::int64_t outside = comm.world() * share(5 * 7 + 7 + 7 * 3 + 3);
    EXPECT_EQ(engine.memory().of(MemoryKind::parameters, Place::device).now, 4 * (trained + outside + frozen));
}

TEST(EngineUnits, ForwardPassesBetweenTheStepsChangeNothing) {
    MpiComm comm;
    for (const Kind& kind : kinds(comm)) {
        const Trace without = train<Three>(comm, {.model = kind.make});
        Case settings{.model = kind.make};
        for (const bool gradients : {false, true}) {
            settings.before_backward = [&](ToyModel& model, int step) {
                const at::AutoGradMode mode{gradients};
                for (int i = 0; i < step; ++i) model.loss(rows_of(comm, 1000 + step, 1 + comm.rank()));
            };
            EXPECT_TRUE(without == train<Three>(comm, settings)) << kind.name << (gradients ? ", with gradients" : "");
        }
    }
}

TEST(EngineUnits, ForwardPassesSeeTheWeightsOfTheLastStep) {
    // Two passes in a row teach the engine that the first unit follows the last: it is whole when the weights change.
    MpiComm comm;
    const auto [sharded, whole] = twins<Row<Block>>();
    Three three{comm, parameters_of(*sharded)};
    Two two{comm, parameters_of(*whole)};
    const auto evaluate = [&](ToyModel& model) {
        const torch::NoGradGuard no_grad;
        double loss = 0;
        for (int i = 0; i < 2; ++i) loss += model.loss(rows_of(comm, 50)).item<double>();
        return loss;
    };
    for (int step = 0; step < 3; ++step) {
        three.backward(sharded->loss(rows_of(comm, step)));
        two.backward(whole->loss(rows_of(comm, step)));
        if (step == 1) evaluate(*sharded);  // between backward and step, while gradients wait
        if (step == 2) three.hold_unit_of(sharded->row[1]->linear->weight);
        three.step(1e-1);
        two.step(1e-1);
        EXPECT_EQ(evaluate(*sharded), evaluate(*whole)) << "after step " << step;
    }
    const auto restore = [](std::string_view, std::int64_t, std::span<float> values) {
        std::fill(values.begin(), values.end(), 0.01F);
    };
    three.write_state(restore);
    two.write_state(restore);
    EXPECT_EQ(evaluate(*sharded), evaluate(*whole)) << "after a restore";
}

TEST(EngineUnits, BatchesOfRanksMayDiffer) {
    MpiComm comm;
    Case settings;
    settings.batch = [&](int index) { return rows_of(comm, index).slice(0, 0, 1 + comm.rank()); };
    EXPECT_TRUE(train<Two>(comm, settings) == train<Three>(comm, settings));
}

TEST(EngineUnits, AWholeModelIsUsedByOneRankAlone) {
    MpiComm comm;
    const auto [model, undisturbed] = twins<Adapters>();
    Three engine{comm, parameters_of(*model)};
    Three other{comm, parameters_of(*undisturbed)};
    Trace trace, expected;
    train_step(engine, *model, comm, {}, 0, trace);
    train_step(other, *undisturbed, comm, {}, 0, expected);

    const bool alone = comm.rank() == comm.world() - 1;
    const auto value = [&] {
        const torch::NoGradGuard no_grad;
        return model->loss(rows_of(comm, 5)).item<double>();
    };
    const double together = value();
    double mine = 0;
    engine.with_whole_model([&] {
        if (alone) mine = value() + value();
    });
    EXPECT_EQ(mine, alone ? 2 * together : 0);
    EXPECT_THROW(engine.with_whole_model([] { throw std::runtime_error{"the disk of pictures is full"}; }),
                 std::runtime_error);
    if (comm.world() > 1) {
        EXPECT_EQ(engine.memory().of(MemoryKind::gathered, Place::device).now, 0);
    }
    for (int step = 1; step < 3; ++step) {
        train_step(engine, *model, comm, {}, step, trace);
        train_step(other, *undisturbed, comm, {}, step, expected);
    }
    EXPECT_EQ(trace, expected);
}

template <class AnyEngine>
void expect_nobody_waits_for_a_body_that_threw() {
    MpiComm comm;
    UnitModel model;
    AnyEngine engine{comm, parameters_of(model)};
    const bool fails = comm.rank() == comm.world() - 1;
    const auto body = [&] {
        if (fails) throw std::runtime_error{"the disk of pictures is full"};
    };
    if (fails) {
        EXPECT_THROW(engine.with_whole_model(body), std::runtime_error);
    } else {
        EXPECT_NO_THROW(engine.with_whole_model(body));
    }
    const auto write_alone = [&] {
        const torch::NoGradGuard no_grad;
        if (fails) model.in->weight.fill_(1);
    };
    if (comm.world() > 1) {
        const auto error = error_of([&] { engine.with_whole_model(write_alone); });
        EXPECT_NE(error.problem().find("in.weight was written on rank " + std::to_string(comm.world() - 1)),
                  std::string::npos);
    }
}
TEST(EngineUnits, NobodyWaitsForARankWhoseUseOfTheWholeModelThrew) {
    expect_nobody_waits_for_a_body_that_threw<EngineOf<ZeroStage<0>>>();
    expect_nobody_waits_for_a_body_that_threw<EngineOf<ZeroStage<3>>>();
}

TEST(EngineUnits, WhatAllRanksWriteToTheWholeModelIsInTheirShards) {
    MpiComm comm;
    UnitModel model;
    EngineOf<ZeroStage<3>, Precision<Bf16>> engine{comm, parameters_of(model)};
    engine.with_whole_model([&] {
        const torch::NoGradGuard no_grad;
        model.first->linear->weight.fill_(0.5);
    });
    engine.with_whole_model([&] {
        EXPECT_TRUE(torch::equal(model.first->linear->weight, torch::full_like(model.first->linear->weight, 0.5)));
    });
    bool found = false;
    const auto& layout = engine.layout();
    const auto written = std::find_if(layout.begin(), layout.end(),
                                      [](const auto& parameter) { return parameter.name == "first.linear.weight"; });
    ASSERT_NE(written, layout.end());
    engine.read_state([&](std::string_view kind, std::int64_t begin, std::span<const float> values) {
        for (std::size_t i = 0; i < values.size(); ++i) {
            const auto element = begin + static_cast<std::int64_t>(i);
            if (kind != "weight" || element < written->begin || element >= written->begin + 49) continue;
            EXPECT_EQ(values[i], 0.5F) << "the master of element " << element;
            found = true;
        }
    });
    EXPECT_TRUE(found || comm.world() > 1);
}

TEST(EngineUnits, HoldingOneUnitAfterTheOtherShowsAllParameters) {
    MpiComm comm;
    const auto model = std::make_shared<Adapters>();
    Three engine{comm, parameters_of(*model)};
    Trace trace;
    train_step(engine, *model, comm, {}, 0, trace);
    const std::vector<float> whole = weights_of(engine, *model);
    engine.memory().reset_peaks();
    std::vector<float> walked;
    for (const auto& parameter : model->parameters()) {
        engine.hold_unit_of(parameter);
        const Tensor values = parameter.detach().contiguous();
        walked.insert(walked.end(), values.data_ptr<float>(), values.data_ptr<float>() + values.numel());
    }
    engine.drop_units();
    EXPECT_EQ(walked, whole);
    if (comm.world() == 1) return;
    const auto padded = [&](std::int64_t numel) { return (numel + comm.world() - 1) / comm.world() * comm.world(); };
    const auto gathered = engine.memory().of(MemoryKind::gathered, Place::device);
    EXPECT_EQ(gathered.peak, 4 * (padded(7 * 7 + 7) + padded(7 * 2 + 2 * 7))) << "of the largest unit";
    EXPECT_EQ(gathered.now, 0);
}

TEST(EngineUnits, AParameterUsedOutsideOfItsUnitIsAnErrorAndNoCrash) {
    MpiComm comm;
    if (comm.world() == 1) GTEST_SKIP() << "a world of one keeps its units whole";
    Row<Block> model;
    Three engine{comm, parameters_of(model)};
    const Tensor& weight = model.row[1]->linear->weight;
    const Tensor h = torch::ones({4, width});
    const std::vector<std::pair<std::string, std::function<Tensor(const Tensor&)>>> uses{
        {"matmul", [&](const Tensor& y) { return y.matmul(weight); }},
        {"linear", [&](const Tensor& y) { return torch::nn::functional::linear(y, weight); }},
        {"mul", [&](const Tensor& y) { return y.unsqueeze(1) * weight; }},
        {"add", [&](const Tensor& y) { return y + weight[0]; }},
        {"norm", [&](const Tensor& y) { return y + weight.norm(); }},
        {"copy", [&](const Tensor& y) { return y + weight.detach().clone().sum(); }},
    };
    for (const auto& [name, use] : uses) EXPECT_THROW(use(h).sum().item(), c10::Error) << name;
    // A forward pass in a whole model succeeds; backward then meets the use before it enters the unit.
    for (const auto& [name, use] : uses) {
        if (name == "copy" || name == "add") continue;  // their backward does not read the weight
        Tensor loss;
        engine.with_whole_model([&] { loss = use(model.blocks(h)).sum(); });
        const auto error = error_of([&] { engine.backward(loss); });
        EXPECT_EQ(error.code(), Errc::bad_parameter) << name << ": " << error.what();
    }
    Trace trace;
    train_step(engine, model, comm, {}, 0, trace);  // and training can go on
    EXPECT_EQ(engine.step_count(), 1);
}

TEST(EngineUnits, CallingTheBlockInsteadOfTheUnitIsAnError) {
    MpiComm comm;
    if (comm.world() == 1) GTEST_SKIP() << "a world of one keeps its units whole";
    Row<Block> model;
    Three engine{comm, parameters_of(model)};
    Block& block = *model.row[0];
    EXPECT_THROW(block.forward(torch::ones({1, width})), c10::Error);
}

TEST(EngineUnits, RanksThatCallUnitsInAnotherOrderAreAllTold) {
    MpiComm comm;
    if (comm.world() == 1) GTEST_SKIP() << "one rank cannot differ from itself";
    ASSERT_EQ(comm.transport(), "shared memory");
    Row<Block> model;
    Three engine{comm, parameters_of(model)};
    const bool last = comm.rank() == comm.world() - 1;
    const auto error = error_of([&] {
        const torch::NoGradGuard no_grad;
        const Tensor h = torch::ones({1, width});
        model.row[last ? 0 : 1]->forward(model.row[last ? 1 : 0]->forward(h));
    });
    EXPECT_EQ(error.code(), Errc::rank_mismatch) << error.what();
    EXPECT_NE(error.problem().find("the unit block0"), std::string::npos) << error.what();
    EXPECT_NE(error.problem().find("the unit block1"), std::string::npos) << error.what();
}

struct FailingBlock : Block {
    using Block::Block;
    Tensor forward(const Tensor& x) {
        const Tensor y = Block::forward(x);
        if (fails) throw std::runtime_error{"the picture is too large"};
        return y;
    }
    bool fails = false;
};

TEST(EngineUnits, AForwardThatThrewLeavesNothingBehind) {
    MpiComm comm;
    const Trace undisturbed = train<Three>(comm, {.model = make<Row<FailingBlock>>()});
    for (const std::size_t failing : {0, 1, 2}) {
        Case settings{.model = make<Row<FailingBlock>>()};
        settings.before_backward = [&](ToyModel& model, int step) {
            if (step == 3) return;
            auto& block = *dynamic_cast<Row<FailingBlock>&>(model).row[failing];
            block.fails = true;
            EXPECT_THROW(model.loss(rows_of(comm, step)), std::runtime_error);
            block.fails = false;
        };
        EXPECT_TRUE(undisturbed == train<Three>(comm, settings)) << failing;
    }
}

TEST(EngineUnits, ABackwardThatThrewLeavesNothingBehind) {
    MpiComm comm;
    const auto [model, undisturbed] = twins<Row<Block>>();
    Three engine{comm, parameters_of(*model)};
    Three other{comm, parameters_of(*undisturbed)};
    Trace trace, expected;
    for (int step = 0; step < 3; ++step) {
        const Tensor h = model->row[0]->forward(model->in(rows_of(comm, step)));
        h.register_hook([](const Tensor&) { throw std::runtime_error{"a hook of the user's"}; });
        const Tensor loss = model->out(model->row[2]->forward(model->row[1]->forward(h))).sum();
        EXPECT_THROW(engine.backward(loss), std::runtime_error);
        train_step(engine, *model, comm, {}, step, trace);
        train_step(other, *undisturbed, comm, {}, step, expected);
    }
    EXPECT_EQ(trace, expected);
}

TEST(EngineUnits, AModelWhoseValuesWentWithAnEngineIsRefused) {
    MpiComm comm;
    if (comm.world() == 1) GTEST_SKIP() << "a world of one keeps its units whole";
    Row<Block> model;
    const auto refusal = [&] { return error_of([&] { Two{comm, parameters_of(model)}; }); };
    {
        Three engine{comm, parameters_of(model)};
        EXPECT_EQ(refusal().code(), Errc::bad_parameter);
    }
    EXPECT_EQ(refusal().code(), Errc::bad_parameter);
    EXPECT_NE(std::string{refusal().what()}.find("block0.linear"), std::string::npos) << refusal().what();
}

TEST(EngineUnits, AModelWithoutUnitsIsRefused) {
    MpiComm comm;
    Model<Block> model;
    EXPECT_EQ(error_of([&] { Three{comm, parameters_of(model)}; }).code(), Errc::bad_parameter);
}

/// Its first unit has inputs that no gradient goes to, so that nothing but its parameters tells when backward has left it.
struct BeginsWithUnits : ToyModel {
    BeginsWithUnits() {
        for (int i = 0; i < 2; ++i)
            row.push_back(register_module("block" + std::to_string(i), std::make_shared<Unit<Block>>(width)));
        out = register_module("out", torch::nn::Linear(width, 3));
    }
    Tensor loss(const Tensor& x) override {
        return loss_of(out(row[1]->forward(row[0]->forward(torch::cat({x, x.narrow(1, 0, 2)}, 1)))), x);
    }
    std::vector<std::shared_ptr<Unit<Block>>> row;
    torch::nn::Linear out{nullptr};
};

// As a critic's units are when its generator's loss has gone through it.
TEST(EngineUnits, AnotherEnginesBackwardLeavesNoUnitWhole) {
    MpiComm comm;
    BeginsWithUnits model;
    Three engine{comm, parameters_of(model)};
    const Tensor x = torch::ones({4, 5});
    for (int pass = 0; pass < 3; ++pass) {
        for (int others = 0; others < 2; ++others) {
            model.loss(x).backward();
            EXPECT_EQ(engine.memory().of(MemoryKind::gathered, Place::device).now, 0) << pass;
        }
        engine.backward(model.loss(x));
        engine.step(1e-2);
    }
}

}  // namespace
