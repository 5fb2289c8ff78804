// Update<InBackward>: the bits of the update after backward, gradients that are never there at once, and what it refuses.

#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <strata/optim/adamw.hpp>
#include <strata/optim/lion.hpp>
#include <strata/zero/layout.hpp>

#include "../../examples/compressed_tier.hpp"
#include "../../examples/own_timing.hpp"
#include "../support/engine_runs.hpp"
#include "../support/far_device.hpp"

namespace {

using namespace strata_test;

template <int stage, class... Policies>
using Early = EngineOf<ZeroStage<stage>, Update<InBackward>, Policies...>;

template <class After, class... Earlies>
void expect_the_bits_of(MpiComm& comm) {
    const SharedFolder disk{comm};
    strata_test::expect_the_bits_of<After, Earlies...>(
        comm, {{"narrow", {.groups = true, .nvme_path = disk.path}}, {"wide", wide_case(disk.path)}});
}

TEST(EngineInBackward, AllStagesGiveTheBitsOfTheUpdateAfterBackward) {
    MpiComm comm;
    expect_the_bits_of<EngineOf<ZeroStage<2>>, Early<0>, Early<1>, Early<2>, Early<3>>(comm);
    using Half = Precision<Bf16>;
    expect_the_bits_of<EngineOf<ZeroStage<2>, Half>, Early<0, Half>, Early<2, Half>, Early<3, Half>>(comm);
    using Pure = Precision<PureBf16>;
    expect_the_bits_of<EngineOf<ZeroStage<2>, Pure>, Early<1, Pure>, Early<3, Pure>>(comm);
}

TEST(EngineInBackward, APolicyOfOnesOwnSaysTheMoment) {
    MpiComm comm;
    using Late = EngineOf<ZeroStage<2>, my::AsMemoryAllows<false>>;
    expect_the_bits_of<EngineOf<ZeroStage<2>>, Late, EngineOf<ZeroStage<2>, my::AsMemoryAllows<true>>>(comm);
}

TEST(EngineInBackward, TiersRulesAndAveragesGiveThoseBitsToo) {
    MpiComm comm;
    using Mixed = OffloadTarget<Split<Compressed, Nvme, 30>, OptimizerState, Parameters>;
    expect_the_bits_of<EngineOf<ZeroStage<2>>, Early<1, OffloadTarget<Split<Cpu, Nvme, 30>>>, Early<3, Mixed>,
                       Early<3, OffloadTarget<Nvme, OptimizerState, Parameters>>, Early<2, Ema<Cpu>>>(comm);
    using Sparse = Optimizer<strata::Lion>;
    expect_the_bits_of<EngineOf<ZeroStage<2>, Sparse>, Early<3, Sparse>>(comm);
}

template <class... Policies>
using Far = strata::zero::Engine<strata::Setup<Policies..., Update<InBackward>>, MpiComm, far::Device>;

TEST(EngineInBackward, AFarDeviceGivesTheBitsOfTheCpu) {
    MpiComm comm;
    expect_the_bits_of<EngineOf<ZeroStage<2>>, Far<ZeroStage<0>>, Far<ZeroStage<2>, OffloadTarget<Cpu>>,
                       Far<ZeroStage<3>, OffloadTarget<Split<Device, Cpu, 40>>, Ema<Device>>>(comm);
}

TEST(EngineInBackward, AverageAndStateAreThoseOfTheUpdateAfterBackward) {
    MpiComm comm;
    const auto run = [&]<class AnyEngine>(std::type_identity<AnyEngine>) {
        const Case settings;
        torch::manual_seed(1);
        const auto model = settings.model();
        AnyEngine engine{comm, parameters_of(*model), options_of<AnyEngine>(settings)};
        Trace trace;
        for (int step = 0; step < 3; ++step) train_step(engine, *model, comm, settings, step, trace);
        return std::array{all_state(comm, engine, strata::zero::average_kind), all_state(comm, engine, "exp_avg"),
                          all_state(comm, engine, strata::zero::weight_kind)};
    };
    const auto after = run(std::type_identity<EngineOf<ZeroStage<3>, Ema<Cpu>>>{});
    EXPECT_TRUE(after == run(std::type_identity<Early<0, Ema<Cpu>>>{}));
    EXPECT_TRUE(after == run(std::type_identity<Early<3, Ema<Cpu>>>{}));
}

TEST(EngineInBackward, StateMovesBetweenTheTwoInTheMiddleOfARun) {
    MpiComm comm;
    const Case settings;
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
    using After = std::type_identity<EngineOf<ZeroStage<2>>>;
    EXPECT_TRUE(whole == in_two_halves(After{}, std::type_identity<Early<3>>{}));
    EXPECT_TRUE(whole == in_two_halves(std::type_identity<Early<3>>{}, After{}));
}

TEST(EngineInBackward, WhatIsTrainedMayChangeBetweenSteps) {
    MpiComm comm;
    const SharedFolder disk{comm};
    const auto trained = [&]<class AnyEngine>(std::type_identity<AnyEngine>) {
        torch::manual_seed(1);
        const Case settings{.nvme_path = disk.path};
        const auto model = settings.model();
        AnyEngine engine{comm, parameters_of(*model), options_of<AnyEngine>(settings)};
        Trace trace;
        for (int step = 0; step < settings.steps; ++step) {
            if (step == 2) {
                engine.set_trainable(
                    [](std::string_view name) { return name.starts_with("second") || name.starts_with("out"); });
            }
            train_step(engine, *model, comm, settings, step, trace);
        }
        trace.weights = weights_of(engine, *model);
        return trace;
    };
    const Trace after = trained(std::type_identity<EngineOf<ZeroStage<2>>>{});
    EXPECT_TRUE(after == trained(std::type_identity<Early<3, OffloadTarget<Nvme, OptimizerState, Parameters>>>{}));
    EXPECT_TRUE(after == trained(std::type_identity<EngineOf<ZeroStage<3>, OffloadTarget<Nvme, Gradients>>>{}))
        << "sums on a tier are made anew";
}

// ---- no weight is written that is still to be read ------------------------------------------------------------------------

/// Parameters that are used in several places: a layer that is called twice, a tensor that is an input's and an output's
/// weight, a unit that is called twice, and one bucket a parameter where there can be.
struct Tangled : ToyModel {
    Tangled() {
        in = register_module("in", torch::nn::Linear(5, 7));
        unit = register_module("unit", std::make_shared<Unit<Block>>(7));
        other = register_module("other", std::make_shared<Unit<Block>>(7));
        twice = register_module("twice", torch::nn::Linear(7, 7));
        tied = register_parameter("tied", torch::full({7}, 0.9));
    }
    torch::Tensor loss(const torch::Tensor& x) override {
        torch::Tensor h = twice(in(x)*tied);
        h = unit->forward(torch::tanh(twice(h)));
        h = unit->forward(other->forward(h));
        return loss_of(torch::nn::functional::linear(h, in->weight.t()) * tied.sum(), x);
    }
    torch::nn::Linear in{nullptr}, twice{nullptr};
    std::shared_ptr<Unit<Block>> unit, other;
    torch::Tensor tied;
};

TEST(EngineInBackward, ParametersThatAreUsedInSeveralPlacesAreReadAsTheyWere) {
    MpiComm comm;
    for (const std::int64_t bucket_numel : {1, 40, 1'000'000}) {
        const Case settings{.model = make<Tangled>(), .bucket_numel = bucket_numel};
        const Trace after = train<EngineOf<ZeroStage<2>>>(comm, settings);
        EXPECT_TRUE(after == train<Early<0>>(comm, settings)) << bucket_numel;
        EXPECT_TRUE(after == train<Early<2>>(comm, settings)) << bucket_numel;
        EXPECT_TRUE(after == train<Early<3>>(comm, settings)) << bucket_numel;
    }
}

TEST(EngineInBackward, UnitsThatRunAgainRunWithTheWeightsTheyHad) {
    MpiComm comm;
    const Case settings{.model = make<Tangled>()};
    const Trace after = train<EngineOf<ZeroStage<2>>>(comm, settings);
    EXPECT_TRUE(after == (train<Early<2, Recompute<Blocks>>>(comm, settings)));
    EXPECT_TRUE(after == (train<Early<3, Recompute<Blocks>>>(comm, settings)));
}

/// Reads a weight beside the graph that its gradient comes from: as numbers that stay, or after its gradient is complete. `out`
/// is the last bucket, which is reduced first.
struct Beside : ToyModel {
    Beside() {
        in = register_module("in", torch::nn::Linear(5, 3));
        out = register_module("out", torch::nn::Linear(torch::nn::LinearOptions(3, 3).bias(false)));
    }
    torch::Tensor loss(const torch::Tensor& x) override {
        const torch::Tensor fixed = copies ? out->weight.detach().clone() : out->weight.detach();
        torch::Tensor h = in(x).matmul(fixed);
        if (writes_output) h = torch::tanh(h);
        const torch::Tensor y = out(h);
        const torch::NoGradGuard no_grad;
        if (writes_output) h.mul_(2.0);
        if (writes_weight) in->weight.mul_(1.0);
        const at::AutoGradMode graph{true};
        return loss_of(y, x);
    }
    torch::nn::Linear in{nullptr}, out{nullptr};
    bool copies = false, writes_output = false, writes_weight = false;
};
struct BesideACopy : Beside {
    BesideACopy() { copies = true; }
};

TEST(EngineInBackward, AWeightThatIsReadAfterItsUpdateIsNoticed) {
    MpiComm comm;
    const Case settings{.model = make<BesideACopy>(), .bucket_numel = 1};
    EXPECT_TRUE(train<EngineOf<ZeroStage<2>>>(comm, settings) == train<Early<2>>(comm, settings));
    Beside model;
    Early<2> engine{comm, parameters_of(model), {.bucket_numel = 1}};
    engine.begin_step(1e-2);
    const auto loss = model.loss(rows_of(comm, 0));
    const auto error = error_of([&] { engine.backward(loss); });
    EXPECT_EQ(error.code(), Errc::bad_parameter) << error.what();
    EXPECT_NE(error.problem().find("reads the parameter out.weight after its gradient was complete"), std::string::npos)
        << error.what();
}

/// A layer in front of another, whose weight is changed in between by whatever is not an update.
TEST(EngineInBackward, WhatAModelWritesItselfIsLibtorchsOwnError) {
    MpiComm comm;
    const auto said = [&](bool Beside::*writes,
                          const std::function<torch::Tensor(Beside&, const torch::Tensor&)>& loss) {
        BesideACopy model;
        model.*writes = true;
        Early<2> engine{comm, parameters_of(model), {.bucket_numel = 1}};
        for (int step = 0; step < 2; ++step) {
            engine.begin_step(1e-2);
            const auto value = loss(model, rows_of(comm, step));
            try {
                engine.backward(value);
                return std::string{"nothing was thrown"};
            } catch (const c10::Error& error) {
                return std::string{error.what()};
            } catch (const strata::Error& error) {
                return std::string{"explained as "} + error.what();
            }
        }
        return std::string{};
    };
    const auto plain = [](Beside& model, const torch::Tensor& x) { return model.loss(x); };
    EXPECT_TRUE(said(&Beside::writes_output, plain).find("modified by an inplace operation") != std::string::npos);
    const auto deeper = [](Beside& model, const torch::Tensor& x) {  // so that backward goes through `in`
        const torch::Tensor front = x.clone().requires_grad_();
        return model.loss(front * front);
    };
    EXPECT_TRUE(said(&Beside::writes_weight, deeper).find("modified by an inplace operation") != std::string::npos);
}

TEST(EngineInBackward, TheRateOfAStepOutlivesAChangeOfWhatIsTrained) {
    MpiComm comm;
    const auto weights = [&](bool between) {
        torch::manual_seed(1);
        UnitModel model;
        Early<2> engine{comm, parameters_of(model), {.bucket_numel = 60}};
        const auto change = [&] {
            engine.set_trainable([](std::string_view name) { return !name.starts_with("first"); });
        };
        if (!between) change();
        engine.begin_step(1e-2);
        if (between) change();
        engine.backward(model.loss(rows_of(comm, 0)));
        EXPECT_EQ(engine.step(1e-2).step, 1);
        return weights_of(engine, model);
    };
    EXPECT_EQ(weights(true), weights(false));
}

// ---- memory ------------------------------------------------------------------------------------------------------------------

template <int stage>
void expect_no_more_than_is_on_its_way(MpiComm& comm) {
    constexpr int units = 40;
    constexpr int small = 12;  // 156 elements a unit: no rank needs padding
    RowModel<small, units> model;
    Early<stage, Precision<Bf16>> engine{comm, parameters_of(model), {.bucket_numel = 160}};
    const std::int64_t bucket = 2 * small * (small + 1);
    for (int step = 0; step < 3; ++step) {
        if (step == 1) engine.memory().reset_peaks();
        engine.begin_step(1e-3);
        engine.backward(model.loss(rows_of(comm, step)));
        EXPECT_EQ(engine.memory().of(MemoryKind::gradients, Place::device).now, 0) << "stage " << stage;
        engine.step(1e-3);
    }
    const std::int64_t peak = engine.memory().of(MemoryKind::gradients, Place::device).peak;
    const std::int64_t in_flight = comm.world() == 1 ? 1 : Case{}.buckets_in_flight + 1;
    EXPECT_GE(peak, bucket) << "stage " << stage;
    EXPECT_LE(peak, in_flight * bucket) << "stage " << stage << ": of " << units << " units";
}

TEST(EngineInBackward, GradientsAreThoseOfBucketsOnTheirWayAndNoOthers) {
    MpiComm comm;
    expect_no_more_than_is_on_its_way<0>(comm);
    expect_no_more_than_is_on_its_way<1>(comm);
    expect_no_more_than_is_on_its_way<2>(comm);
    expect_no_more_than_is_on_its_way<3>(comm);
}

// ---- what it refuses, and steps that fail ---------------------------------------------------------------------------------

TEST(EngineInBackward, OptionsThatWantAllGradientsFirstAreRefused) {
    MpiComm comm;
    UnitModel model;
    const auto refused = [&](const Early<2>::Options& options) {
        return error_of([&] { Early<2>{comm, parameters_of(model), options}; });
    };
    const auto norm = refused({.max_grad_norm = 0.5});
    EXPECT_EQ(norm.code(), Errc::bad_value);
    EXPECT_NE(norm.problem().find("max_grad_norm is 0.5"), std::string::npos) << norm.what();
    const auto several = refused({.gradient_accumulation_steps = 2});
    EXPECT_EQ(several.code(), Errc::bad_value);
    EXPECT_NE(several.problem().find("gradient_accumulation_steps is 2"), std::string::npos) << several.what();
    const auto skips = refused({.on_non_finite = OnNonFinite::skip});
    EXPECT_EQ(skips.code(), Errc::bad_value);
    EXPECT_NE(skips.problem().find("on_non_finite is skip"), std::string::npos) << skips.what();
}

TEST(EngineInBackward, AValueThatIsClampedGoesElementByElement) {
    MpiComm comm;
    const auto weights = [&]<class AnyEngine>(std::type_identity<AnyEngine>) {
        torch::manual_seed(1);
        UnitModel model;
        AnyEngine engine{comm, parameters_of(model), {.bucket_numel = 60, .max_grad_value = 1e-3}};
        for (int step = 0; step < 2; ++step) {
            engine.begin_step(1e-2);
            engine.backward(model.loss(rows_of(comm, step)));
            engine.step(1e-2);
        }
        return weights_of(engine, model);
    };
    EXPECT_EQ(weights(std::type_identity<EngineOf<ZeroStage<2>>>{}), weights(std::type_identity<Early<2>>{}));
}

TEST(EngineInBackward, CallsOutOfOrderAreNamed) {
    MpiComm comm;
    UnitModel model;
    Early<1> engine{comm, parameters_of(model)};
    const auto expect = [&](const strata::Error& error, Errc code, std::string_view words) {
        EXPECT_EQ(error.code(), code);
        EXPECT_NE(std::string{error.what()}.find(words), std::string::npos) << error.what();
    };
    const auto backward = [&] { engine.backward(model.loss(rows_of(comm, 0))); };
    expect(error_of(backward), Errc::wrong_call_order, "before begin_step()");
    expect(error_of([&] { engine.begin_step(-1.0); }), Errc::bad_learning_rate, "is -1");
    engine.begin_step(1e-3);
    backward();
    expect(error_of([&] { engine.step(1e-4); }), Errc::wrong_call_order, "with that of begin_step()");
    expect(error_of([&] { static_cast<void>(engine.gradient_norms()); }), Errc::wrong_call_order, "are gone");
    EXPECT_FALSE(engine.state_is_whole()) << "weights are a step ahead of step_count()";
    EXPECT_EQ(engine.step(1e-3).step, 1);
    EXPECT_TRUE(engine.state_is_whole());
    expect(error_of(backward), Errc::wrong_call_order, "before begin_step()");
}

/// One layer in front whose gradient is NaN when it is told to, and units.
struct Spoiled : RowModel<12, 3> {
    torch::Tensor loss(const torch::Tensor& x) override {
        const torch::Tensor whole = RowModel::loss(x);
        if (breaks_all) return whole * std::numeric_limits<double>::quiet_NaN();
        return breaks_in ? whole + (in->weight.sum() * 0).sqrt() : whole;
    }
    bool breaks_all = false;
    bool breaks_in = false;
};

template <int stage>
void expect_stops(MpiComm& comm) {
    SCOPED_TRACE("stage " + std::to_string(stage));
    Spoiled model;
    Early<stage> engine{comm, parameters_of(model)};
    const auto step = [&](int index) {
        engine.begin_step(1e-2);
        const auto loss = model.loss(rows_of(comm, index));
        engine.backward(loss);
        return engine.step(1e-2, !model.breaks_all);
    };
    step(0);
    const auto before = weights_of(engine, model);
    const auto state = all_state(comm, engine, "exp_avg");

    const bool last = comm.rank() == comm.world() - 1;
    model.breaks_all = last;
    engine.begin_step(1e-2);
    engine.backward(model.loss(rows_of(comm, 1)));
    const auto nothing = error_of([&] { engine.step(1e-2, false); });
    EXPECT_EQ(nothing.code(), Errc::non_finite) << nothing.what();
    EXPECT_TRUE(engine.state_is_whole()) << "the first bucket showed it on all ranks";
    EXPECT_EQ(weights_of(engine, model), before);
    EXPECT_EQ(all_state(comm, engine, "exp_avg"), state);
    model.breaks_all = false;
    EXPECT_EQ(step(1).step, 2) << "and training goes on";

    model.breaks_in = last;
    const auto half = error_of([&] { step(2); });
    EXPECT_EQ(half.code(), Errc::non_finite) << half.what();
    EXPECT_FALSE(engine.state_is_whole()) << "units behind it were updated";
    for (const float weight : weights_of(engine, model)) ASSERT_TRUE(std::isfinite(weight));
    model.breaks_in = false;
    EXPECT_EQ(error_of([&] { step(2); }).code(), Errc::wrong_call_order);
    Spoiled other;
    Early<stage> whole{comm, parameters_of(other)};
    move_state(comm, whole, engine);
    EXPECT_TRUE(engine.state_is_whole());
    EXPECT_EQ(step(0).step, 1) << "from a checkpoint it goes on";
}

TEST(EngineInBackward, ItStopsAtTheFirstBucketThatIsNotFiniteAndSaysWhetherStateIsWhole) {
    MpiComm comm;
    expect_stops<0>(comm);
    expect_stops<2>(comm);
    expect_stops<3>(comm);
}

TEST(EngineInBackward, ARankWithoutALossKeepsAllFromUpdating) {
    MpiComm comm;
    UnitModel model;
    Early<2> engine{comm, parameters_of(model)};
    const auto before = weights_of(engine, model);
    const bool last = comm.rank() == comm.world() - 1;
    engine.begin_step(1e-2);
    if (last) {
        engine.backward_without_loss();
    } else {
        engine.backward(model.loss(rows_of(comm, 0)));
    }
    EXPECT_TRUE(engine.state_is_whole());
    EXPECT_EQ(weights_of(engine, model), before);
    engine.discard_step();
    engine.begin_step(1e-2);
    engine.backward(model.loss(rows_of(comm, 0)));
    EXPECT_EQ(engine.step(1e-2).step, 1);
}

/// A node of the graph that throws in backward.
struct Broken : torch::autograd::Function<Broken> {
    static torch::Tensor forward(torch::autograd::AutogradContext*, const torch::Tensor& x) { return x.clone(); }
    static torch::autograd::variable_list backward(torch::autograd::AutogradContext*, torch::autograd::variable_list) {
        throw std::runtime_error{"this node has no gradient"};
    }
};
struct BreaksHalfWay : RowModel<12, 3> {
    torch::Tensor loss(const torch::Tensor& x) override {
        torch::Tensor h = in(x);
        for (const auto& unit : row) {
            if (unit == row[1] && breaks) h = Broken::apply(h);
            h = unit->forward(h);
        }
        return loss_of(h, x);
    }
    bool breaks = false;
};

TEST(EngineInBackward, APassThatThrowsOnOneRankStopsTheOthersAtTheSameBucket) {
    MpiComm comm;
    BreaksHalfWay model;
    Early<2> engine{comm, parameters_of(model), {.buckets_in_flight = 1}};
    const bool last = comm.rank() == comm.world() - 1;
    model.breaks = last;
    engine.begin_step(1e-2);
    const auto loss = model.loss(rows_of(comm, 0));
    const auto backward = [&] { engine.backward(loss); };
    if (last) {
        EXPECT_ANY_THROW(backward());
    } else {
        EXPECT_NO_THROW(backward());
    }
    const double whole = engine.state_is_whole() ? 1.0 : 0.0;
    std::array<double, 1> all{whole};
    comm.all_reduce_sum(all);
    EXPECT_EQ(all[0], whole * comm.world()) << "ranks agree on it";
}

}  // namespace
