// 06_train_in_turns - a generator learns from a critic, which learns to tell what it makes from what is real.
//
//   noise -> Generator -> made -> Critic -> "real?"      2 steps of the critic, then 1 of the generator, and again
//   ring of real points --------> Critic                 each has its folder; both save and resume together
//
//   ./06_train_in_turns --output /tmp/ring --fresh
//   strata launch -n 2 -- ./06_train_in_turns --output /tmp/ring --fresh

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <numbers>

#include <torch/torch.h>

#include <strata/strata.hpp>

using namespace strata;

struct Points {
    torch::Tensor xy_B2, noise_B4;
};

/// From `inputs` numbers to `outputs`.
struct Network : torch::nn::Module {
    using Batch = Points;
    torch::nn::Linear in, middle{48, 48}, out;
    Network(std::int64_t inputs, std::int64_t outputs) : in{inputs, 48}, out{48, outputs} {
        register_module("in", in);
        register_module("middle", middle);
        register_module("out", out);
    }
    torch::Tensor forward(const torch::Tensor& x) {
        return out(torch::leaky_relu(middle(torch::leaky_relu(in(x), 0.2)), 0.2));
    }
};

struct Critic : Network {
    Network* generator = nullptr;  // held, not registered: it is not a part of this model
    Critic() : Network{2, 1} {}
    torch::Tensor loss(const Points& batch) {
        torch::Tensor made;
        {
            const torch::NoGradGuard no_grad;
            made = generator->forward(batch.noise_B4);
        }
        return (torch::softplus(-forward(batch.xy_B2)) + torch::softplus(forward(made))).mean();
    }
};
struct Generator : Network {
    Network* critic = nullptr;
    Generator() : Network{4, 2} {}
    torch::Tensor loss(const Points& batch) {
        return torch::softplus(-critic->forward(forward(batch.noise_B4))).mean();
    }
};

int main(int argc, char** argv) {
    return strata::run(argc, argv, [](Session& session) {
        constexpr std::int64_t rounds = 600, critic_steps = 2;
        using Options = TrainOptions<AdamW>;
        const AdamW::Options update{.beta1 = 0.5, .beta2 = 0.9, .weight_decay = 0};
        // Another seed for each, or both would draw the same noise.
        Trainer<Critic, ZeroStage<2>> critic{session, Critic{},
                                             Options{.max_steps = critic_steps * rounds,
                                                     .seed = 1,
                                                     .schedule = {.lr = 2e-3},
                                                     .engine = {.update = update},
                                                     .name = "critic"}};
        Trainer<Generator, ZeroStage<2>> generator{session, Generator{},
                                                   Options{.max_steps = rounds,
                                                           .seed = 2,
                                                           .schedule = {.lr = 1e-3},
                                                           .engine = {.update = update},
                                                           .name = "generator"}};
        //! [turns]
        critic.model().generator = &generator.model();  // held, not registered
        generator.model().critic = &critic.model();

        FunctionSource points{[](std::int64_t) {
                                  const torch::Tensor angle = torch::rand({64}) * 2 * std::numbers::pi;
                                  return Points{torch::stack({angle.cos(), angle.sin()}, 1), torch::randn({64, 4})};
                              },
                              100, 64};
        const auto results = fit_in_turns(Turn{critic, points, critic_steps}, Turn{generator, points});
        //! [turns]
        if (session.rank() != 0 || results[0].interrupted) return;

        const torch::NoGradGuard no_grad;
        const torch::Tensor radius = generator.model().forward(torch::randn({1000, 4})).norm(2, 1);
        const double on_ring = ((radius - 1).abs() < 0.3).to(torch::kFloat).mean().item<double>();
        std::printf("%.0f %% of the points that it makes are on the ring\n", 100 * on_ring);
    });
}
