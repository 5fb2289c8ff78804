// ZeroStage<3>: ranks whose losses leave units out, or use them at another time, have the bits of stage 2 and never wait for one another.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "../support/engine_runs.hpp"

namespace {

using namespace strata_test;

constexpr int width = 7;

/// Half of it is frozen, so that a unit is kept in two tensors.
struct HalfFrozen : Block {
    explicit HalfFrozen(int n) : Block(n) {
        scale = register_parameter("scale", torch::full({n}, 1.1), /*requires_grad=*/false);
    }
    Tensor forward(const Tensor& x) { return Block::forward(x * scale) * scale; }
    Tensor scale;
};

/// Three units, and a way through them that may depend on the rank and on the step.
struct Uneven : ToyModel {
    using Way = std::function<Tensor(Uneven&, const Tensor&)>;
    explicit Uneven(Way way_) : way{std::move(way_)} {
        in = register_module("in", torch::nn::Linear(5, width));
        for (int i = 0; i < 3; ++i)
            row.push_back(register_module("block" + std::to_string(i), std::make_shared<Unit<HalfFrozen>>(width)));
        out = register_module("out", torch::nn::Linear(width, 3));
    }
    Tensor through(std::initializer_list<std::size_t> units, Tensor h) {
        for (const std::size_t i : units) h = row[i]->forward(h);
        return h;
    }
    Tensor loss(const Tensor& x) override { return loss_of(out(way(*this, in(x.to(in->weight.dtype())))), x); }

