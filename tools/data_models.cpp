#include "data_models.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace strata::tools {

namespace {

using storage::Dtype;

/// Latents of so many channels, an eighth of the picture's edges.
auto latents_of(std::int64_t channels, Dtype type) {
    return [channels, type](const pictures::PictureSize& target) {
        return std::vector<storage::TensorOutline>{{"latents", type, {channels, target.height / 8, target.width / 8}}};
    };
}

}  // namespace

const std::vector<KnownModel>& known_models() {
    // Flux.1: an autoencoder of 16 channels, T5 of 512 tokens of 4096, CLIP of 768; SDXL: 4 channels, two CLIPs of 77
    // tokens side by side, 768 + 1280, of which the second gives the pooled vector; SD 1.5: 4 channels, one CLIP.
    static const std::vector<KnownModel> models{
        {"small_flux",
         {"linear-codec-lapped-8x16-v2",
          latents_of(16, Dtype::f32),
          "hashed-text-8x128-v1",
          {{"pooled", Dtype::f32, {128}}, {"tokens", Dtype::f32, {8, 128}}},
          ""}},
        {"flux",
         {"",
          latents_of(16, Dtype::bf16),
          "",
          {{"mask", Dtype::boolean, {512}}, {"pooled", Dtype::bf16, {768}}, {"tokens", Dtype::bf16, {512, 4096}}},
          ""}},
        {"sdxl",
         {"",
          latents_of(4, Dtype::bf16),
          "",
          {{"pooled", Dtype::bf16, {1280}}, {"tokens", Dtype::bf16, {77, 2048}}},
          std::nullopt}},
        {"sd15", {"", latents_of(4, Dtype::bf16), "", {{"tokens", Dtype::bf16, {77, 768}}}, ""}},
    };
    return models;
}

}  // namespace strata::tools
