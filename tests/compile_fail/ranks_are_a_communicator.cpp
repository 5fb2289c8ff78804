// tests/compile_fail/ranks_are_a_communicator.cpp - a trainer over something that is no communicator gets ST0131.

#include <strata/train/trainer.hpp>

using namespace strata;

// What Trainable asks for, without the 11 seconds of torch/torch.h.
struct Model {
    using Batch = at::Tensor;
    at::Tensor loss(const Batch& batch);
    int named_parameters();
    void train();
};
class Telegraph;  // is defined in a header that was forgotten

#ifdef STRATA_BAD
using Mine = Trainer<Model, ZeroStage<2>, Ranks<Telegraph>>;
#else
using Mine = Trainer<Model, ZeroStage<2>, Ranks<comm::SelfComm>>;
#endif

int main() { return sizeof(Mine) == 0; }
