// tests/compile_fail/rules_write_their_weight.cpp - an update rule that is given a copy of the weight, and would train nothing, gets ST0009.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <strata/core/option_check.hpp>
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
using Weight = float;
#else
using Weight = float&;
#endif
struct Smooth {
    struct Options {};
    struct Scalars {
        float lr;
    };
    static constexpr std::array<std::string_view, 0> state_names{};
    static Scalars scalars(const Options&, double lr, std::int64_t) { return {static_cast<float>(lr)}; }
    static void apply(Weight weight, float gradient, float*, const Scalars& s) { weight -= s.lr * gradient; }
};
using Mine = Trainer<Model, Optimizer<Smooth>>;

int main() { return sizeof(Mine) == 0; }
