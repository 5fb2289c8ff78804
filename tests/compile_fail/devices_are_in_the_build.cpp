// tests/compile_fail/devices_are_in_the_build.cpp - a trainer on a device that the build does not have gets ST0132.

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
using Mine = Trainer<Model, ZeroStage<2>, Compute<Cpu>>;
#else
using Mine = Trainer<Model, ZeroStage<2>, Compute<Host>>;
#endif

int main() { return sizeof(Mine) == 0; }
