#pragma once
// strata/adapters/layer_names.hpp - LayerNames: what adapter files call the layers of a model.
//
// Four ways to say the same, all of them met in files (docs/adapters.md has examples):
//   * the path of the layer, behind the name of its model in a pipeline: diffusers and PEFT;
//   * the same with `_` for `.` behind `lora_unet_` and the like: kohya's trainer, LyCORIS, OneTrainer;
//   * either of them with paths of the model's first code, in place of diffusers': SDXL's `input_blocks.4.1`, Flux's
//     `double_blocks.0.img_attn.qkv`, whose one layer is several of ours;
//   * a number: cloneofsimo's library (numbered_layers()).

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <strata/core/inline.hpp>

namespace strata::adapters {

/// Which model of a pipeline a model is: files put its name in front of its layers'.
enum class ModelPart : std::uint8_t { unet, transformer, text_encoder, text_encoder_2 };

/// "unet", "transformer", "text_encoder", "text_encoder_2": the names of diffusers' pipelines.
[[nodiscard]] std::string_view name_of(ModelPart part) noexcept;

/// A layer of a model that a file may have an adapter of.
struct NamedLayer {
    std::string path;                 ///< its weight is `path`.weight
    std::vector<std::int64_t> shape;  ///< of the weight: (out, in), or (out, in, kh, kw)

    [[nodiscard]] std::int64_t rows() const noexcept { return shape.front(); }
    [[nodiscard]] std::int64_t columns() const noexcept;  ///< of the weight as a matrix: in * kh * kw
};

/// The part that these layers are of, by their names: down_blocks is a unet's, text_model a text_encoder's; transformer otherwise.
[[nodiscard]] ModelPart part_of(const std::vector<NamedLayer>& layers) noexcept;

/// Where a layer is in what a file calls by one name.
struct FilePlace {
    std::size_t layer = 0;        ///< which of the layers
    std::int64_t first_row = 0;   ///< of the file's weight: a layer of ours may be a run of its rows
    std::int64_t rows = 0;        ///< that the file's weight has
    bool halves_swapped = false;  ///< the upper half of its rows is our lower one
};

/// All names by which files may call a model's layers.
class LayerNames {
public:
    /// Throws nothing: names of layers that no file would have are names too.
    LayerNames(std::vector<NamedLayer> layers, ModelPart part);

    [[nodiscard]] const std::vector<NamedLayer>& layers() const noexcept { return layers_; }
    [[nodiscard]] ModelPart part() const noexcept { return part_; }
    /// Empty: the model has no such layer. Several: they are parts of one layer of the file.
    [[nodiscard]] const std::vector<FilePlace>& find(const std::string& in_file) const noexcept;
    /// Whether the name is one of another model of the pipeline, whatever it has there.
    [[nodiscard]] bool is_of_another_part(std::string_view in_file) const noexcept;
    /// Layers whose paths end as this name does, for messages: at most three.
    [[nodiscard]] std::vector<std::string> nearest(std::string_view in_file) const;

private:
    void add(const std::string& in_file, const FilePlace& place);
    void add_path(const std::string& path, const FilePlace& place);

    std::vector<NamedLayer> layers_;
    ModelPart part_;
    std::unordered_map<std::string, std::vector<FilePlace>> places_;
};

/// `unet.PATH`
[[nodiscard]] std::string peft_name(std::string_view path, ModelPart part);
/// `lora_unet_PATH`, `lora_transformer_PATH`, `lora_te1_PATH`, `lora_te2_PATH`, with `_` for `.`; the lonely text encoder of a U-Net
/// without a second one is `lora_te_PATH`.
[[nodiscard]] std::string kohya_name(std::string_view path, ModelPart part, bool lonely_text_encoder = false);
/// `lycoris_PATH`, with `_` for `.`
[[nodiscard]] std::string lycoris_name(std::string_view path);

}  // namespace strata::adapters

#ifndef STRATA_COMPILED
#include <strata/adapters/impl/layer_names.ipp>
#endif
