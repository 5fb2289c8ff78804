#pragma once
// strata/testing/training_conformance.hpp - does a composition train as its policies promise?

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <strata/comm/communicator.hpp>
#include <strata/comm/self_comm.hpp>
#include <strata/optim/adamw.hpp>
#include <strata/policy/setup.hpp>
#include <strata/zero/engine.hpp>
#include <strata/zero/parameters.hpp>
#include <strata/zero/unit.hpp>

namespace strata::testing {
namespace detail {

/// What an engine asks of a torch::nn::Module, without torch/torch.h.
class SmallModule : public std::enable_shared_from_this<SmallModule> {
public:
    template <class T>
    struct Item {
        std::string name;
        T held;
        [[nodiscard]] const std::string& key() const noexcept { return name; }
        [[nodiscard]] const T& value() const noexcept { return held; }
    };
    virtual ~SmallModule() = default;
    [[nodiscard]] std::vector<Item<at::Tensor>> named_parameters(bool) const { return parameters_; }
    [[nodiscard]] std::vector<Item<std::shared_ptr<SmallModule>>> named_children() const { return children_; }
    [[nodiscard]] std::vector<at::Tensor> parameters() const {
        std::vector<at::Tensor> tensors;
        for (const Item<at::Tensor>& item : parameters_) tensors.push_back(item.held);
        for (const auto& child : children_) {
            for (const at::Tensor& tensor : child.held->parameters()) tensors.push_back(tensor);
        }
        return tensors;
    }

protected:
    /// A parameter (rows, columns) whose first values are the same in every run, small and all different.
    at::Tensor add(std::string name, std::int64_t rows, std::int64_t columns) {
        at::Tensor tensor = at::empty({rows, columns}, at::kFloat);
        float* const values = static_cast<float*>(tensor.data_ptr());
        for (std::int64_t i = 0; i < tensor.numel(); ++i)
            values[i] =
                static_cast<float>(0.35 * std::sin(1.7 * static_cast<double>(i + 1) + static_cast<double>(rows)));
        tensor.requires_grad_();
        parameters_.push_back({std::move(name), tensor});
        return tensor;
    }
    template <class Child>
    std::shared_ptr<Child> add(std::string name, std::shared_ptr<Child> child) {
        children_.push_back({std::move(name), child});
        return child;
    }

private:
    std::vector<Item<at::Tensor>> parameters_;
    std::vector<Item<std::shared_ptr<SmallModule>>> children_;
};

/// Computes in fp32, whatever parameters are kept in: libtorch on the CPU has few operations for fp16.
struct SmallBlock : SmallModule {
    at::Tensor forward(const at::Tensor& x) const {
        return x.add(x.matmul(weight.to(at::kFloat)).add(bias.to(at::kFloat)).tanh());
    }
    at::Tensor weight = add("weight", 9, 9), bias = add("bias", 1, 9);
};

/// Units, and parameters outside of them; sizes that few numbers of ranks divide.
struct SmallModel : SmallModule {
    SmallModel() {
        for (int i = 0; i < 4; ++i)
            blocks.push_back(add("block" + std::to_string(i), std::make_shared<Unit<SmallBlock>>()));
    }
    /// x  (rows, 5)
    at::Tensor loss(const at::Tensor& x) const {
        at::Tensor h = x.matmul(in.to(at::kFloat)).tanh();
        for (const auto& block : blocks) h = block->forward(h);
        return h.matmul(out.to(at::kFloat)).sub(x.sum(1, true).sin()).square().mean();
    }
    at::Tensor in = add("in", 5, 9), out = add("out", 9, 1);
    std::vector<std::shared_ptr<Unit<SmallBlock>>> blocks;
};

inline constexpr int small_run_steps = 20;

/// This rank's rows of a batch that every step has.
template <class Comm>
at::Tensor small_batch(Comm& comm) {
    at::Tensor x = at::empty({16, 5}, at::kFloat);
    float* const values = static_cast<float*>(x.data_ptr());
    for (std::int64_t i = 0; i < x.numel(); ++i)
        values[i] = static_cast<float>(std::sin(2.3 * static_cast<double>(i) + 0.7 * comm.rank()));
    return x;
}

}  // namespace detail

/// What training a small model leaves; equal runs leave equal bits.
struct SmallRun {
    std::vector<double> losses;  // of this rank
    std::vector<float> weights;  // all of them
    friend bool operator==(const SmallRun&, const SmallRun&) = default;
};

/// Trains a small model with units and with parameters outside of them: two compositions that mean the same leave the
/// same. Collective.
///
///   Setup  strata::Setup<...>; its device, backend and ranks are not looked at
template <class Setup, comm::Communicator Comm>
[[nodiscard]] SmallRun small_run(Comm& comm) {
    detail::SmallModel model;
    const std::vector<zero::Parameter> parameters = zero::parameters_of(model);
    typename zero::Engine<Setup, Comm>::Options options;
    if constexpr (strata::detail::has_exceptions_v<typename Setup::precision>) options.excepted_parameters = "bias";
    zero::Engine<Setup, Comm> engine{comm, parameters, options};
    const at::Tensor batch = detail::small_batch(comm);
    SmallRun run;
    for (int step = 0; step < detail::small_run_steps; ++step) {
        const at::Tensor loss = model.loss(batch);
        engine.backward(loss);
        run.losses.push_back(loss.template item<double>());
        engine.step(1e-2);
    }
    engine.with_whole_model([&] {
        for (const zero::Parameter& parameter : parameters) {
            const at::Tensor all = parameter.tensor.detach().to(at::kFloat).contiguous();
            const auto* const values = static_cast<const float*>(all.data_ptr());
            run.weights.insert(run.weights.end(), values, values + all.numel());
        }
    });
    return run;
}

/// What a composition does otherwise than each of its policies promises, a sentence each; empty if it conforms. Trains
/// a small model with units, in a second. Needs no test framework:
///
///     assert(strata::testing::training_failures<MySharding>().empty());
///     assert((strata::testing::training_failures<ZeroStage<3>, Recompute<MyUnits>>(comm).empty()));
///
///   * The loss is finite, and falls.
///   * All ranks end with the same weights, and a second run ends with the same bits.
///   * Where state lives and over whom it is sharded, what is recomputed, whether weights are averaged, and by what bytes
///     travel changes no bit: they are those of the same rule and number formats under ZeroStage<0>. So it is of an
///     elementwise rule; under one with norms of whole parameters some tiers form sums in another order.
///   * A number format follows fp32, with exceptions, biases, or without: its last loss is at most a quarter of the first one away from that of fp32.
/// The composition's device and backend are not looked at. Collective; every rank returns what it met itself.
///
///   comm  of the ranks that train; the composition's Ranks<...> is not looked at
template <class... Policies, comm::Communicator Comm>
[[nodiscard]] std::vector<std::string> training_failures(Comm& comm) {
    using Mine = Setup<Policies...>;
    using Plain = Setup<Optimizer<typename Mine::optimizer::rule>, typename Mine::precision>;
    using InFp32 = Setup<Optimizer<typename Mine::optimizer::rule>>;
    std::vector<std::string> failures;
    const auto require = [&](bool holds, const std::string& sentence) {
        if (!holds) failures.push_back(sentence + ", on rank " + std::to_string(comm.rank()));
    };
    const SmallRun run = small_run<Mine>(comm);
    const double first = run.losses.front(), last = run.losses.back();
    for (const double loss : run.losses) {
        if (std::isfinite(loss)) continue;
        require(false, "a loss is not finite");
        break;
    }
    require(last < 0.8 * first, "the loss does not fall: " + std::to_string(first) + ", and " + std::to_string(last) +
                                    " after " + std::to_string(detail::small_run_steps) + " steps");

    const std::span<const std::byte> mine = std::as_bytes(std::span{run.weights});
    std::vector<std::byte> roots(mine.begin(), mine.end());
    comm.broadcast(roots, 0);
    require(std::equal(mine.begin(), mine.end(), roots.begin(), roots.end()), "ranks end with other weights");
    require(small_run<Mine>(comm) == run, "a second run ends with other bits");
    require(small_run<Plain>(comm) == run, "the bits are not those of ZeroStage<0>");
    const double in_fp32 = small_run<InFp32>(comm).losses.back();
    require(std::abs(last - in_fp32) <= 0.25 * first,
            "the last loss is " + std::to_string(last) + ", and in fp32 " + std::to_string(in_fp32));
    return failures;
}

/// The same on one rank, without MPI. Local.
template <class... Policies>
[[nodiscard]] std::vector<std::string> training_failures() {
    comm::SelfComm alone;
    return training_failures<Policies...>(alone);
}

}  // namespace strata::testing
