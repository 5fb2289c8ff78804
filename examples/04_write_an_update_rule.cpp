// 04_write_an_update_rule - an update rule of your own: RMSProp, which strata does not bring.
//
// The rule is rms_prop.hpp: what one element of a weight does with its gradient. Vector loops, shards, state on disk and checkpoints
// are made from it. The same training in a loop by hand, with libtorch's RMSprop, shows that it is right. Alone or on several ranks:
//   ./04_write_an_update_rule --output /tmp/rule --fresh
//   strata launch -n 2 -- ./04_write_an_update_rule --output /tmp/rule --fresh

#include <cmath>
#include <cstdint>
#include <cstdio>

#include <torch/torch.h>

#include <strata/strata.hpp>

#include "rms_prop.hpp"

using namespace strata;

struct Curve : torch::nn::Module {
    using Batch = torch::Tensor;  // (B, 1) where the curve is asked for
    torch::nn::Linear in{1, 32}, out{32, 1};
    Curve() {
        register_module("in", in);
        register_module("out", out);
    }
    torch::Tensor loss(const Batch& x_B1) { return torch::mse_loss(out(torch::tanh(in(x_B1))), torch::sin(3 * x_B1)); }
};
/// The same on all ranks, so their mean gradient is that of a loop on its own.
torch::Tensor points(std::int64_t step) {
    return torch::linspace(-1, 1, 64).unsqueeze(1) + 0.01 * static_cast<double>(step % 7);
}

//! [compose]
using MyTrainer = Trainer<Curve, ZeroStage<1>, Optimizer<my::RmsProp>>;
//! [compose]

int main(int argc, char** argv) {
    return strata::run(argc, argv, [](Session& session) {
        constexpr std::int64_t steps = 300;
        train::seed_generators(42);  // the same first weights for both
        MyTrainer trainer{
            session, Curve{}, {.max_steps = steps, .schedule = {.lr = 3e-3}, .engine = {.update = {.rho = 0.9}}}};
        train::seed_generators(42);
        Curve by_hand;
        trainer.fit(FunctionSource{points, 100, 64});

        torch::optim::RMSprop theirs{by_hand.parameters(), torch::optim::RMSpropOptions{3e-3}.alpha(0.9)};
        for (std::int64_t step = 0; step < steps; ++step) {
            theirs.zero_grad();
            by_hand.loss(points(step)).backward();
            theirs.step();
        }
        if (session.rank() != 0) return;
        const torch::NoGradGuard no_gradients;
        const auto loss = trainer.model().loss(points(0).to(trainer.device())).item<double>();
        const auto expected = by_hand.loss(points(0)).item<double>();
        // Both round every step in fp32, but not in the same places.
        std::printf("loss %.6f, by hand %.6f: they %s\n", loss, expected,
                    std::abs(loss - expected) < 1e-3 * expected ? "agree" : "differ");
    });
}
