#pragma once
// strata/models/clip_text.hpp - ClipText: the text encoders of CLIP, under the names of their published weights.
//
// Radford et al. 2021 (arXiv:2103.00020): L, which Stable Diffusion 1.5, SDXL and Flux.1 read captions with, and
// Cherti et al. 2022 (OpenCLIP, arXiv:2212.07143): bigG, SDXL's second. A transformer in which a token sees those
// before it, layer norms before each part.
//
// Shapes: B texts, L tokens, D width, E width of the projection.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <torch/torch.h>

#include <strata/core/inline.hpp>
#include <strata/models/norms.hpp>
#include <strata/models/projection.hpp>
#include <strata/zero/unit.hpp>

namespace strata::models {

/// What stands between the two layers of a feed-forward: x * sigmoid(1.702 x) in L, gelu by the error function in bigG.
enum class ClipActivation : std::uint8_t { quick_gelu, gelu };

/// Sizes of a ClipText; the defaults are those of L, 123e6 parameters.
struct ClipTextOptions {
    std::int64_t vocabulary = 49408;         ///< vocab_size
    std::int64_t width = 768;                ///< hidden_size: D
    std::int64_t feed_forward_width = 3072;  ///< intermediate_size
    std::int64_t blocks = 12;                ///< num_hidden_layers, 2 at least
    std::int64_t heads = 12;                 ///< num_attention_heads, a divisor of D
    std::int64_t longest = 77;               ///< max_position_embeddings: most tokens
    std::int64_t projection_width = 768;     ///< projection_dim: E
    bool has_projection = false;             ///< whether there is a text_projection: in CLIPTextModelWithProjection
    ClipActivation activation = ClipActivation::quick_gelu;  ///< hidden_act
    double epsilon = 1e-5;                                   ///< layer_norm_eps
    /// The token whose place is the text's: where it stands first, and 0 where it does not. 2 is what old files say,
    /// those of SD, SDXL and Flux.1 among them, and means the largest number in the text.
    std::int64_t eos = 49407;

    friend bool operator==(const ClipTextOptions&, const ClipTextOptions&) = default;
};

/// The `config.json` of a CLIPTextModel or CLIPTextModelWithProjection, which "architectures" tells apart; one that
/// does not say is without. Dropout is passed over: the encoder computes without. Throws Errc::unreadable_config, and
/// Errc::bad_model_config with everything that is wrong.
[[nodiscard]] ClipTextOptions read_clip_text_config(const std::filesystem::path& file);
/// The same of a text; `source` stands for the file in messages.
[[nodiscard]] ClipTextOptions parse_clip_text_config(std::string_view json, std::string source);

/// What a ClipText makes of texts, in the type of its parameters.
struct ClipTextOutput {
    at::Tensor last_hidden_state;  ///< (B, L, D), after the last norm
    /// (B, L, D) each, before the last norm: of the tokens and places alone, then behind each block.
    std::vector<at::Tensor> hidden_states;
    at::Tensor pooled;       ///< (B, D): the row of last_hidden_state that is the text's
    at::Tensor text_embeds;  ///< (B, E): its projection; undefined in a model without

    /// hidden_states[-2], which SDXL is conditioned with: behind the last block but one, and without the last norm.
    [[nodiscard]] const at::Tensor& hidden_states_m2() const { return hidden_states[hidden_states.size() - 2]; }
};

/// A block: x + out_proj(attention), then x + fc2(act(fc1 n)), each of n, the norm of x.
class ClipBlock : public torch::nn::Module {
public:
    ClipBlock(const ClipTextOptions& options, const at::TensorOptions& of);
    /// x (B, L, D), bias (1 or B, 1, L, L) fp32 -> (B, L, D)
    at::Tensor forward(const at::Tensor& x_BLD, const at::Tensor& bias_B1LL);

private:
    std::int64_t head_width_;
    ClipActivation activation_;
    std::shared_ptr<LayerNorm> layer_norm1_, layer_norm2_;
    std::shared_ptr<Projection> q_proj_, k_proj_, v_proj_, out_proj_, fc1_, fc2_;
};

/// The encoder. Every block is a Unit. Computes in the type of its parameters, fp32 or bf16, with norms, softmax and
/// its sums in fp32; there is no dropout.
class ClipText : public torch::nn::Module {
public:
    using Units = UnitList<ClipBlock>;

    /// Parameters of the type and on the device of `of`; zero until they are loaded, norms aside.
    /// Throws Errc::bad_model_options with all sizes that do not fit.
    explicit ClipText(const ClipTextOptions& options = {}, const at::TensorOptions& of = at::kFloat);

    ///   ids   (B, L) of 64-bit integers
    ///   mask  (B, L), 1 where a token is one and 0 where it fills up: nobody looks at those then. Undefined, as pipelines have it: all are looked at
    /// Throws Errc::bad_value for more tokens than there are places.
    ClipTextOutput forward(const at::Tensor& ids_BL, const at::Tensor& mask_BL = {});

    [[nodiscard]] const ClipTextOptions& options() const noexcept { return options_; }

private:
    [[nodiscard]] at::Tensor places_of_texts(const at::Tensor& ids_BL) const;

    ClipTextOptions options_;
    at::Tensor token_embedding_, position_embedding_;
    std::vector<std::shared_ptr<Unit<ClipBlock>>> blocks_;
    std::shared_ptr<LayerNorm> final_layer_norm_;
    std::shared_ptr<Projection> text_projection_;
};

}  // namespace strata::models

#ifndef STRATA_COMPILED
#include <strata/models/impl/clip_text.ipp>
#include <strata/models/impl/clip_text_config.ipp>
#endif
