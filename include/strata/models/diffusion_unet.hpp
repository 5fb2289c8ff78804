#pragma once
// strata/models/diffusion_unet.hpp - SdxlUnet and Sd15Unet: U-Nets that a trainer can train, with the objective they
// were trained by.

#include <cstdint>
#include <utility>

#include <torch/torch.h>

#include <strata/core/inline.hpp>
#include <strata/diffusion/objective.hpp>
#include <strata/models/unet.hpp>
#include <strata/models/unet_batch.hpp>

namespace strata::models {

/// A Unet with its loss: what it is to predict of a picture with noise, epsilon or v, weighted or not, is its
/// objective's.
class DiffusionUnet : public Unet {
public:
    using Batch = UnetBatch;

    /// Errors of forward() at noise and timesteps from libtorch's default CPU generator, see diffusion::DdpmObjective.
    /// Throws Errc::bad_value for a batch of another model.
    at::Tensor loss(const Batch& batch);

    /// The same error at noise and a timestep that follow from each picture's latents alone, whatever batch it is in:
    /// what a trainer evaluates with.
    at::Tensor evaluation_loss(const Batch& batch);

    [[nodiscard]] const diffusion::DdpmObjective& objective() const noexcept { return objective_; }

protected:
    enum class Kind : std::uint8_t { sd15, sdxl };
    /// Throws Errc::bad_model_options for options of the other kind.
    DiffusionUnet(Kind kind, UnetOptions options, diffusion::DdpmObjective objective);
    ~DiffusionUnet() override = default;

private:
    at::Tensor error(const Batch& batch, const diffusion::NoiseSource& source);

    diffusion::DdpmObjective objective_;
};

/// Is told the pooled caption and the time ids of each picture besides.
class SdxlUnet final : public DiffusionUnet {
public:
    explicit SdxlUnet(UnetOptions options = sdxl_unet_options(),
                      diffusion::DdpmObjective objective = diffusion::DdpmObjective{})
        : DiffusionUnet{Kind::sdxl, std::move(options), std::move(objective)} {}
};

/// Knows time and text alone.
class Sd15Unet final : public DiffusionUnet {
public:
    explicit Sd15Unet(UnetOptions options = sd15_unet_options(),
                      diffusion::DdpmObjective objective = diffusion::DdpmObjective{})
        : DiffusionUnet{Kind::sd15, std::move(options), std::move(objective)} {}
};

}  // namespace strata::models

#ifndef STRATA_COMPILED
#include <strata/models/impl/diffusion_unet.ipp>
#endif
