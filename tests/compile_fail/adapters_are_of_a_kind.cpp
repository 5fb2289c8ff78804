// tests/compile_fail/adapters_are_of_a_kind.cpp - a kind of adapter whose header is not included gets ST0153.

#include <torch/torch.h>

#ifndef STRATA_BAD
#include <strata/adapters/lora.hpp>
#endif
#include <strata/strata.hpp>

using namespace strata;

struct Model : torch::nn::Module {
    using Batch = torch::Tensor;
    torch::Tensor loss(const Batch& batch) { return batch.mean(); }
};

void use(Session& session) {
    Trainer<Model, Adapter<Lora>> trainer{session, Model{}, {.max_steps = 3}};
    trainer.model().eval();
}
