// tests/compile_fail/devices_pin_memory.cpp - a trainer on a device of a user's own that does not say how memory is pinned gets ST0132.

#include <strata/train/trainer.hpp>

using namespace strata;

// What Trainable asks for, without the 11 seconds of torch/torch.h.
struct Model {
    using Batch = at::Tensor;
    at::Tensor loss(const Batch& batch);
    int named_parameters();
    void train();
};

struct Board {
    static constexpr bool is_host = true;
    at::Device device() const { return at::kCPU; }
#ifndef STRATA_BAD
    offload::Pinning pinning() const { return {}; }
#endif
};
using Mine = Trainer<Model, Compute<Board>>;

int main() { return sizeof(Mine) == 0; }
