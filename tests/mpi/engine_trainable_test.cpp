// set_trainable(): other parameters are trained from a step on, and what stays trained notices nothing.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
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

#include "toy_engines.hpp"
#include "toy_model.hpp"

namespace {

using strata::Errc;
using strata::Unit;
using strata::comm::MpiComm;
using strata::zero::parameters_of;
using torch::Tensor;
using namespace strata_test;
using Half = Precision<Bf16>;
using Trains = std::function<bool(std::string_view)>;

bool all_of_it(std::string_view) { return true; }
/// A layer outside of units, a whole unit and half of another.
bool some_of_it(std::string_view name) {
    return name.starts_with("out") || name.starts_with("second") || name == "first.linear.bias" || name == "gain";
}
/// Another part, with some of the same.
bool others(std::string_view name) { return name.starts_with("in") || name == "gain" || name.ends_with("weight"); }

constexpr int period = 3;  // steps between changes

template <class AnyEngine>
Trace train_in_turns(MpiComm& comm, const Case& settings, const std::vector<Trains>& turns) {
    torch::manual_seed(static_cast<std::uint64_t>(1 + comm.rank()));
    const auto model = settings.model();
    AnyEngine engine{comm, parameters_of(*model), options_of<AnyEngine>(settings)};
    Trace trace;
    for (int step = 0; step < period * static_cast<int>(turns.size()); ++step) {
        if (step % period == 0 && step > 0) engine.set_trainable(turns[static_cast<std::size_t>(step / period)]);
        train_step(engine, *model, comm, settings, step, trace);
    }
    trace.weights = weights_of(engine, *model);
    if constexpr (requires { engine.swap_average(); }) {
        engine.swap_average();
        const auto average = weights_of(engine, *model);
        trace.weights.insert(trace.weights.end(), average.begin(), average.end());
        engine.swap_average();
    }
    return trace;
}
const std::vector<Trains> turns{all_of_it, some_of_it, all_of_it, others, some_of_it};

TEST(EngineTrainable, HasTheSameBitsAtEveryStageAndOnEveryTier) {
    MpiComm comm;
    const SharedFolder disk{comm};
    for (const int accumulation : {1, 2}) {
        Case settings{.accumulation = accumulation, .max_grad_norm = 0.5, .groups = true};
        settings.nvme_path = disk.path;
        const Trace expected = train_in_turns<EngineOf<ZeroStage<0>>>(comm, settings, turns);
        EXPECT_TRUE((expected == train_in_turns<EngineOf<ZeroStage<1>>>(comm, settings, turns)));
        EXPECT_TRUE((expected == train_in_turns<EngineOf<ZeroStage<2>>>(comm, settings, turns)));
        EXPECT_TRUE((expected == train_in_turns<EngineOf<ZeroStage<3>>>(comm, settings, turns)));
        EXPECT_TRUE((expected == train_in_turns<EngineOf<ZeroStage<1>, StateOnDisk>>(comm, settings, turns)));
        EXPECT_TRUE((expected == train_in_turns<EngineOf<ZeroStage<3>, AllOnDisk>>(comm, settings, turns)));
        settings.groups = false;
        const Trace half = train_in_turns<EngineOf<ZeroStage<0>, Half>>(comm, settings, turns);
        EXPECT_TRUE((half == train_in_turns<EngineOf<ZeroStage<2>, Half>>(comm, settings, turns)));
        EXPECT_TRUE((half == train_in_turns<EngineOf<ZeroStage<3>, Half>>(comm, settings, turns)));
    }
}

TEST(EngineTrainable, TheAverageGoesWithIt) {
    MpiComm comm;
    const Case settings;
    const Trace expected = train_in_turns<EngineOf<ZeroStage<0>, strata::Ema<strata::Cpu>>>(comm, settings, turns);
    EXPECT_TRUE(
        (expected == train_in_turns<EngineOf<ZeroStage<3>, strata::Ema<strata::Device>>>(comm, settings, turns)));
}

/// Computes with a gain in fp32 between units of any type.
struct MixedModel : UnitModel {
    Tensor loss(const Tensor& x) override {
        const auto type = in->weight.scalar_type();
        const Tensor h = first->forward(in(x.to(type))).to(torch::kFloat) * gain.to(torch::kFloat);
        return loss_of(out(second->forward(h.to(type))), x);
    }
};

TEST(EngineTrainable, ExceptionsAreCarriedInTheirOwnFormat) {
    using MixedFormats = Precision<Bf16, strata::Except<strata::Fp32>>;
    MpiComm comm;
    const SharedFolder disk{comm};
    Case settings{.model = make<MixedModel>(), .max_grad_norm = 0.5};
    settings.nvme_path = disk.path;
    const Trace fp32 = train_in_turns<EngineOf<ZeroStage<2>>>(comm, settings, turns);
    settings.excepted_parameters = "weight,bias,gain,unused";
    EXPECT_TRUE((fp32 == train_in_turns<EngineOf<ZeroStage<2>, MixedFormats>>(comm, settings, turns)));
    settings.excepted_parameters = "unused,gain";
    const Trace mixed = train_in_turns<EngineOf<ZeroStage<0>, MixedFormats>>(comm, settings, turns);
    EXPECT_FALSE((mixed == fp32));
    EXPECT_TRUE((mixed == train_in_turns<EngineOf<ZeroStage<1>, MixedFormats>>(comm, settings, turns)));
    EXPECT_TRUE((mixed == train_in_turns<EngineOf<ZeroStage<3>, MixedFormats, AllOnDisk>>(comm, settings, turns)));
}

/// AdamW by hand, over whole parameters, which keeps states of what is trained and nothing of what is not.
class ByHand {
public:
    ByHand(MpiComm& comm, ToyModel& model) : comm_{comm}, model_{model} {}
    void set_trainable(const Trains& trains) {
        for (const auto& item : model_.named_parameters()) {
            Tensor parameter = item.value();
            parameter.requires_grad_(trains(item.key()));
            if (!parameter.requires_grad()) states_.erase(item.key());
        }
    }
    void step(int index) {
        ++steps_;
        model_.zero_grad();
        model_.loss(rows_of(comm_, index)).backward();
        const torch::NoGradGuard no_grad;
        for (const auto& item : model_.named_parameters()) {
            Tensor parameter = item.value();
            if (!parameter.requires_grad()) continue;
            Tensor gradient = parameter.grad().defined() ? parameter.grad().to(torch::kDouble).contiguous()
                                                         : torch::zeros_like(parameter, torch::kDouble);
            comm_.all_reduce_sum({gradient.data_ptr<double>(), static_cast<std::size_t>(gradient.numel())});
            gradient /= comm_.world();
            auto& [master, m, v] = states_
                                       .try_emplace(item.key(), parameter.to(torch::kDouble).clone(),
                                                    torch::zeros_like(gradient), torch::zeros_like(gradient))
                                       .first->second;
            const strata::AdamW::Options o;
            m = m * o.beta1 + gradient * (1 - o.beta1);
            v = v * o.beta2 + gradient * gradient * (1 - o.beta2);
            const Tensor m_hat = m / (1 - std::pow(o.beta1, steps_)), v_hat = v / (1 - std::pow(o.beta2, steps_));
            master = master - 1e-2 * (m_hat / (v_hat.sqrt() + o.epsilon) + o.weight_decay * master);
            parameter.copy_(master);
        }
    }

private:
    struct State {
        Tensor master, m, v;
        State(Tensor a, Tensor b, Tensor c) : master{std::move(a)}, m{std::move(b)}, v{std::move(c)} {}
    };
    MpiComm& comm_;
    ToyModel& model_;
    std::map<std::string, State> states_;
    int steps_ = 0;
};

TEST(EngineTrainable, IsWhatOneWouldDoByHand) {
    MpiComm comm;
    const Trace trace = train_in_turns<EngineOf<ZeroStage<3>>>(comm, {}, turns);
    torch::manual_seed(1);
    UnitModel model;
    ByHand by_hand{comm, model};
    for (int step = 0; step < period * static_cast<int>(turns.size()); ++step) {
        if (step % period == 0) by_hand.set_trainable(turns[static_cast<std::size_t>(step / period)]);
        by_hand.step(step);
    }
    const std::vector<float> expected = values_of(model);
    ASSERT_EQ(trace.weights.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i)
        ASSERT_NEAR(trace.weights[i], expected[i], 2e-5) << "steps are 1e-2 long; gradients are summed in fp32";
}

/// All state of each parameter, by kind and name: of all ranks together.
template <class AnyEngine>
std::map<std::string, std::vector<double>> states_by_name(MpiComm& comm, AnyEngine& engine) {
    std::map<std::string, std::vector<double>> states;
    std::vector<std::string_view> kinds{strata::zero::weight_kind, "exp_avg", "exp_avg_sq"};
    if constexpr (requires { engine.swap_average(); }) kinds.push_back(strata::zero::average_kind);
    for (const std::string_view kind : kinds) {
        const auto all = all_state(comm, engine, kind);
        for (std::size_t i = 0; i < engine.layout().size(); ++i) {
            const auto begin = all.begin() + engine.layout()[i].begin;
            const auto end = i + 1 < engine.layout().size() ? all.begin() + engine.layout()[i + 1].begin : all.end();
            states[std::string{kind} + " " + engine.layout()[i].name] = {begin, end};
        }
    }
    return states;
}

template <class AnyEngine>
void expect_states_stay(MpiComm& comm, Case settings = {}) {
    SCOPED_TRACE(__PRETTY_FUNCTION__);
    torch::manual_seed(1);
    const auto model = settings.model();
    AnyEngine engine{comm, parameters_of(*model), options_of<AnyEngine>(settings)};
    Trace trace;
    for (int step = 0; step < 3; ++step) train_step(engine, *model, comm, settings, step, trace);
    const auto before = states_by_name(comm, engine);
    const auto weights = weights_of(engine, *model);

    engine.set_trainable(some_of_it);
    EXPECT_EQ(engine.step_count(), 3);
    const auto fewer = states_by_name(comm, engine);
    EXPECT_LT(fewer.size(), before.size());
    for (const auto& [name, values] : fewer) EXPECT_EQ(values, before.at(name)) << name;
    EXPECT_EQ(weights_of(engine, *model), weights);
    for (const auto& item : model->named_parameters())
        EXPECT_EQ(item.value().requires_grad(), some_of_it(item.key())) << item.key();

    engine.set_trainable(all_of_it);
    const auto again = states_by_name(comm, engine);
    ASSERT_EQ(again.size(), before.size());
    std::size_t at = 0;
    for (const auto& item : model->named_parameters()) {
        const bool stayed = some_of_it(item.key());
        const std::vector<double> values(weights.begin() + static_cast<std::ptrdiff_t>(at),
                                         weights.begin() + static_cast<std::ptrdiff_t>(at) + item.value().numel());
        at += values.size();
        for (const auto& [name, now] : again) {
            if (!name.ends_with(" " + item.key())) continue;
            const bool is_state = name.starts_with("exp_");
            EXPECT_EQ(now, stayed ? before.at(name) : is_state ? std::vector<double>(values.size()) : values) << name;
        }
    }
    EXPECT_EQ(weights_of(engine, *model), weights);
}

TEST(EngineTrainable, StatesOfWhatStaysAreKeptBitForBitAndOthersBeginAnew) {
    MpiComm comm;
    const SharedFolder disk{comm};
    Case on_disk;
    on_disk.nvme_path = disk.path;
    on_disk.nvme = {.budget_bytes = 64 << 10};
    expect_states_stay<EngineOf<ZeroStage<0>>>(comm);
    expect_states_stay<EngineOf<ZeroStage<2>>>(comm);
    expect_states_stay<EngineOf<ZeroStage<3>>>(comm);
    expect_states_stay<EngineOf<ZeroStage<0>, Half>>(comm);
    expect_states_stay<EngineOf<ZeroStage<3>, Half>>(comm);
    expect_states_stay<EngineOf<ZeroStage<0>, strata::Ema<strata::Cpu>>>(comm);
    expect_states_stay<EngineOf<ZeroStage<3>, strata::Ema<strata::Device>>>(comm);
    expect_states_stay<EngineOf<ZeroStage<1>, StateOnDisk>>(comm, on_disk);
    expect_states_stay<EngineOf<ZeroStage<3>, AllOnDisk>>(comm, on_disk);
}

template <class AnyEngine>
std::vector<std::int64_t> bytes_now(const AnyEngine& engine) {
    std::vector<std::int64_t> bytes;
    for (std::size_t kind = 0; kind < strata::zero::memory_kind_count; ++kind) {
        for (const auto place : {strata::zero::Place::device, strata::zero::Place::host, strata::zero::Place::disk})
            bytes.push_back(engine.memory().of(static_cast<strata::zero::MemoryKind>(kind), place).now);
    }
    return bytes;
}

/// What an engine holds after a change is what one holds that was made so.
template <class AnyEngine>
void expect_memory_of_a_new_engine(MpiComm& comm, const Case& settings = {}) {
    SCOPED_TRACE(__PRETTY_FUNCTION__);
    torch::manual_seed(1);
    const auto changed = settings.model(), made_so = settings.model();
    AnyEngine engine{comm, parameters_of(*changed), options_of<AnyEngine>(settings)};
    const auto before = bytes_now(engine);
    for (const auto& item : made_so->named_parameters()) Tensor{item.value()}.requires_grad_(some_of_it(item.key()));
    const AnyEngine expected{comm, parameters_of(*made_so), options_of<AnyEngine>(settings)};
    engine.set_trainable(some_of_it);
    EXPECT_EQ(bytes_now(engine), bytes_now(expected));
    EXPECT_NE(bytes_now(engine), before);
    engine.set_trainable(all_of_it);
    EXPECT_EQ(bytes_now(engine), before);
    std::size_t of_frozen = 0;
    engine.set_trainable([](std::string_view name) { return name == "gain"; });
    for (const auto& item : changed->named_parameters()) of_frozen += item.value().storage().nbytes();
    if (!engine.gathers_units()) {
        EXPECT_EQ(of_frozen, values_of(*changed).size() * sizeof(float) + (comm.world() - 1) * sizeof(float))
            << "no bucket stays because a frozen parameter is a part of it";
    }
}

TEST(EngineTrainable, MemoryIsThatOfAnEngineThatWasMadeSo) {
    MpiComm comm;
    const SharedFolder disk{comm};
    Case on_disk;
    on_disk.nvme_path = disk.path;
    on_disk.nvme = {.budget_bytes = 64 << 10};
    on_disk.nvme_units = {.budget_bytes = 64 << 10};
    expect_memory_of_a_new_engine<EngineOf<ZeroStage<0>>>(comm);
    expect_memory_of_a_new_engine<EngineOf<ZeroStage<2>>>(comm);
    expect_memory_of_a_new_engine<EngineOf<ZeroStage<3>>>(comm);
    expect_memory_of_a_new_engine<EngineOf<ZeroStage<1>, StateOnDisk>>(comm, on_disk);
    expect_memory_of_a_new_engine<EngineOf<ZeroStage<3>, AllOnDisk>>(comm, on_disk);
}

TEST(EngineTrainable, NothingChangesWhereNothingIsToChange) {
    MpiComm comm;
    UnitModel model;
    EngineOf<ZeroStage<2>> engine{comm, parameters_of(model)};
    const auto* const layout = &engine.layout();
    const float* const memory = model.gain.data_ptr<float>();
    engine.set_trainable(all_of_it);
    EXPECT_EQ(&engine.layout(), layout);
    EXPECT_EQ(model.gain.data_ptr<float>(), memory);
    EXPECT_TRUE(engine.frozen_layout().empty());
    engine.set_trainable([](std::string_view name) { return name != "unused"; });
    ASSERT_EQ(engine.frozen_layout().size(), 1U);
    EXPECT_EQ(engine.frozen_layout()[0], (strata::zero::ParameterInfo{"unused", {2}, 0}));
}

/// What is refused changes nothing: the run has the bits of one in which it was not asked for.
TEST(EngineTrainable, WhatIsRefusedChangesNothing) {
    MpiComm comm;
    Case settings;
    const Trace expected = train<EngineOf<ZeroStage<3>>>(comm, settings);
    torch::manual_seed(static_cast<std::uint64_t>(1 + comm.rank()));
    UnitModel model;
    model.register_parameter("number", torch::zeros({2}, torch::kLong), false);
    EngineOf<ZeroStage<3>> engine{comm, parameters_of(model), options_of<EngineOf<ZeroStage<3>>>(settings)};
    const auto refusal = [&](const Trains& trains) { return error_of([&] { engine.set_trainable(trains); }); };
    Trace trace;
    for (int step = 0; step < settings.steps; ++step) {
        const int last = comm.world() - 1;
        if (comm.world() > 1) {
            const auto of_ranks = refusal([&](std::string_view name) {
                return name != "number" && (comm.rank() != last || name != "second.linear.bias");
            });
            EXPECT_EQ(of_ranks.code(), Errc::rank_mismatch);
            EXPECT_NE(of_ranks.problem().find("second.linear.bias frozen on rank " + std::to_string(last)),
                      std::string::npos)
                << of_ranks.what();
        }
        const auto thrown = refusal([&](std::string_view name) -> bool {
            if (comm.rank() == last)
                throw strata::Error{Errc::bad_value, "the test says no to " + std::string{name}, ""};
            return true;
        });
        EXPECT_EQ(thrown.code(), Errc::bad_value);
        EXPECT_EQ(refusal([](std::string_view) { return false; }).code(), Errc::no_parameters);
        const auto number = refusal(all_of_it);
        EXPECT_EQ(number.code(), Errc::bad_parameter);
        EXPECT_NE(number.problem().find("number"), std::string::npos) << number.what();
        EXPECT_EQ(refusal({}).code(), Errc::bad_value);
        train_step(engine, model, comm, settings, step, trace);
    }
    EXPECT_EQ(trace.losses, expected.losses);
    EXPECT_EQ(trace.norms, expected.norms);
}

TEST(EngineTrainable, IsCalledBetweenSteps) {
    MpiComm comm;
    UnitModel model;
    EngineOf<ZeroStage<0>, strata::Ema<strata::Cpu>> engine{comm, parameters_of(model)};
    engine.swap_average();
    EXPECT_EQ(error_of([&] { engine.set_trainable(some_of_it); }).code(), Errc::wrong_call_order);
    engine.swap_average();
    engine.backward(model.loss(rows_of(comm, 0)));
    const auto error = error_of([&] { engine.set_trainable(some_of_it); });
    EXPECT_EQ(error.code(), Errc::wrong_call_order);
    EXPECT_NE(error.problem().find("in the middle of a step, after 1 backward"), std::string::npos) << error.what();
    engine.discard_step();
    engine.set_trainable(some_of_it);
    const Tensor old = model.loss(rows_of(comm, 0));
    engine.set_trainable(others);
    EXPECT_THROW(engine.backward(old), c10::Error) << "a graph from before has weights that are elsewhere";
}

/// A tier in host memory that cannot be made a second time on the last rank.
struct Once {
    static constexpr strata::Place place = strata::Place::host;
    template <class Kept, std::size_t states, bool has_master>
    class state : public strata::Cpu::state<Kept, states, has_master> {
    public:
        static constexpr bool fails_alone = true;
        void make(const strata::zero::TierContext& context, std::vector<std::int64_t> numels) {
            if (made++ > 0 && MpiComm{}.rank() + 1 == MpiComm{}.world())
                throw strata::Error{Errc::no_space, "the test's tier is full", "nothing"};
            strata::Cpu::state<Kept, states, has_master>::make(context, std::move(numels));
        }
    };
    template <class Element>
    using shards = strata::Cpu::shards<Element>;
    inline static int made = 0;
};

TEST(EngineTrainable, AFailureOfOneRankIsToldToAllAndEndsTheRun) {
    MpiComm comm;
    Once::made = 0;
    UnitModel model;
    EngineOf<ZeroStage<2>, strata::OffloadTarget<Once>> engine{comm, parameters_of(model)};
    engine.backward(model.loss(rows_of(comm, 0)));
    engine.step(1e-2);
    EXPECT_TRUE(engine.state_is_whole());
    EXPECT_EQ(error_of([&] { engine.set_trainable(some_of_it); }).code(), Errc::no_space);
    EXPECT_FALSE(engine.state_is_whole());
    const auto error = error_of([&] { engine.backward(torch::ones({}).requires_grad_()); });
    EXPECT_EQ(error.code(), Errc::wrong_call_order);
    EXPECT_NE(error.problem().find("set_trainable() had failed"), std::string::npos) << error.what();
    EXPECT_EQ(error_of([&] { engine.step(1e-2); }).code(), Errc::wrong_call_order);
    EXPECT_GE(engine.memory().total(strata::zero::Place::host).now, 0);
}

/// Blocks are unfrozen from the last to the first, as fine-tuning does; the head alone is trained first.
TEST(EngineTrainable, ModelsAreUnfrozenGraduallyAtEveryStage) {
    MpiComm comm;
    const Case settings{.model = make<RowModel<9, 3>>()};
    std::vector<Trains> gradually;
    for (int first = 3; first >= 0; --first) {
        gradually.push_back(
            [first](std::string_view name) { return !name.starts_with("unit") || name[4] - '0' >= first; });
    }
    gradually.insert(gradually.begin(), all_of_it);
    const Trace expected = train_in_turns<EngineOf<ZeroStage<0>>>(comm, settings, gradually);
    EXPECT_TRUE((expected == train_in_turns<EngineOf<ZeroStage<2>>>(comm, settings, gradually)));
    EXPECT_TRUE((expected == train_in_turns<EngineOf<ZeroStage<3>>>(comm, settings, gradually)));
}

}  // namespace
