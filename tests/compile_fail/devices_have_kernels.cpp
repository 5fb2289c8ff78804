// tests/compile_fail/devices_have_kernels.cpp - a trainer on a device of a user's own that brings no kernels gets ST0143.

#include <cstdint>

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
#ifdef STRATA_BAD
    static constexpr bool is_host = false;
#else
    static constexpr bool is_host = true;
#endif
    struct Fence {
        void wait() const;
    };
    struct Operation {};
    at::Device device() const { return at::kCPU; }
    offload::Pinning pinning() const { return {}; }
    Fence fence() const;
    void finish() const;
    std::uint64_t free_memory() const;
    void release_cached() const;
};
using Mine = Trainer<Model, Compute<Board>>;

int main() { return sizeof(Mine) == 0; }
