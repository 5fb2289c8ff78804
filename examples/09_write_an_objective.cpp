// 09_write_an_objective - a model that strata has, trained by a loss of your own: an outlier among the pictures weighs less.
//
// The loss is all that is written here; stages, tiers, checkpoints and evaluation come as with any model:
//   ./09_write_an_objective --output /tmp/objective --fresh

#include <cstdint>
#include <cstdio>

#include <torch/torch.h>

#include <strata/diffusion/noise_source.hpp>
#include <strata/models/small_flux.hpp>
#include <strata/strata.hpp>

using namespace strata;

//! [objective]
/// Rectified flow with a pseudo-Huber error, sqrt(d^2 + c^2) - c (Song and Dhariwal 2023, arXiv:2310.14189, section 3.3), in place of d^2, and
/// levels of noise that are drawn towards noise: the density of sigma is 2 sigma.
struct RobustFlux : models::SmallFlux {
    static constexpr double c = 0.3;
    using models::SmallFlux::SmallFlux;

    /// At noise of libtorch's generator, which the trainer has seeded for this micro-batch.
    torch::Tensor loss(const Batch& batch) {
        const auto& x = batch.latents_BCHW;
        return error_at(batch, torch::randn_like(x), torch::rand({x.size(0)}, x.options()).sqrt());
    }
    /// At noise that follows from the pictures: the same at every evaluation.
    torch::Tensor evaluation_loss(const Batch& batch) {
        const auto& x = batch.latents_BCHW;
        const auto drawn = diffusion::NoiseSource::of_pictures(x);
        const auto noise = drawn.normal(x.sizes()).to(x.device());
        return error_at(batch, noise, drawn.uniform({x.size(0)}).sqrt().to(x.device()));
    }

private:
    torch::Tensor error_at(const Batch& batch, const torch::Tensor& noise, const torch::Tensor& sigma_B) {
        const auto& x = batch.latents_BCHW;
        const auto s = sigma_B.view({-1, 1, 1, 1});
        const auto velocity = forward(noise * s + x * (1 - s), batch.text_BTE, batch.pooled_BE, sigma_B);
        return ((velocity - (noise - x)).square() + c * c).sqrt().mean() - c;  // in fp32, as all losses are
    }
};
//! [objective]

/// Latents of two kinds of pictures, told apart by their captions; one in eight is broken: far too bright.
models::FluxBatch some_pictures(std::int64_t) {
    const auto kind_B = torch::randint(0, 2, {8}).to(torch::kFloat);
    models::FluxBatch batch;
    batch.latents_BCHW = (kind_B * 2 - 1).view({8, 1, 1, 1}).expand({8, 4, 4, 4}).clone();
    batch.latents_BCHW[0] *= 20;
    batch.text_BTE = kind_B.view({8, 1, 1}).expand({8, 2, 16}).clone();
    batch.pooled_BE = kind_B.view({8, 1}).expand({8, 16}).clone();
    return batch;
}

int main(int argc, char** argv) {
    return strata::run(argc, argv, [](Session& session) {
        //! [train]
        const models::SmallFluxOptions small{.latent_channels = 4,
                                             .text_width = 16,
                                             .heads = 1,
                                             .rotary_axes = {4, 6, 6},
                                             .double_blocks = 1,
                                             .single_blocks = 1};
        Trainer<RobustFlux, ZeroStage<3>, Ema<>> trainer{
            session, RobustFlux{small}, {.max_steps = 60, .schedule = {.lr = 3e-3}}};
        FunctionSource held_out{some_pictures, 4, 8};
        trainer.evaluate_every(30, "held_out", held_out);
        const FitResult result = trainer.fit(FunctionSource{some_pictures, 1000, 8});
        //! [train]
        if (session.rank() == 0)
            std::printf("loss %.3f after %lld steps\n", result.loss, static_cast<long long>(result.step));
    });
}
