// tests/compile_fail/recomputed_model_names_units.cpp - Recompute<Blocks> with a model that names no units gets ST0012.

#include <strata/train/trainer.hpp>
#include <strata/zero/unit.hpp>

using namespace strata;

struct Block {
    at::Tensor forward(const at::Tensor& x);
};

// What Trainable asks for, without the 11 seconds of torch/torch.h.
struct Model {
    using Batch = at::Tensor;
#ifndef STRATA_BAD
    using Units = UnitList<Block>;
#endif
    at::Tensor loss(const Batch& batch);
    int named_parameters();
    void train();
};

using Mine = Trainer<Model, Recompute<Blocks>>;

int main() { return sizeof(Mine) == 0; }
