#pragma once
// tests/mpi/adapted_model.hpp - a small model whose layers have a DoRA each, by the names that parameters of adapters have.

#include <memory>

#include <torch/torch.h>

#include <strata/zero/unit.hpp>

#include "toy_model.hpp"

namespace strata_test {

/// The parameters of a DoRA, by the names that they have in every model.
struct Adapter : torch::nn::Module {
    Adapter(int width, int rank)
        : down{register_parameter("down", torch::randn({rank, width}))},
          up{register_parameter("up", torch::randn({width, rank}))},
          magnitude{register_parameter("magnitude", torch::ones({width}))} {}
    torch::Tensor down, up, magnitude;
};
struct AdaptedLinear : torch::nn::Module {
    explicit AdaptedLinear(int width)
        : weight{register_parameter("weight", torch::randn({width, width}) * 0.3, false)},
          lora{register_module("lora", std::make_shared<Adapter>(width, 2))} {}
    torch::Tensor forward(const torch::Tensor& x) {
        return torch::linear(x, weight + lora->up.mm(lora->down)) * lora->magnitude;
    }
    torch::Tensor weight;
    std::shared_ptr<Adapter> lora;
};
struct AdaptedBlock : torch::nn::Module {
    explicit AdaptedBlock(int width) : linear{register_module("linear", std::make_shared<AdaptedLinear>(width))} {}
    torch::Tensor forward(const torch::Tensor& x) { return x + torch::tanh(linear->forward(x)); }
    std::shared_ptr<AdaptedLinear> linear;
};
struct AdaptedModel : ToyModel {
    AdaptedModel() {
        first = register_module("first", std::make_shared<strata::Unit<AdaptedBlock>>(5));
        second = register_module("second", std::make_shared<strata::Unit<AdaptedBlock>>(5));
        head = register_module("head", std::make_shared<AdaptedLinear>(5));  // of no unit
    }
    torch::Tensor loss(const torch::Tensor& x) override {
        return loss_of(head->forward(second->forward(first->forward(x.to(head->weight.dtype())))), x);
    }
    std::shared_ptr<strata::Unit<AdaptedBlock>> first, second;
    std::shared_ptr<AdaptedLinear> head;
};

}  // namespace strata_test
