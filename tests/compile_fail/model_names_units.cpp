// tests/compile_fail/model_names_units.cpp - ZeroStage<3> with a model that names no units gets ST0011.

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

using Mine = Trainer<Model, ZeroStage<3>>;

int main() { return sizeof(Mine) == 0; }
