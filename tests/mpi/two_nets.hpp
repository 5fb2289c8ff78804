#pragma once
// tests/mpi/two_nets.hpp - small models that look at one another: a generator and its critic.

#include <cstdint>
#include <memory>

#include <torch/torch.h>

#include <strata/strata.hpp>

namespace strata_test {

/// A unit and parameters outside of it.
struct Net : torch::nn::Module {
    struct Block : torch::nn::Module {
        torch::nn::Linear linear{9, 9};
        Block() { register_module("linear", linear); }
        torch::Tensor forward(const torch::Tensor& x) { return torch::tanh(linear(x)); }
    };
    using Units = strata::UnitList<Block>;
    torch::nn::Linear in{2, 9}, out;
    std::shared_ptr<strata::Unit<Block>> block = std::make_shared<strata::Unit<Block>>();
    explicit Net(std::int64_t outputs) : out{9, outputs} {
        register_module("in", in);
        register_module("block", block);
        register_module("out", out);
    }
    torch::Tensor forward(const torch::Tensor& x) { return out(block->forward(torch::tanh(in(x)))); }
};

struct Noise {
    torch::Tensor z;
};
inline Noise some_noise(std::int64_t) { return {torch::rand({4, 2})}; }
struct Generator;

struct Critic : Net {
    using Batch = Noise;
    Generator* generator = nullptr;
    Critic() : Net{1} {}
    torch::Tensor loss(const Batch& batch);
};
struct Generator : Net {
    using Batch = Noise;
    Critic* critic = nullptr;
    bool asks_a_copy = false;  // whose parameters get no gradient to begin with
    Generator() : Net{2} {}
    torch::Tensor loss(const Batch& batch) {
        const torch::Tensor made = forward(batch.z);
        if (!asks_a_copy) return critic->forward(made).mean().neg();
        Critic copy;
        const torch::NoGradGuard no_grad;
        const auto theirs = critic->parameters();
        const auto ours = copy.parameters();
        for (std::size_t i = 0; i < ours.size(); ++i) ours[i].set_requires_grad(false).copy_(theirs[i]);
        const at::AutoGradMode graph{true};
        return copy.forward(made).mean().neg();
    }
};
inline torch::Tensor Critic::loss(const Batch& batch) {
    torch::Tensor made;
    {
        const torch::NoGradGuard no_grad;
        made = generator->forward(batch.z);
    }
    const torch::Tensor real = torch::rand({4, 2}) + 2;
    return (torch::relu(1 - forward(real)) + torch::relu(1 + forward(made))).mean();
}

}  // namespace strata_test
