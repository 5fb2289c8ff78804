// tests/compile_fail/backend_is_an_object_store.cpp - a store that is no store gets ST0010.

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
using Mine = Trainer<Model, ZeroStage<1>, Backend<double>>;
#else
using Mine = Trainer<Model, ZeroStage<1>, Backend<Local>>;
#endif

int main() { return sizeof(Mine) == 0; }
