// tests/compile_fail/states_have_names.cpp - an update rule that gives two states one name gets ST0141.

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

struct Smooth {
    struct Options {};
    struct Scalars {
        float lr;
    };
#ifdef STRATA_BAD
    static constexpr std::array<std::string_view, 2> state_names{"mean", "mean"};
#else
    static constexpr std::array<std::string_view, 2> state_names{"mean", "mean_of_means"};
#endif
    static Scalars scalars(const Options&, double lr, std::int64_t) { return {static_cast<float>(lr)}; }
    static void apply(float& weight, float gradient, float*, const Scalars& s) { weight -= s.lr * gradient; }
};
using Mine = Trainer<Model, Optimizer<Smooth>>;

int main() { return sizeof(Mine) == 0; }
