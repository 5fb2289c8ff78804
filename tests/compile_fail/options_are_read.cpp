// tests/compile_fail/options_are_read.cpp - an update rule whose check() cannot be called gets ST0142: its ranges would be passed over.

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
    struct Options {
        double share = 0.5;
#ifdef STRATA_BAD
        void check(OptionCheck& check) { check.number("share", share, {0, 1}); }
#else
        void check(OptionCheck& check) const { check.number("share", share, {0, 1}); }
#endif
    };
    struct Scalars {
        float lr;
    };
    static constexpr std::array<std::string_view, 0> state_names{};
    static Scalars scalars(const Options&, double lr, std::int64_t) { return {static_cast<float>(lr)}; }
    static void apply(float& weight, float gradient, float*, const Scalars& s) { weight -= s.lr * gradient; }
};
using Mine = Trainer<Model, Optimizer<Smooth>>;

int main() { return sizeof(Mine) == 0; }
