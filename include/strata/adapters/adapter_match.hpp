#pragma once
// strata/adapters/adapter_match.hpp - match_adapter(): every adapter of a file finds its layers in a model, or one error says all that
// differs.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include <strata/adapters/adapter_file.hpp>
#include <strata/adapters/layer_names.hpp>
#include <strata/core/inline.hpp>

namespace strata::adapters {

struct AdapterFileOptions {
    /// Which model of the pipeline the model is. None: as its layers' names tell; say text_encoder_2 for SDXL's second CLIP.
    std::optional<ModelPart> part{};
    /// Of LoRAs whose file does not say alpha: diffusers takes the rank, and so does this where none is given.
    std::optional<double> alpha{};
    /// Tensors of the file that the model has no layer for, by their names. None: all of this part have to be the model's.
    std::function<bool(std::string_view name)> may_be_left{};
    /// Whether the file may be one for other models of the pipeline alone; else that is an error.
    bool may_have_nothing = false;
};

/// What a file changes of one layer. Its weight W, as a matrix, becomes W + scale * (up down), or what LoKr and DoRA make of it.
struct MatchedAdapter {
    const AdapterTensors* tensors = nullptr;  ///< AdapterMatch::file's
    FilePlace place{};                        ///< layer: of AdapterMatch::layers
    double scale = 1;                         ///< alpha / rank
};

struct AdapterMatch {
    std::shared_ptr<const AdapterFile> file;
    std::vector<NamedLayer> layers;        ///< all of the model's
    std::vector<MatchedAdapter> adapters;  ///< in the order of layers; at most one a layer
    std::size_t of_other_parts = 0;        ///< layers of other models of the pipeline that the file has adapters of
};

/// The adapters that a file has for these layers. Reads all of them, for values that are no numbers.
///
/// Throws adapter_does_not_fit: one error that names all layers that the model does not have, halves of pairs that are missing, matrices whose
/// shapes do not fit the layer's, layers that are named twice and tensors that are of no adapter that is read; also where the file has nothing
/// for this part of the pipeline. bad_adapter_file for classes of cloneofsimo's files whose layers are not numbered here, and for values that are NaN
/// or infinite, with the tensors that have them.
[[nodiscard]] AdapterMatch match_adapter(std::shared_ptr<const AdapterFile> file, std::vector<NamedLayer> layers,
                                         const AdapterFileOptions& options = {});

/// Layers in the order in which cloneofsimo's library numbers them: that in which its model lists them.
///
/// Of each module of the target classes, as they come in the model, that library takes the linear layers, as they come in the module. A
/// UNet2DConditionModel lists its down blocks, its up blocks and then the middle one, which is made last; a transformer block attn1, ff and attn2 in early
/// versions of diffusers, and attn1, attn2, ff in later ones; an attention to_q, to_k, to_v, to_out.0; and a CLIPAttention k_proj, v_proj, q_proj, out_proj.
/// Shapes tell both kinds of transformer blocks apart: only the feed-forward's GEGLU has 8 rows a column.
///
///   classes             CrossAttention or Attention, GEGLU; CLIPAttention
///   feed_forward_first  ff before attn2
/// Returns indices of layers. Throws bad_adapter_file for other classes.
[[nodiscard]] std::vector<std::size_t> numbered_layers(const std::vector<NamedLayer>& layers, ModelPart part,
                                                       const std::vector<std::string>& classes,
                                                       bool feed_forward_first);

}  // namespace strata::adapters

#ifndef STRATA_COMPILED
#include <strata/adapters/impl/adapter_match.ipp>
#include <strata/adapters/impl/numbered_layers.ipp>
#endif
