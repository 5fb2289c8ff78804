// tests/compile_fail/optimizer_is_an_update_rule.cpp - an update rule that is no rule gets ST0009.

#include <strata/train/trainer.hpp>

using namespace strata;

// What Trainable asks for, without the 11 seconds of torch/torch.h.
struct Model {
    using Batch = at::Tensor;
    at::Tensor loss(const Batch& batch);
    int named_parameters();
    void train();
};

#ifdef STRATA_BAD
using Mine = Trainer<Model, ZeroStage<1>, Optimizer<int>>;
#else
using Mine = Trainer<Model, ZeroStage<1>, Optimizer<AdamW>>;
#endif

int main() { return sizeof(Mine) == 0; }
