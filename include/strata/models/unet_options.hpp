#pragma once
// strata/models/unet_options.hpp - UnetOptions: the sizes of a U-Net of the latent diffusion family, and the blocks
// that follow from them.

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <strata/config/document.hpp>
#include <strata/core/inline.hpp>

namespace strata::models {

/// Sizes of a U-Net that listens to text by cross-attention (Rombach et al. 2022, arXiv:2112.10752), and to numbers
/// about a picture's size where it is SDXL's (Podell et al. 2023, arXiv:2307.01952).
struct UnetOptions {
    /// What happens at one resolution; the next level has half the edges.
    struct Level {
        std::int64_t channels = 0;
        std::int64_t heads = 1;     ///< of its attentions
        std::int64_t depth = 1;     ///< transformer blocks of each of its attentions
        bool has_attention = true;  ///< false: residual blocks alone. Of the last level the middle attends even so.
    };
    std::vector<Level> levels;  ///< finest first
    std::int64_t in_channels = 4;
    std::int64_t out_channels = 4;
    std::int64_t layers_per_block = 2;       ///< residual blocks of a level on the way down; one more on the way up
    std::int64_t cross_attention_dim = 768;  ///< width of a text token
    std::int64_t norm_groups = 32;
    double norm_eps = 1e-5;  ///< of group norms in residual blocks and at the end; 1e-6 before attentions, always
    bool linear_projection = false;       ///< weights in and out of an attention are (C, C); false: (C, C, 1, 1)
    std::int64_t addition_time_dim = 0;   ///< features of each of the six time ids; 0: a U-Net without them
    std::int64_t addition_input_dim = 0;  ///< those of all six and the pooled text's width

    /// Width of the pooled text, 0 for a U-Net that takes none.
    [[nodiscard]] std::int64_t pooled_dim() const noexcept { return addition_input_dim - 6 * addition_time_dim; }
    /// Width of the embedding of time.
    [[nodiscard]] std::int64_t time_dim() const noexcept { return 4 * levels.front().channels; }
};

[[nodiscard]] UnetOptions sdxl_unet_options();  ///< of Stable Diffusion XL base 1.0: 2,567,463,684 parameters
[[nodiscard]] UnetOptions sd15_unet_options();  ///< of Stable Diffusion 1.5: 859,520,964 parameters

/// What of these sizes fits no U-Net, a sentence each without a full stop; empty if they fit.
[[nodiscard]] std::vector<std::string> unet_problems(const UnetOptions& options);

/// The sizes in a config.json of a UNet2DConditionModel, whose names they have but for one: its `attention_head_dim` is
/// the number of heads.
///
/// Throws Errc::bad_model_config with everything in it that is missing, that fits no U-Net or that this one does not
/// compute, Errc::unreadable_config where the file is missing or no JSON.
[[nodiscard]] UnetOptions load_unet_options(const std::filesystem::path& config_json);
/// The same of a document that is there already.
[[nodiscard]] UnetOptions unet_options_of(const config::Document& document);

/// A part of a U-Net: a down block, the middle or an up block.
struct UnetBlockShape {
    std::vector<std::pair<std::int64_t, std::int64_t>> resnets;  ///< channels that each takes and gives
    std::int64_t heads = 1;
    std::int64_t depth = 0;  ///< transformer blocks of each attention; 0: no attention
    bool resamples = false;  ///< halves or doubles the edges at its end
    [[nodiscard]] std::int64_t channels() const noexcept { return resnets.back().second; }
};
/// The blocks of options that have no problems, in the order of a forward pass. An up block's residual blocks take what came from below with what the way
/// down left at that resolution.
[[nodiscard]] std::vector<UnetBlockShape> down_block_shapes(const UnetOptions& options);
[[nodiscard]] UnetBlockShape mid_block_shape(const UnetOptions& options);
[[nodiscard]] std::vector<UnetBlockShape> up_block_shapes(const UnetOptions& options);

/// A parameter as the ecosystem's files name it.
struct UnetParameter {
    std::string name;
    std::vector<std::int64_t> shape;
    [[nodiscard]] std::int64_t numel() const noexcept {
        std::int64_t product = 1;
        for (const std::int64_t edge : shape) product *= edge;
        return product;
    }
};
/// Every parameter of a U-Net of these sizes, which have no problems, without making one.
[[nodiscard]] std::vector<UnetParameter> unet_parameters(const UnetOptions& options);
/// The numbers in them.
[[nodiscard]] std::int64_t unet_parameter_count(const UnetOptions& options);

}  // namespace strata::models

#ifndef STRATA_COMPILED
#include <strata/models/impl/unet_config.ipp>
#include <strata/models/impl/unet_options.ipp>
#include <strata/models/impl/unet_parameters.ipp>
#endif
