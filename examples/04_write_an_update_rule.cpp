// 04_write_an_update_rule - an update rule of your own: RMSProp, which strata does not bring.
//
// A rule says what one element of a weight does with its gradient; vector loops, shards, state on disk and checkpoints are made from
// it. The same training in a loop by hand, with libtorch's RMSprop, shows that it is right. Alone or on several ranks:
//   ./04_write_an_update_rule --output /tmp/rule --fresh
//   strata launch -n 2 -- ./04_write_an_update_rule --output /tmp/rule --fresh

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string_view>

#include <torch/torch.h>

#include <strata/core/host_device.hpp>
#include <strata/optim/square_root.hpp>
#include <strata/optim/update_rule.hpp>
#include <strata/strata.hpp>

using namespace strata;

//! [rule]
/// RMSProp (Tieleman and Hinton 2012), with epsilon where libtorch has it:
///
///   v <- rho v + (1 - rho) g^2
///   w <- w - lr g / (sqrt(v) + epsilon)
struct RmsProp {
    struct Options {
        double rho = 0.99;
        double epsilon = 1e-8;
        static void describe(auto& option) {  // checked ranges, and the keys optimizer_rho and optimizer_epsilon
            option("rho", &Options::rho, {0, 0.999999}, "Decay of the mean of squares, a step");
            option("epsilon", &Options::epsilon, ranges::epsilon, "Added to its root, so that nothing is divided by 0");
        }
    };
    static constexpr std::array<std::string_view, 1> state_names{
        "square_avg"};  // a value an element, named in checkpoints

    struct Scalars {  // what is the same for all elements of a step
        float rho, one_minus_rho, epsilon, lr;
    };
    static Scalars scalars(const Options& options, double lr, std::int64_t) noexcept {
        return {.rho = static_cast<float>(options.rho),
                .one_minus_rho = static_cast<float>(1 - options.rho),
                .epsilon = static_cast<float>(options.epsilon),
                .lr = static_cast<float>(lr)};
    }

    [[gnu::always_inline]] STRATA_HOST_DEVICE static void apply(float& weight, float gradient, float* state,
                                                                const Scalars& s) noexcept {
        float& square_avg = state[0];
        square_avg = s.rho * square_avg + s.one_minus_rho * gradient * gradient;
        weight -= s.lr * gradient / (optim::square_root(square_avg) + s.epsilon);
    }
};
static_assert(optim::UpdateRule<RmsProp>);
//! [rule]

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
using MyTrainer = Trainer<Curve, ZeroStage<1>, Optimizer<RmsProp>>;
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
