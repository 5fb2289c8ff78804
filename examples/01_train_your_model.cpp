// 01_train_your_model - a model and a loss of your own, in a trainer that you compose.
//
// Two spirals, each its own class, wound three quarters of a turn around one another:
// no straight line parts them, a small network does. Run it alone or on several ranks:
//   ./01_train_your_model --output /tmp/spirals --fresh
//   strata launch -n 2 -- ./01_train_your_model --output /tmp/spirals --fresh

#include <concepts>
#include <cstdio>
#include <type_traits>

#include <torch/torch.h>

#include <strata/strata.hpp>

using namespace strata;

//! [model]
struct Points {
    torch::Tensor xy_B2;   // (B, 2) positions
    torch::Tensor side_B;  // (B) 0 or 1
};
struct Spirals : torch::nn::Module {
    using Batch = Points;
    torch::nn::Sequential net{torch::nn::Linear{2, 64}, torch::nn::Tanh{}, torch::nn::Linear{64, 64}, torch::nn::Tanh{},
                              torch::nn::Linear{64, 1}};
    Spirals() { register_module("net", net); }
    torch::Tensor logits(const torch::Tensor& xy_B2) { return net->forward(xy_B2).squeeze(1); }
    torch::Tensor loss(const Batch& batch) {
        return torch::binary_cross_entropy_with_logits(logits(batch.xy_B2), batch.side_B);
    }
};
//! [model]

// Where a GPU trains, the trainer looks for the tensors of a batch.
//! [visit]
template <class Batch, class Call>
requires std::same_as<std::remove_const_t<Batch>, Points>
void visit_tensors(Batch& points, Call&& call) {
    call(points.xy_B2);
    call(points.side_B);
}
//! [visit]

Points some_points(std::int64_t count) {
    const auto side_B = torch::randint(2, {count}).to(torch::kFloat);
    const auto turn_B = torch::rand({count}) * 4.7 + 0.5;
    const auto angle_B = turn_B + side_B * M_PI;
    return {torch::stack({turn_B * angle_B.cos(), turn_B * angle_B.sin()}, 1) / 3, side_B};
}

//! [compose]
using MyTrainer = Trainer<Spirals,             // any torch::nn::Module with `loss(batch)`
                          ZeroStage<2>,        // gradients and optimizer state split over the ranks
                          OffloadTarget<Cpu>,  // the update runs in host memory
                          Optimizer<AdamW>>;
//! [compose]

//! [main]
int main(int argc, char** argv) {
    return strata::run(argc, argv, [](Session& session) {
        const optim::Schedule cosine{
            .shape = optim::ScheduleShape::cosine, .lr = 1e-2, .warmup_steps = 20, .total_steps = 600};
        MyTrainer trainer{session, Spirals{}, {.max_steps = 600, .schedule = cosine, .engine = {.max_grad_norm = 1.0}}};
        // Rank r sees points of its own: the trainer seeds libtorch by step and rank before it asks for a batch.
        const FitResult result = trainer.fit(FunctionSource{[](std::int64_t) { return some_points(64); }, 100, 64});
        const Points test = some_points(1000);
        const auto logits = trainer.model().logits(test.xy_B2.to(trainer.device())).cpu();
        const auto right = (logits > 0).to(torch::kFloat).eq(test.side_B);
        if (session.rank() == 0)
            std::printf("loss %.4f after %lld steps, %.1f %% of new points on the right side\n", result.loss,
                        static_cast<long long>(result.step), 100 * right.to(torch::kFloat).mean().item<double>());
    });
}
//! [main]
