#pragma once
// bench/real_data/models.hpp - a U-Net of Stable Diffusion 1.5's shape and a transformer of Flux.1's, narrow, which
// write down all that they are given and what they say.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <torch/torch.h>

#include <strata/diffusion/noise_source.hpp>
#include <strata/diffusion/objective.hpp>
#include <strata/models/flux_recipe.hpp>
#include <strata/models/flux_transformer.hpp>
#include <strata/models/packing.hpp>
#include <strata/models/rotary.hpp>
#include <strata/models/unet.hpp>
#include <strata/weights/save_weights.hpp>

namespace bench {

/// Of a run, step by step: tensors "12.latents" and the like, and losses.
struct Record {
    std::uint64_t seed = 1;
    std::vector<strata::weights::SavedTensor> tensors;
    std::vector<double> losses;

    /// Of the step that begins: noise and a number for each picture.
    [[nodiscard]] strata::diffusion::NoiseSource source() const {
        return strata::diffusion::NoiseSource::seeded(1000 * seed + losses.size());
    }
    void keep(const char* name, const at::Tensor& tensor) {
        tensors.push_back({std::to_string(losses.size()) + "." + name, tensor.detach().to(at::kFloat).clone()});
    }
    /// Ends the step.
    at::Tensor say(const at::Tensor& loss) {
        losses.push_back(loss.item<double>());
        return loss;
    }
};

inline std::vector<double> doubles(const at::Tensor& values_B) {
    std::vector<double> all;
    for (std::int64_t i = 0; i < values_B.size(0); ++i) all.push_back(values_B[i].item<double>());
    return all;
}

/// 8.3 million parameters: a tenth of Stable Diffusion 1.5's channels, half its heads, a quarter of its groups.
inline strata::models::UnetOptions narrow_sd15_options() {
    strata::models::UnetOptions options = strata::models::sd15_unet_options();
    for (auto& level : options.levels) {
        level.channels /= 10;
        level.heads = 4;
    }
    options.norm_groups = 8;
    options.cross_attention_dim = 128;
    return options;
}

class RecordedUnet : public strata::models::Unet {
public:
    using Batch = strata::models::FluxBatch;
    explicit RecordedUnet(std::shared_ptr<Record> record) : Unet{narrow_sd15_options()}, record_{std::move(record)} {}

    /// Epsilon, as Stable Diffusion 1.5 learnt it, at noise and timesteps of the record's source.
    at::Tensor loss(const Batch& batch) {
        const at::Tensor& x = batch.latents_BCHW;
        const auto source = record_->source();
        const at::Tensor noise = source.normal(x.sizes());
        const at::Tensor timestep_B = (source.uniform({x.size(0)}) * 1000).floor().clamp(0, 999);
        std::vector<std::int64_t> timesteps;
        for (const double timestep : doubles(timestep_B)) timesteps.push_back(static_cast<std::int64_t>(timestep));
        record_->keep("latents", x);
        record_->keep("text", batch.text_BTE);
        record_->keep("noise", noise);
        record_->keep("level", timestep_B);
        const strata::diffusion::Noised noised = objective_.at(x, noise, timesteps);
        return record_->say(noised.loss(forward(noised.input, noised.timestep_B, batch.text_BTE)));
    }

private:
    std::shared_ptr<Record> record_;
    strata::diffusion::DdpmObjective objective_{};
};

/// 5.0 million parameters: 2 joint and 4 single blocks of width 192.
inline strata::models::FluxOptions narrow_flux_options() {
    strata::models::FluxOptions options;
    options.heads = 6;
    options.rotary_axes = {8, 12, 12};
    options.text_width = options.pooled_width = 128;
    options.double_blocks = 2;
    options.single_blocks = 4;
    return options;
}

class RecordedFlux : public strata::models::FluxTransformer {
public:
    using Batch = strata::models::FluxBatch;
    explicit RecordedFlux(std::shared_ptr<Record> record)
        : FluxTransformer{narrow_flux_options()}, record_{std::move(record)} {}

    /// The velocity, as Flux.1 learnt it, at noise and logit-normal levels of the record's source.
    at::Tensor loss(const Batch& batch) {
        const at::Tensor& x = batch.latents_BCHW;
        const auto source = record_->source();
        const at::Tensor noise = source.normal(x.sizes());
        const at::Tensor sigma_B = source.normal({x.size(0)}).sigmoid();
        record_->keep("latents", x);
        record_->keep("text", batch.text_BTE);
        record_->keep("pooled", batch.pooled_BE);
        record_->keep("noise", noise);
        record_->keep("level", sigma_B);
        const strata::diffusion::Noised noised = objective_.at(x, noise, doubles(sigma_B));
        strata::models::FluxInput input;
        input.tokens_BIP = strata::models::pack_2x2(noised.input);
        input.text_BTE = batch.text_BTE;
        input.pooled_BE = batch.pooled_BE;
        input.sigma_B = noised.sigma_B;
        input.guidance_B = at::ones_like(noised.sigma_B);
        input.image_ids_I3 = strata::models::grid_ids(x.size(2) / 2, x.size(3) / 2);
        const at::Tensor velocity = strata::models::unpack_2x2(forward(input), x.size(2), x.size(3));
        return record_->say(noised.loss(velocity));
    }

private:
    std::shared_ptr<Record> record_;
    strata::diffusion::FlowObjective objective_{};
};

}  // namespace bench
