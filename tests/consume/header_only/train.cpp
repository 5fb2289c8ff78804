// tests/consume/header_only/train.cpp - a model, and a trainer of it.

#include <torch/torch.h>

#include <strata/strata.hpp>

namespace {

struct Line : torch::nn::Module {
    using Batch = torch::Tensor;
    torch::nn::Linear map = register_module("map", torch::nn::Linear(1, 1));
    torch::Tensor loss(const Batch& batch) { return (map(batch) - 2 * batch).square().mean(); }
};

}  // namespace

strata::FitResult train_two_steps(strata::Session& session) {
    strata::Trainer<Line, strata::ZeroStage<1>> trainer{session, Line{}, {.max_steps = 2}};
    return trainer.fit(strata::FunctionSource{[](std::int64_t) { return torch::ones({4, 1}); }, 1, 4});
}
