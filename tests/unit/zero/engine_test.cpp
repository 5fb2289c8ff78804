// The engine on one rank against plain torch: same gradients, same updates, at every stage.

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <strata/comm/self_comm.hpp>
#include <strata/optim/adagrad.hpp>
#include <strata/optim/adamw.hpp>
#include <strata/optim/lion.hpp>
#include <strata/optim/sgd.hpp>
#include <strata/policy/setup.hpp>
#include <strata/zero/engine.hpp>
#include <strata/zero/parameters.hpp>
#include <strata/zero/unit.hpp>

#include "../../mpi/toy_model.hpp"

namespace {

using strata::Bf16;
using strata::Errc;
using strata::Fp32;
using strata::Optimizer;
using strata::Precision;
using strata::Setup;
using strata::ZeroStage;
using strata::comm::SelfComm;
using strata::zero::parameters_of;
using namespace strata_test;

std::shared_ptr<UnitModel> make_model() {
    torch::manual_seed(3);
    return std::make_shared<UnitModel>();
}

torch::Tensor batch(int step) { return rows_of(SelfComm{}, step, 8); }

/// What backward leaves undefined, and the engine takes for zero.
void fill_missing_gradients(torch::nn::Module& model) {
    for (torch::Tensor& parameter : model.parameters()) {
        if (!parameter.grad().defined()) parameter.mutable_grad() = torch::zeros_like(parameter);
    }
}

double largest_difference(torch::nn::Module& a, torch::nn::Module& b) {
    double largest = 0;
    const auto other = b.named_parameters();
    for (const auto& item : a.named_parameters()) {
        const auto difference = item.value().to(torch::kFloat) - other[item.key()].to(torch::kFloat);
        largest = std::max(largest, difference.abs().max().item<double>());
    }
    return largest;
}

/// Every kind of state, by element.
template <class AnyEngine>
std::map<std::string, std::vector<float>> states_of(AnyEngine& engine) {
    std::map<std::string, std::vector<float>> states;
    engine.read_state([&](std::string_view kind, std::int64_t begin, std::span<const float> values) {
        auto& all = states[std::string{kind}];
        all.resize(static_cast<std::size_t>(engine.numel()));
        std::copy(values.begin(), values.end(), all.begin() + begin);
    });
    return states;
}

template <class AnyEngine>
void restore(AnyEngine& engine, const std::map<std::string, std::vector<float>>& states) {
    engine.write_state([&](std::string_view kind, std::int64_t begin, std::span<float> values) {
        std::copy_n(states.at(std::string{kind}).begin() + begin, values.size(), values.begin());
    });
}

template <class... Policies>
using EngineOf = strata::zero::Engine<Setup<Policies...>, SelfComm>;

template <class Stage>
class Engine : public testing::Test {
protected:
    using AdamWEngine = EngineOf<Stage, Precision<Fp32>>;
    SelfComm comm;
};
using Stages = testing::Types<ZeroStage<0>, ZeroStage<1>, ZeroStage<2>>;
TYPED_TEST_SUITE(Engine, Stages);

TYPED_TEST(Engine, MatchesTorchAdamWWithClipping) {
    const auto ours = make_model();
    const auto theirs = make_model();
    typename TestFixture::AdamWEngine engine{
        this->comm, parameters_of(*ours), {.bucket_numel = 40, .max_grad_norm = 0.1, .update = {.weight_decay = 0.05}}};
    torch::optim::AdamW adamw{theirs->parameters(), torch::optim::AdamWOptions(1e-3).weight_decay(0.05)};
    for (int step = 0; step < 5; ++step) {
        const auto loss = ours->loss(batch(step));
        engine.backward(loss);
        const auto result = engine.step(1e-3);

        adamw.zero_grad();
        const auto their_loss = theirs->loss(batch(step));
        their_loss.backward();
        fill_missing_gradients(*theirs);
        const double norm = torch::nn::utils::clip_grad_norm_(theirs->parameters(), 0.1);
        adamw.step();
        EXPECT_NEAR(loss.template item<double>(), their_loss.template item<double>(), 1e-6);
        EXPECT_NEAR(result.grad_norm, norm, 1e-6 * norm);
        EXPECT_GT(result.grad_norm, 0.1) << "nothing was clipped";
        EXPECT_EQ(result.step, step + 1);
    }
    EXPECT_LT(largest_difference(*ours, *theirs), 1e-6);
    EXPECT_GT(largest_difference(*ours, *make_model()), 1e-3);
}

TYPED_TEST(Engine, LionTakesItsFirstStepsOfOneLearningRate) {
    const auto model = make_model();
    const auto before = make_model();
    EngineOf<TypeParam, Precision<Fp32>, Optimizer<strata::Lion>> engine{this->comm, parameters_of(*model)};
    engine.backward(model->loss(batch(0)));
    engine.step(1e-3);
    for (const auto& item : before->named_parameters()) {
        const auto moved = (model->named_parameters()[item.key()] - item.value()).abs();
        if (item.key() == "unused") continue;  // a gradient of zero has no sign
        EXPECT_NEAR(moved.max().template item<double>(), 1e-3, 1e-6) << item.key();
        EXPECT_NEAR(moved.min().template item<double>(), 1e-3, 1e-6) << item.key();
    }
}

TYPED_TEST(Engine, ClampsEveryElementOfTheGradient) {
    const auto ours = make_model();
    const auto theirs = make_model();
    EngineOf<TypeParam, Optimizer<strata::Sgd>> engine{this->comm, parameters_of(*ours), {.max_grad_value = 0.01}};
    torch::optim::SGD sgd{theirs->parameters(), torch::optim::SGDOptions(1e-1).momentum(0.9)};
    for (int step = 0; step < 3; ++step) {
        engine.backward(ours->loss(batch(step)));
        engine.step(1e-1);
        sgd.zero_grad();
        theirs->loss(batch(step)).backward();
        torch::nn::utils::clip_grad_value_(theirs->parameters(), 0.01);
        sgd.step();
    }
    EXPECT_LT(largest_difference(*ours, *theirs), 1e-6);
    EXPECT_GT(largest_difference(*ours, *make_model()), 1e-3);
}

TYPED_TEST(Engine, StatesStartWithWhatTheRuleSays) {
    const auto ours = make_model();
    const auto theirs = make_model();
    EngineOf<TypeParam, Optimizer<strata::Adagrad>> engine{
        this->comm, parameters_of(*ours), {.update = {.initial_accumulator_value = 0.5}}};
    torch::optim::Adagrad adagrad{theirs->parameters(),
                                  torch::optim::AdagradOptions(1e-1).initial_accumulator_value(0.5)};
    for (int step = 0; step < 3; ++step) {
        engine.backward(ours->loss(batch(step)));
        engine.step(1e-1);
        adagrad.zero_grad();
        theirs->loss(batch(step)).backward();
        adagrad.step();
    }
    EXPECT_LT(largest_difference(*ours, *theirs), 1e-6);
    EXPECT_GT(largest_difference(*ours, *make_model()), 1e-3);
}

TYPED_TEST(Engine, MicroBatchesAddUpToTheMeanGradient) {
    const auto whole = make_model();
    const auto halves = make_model();
    typename TestFixture::AdamWEngine one{this->comm, parameters_of(*whole)};
    typename TestFixture::AdamWEngine two{this->comm, parameters_of(*halves), {.gradient_accumulation_steps = 2}};
    for (int step = 0; step < 3; ++step) {
        const auto x = batch(step);
        one.backward(whole->loss(x));
        two.backward(halves->loss(x.slice(0, 0, 4)));
        two.backward(halves->loss(x.slice(0, 4, 8)));
        const double norm = one.step(1e-3).grad_norm;
        EXPECT_NEAR(two.step(1e-3).grad_norm, norm, 1e-5 * norm);
    }
    EXPECT_LT(largest_difference(*whole, *halves), 1e-5);
}

TYPED_TEST(Engine, AParameterTheLossDoesNotReachHasGradientZero) {
    const auto model = make_model();
    typename TestFixture::AdamWEngine engine{this->comm, parameters_of(*model), {.update = {.weight_decay = 0.0}}};
    const auto untouched = model->first->linear->weight.detach().clone();
    const auto touched = model->in->weight.detach().clone();
    for (int step = 0; step < 2; ++step) {
        engine.backward(model->in(batch(step)).square().mean());  // only "in"
        engine.step(1e-2);
    }
    EXPECT_TRUE(torch::equal(untouched, model->first->linear->weight));
    EXPECT_FALSE(torch::equal(touched, model->in->weight));

    engine.backward(model->loss(batch(2)));
    engine.step(1e-2);
    EXPECT_FALSE(torch::equal(untouched, model->first->linear->weight));

    // And zero again, not what the pass before has left in the buffers.
    const auto loss = model->in(batch(3)).square().mean();
    const auto reached = torch::autograd::grad({loss}, {model->in->weight, model->in->bias}, {}, true);
    const double norm =
        std::hypot(reached[0].norm().template item<double>(), reached[1].norm().template item<double>());
    engine.backward(loss);
    EXPECT_NEAR(engine.step(1e-2).grad_norm, norm, 1e-6 * norm);
}

TYPED_TEST(Engine, ATiedTensorGetsTheSumOfItsGradientsOnce) {
    struct Tied : torch::nn::Module {
        Tied() {
            torch::manual_seed(5);
            in = register_module("in", torch::nn::Linear(4, 4));
            out = register_parameter("out", in->weight);
        }
        torch::Tensor loss(const torch::Tensor& x) { return torch::matmul(torch::tanh(in(x)), out).square().mean(); }
        torch::nn::Linear in{nullptr};
        torch::Tensor out;
    };
    Tied ours;
    Tied theirs;
    typename TestFixture::AdamWEngine engine{this->comm, parameters_of(ours)};
    EXPECT_EQ(engine.numel(), 20);
    torch::optim::AdamW adamw{{theirs.in->weight, theirs.in->bias}, torch::optim::AdamWOptions(1e-3)};
    for (int step = 0; step < 3; ++step) {
        const auto x = batch(step).slice(1, 0, 4);
        engine.backward(ours.loss(x));
        engine.step(1e-3);
        adamw.zero_grad();
        theirs.loss(x).backward();
        adamw.step();
    }
    EXPECT_TRUE(ours.in->weight.is_same(ours.out));
    EXPECT_LT((ours.out - theirs.out).abs().max().template item<double>(), 1e-6);
}

TYPED_TEST(Engine, LeavesFrozenParametersAloneAndOutOfItsLayout) {
    const auto model = make_model();
    model->in->weight.requires_grad_(false);
    const auto frozen = model->in->weight.detach().clone();
    typename TestFixture::AdamWEngine engine{this->comm, parameters_of(*model)};
    engine.backward(model->loss(batch(0)));
    engine.step(1e-2);
    EXPECT_TRUE(torch::equal(frozen, model->in->weight));
    EXPECT_EQ(engine.numel(), 2 + 1 + 7 + 56 + 56 + 24);
    for (const auto& info : engine.layout()) EXPECT_NE(info.name, "in.weight");
}

TYPED_TEST(Engine, LayoutNamesEveryTrainedElementOnce) {
    const auto model = make_model();
    typename TestFixture::AdamWEngine engine{this->comm, parameters_of(*model), {.bucket_numel = 40}};
    std::int64_t at = 0;
    for (const auto& info : engine.layout()) {
        EXPECT_EQ(info.begin, at) << info.name;
        at += model->named_parameters()[info.name].numel();
        EXPECT_EQ(info.shape, model->named_parameters()[info.name].sizes().vec());
    }
    EXPECT_EQ(at, engine.numel());
    for (const std::string_view kind : {"weight", "exp_avg", "exp_avg_sq"}) {
        std::vector<int> owners(static_cast<std::size_t>(at));
        const auto count = [&](std::string_view name, std::int64_t begin, std::size_t numel) {
            if (name != kind) return;
            for (std::size_t i = 0; i < numel; ++i) ++owners.at(static_cast<std::size_t>(begin) + i);
        };
        engine.read_state([&](std::string_view name, std::int64_t begin, std::span<const float> values) {
            count(name, begin, values.size());
        });
        EXPECT_EQ(std::count(owners.begin(), owners.end(), 1), at) << kind;
        for (const auto& run : engine.state_outline()) count(run.kind, run.begin, static_cast<std::size_t>(run.numel));
        EXPECT_EQ(std::count(owners.begin(), owners.end(), 2), at) << kind;
    }
}

TYPED_TEST(Engine, ContinuesBitForBitFromRestoredState) {
    const auto first = make_model();
    typename TestFixture::AdamWEngine engine{this->comm, parameters_of(*first), {.bucket_numel = 40}};
    for (int step = 0; step < 3; ++step) {
        engine.backward(first->loss(batch(step)));
        engine.step(1e-2);
    }
    const auto saved = states_of(engine);

    torch::manual_seed(999);
    const auto second = std::make_shared<UnitModel>();
    typename TestFixture::AdamWEngine resumed{this->comm, parameters_of(*second), {.bucket_numel = 40}};
    restore(resumed, saved);
    resumed.set_step_count(engine.step_count());
    EXPECT_EQ(largest_difference(*first, *second), 0.0);
    for (int step = 3; step < 6; ++step) {
        engine.backward(first->loss(batch(step)));
        resumed.backward(second->loss(batch(step)));
        EXPECT_EQ(engine.step(1e-2).grad_norm, resumed.step(1e-2).grad_norm);
    }
    EXPECT_EQ(states_of(engine), states_of(resumed));
}

TYPED_TEST(Engine, ANonFiniteGradientNamesItsStepAndChangesNothing) {
    const auto model = make_model();
    typename TestFixture::AdamWEngine engine{this->comm, parameters_of(*model)};
    engine.backward(model->loss(batch(0)));
    engine.step(1e-3);
    const auto before = states_of(engine);
    engine.backward(model->loss(batch(1)) * std::numeric_limits<float>::infinity());
    const auto error = error_of([&] { engine.step(1e-3); });
    EXPECT_EQ(error.code(), Errc::non_finite);
    EXPECT_NE(std::string{error.what()}.find("step 2 "), std::string::npos) << error.what();
    EXPECT_EQ(states_of(engine), before);

    engine.backward(model->loss(batch(1)));  // a caller that skips the step can go on
    EXPECT_EQ(engine.step(1e-3).step, 2);
}

TYPED_TEST(Engine, BackwardAndStepOutOfTurnAreRefused) {
    const auto model = make_model();
    typename TestFixture::AdamWEngine engine{this->comm, parameters_of(*model), {.gradient_accumulation_steps = 2}};
    EXPECT_EQ(error_of([&] { engine.step(1e-3); }).code(), Errc::wrong_call_order);
    engine.backward(model->loss(batch(0)));
    EXPECT_EQ(error_of([&] { engine.step(1e-3); }).code(), Errc::wrong_call_order);
    engine.backward(model->loss(batch(0)));
    EXPECT_EQ(error_of([&] { engine.backward(model->loss(batch(0))); }).code(), Errc::wrong_call_order);
    EXPECT_EQ(engine.step(1e-3).step, 1);
}

/// A loss whose backward throws half way.
torch::Tensor broken(torch::Tensor loss) {
    loss.register_hook([](const torch::Tensor&) -> torch::Tensor { throw std::runtime_error{"half way"}; });
    return loss * 1.0;
}

TYPED_TEST(Engine, AfterAMicroBatchThatThrewTheStepIsGivenAnew) {
    const auto expected = [&] {
        const auto model = make_model();
        typename TestFixture::AdamWEngine engine{this->comm, parameters_of(*model), {.gradient_accumulation_steps = 2}};
        engine.backward(model->loss(batch(0)));
        engine.backward(model->loss(batch(1)));
        return engine.step(1e-3).grad_norm;
    }();
    const auto model = make_model();
    typename TestFixture::AdamWEngine engine{this->comm, parameters_of(*model), {.gradient_accumulation_steps = 2}};
    EXPECT_THROW(engine.backward(broken(model->loss(batch(5)))), std::runtime_error);
    engine.backward(model->loss(batch(0)));  // the first one of a step begins anew by itself
    EXPECT_THROW(engine.backward(broken(model->loss(batch(1)))), std::runtime_error);
    const auto again = error_of([&] { engine.backward(model->loss(batch(1))); });
    EXPECT_EQ(again.code(), Errc::wrong_call_order);
    EXPECT_NE(again.fix().find("discard_step()"), std::string::npos);
    EXPECT_EQ(error_of([&] { engine.step(1e-3); }).code(), Errc::wrong_call_order);
    engine.discard_step();
    engine.backward(model->loss(batch(0)));
    engine.backward(model->loss(batch(1)));
    EXPECT_EQ(engine.step(1e-3).grad_norm, expected);
}

TYPED_TEST(Engine, WhatWasFrozenOrUnfrozenBehindItsBackIsNamed) {
    const auto model = make_model();
    model->gain.requires_grad_(false);
    typename TestFixture::AdamWEngine engine{this->comm, parameters_of(*model), {}};
    engine.backward(model->loss(batch(0)));
    engine.step(1e-3);
    model->gain.requires_grad_(true);
    EXPECT_NE(error_of([&] { engine.backward(model->loss(batch(0))); }).problem().find("gain was frozen when"),
              std::string::npos);
    model->gain.requires_grad_(false);
    model->in->bias.requires_grad_(false);
    EXPECT_NE(error_of([&] { engine.backward(model->loss(batch(0))); }).problem().find("in.bias was frozen after"),
              std::string::npos);
    model->in->bias.requires_grad_(true);
    EXPECT_NO_THROW(engine.backward(model->loss(batch(0))));
}

TYPED_TEST(Engine, GradientsCanBeSeenAndChangedBeforeTheStep) {
    const auto model = make_model();
    typename TestFixture::AdamWEngine engine{this->comm, parameters_of(*model), {}};
    EXPECT_EQ(error_of([&] { (void)engine.gradient_norms(); }).code(), Errc::wrong_call_order) << "there are none yet";
    engine.backward(model->loss(batch(0)));
    const std::vector<double> norms = engine.gradient_norms();
    ASSERT_EQ(norms.size(), engine.layout().size());
    double squares = 0;
    for (const double norm : norms) squares += norm * norm;
    engine.for_each_gradient([](const strata::zero::GradientPiece& piece) { torch::Tensor{piece.sum}.mul_(2.0); });
    EXPECT_NEAR(engine.step(1e-3).grad_norm, 2 * std::sqrt(squares), 1e-6 * std::sqrt(squares));
}

TYPED_TEST(Engine, WhatIsWrittenToAWholeModelIsKept) {
    const auto model = make_model();
    EngineOf<TypeParam, Precision<Bf16>> engine{this->comm, parameters_of(*model), {.bucket_numel = 40}};
    engine.with_whole_model([&] {
        const torch::NoGradGuard no_grad;
        model->in->weight.fill_(0.5);
    });
    const std::vector<float> masters = states_of(engine)["weight"];
    for (const auto& parameter : engine.layout()) {
        const float first = masters[static_cast<std::size_t>(parameter.begin)];
        EXPECT_EQ(first == 0.5F, parameter.name == "in.weight") << "the master of " << parameter.name;
    }
    engine.backward(model->loss(batch(0)));
    engine.step(1e-3);
    EXPECT_NEAR(model->in->weight.to(torch::kFloat).mean().template item<double>(), 0.5, 0.01);
}

TYPED_TEST(Engine, AGraphKeptAcrossAStepIsRefusedByAutograd) {
    const auto model = make_model();
    typename TestFixture::AdamWEngine engine{this->comm, parameters_of(*model), {}};
    const auto stale = model->loss(batch(0));
    engine.backward(model->loss(batch(0)));
    engine.step(1e-3);
    EXPECT_THROW(engine.backward(stale), c10::Error);
}

TYPED_TEST(Engine, AModelConvertedBehindItsBackIsRefused) {
    const auto model = make_model();
    typename TestFixture::AdamWEngine engine{this->comm, parameters_of(*model)};
    model->to(torch::kDouble);
    model->to(torch::kFloat);
    const auto error = error_of([&] { engine.backward(model->loss(batch(0))); });
    EXPECT_EQ(error.code(), Errc::bad_parameter);
    EXPECT_NE(std::string{error.what()}.find("unused"), std::string::npos) << error.what();
}

TYPED_TEST(Engine, ASparseGradientIsRefusedByName) {
    struct Lookup : torch::nn::Module {
        Lookup() {
            table = register_module("table", torch::nn::Embedding(torch::nn::EmbeddingOptions(5, 2).sparse(true)));
        }
        torch::nn::Embedding table{nullptr};
    };
    Lookup model;
    typename TestFixture::AdamWEngine engine{this->comm, parameters_of(model)};
    const auto error = error_of([&] { engine.backward(model.table(torch::tensor({1, 2})).sum()); });
    EXPECT_EQ(error.code(), Errc::bad_parameter);
    EXPECT_NE(std::string{error.what()}.find("table.weight"), std::string::npos) << error.what();
}

TYPED_TEST(Engine, LeavesAModelThatWorksWhenItIsGone) {
    const auto model = make_model();
    {
        typename TestFixture::AdamWEngine engine{this->comm, parameters_of(*model)};
        engine.backward(model->loss(batch(0)));
        engine.step(1e-3);
    }
    model->loss(batch(1)).backward();
    EXPECT_TRUE(model->gain.grad().defined());
}

TYPED_TEST(Engine, KeepsParametersRoundedFromAnFp32MasterCopy) {
    const auto model = make_model();
    EngineOf<TypeParam, Precision<Bf16>> engine{this->comm, parameters_of(*model), {.bucket_numel = 40}};
    for (const auto& parameter : model->parameters()) EXPECT_EQ(parameter.scalar_type(), at::kBFloat16);
    const double before = model->loss(batch(0)).template item<double>();
    for (int step = 0; step < 40; ++step) {
        engine.backward(model->loss(batch(0)));
        engine.step(3e-3);
    }
    EXPECT_LT(model->loss(batch(0)).template item<double>(), 0.5 * before);

    const auto master = states_of(engine).at("weight");
    bool finer_than_bf16 = false;
    for (const auto& info : engine.layout()) {
        const auto parameter = model->named_parameters()[info.name].detach().reshape({-1});
        for (std::int64_t i = 0; i < parameter.numel(); ++i) {
            const float exact = master[static_cast<std::size_t>(info.begin + i)];
            const float rounded = parameter[i].template item<float>();
            EXPECT_EQ(rounded, strata::to_float(strata::to_bf16(exact))) << info.name;
            finer_than_bf16 = finer_than_bf16 || rounded != exact;
        }
    }
    EXPECT_TRUE(finer_than_bf16);
}

TYPED_TEST(Engine, RestoredMasterWeightsReachTheBf16Parameters) {
    const auto model = make_model();
    EngineOf<TypeParam, Precision<Bf16>> engine{this->comm, parameters_of(*model)};
    auto states = states_of(engine);
    std::fill(states.at("weight").begin(), states.at("weight").end(), 1.004F);
    restore(engine, states);
    for (const auto& parameter : model->parameters())
        EXPECT_TRUE((parameter == at::BFloat16{1.004F}).all().template item<bool>());
}

TYPED_TEST(Engine, Bf16GradientsOfMicroBatchesAddUpInFp32) {
    // Two gradients, 1 and 2^-9 in turn: in bf16 the smaller one would vanish in the sum.
    struct Scalar : torch::nn::Module {
        Scalar() { w = register_parameter("w", torch::zeros({1})); }
        torch::Tensor w;
    };
    Scalar model;
    EngineOf<TypeParam, Precision<Bf16>> engine{this->comm, parameters_of(model), {.gradient_accumulation_steps = 2}};
    engine.backward(model.w.sum() * 2.0);
    engine.backward(model.w.sum() * std::ldexp(1.0, -8));
    EXPECT_EQ(engine.step(0.0).grad_norm, 1.0 + std::ldexp(1.0, -9));
}

TYPED_TEST(Engine, ConvertsFrozenParametersWithTheOthers) {
    const auto model = make_model();
    model->in->weight.requires_grad_(false);
    EngineOf<TypeParam, Precision<Bf16>> engine{this->comm, parameters_of(*model)};
    EXPECT_EQ(model->in->weight.scalar_type(), at::kBFloat16);
    engine.backward(model->loss(batch(0)));
    EXPECT_GT(engine.step(1e-3).grad_norm, 0.0);
}

TYPED_TEST(Engine, ALossWithoutAGradientIsOneSentenceAndChangesNothing) {
    const auto model = make_model();
    typename TestFixture::AdamWEngine engine{this->comm, parameters_of(*model)};
    const auto loss = [&] { return model->loss(batch(0)); };
    const std::vector<std::pair<torch::Tensor, const char*>> wrong{
        {torch::Tensor{}, "returned a tensor that was never assigned"},
        {model->in(batch(0)).square().mean(1),
         "returned 8 numbers (shape [8], Float) instead of one. Fix: return their mean"},
        {torch::zeros({2, 0}), "returned 0 numbers (shape [2, 0], Float)"},
        {(loss() > 0).sum(), "returned a tensor whose type has no gradient (shape [], Long)"},
        {loss() > 0, "(shape [], Bool)"},
        {loss().detach(), "returned a tensor that no parameter leads to (shape [], Float)"},
        {torch::full({1}, 0.5), "no parameter leads to (shape [1], Float)"}};
    for (const auto& [value, says] : wrong) {
        const auto error = error_of([&, &value = value] { engine.backward(value); });
        EXPECT_EQ(error.code(), Errc::bad_loss);
        EXPECT_NE(std::string{error.what()}.find(says), std::string::npos) << error.what();
    }
    engine.backward(loss().view({1, 1}));  // one number is one number
    EXPECT_GT(engine.step(1e-3).grad_norm, 0.0);
}

TYPED_TEST(Engine, ARateThatWouldDestroyTheWeightsIsRefusedBeforeTheyChange) {
    const auto model = make_model();
    typename TestFixture::AdamWEngine engine{this->comm, parameters_of(*model)};
    engine.backward(model->loss(batch(0)));
    for (const double rate :
         {-1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
        const auto error = error_of([&] { engine.step(rate); });
        EXPECT_EQ(error.code(), Errc::bad_learning_rate);
        EXPECT_NE(std::string{error.what()}.find("the learning rate of step 1 is "), std::string::npos) << error.what();
    }
    EXPECT_EQ(largest_difference(*model, *make_model()), 0.0);
    EXPECT_EQ(engine.step(1e-3).step, 1);
}

TYPED_TEST(Engine, OptionsOutOfTheirRangeAreRefusedByName) {
    const auto says = [&](typename TestFixture::AdamWEngine::Options options, const char* words) {
        const auto model = make_model();
        const auto error = error_of([&] {
            typename TestFixture::AdamWEngine{this->comm, parameters_of(*model), options};
        });
        EXPECT_EQ(error.code(), Errc::bad_value);
        EXPECT_NE(std::string{error.what()}.find(words), std::string::npos) << error.what();
    };
    says({.bucket_numel = 0}, "bucket_numel is 0");
    says({.gradient_accumulation_steps = 0}, "gradient_accumulation_steps is 0");
    says({.max_grad_norm = -1}, "max_grad_norm is -1");
    says({.update = {.beta1 = 1.5}}, "update.beta1 is 1.5");
    says({.groups = {{}}}, "groups[0].takes is empty");
    says({.buckets_in_flight = 0}, "buckets_in_flight is 0");
    says({.loss_scale = {.window = 0}}, "loss_scale.window is 0");
    says({.ema = {.decay = 1}}, "ema.decay is 1");
}

TYPED_TEST(Engine, ModelsThatCannotBeTrainedAreRefusedByName) {
    const auto frozen = make_model();
    for (auto& parameter : frozen->parameters()) parameter.requires_grad_(false);
    using Refusing = typename TestFixture::AdamWEngine;
    EXPECT_EQ(error_of([&] { Refusing{this->comm, parameters_of(*frozen)}; }).code(), Errc::no_parameters);

    struct Odd : torch::nn::Module {
        Odd() { w = register_parameter("odd", torch::ones({2}, torch::kComplexFloat)); }
        torch::Tensor w;
    };
    Odd odd;
    const auto error = error_of([&] { Refusing{this->comm, parameters_of(odd)}; });
    EXPECT_EQ(error.code(), Errc::bad_parameter);
    EXPECT_NE(std::string{error.what()}.find("odd"), std::string::npos);
}

}  // namespace
