// tests/compile_fail/optimizer_is_complete.cpp - an update rule whose header was forgotten gets ST0009.

#include <strata/optim/lion.hpp>
#include <strata/train/trainer.hpp>

using namespace strata;

struct MyLion;  // as a header that others read says it
#ifndef STRATA_BAD
struct MyLion : Lion {};
#endif

// What Trainable asks for, without the 11 seconds of torch/torch.h.
struct Model {
    using Batch = at::Tensor;
    at::Tensor loss(const Batch& batch);
    int named_parameters();
    void train();
};

using Mine = Trainer<Model, ZeroStage<1>, Optimizer<MyLion>>;

int main() { return sizeof(Mine) == 0; }
