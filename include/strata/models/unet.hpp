#pragma once
// strata/models/unet.hpp - Unet: the U-Net of Stable Diffusion 1.5 and of SDXL, which differ in their options alone.

#include <memory>
#include <string>
#include <vector>

#include <torch/torch.h>

#include <strata/core/inline.hpp>
#include <strata/models/adaptable_model.hpp>
#include <strata/models/unet_blocks.hpp>
#include <strata/models/unet_options.hpp>
#include <strata/zero/unit.hpp>

namespace strata::models {

/// What a U-Net of SDXL's shape is told besides time and text; undefined for one of SD 1.5's.
struct UnetAddition {
    /// The pooled caption, P = UnetOptions::pooled_dim().
    at::Tensor pooled_BP;
    /// Height and width of the original, top and left of the crop, height and width of the target; pixels.
    at::Tensor time_ids_B6;
};

/// A UNet2DConditionModel (Rombach et al. 2022, arXiv:2112.10752; SDXL: Podell et al. 2023, arXiv:2307.01952) with the
/// parameter names of its files. Computes in the type of its parameters (fp32 or bf16; norms and softmax in fp32 either
/// way) and on their device.
///
/// Units are residual blocks, transformer blocks and what halves or doubles edges. Outside of them are the first and
/// the last convolution, the embeddings of time, and the two projections and the norm of each attention: 1.2 % of
/// SDXL's parameters.
class Unet : public torch::nn::Module, public AdaptableModel {
public:
    using Units = UnitList<ResnetBlock, TransformerBlock, Downsample, Upsample>;

    /// Throws Errc::bad_model_options with all that does not fit together.
    explicit Unet(UnetOptions options);

    /// What the U-Net predicts of a noisy picture.
    ///
    ///   sample    (B, in_channels, h, w), any h and w that are at least 1
    ///   timestep  (B), numbers from 0 to 999, whole or not
    ///   context   (B, S, cross_attention_dim)
    ///   addition  both defined where the options have an addition, neither otherwise
    /// Returns (B, out_channels, h, w) in the type of sample. Throws Errc::bad_value for tensors of other shapes.
    at::Tensor forward(const at::Tensor& sample_BChw, const at::Tensor& timestep_B, const at::Tensor& context_BSE,
                       const UnetAddition& addition = {});

    [[nodiscard]] const UnetOptions& options() const noexcept { return options_; }

private:
    void check_inputs(const at::Tensor& sample_BChw, const at::Tensor& timestep_B, const at::Tensor& context_BSE,
                      const UnetAddition& addition) const;
    /// The embedding of time, and of the addition where there is one.
    at::Tensor embed(const at::Tensor& timestep_B, const UnetAddition& addition);

    UnetOptions options_;
    std::shared_ptr<Conv2d> conv_in_, conv_out_;
    std::shared_ptr<UnetEmbedding> time_embedding_, add_embedding_;
    std::vector<std::shared_ptr<UnetDownBlock>> down_blocks_;
    std::shared_ptr<UnetMidBlock> mid_block_;
    std::vector<std::shared_ptr<UnetUpBlock>> up_blocks_;
    std::shared_ptr<GroupNorm> conv_norm_out_;
};

}  // namespace strata::models

#ifndef STRATA_COMPILED
#include <strata/models/impl/unet.ipp>
#endif
