// tests/compile_fail/updates_in_backward_take_one_pass.cpp - an update in backward with a rule of two passes gets ST0023.

#include <strata/optim/lamb.hpp>
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
using Mine = Trainer<Model, ZeroStage<1>, Update<InBackward>, Optimizer<Lamb>>;
#else
using Mine = Trainer<Model, ZeroStage<1>, Update<InBackward>, Optimizer<AdamW>>;
#endif

int main() { return sizeof(Mine) == 0; }
