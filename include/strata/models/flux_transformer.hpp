#pragma once
// strata/models/flux_transformer.hpp - FluxTransformer: Flux.1 under the names of its published weights.
//
// Black Forest Labs' Flux.1 (2024; Labs et al. 2025, arXiv:2506.15742): [dev] and its descendants with guidance
// embedding, [schnell] without. Double-stream blocks, then single-stream blocks, over packed latents and text tokens.
//
// Shapes: B pictures, I image tokens, T text tokens, P values of a packed token, E width of a text token or a pooled
// caption.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <torch/torch.h>

#include <strata/core/inline.hpp>
#include <strata/models/adaptable_model.hpp>
#include <strata/models/flux_blocks.hpp>
#include <strata/models/flux_conditioning.hpp>
#include <strata/models/rotary.hpp>
#include <strata/zero/unit.hpp>

namespace strata::models {

/// Sizes of a FluxTransformer; the defaults are those of Flux.1 [dev].
struct FluxOptions {
    std::int64_t token_values = 64;      ///< in_channels: P, of a packed token; 2 x 2 latents of 16 channels
    std::int64_t output_values = 64;     ///< out_channels: of what comes out for a token
    std::int64_t text_width = 4096;      ///< joint_attention_dim: E of text tokens
    std::int64_t pooled_width = 768;     ///< pooled_projection_dim: E of the pooled caption
    std::int64_t heads = 24;             ///< num_attention_heads
    RotaryAxes rotary_axes{16, 56, 56};  ///< axes_dims_rope; their sum is the width of a head
    std::int64_t double_blocks = 19;     ///< num_layers
    std::int64_t single_blocks = 38;     ///< num_single_layers
    bool has_guidance = true;            ///< guidance_embeds
    FluxStart start = FluxStart::libtorch;

    [[nodiscard]] std::int64_t head_width() const noexcept { return rotary_axes[0] + rotary_axes[1] + rotary_axes[2]; }
    [[nodiscard]] std::int64_t width() const noexcept { return heads * head_width(); }
    friend bool operator==(const FluxOptions&, const FluxOptions&) = default;
};

/// The `config.json` of a FluxTransformer2DModel. What it does not say is what the class that wrote it takes then.
/// Throws Errc::unreadable_config, and Errc::bad_model_config with everything that is wrong.
[[nodiscard]] FluxOptions read_flux_config(const std::filesystem::path& file);
/// The same of a text; `source` stands for the file in messages.
[[nodiscard]] FluxOptions parse_flux_config(std::string_view json, std::string source);

/// What a FluxTransformer looks at. Any float type and device that is the parameters'; computed with in theirs.
struct FluxInput {
    at::Tensor tokens_BIP{};    ///< noisy latents, packed (pack_2x2); behind them those of pictures to look at, if any
    at::Tensor text_BTE{};      ///< of the caption
    at::Tensor pooled_BE{};     ///< the caption as one vector
    at::Tensor sigma_B{};       ///< noise level in [0, 1], fp32
    at::Tensor guidance_B{};    ///< the plain scale, 3.5 say, fp32; undefined where the model has no guidance embedding
    at::Tensor image_ids_I3{};  ///< grid_ids(H / 2, W / 2), and grid_ids(h / 2, w / 2, 1) for pictures to look at
    at::Tensor text_ids_T3{};   ///< undefined: zeros, as of Flux.1
    /// True where a text token is one, false where it fills up: nobody looks at those then. Undefined: all are looked
    /// at, padding too, which is how Flux.1 was trained.
    at::Tensor text_mask_BT{};
};

/// The transformer of Flux.1. Every block is a Unit. Computes in the type of its parameters, with norms, softmax and
/// the embedding of sigma in fp32.
class FluxTransformer : public torch::nn::Module, public AdaptableModel {
public:
    using Units = UnitList<JointBlock, SingleBlock>;

    /// Throws Errc::bad_model_options with all sizes that do not fit: less than one head, an axis that is odd.
    explicit FluxTransformer(const FluxOptions& options = {});

    /// The velocity noise - x of every image token, (B, I, output_values), in the type of tokens_BIP; only those of the
    /// picture that is drawn mean something. Throws Errc::bad_value with all tensors that are missing or of another
    /// shape.
    at::Tensor forward(const FluxInput& input);

    [[nodiscard]] const FluxOptions& flux_options() const noexcept { return flux_options_; }

protected:
    /// The type that the model computes in.
    [[nodiscard]] at::ScalarType type() const { return proj_out_->weight.scalar_type(); }

private:
    FluxOptions flux_options_;
    std::shared_ptr<TimeTextEmbedding> time_text_embed_;
    std::shared_ptr<Linear> context_embedder_, x_embedder_;
    std::vector<std::shared_ptr<Unit<JointBlock>>> double_blocks_;
    std::vector<std::shared_ptr<Unit<SingleBlock>>> single_blocks_;
    std::shared_ptr<Modulation> norm_out_;
    std::shared_ptr<Linear> proj_out_;
};

}  // namespace strata::models

#ifndef STRATA_COMPILED
#include <strata/models/impl/flux_config.ipp>
#include <strata/models/impl/flux_transformer.ipp>
#endif
