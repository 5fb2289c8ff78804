// 10_own_adapter - a kind of adapter of your own: only a number for each output of some layers is trained.
//
// A small Flux stays as it is, and the scales beside it learn; stages, tiers, checkpoints and averages come as with LoRA:
//   ./10_own_adapter --output /tmp/own_adapter --fresh

#include <cstdint>
#include <cstdio>
#include <memory>

#include <torch/torch.h>

#include <strata/models/small_flux.hpp>
#include <strata/strata.hpp>

#include "row_scales.hpp"

using namespace strata;

/// Latents of two kinds of pictures, told apart by their captions.
models::FluxBatch some_pictures(std::int64_t) {
    const auto kind_B = torch::randint(0, 2, {8}).to(torch::kFloat);
    models::FluxBatch batch;
    batch.latents_BCHW = (kind_B * 2 - 1).view({8, 1, 1, 1}).expand({8, 4, 4, 4}).clone();
    batch.text_BTE = kind_B.view({8, 1, 1}).expand({8, 2, 16}).clone();
    batch.pooled_BE = kind_B.view({8, 1}).expand({8, 16}).clone();
    return batch;
}

int main(int argc, char** argv) {
    return strata::run(argc, argv, [](Session& session) {
        const models::SmallFluxOptions small{.latent_channels = 4,
                                             .text_width = 16,
                                             .heads = 1,
                                             .rotary_axes = {4, 6, 6},
                                             .double_blocks = 1,
                                             .single_blocks = 1};
        const auto model = std::make_shared<models::SmallFlux>(small);
        {  // weights that somebody else would have trained: random ones, of all layers
            const torch::NoGradGuard no_grad;
            for (torch::Tensor& weight : model->parameters()) weight.normal_(0, 0.1);
        }
        //! [train]
        Trainer<models::SmallFlux, Adapter<my::RowScales>, ZeroStage<3>, Ema<>> trainer{
            session, model, {.max_steps = 60, .schedule = {.lr = 1e-1}, .adapter = {.targets = "proj_out,*.linear"}}};
        FunctionSource held_out{some_pictures, 4, 8};
        trainer.evaluate_every(30, "held_out", held_out);
        const FitResult result = trainer.fit(FunctionSource{some_pictures, 1000, 8});
        //! [train]
        if (session.rank() == 0)
            std::printf("loss %.3f after %lld steps of %lld numbers beside %zu layers\n", result.loss,
                        static_cast<long long>(result.step), static_cast<long long>(trainer.adapted().numel()),
                        trainer.adapted().layers().size());
    });
}