    Way way;
    int step = 0;
    torch::nn::Linear in{nullptr}, out{nullptr};
    std::vector<std::shared_ptr<Unit<HalfFrozen>>> row;
};

struct Kind {
    std::string name;
    Uneven::Way way;
};
/// What the last rank does; the others go through all units.
std::vector<Kind> kinds(const MpiComm& comm) {
    const bool odd = comm.rank() == comm.world() - 1;
    const auto last_rank = [odd](Uneven::Way way) {
        return [odd, way = std::move(way)](Uneven& m, const Tensor& h) {
            return odd ? way(m, h) : m.through({0, 1, 2}, h);
        };
    };
    return {{"leaves the last output out", last_rank([](Uneven& m, const Tensor& h) {
                 const Tensor y = m.through({0, 1}, h);
                 m.through({2}, y);
                 return y;
             })},
            {"leaves the output in the middle out", last_rank([](Uneven& m, const Tensor& h) {
                 const Tensor y = m.through({0}, h);
                 m.through({1}, y);
                 return m.through({2}, y);
             })},
            {"leaves all outputs out", last_rank([](Uneven& m, const Tensor& h) {
                 m.through({0, 1, 2}, h);
                 return h;
             })},
            {"does not call the first unit", last_rank([](Uneven& m, const Tensor& h) {
                 return m.through({1, 2}, h);
             })},
            {"does not call the middle unit", last_rank([](Uneven& m, const Tensor& h) {
                 return m.through({0, 2}, h);
             })},
            {"does not call the last unit", last_rank([](Uneven& m, const Tensor& h) {
                 return m.through({0, 1}, h);
             })},
            {"calls no unit", last_rank([](Uneven&, const Tensor& h) { return h; })},
            {"calls them in another order", last_rank([](Uneven& m, const Tensor& h) {
                 return m.through({2, 0, 1}, h);
             })},
            {"now and then goes another way", last_rank([](Uneven& m, const Tensor& h) {
                 return m.step % 2 == 0 ? m.through({0, 1, 2}, h) : m.through({1, 2, 0}, h);
             })}};
}
MakeModel make(const Kind& kind) {
    return [way = kind.way] { return std::make_shared<Uneven>(way); };
}
/// The same for all ranks, without gradients, before a step: what validation does.
void evaluate(ToyModel& model, int step) {
    auto& uneven = dynamic_cast<Uneven&>(model);
    uneven.step = step;
    const torch::NoGradGuard no_grad;
    uneven.through({0, 1, 2}, torch::ones({2, width}));
    if (step > 1) uneven.through({2, 1}, torch::ones({2, width}));
}

TEST(EngineUnevenUnits, TheBitsAreThoseOfStageTwo) {
    MpiComm comm;
    for (const Kind& kind : kinds(comm)) {
        Case settings{.model = make(kind), .steps = 5, .max_grad_norm = 0.1};
        settings.before_backward = [](ToyModel& model, int step) { dynamic_cast<Uneven&>(model).step = step; };
        expect_bits_of_stage_two(comm, {kind.name, settings}, {-1, 0, 1'000'000}, {0, 130});
    }
}

TEST(EngineUnevenUnits, RecomputationAndShardsOnDiskChangeNothing) {
    MpiComm comm;
    const SharedFolder folder{comm};
    for (const Kind& kind : kinds(comm)) {
        Case settings{.model = make(kind), .steps = 3, .nvme_path = folder.path};
        settings.before_backward = [](ToyModel& model, int step) { dynamic_cast<Uneven&>(model).step = step; };
        const Trace two = train<Two>(comm, settings);
        EXPECT_TRUE(two == (train<EngineOf<ZeroStage<3>, Recompute<Blocks>>>(comm, settings))) << kind.name;
        EXPECT_TRUE(two == (train<EngineOf<ZeroStage<3>, AllOnDisk>>(comm, settings))) << kind.name;
    }
}

TEST(EngineUnevenUnits, PassesWithoutGradientsMayComeBetween) {
    MpiComm comm;
    for (const Kind& kind : kinds(comm)) {
        Case settings{.model = make(kind), .steps = 5};
        settings.before_backward = evaluate;
        EXPECT_TRUE(train<Two>(comm, settings) == train<Three>(comm, settings)) << kind.name;
    }
}

/// One rank looks through some units without gradients while the others are in a pass; what it learns of their order by that it
/// learns alone.
TEST(EngineUnevenUnits, ARankMayLookThroughUnitsByItselfInAPass) {
    MpiComm comm;
    const bool odd = comm.rank() == comm.world() - 1;
    const auto look = [](Uneven& m, std::initializer_list<std::size_t> units) {
        const torch::NoGradGuard no_grad;
        m.through(units, torch::ones({2, width}));
    };
    const Kind looks{"looks", [=](Uneven& m, const Tensor& h) {
                         const Tensor y = m.through({0, 1, 2}, h);
                         if (odd) look(m, {0, 2, 1});
                         return y;
                     }};
    for (const std::int64_t prefetch : {-1, 1'000'000}) {
        Case settings{.model = make(looks), .steps = 4, .prefetch_bucket_bytes = prefetch};
        settings.before_backward = evaluate;
        EXPECT_TRUE(train<Two>(comm, settings) == train<Three>(comm, settings)) << prefetch;
    }
}

/// Between forward and backward ranks that went different ways keep different units for later.
TEST(EngineUnevenUnits, WithoutGradientsAllMayLookThroughUnitsInAPassOfDifferentWays) {
    MpiComm comm;
    for (const Kind& kind : kinds(comm)) {
        const Kind looks{kind.name, [way = kind.way](Uneven& m, const Tensor& h) {
                             const Tensor y = way(m, h);
                             evaluate(m, m.step);
                             return y;
                         }};
        Case settings{.model = make(looks), .steps = 4, .prefetch_bucket_bytes = 1'000'000};
        settings.before_backward = [](ToyModel& model, int step) { dynamic_cast<Uneven&>(model).step = step; };
        EXPECT_TRUE(train<Two>(comm, settings) == train<Three>(comm, settings)) << kind.name;
    }
}

TEST(EngineUnevenUnits, NothingStaysWholeBehindAPass) {
    MpiComm comm;
    if (comm.world() == 1) GTEST_SKIP() << "a world of one keeps its units whole";
    for (const Kind& kind : kinds(comm)) {
        Uneven model{kind.way};
        Three engine{comm, parameters_of(model)};
        for (model.step = 0; model.step < 3; ++model.step) {
            engine.backward(model.loss(rows_of(comm, model.step)));
            EXPECT_EQ(engine.memory().of(MemoryKind::gathered, Place::device).now, 0) << kind.name;
            engine.step(1e-2);
        }
    }
}

TEST(EngineUnevenUnits, WithoutGradientsTheUnitAndTheRankAreNamed) {
    MpiComm comm;
    if (comm.world() == 1) GTEST_SKIP() << "one rank cannot differ from itself";
    const bool odd = comm.rank() == comm.world() - 1;
    Uneven model{[](Uneven& m, const Tensor& h) { return m.through({0, 1, 2}, h); }};
    Three engine{comm, parameters_of(model)};
    const auto error = error_of([&] {
        const torch::NoGradGuard no_grad;
        odd ? model.through({0, 2}, torch::ones({1, width})) : model.through({0, 1, 2}, torch::ones({1, width}));
    });
    EXPECT_EQ(error.code(), Errc::rank_mismatch) << error.what();
    EXPECT_EQ(error.problem(), "without gradients, rank " + std::to_string(comm.world() - 1) +
                                   " calls the unit block2 where rank 0 calls the unit block1");
}

}  // namespace
