#pragma once
// tests/mpi/toy_model.hpp - a small model with and without units, and how the tests of an engine train it.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <strata/core/error.hpp>
#include <strata/offload/window_pipeline.hpp>
#include <strata/zero/parameters.hpp>
#include <strata/zero/state.hpp>
#include <strata/zero/unit.hpp>

#include "shared_folder.hpp"

namespace strata_test {

struct Block : torch::nn::Module {
    explicit Block(int width) : linear{register_module("linear", torch::nn::Linear(width, width))} {}
    torch::Tensor forward(const torch::Tensor& x) { return x + torch::tanh(linear(x)); }
    torch::nn::Linear linear;
};

/// What train() trains.
struct ToyModel : torch::nn::Module {
    /// x  (rows, 5) in fp32
    virtual torch::Tensor loss(const torch::Tensor& x) = 0;
};

inline torch::Tensor loss_of(const torch::Tensor& y, const torch::Tensor& x) {
    return (y.to(torch::kFloat) - x.sum(1, true).sin()).square().mean();
}

/// Sizes that nothing divides, and parameters before, between and after the blocks, one of them unused. `Inner` is Block
/// or Unit<Block>: with and without units.
template <class Inner>
struct Model : ToyModel {
    Model() {
        in = register_module("in", torch::nn::Linear(5, 7));
        first = register_module("first", std::make_shared<Inner>(7));
        second = register_module("second", std::make_shared<Inner>(7));
        out = register_module("out", torch::nn::Linear(7, 3));
        unused = register_parameter("unused", torch::ones({2}));
        gain = register_parameter("gain", torch::ones({1}));
    }
    torch::Tensor loss(const torch::Tensor& x) override {
        return loss_of(out(second->forward(first->forward(in(x.to(gain.dtype()))) * gain)), x);
    }
    torch::nn::Linear in{nullptr}, out{nullptr};
    std::shared_ptr<Inner> first, second;
    torch::Tensor unused, gain;
};
using UnitModel = Model<strata::Unit<Block>>;

/// A layer and a row of equal units, as wide as a test wants them.
template <int width, int units>
struct RowModel : ToyModel {
    RowModel() {
        in = register_module("in", torch::nn::Linear(5, width));
        for (int i = 0; i < units; ++i)
            row.push_back(register_module("unit" + std::to_string(i), std::make_shared<strata::Unit<Block>>(width)));
    }
    torch::Tensor loss(const torch::Tensor& x) override {
        torch::Tensor h = in(x.to(in->weight.dtype()));
        for (const auto& unit : row) h = unit->forward(h);
        return loss_of(h, x);
    }
    torch::nn::Linear in{nullptr};
    std::vector<std::shared_ptr<strata::Unit<Block>>> row;
};

/// Computes in fp32 from fp16 parameters: libtorch on the CPU has few operations for fp16.
struct HalfBlock : torch::nn::Module {
    HalfBlock() {
        in = register_parameter("in", torch::randn({5, 7}) * 0.3);
        out = register_parameter("out", torch::randn({7, 3}) * 0.3);
    }
    torch::Tensor forward(const torch::Tensor& x) {
        return x.matmul(in.to(torch::kFloat)).tanh().matmul(out.to(torch::kFloat));
    }
    torch::Tensor in, out;
};
struct HalfModel : ToyModel {
    HalfModel() {
        torch::manual_seed(1);
        block = register_module("block", std::make_shared<strata::Unit<HalfBlock>>());
    }
    torch::Tensor loss(const torch::Tensor& x) override { return loss_of(block->forward(x), x); }
    std::shared_ptr<strata::Unit<HalfBlock>> block;
};

using MakeModel = std::function<std::shared_ptr<ToyModel>()>;
template <class AnyModel>
MakeModel make() {
    return [] { return std::make_shared<AnyModel>(); };
}

/// This rank's rows of the global batch number `index`.
template <class Comm>
torch::Tensor rows_of(const Comm& comm, int index, std::int64_t rows = 4) {
    torch::manual_seed(static_cast<std::uint64_t>(100 + index));
    return torch::randn({rows * comm.world(), 5}).slice(0, rows * comm.rank(), rows * (comm.rank() + 1));
}

/// How train() trains.
struct Case {
    MakeModel model = make<UnitModel>();
    int steps = 4;
    int accumulation = 1;
    double max_grad_norm = 0.0;
    std::int64_t bucket_numel = 60;
    bool overlap = true;
    int buckets_in_flight = 4;
    std::int64_t prefetch_bucket_bytes = -1;
    std::int64_t max_live_parameters = 0;
    std::string excepted_parameters{};
    bool groups = false;  ///< biases learn twice as fast and do not decay
    std::filesystem::path nvme_path{};
    strata::offload::PipelineOptions nvme{};
    strata::offload::PipelineOptions nvme_units{};
    std::function<torch::Tensor(int index)> batch{};                        ///< else rows_of()
    std::function<void(ToyModel&, int step)> before_backward{};             ///< and forward, of a step's first batch
    std::map<int, std::function<bool(std::string_view name)>> trainable{};  ///< what is trained from a step on
};

/// The options of an engine in a case.
template <class AnyEngine>
typename AnyEngine::Options options_of(const Case& settings) {
    const auto is_bias = [](std::string_view name) { return name.ends_with("bias"); };
    typename AnyEngine::Options options{
        .bucket_numel = settings.bucket_numel,
        .gradient_accumulation_steps = settings.accumulation,
        .max_grad_norm = settings.max_grad_norm,
        .excepted_parameters = settings.excepted_parameters,
        .overlap = settings.overlap,
        .buckets_in_flight = settings.buckets_in_flight,
        .prefetch_bucket_bytes = settings.prefetch_bucket_bytes,
        .max_live_parameters = settings.max_live_parameters,
        .tiers = {.nvme_path = settings.nvme_path, .state = settings.nvme, .units = settings.nvme_units}};
    if (settings.groups) options.groups = {{.takes = is_bias, .lr_factor = 2.0, .update = {.weight_decay = 0.0}}};
    return options;
}

/// What a training run leaves; equal runs leave equal bits.
struct Trace {
    std::vector<double> losses;  // of this rank
    std::vector<double> norms;
    std::vector<float> weights;  // all of them, in the order of the state dict
    friend bool operator==(const Trace&, const Trace&) = default;
};

/// All parameters of a model that is whole.
inline std::vector<float> values_of(torch::nn::Module& model) {
    std::vector<float> values;
    for (const auto& parameter : model.parameters()) {
        const auto all = parameter.detach().cpu().to(torch::kFloat).contiguous();
        values.insert(values.end(), all.data_ptr<float>(), all.data_ptr<float>() + all.numel());
    }
    return values;
}

template <class AnyEngine>
std::vector<float> weights_of(AnyEngine& engine, torch::nn::Module& model) {
    std::vector<float> values;
    engine.with_whole_model([&] { values = values_of(model); });
    return values;
}

/// Where an engine wants its model and its batches.
template <class AnyEngine>
at::Device device_for() {
    return typename AnyEngine::compute_device{}.device();
}

/// One optimizer step on the batches that belong to it.
template <class AnyEngine, class Comm>
void train_step(AnyEngine& engine, ToyModel& model, Comm& comm, const Case& settings, int step, Trace& trace) {
    if (settings.before_backward) settings.before_backward(model, step);
    engine.begin_step(1e-2);
    for (int micro = 0; micro < settings.accumulation; ++micro) {
        const int index = step * settings.accumulation + micro;
        const auto batch = settings.batch ? settings.batch(index) : rows_of(comm, index);
        const auto loss = model.loss(batch.to(device_for<AnyEngine>()));
        engine.backward(loss);
        trace.losses.push_back(loss.template item<double>());
    }
    trace.norms.push_back(engine.step(1e-2).grad_norm);
}

template <class AnyEngine, class Comm>
Trace train(Comm& comm, const Case& settings) {
    torch::manual_seed(static_cast<std::uint64_t>(1 + comm.rank()));  // rank 0's weights must win
    const auto model = settings.model();
    if (!device_for<AnyEngine>().is_cpu()) model->to(device_for<AnyEngine>());
    AnyEngine engine{comm, strata::zero::parameters_of(*model), options_of<AnyEngine>(settings)};
    Trace trace;
    for (int step = 0; step < settings.steps; ++step) {
        if (const auto change = settings.trainable.find(step); change != settings.trainable.end())
            engine.set_trainable(change->second);
        train_step(engine, *model, comm, settings, step, trace);
    }
    trace.weights = weights_of(engine, *model);
    return trace;
}

/// What `action` throws; the error that nothing was thrown otherwise.
template <class Action>
strata::Error error_of(Action&& action) {
    try {
        action();
    } catch (const strata::Error& error) {
        return error;
    }
    return {strata::Errc{}, "nothing was thrown", ""};
}

/// This rank's state of one kind by element of the virtual array; elements of other ranks are 0.
template <class AnyEngine>
std::vector<double> own_state(AnyEngine& engine, std::string_view kind) {
    std::vector<double> values(static_cast<std::size_t>(engine.numel()));
    engine.read_state([&](std::string_view name, std::int64_t begin, std::span<const float> run) {
        if (name == kind) std::copy(run.begin(), run.end(), values.begin() + begin);
    });
    return values;
}

/// All of it: what a checkpoint holds. Collective.
template <class Comm, class AnyEngine>
std::vector<double> all_state(Comm& comm, AnyEngine& engine, std::string_view kind) {
    std::vector<double> values = own_state(engine, kind);
    comm.all_reduce_sum(values);
    return values;
}

/// Gives one engine what a checkpoint of another holds. Collective.
template <class Comm, class From, class To>
void move_state(Comm& comm, From& from, To& to) {
    std::vector<std::string_view> kinds{strata::zero::weight_kind};
    kinds.insert(kinds.end(), From::Rule::state_names.begin(), From::Rule::state_names.end());
    if constexpr (requires { from.swap_average(); }) kinds.push_back(strata::zero::average_kind);
    std::map<std::string_view, std::vector<double>> whole;
    for (const std::string_view kind : kinds) whole[kind] = all_state(comm, from, kind);
    to.set_step_count(from.step_count());
    to.write_state([&](std::string_view kind, std::int64_t begin, std::span<float> values) {
        const double* const source = whole.at(kind).data() + begin;
        std::transform(source, source + values.size(), values.begin(),
                       [](double value) { return static_cast<float>(value); });
    });
}

}  // namespace strata_test
