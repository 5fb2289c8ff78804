#pragma once
// strata/models/autoencoder_kl_options.hpp - AutoencoderKlOptions: the shape of an AutoencoderKl, and its config.json.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <strata/core/inline.hpp>

namespace strata::models {

/// Shape of an AutoencoderKl, and how its latents are scaled. The defaults are those of SDXL.
struct AutoencoderKlOptions {
    std::int64_t latent_channels = 4;
    std::vector<std::int64_t> widths = {128, 256, 512,
                                        512};  ///< channels of a block; each but the last halves the picture
    std::int64_t layers_per_block = 2;
    std::int64_t norm_groups = 32;
    bool mid_attention = true;
    bool quant_conv = true;       ///< a convolution 1x1 behind the encoder; Flux has none
    bool post_quant_conv = true;  ///< and before the decoder
    double scaling_factor = 0.13025;
    double shift_factor = 0.0;

    /// Throws Errc::bad_model_options for sizes that do not fit together.
    void check() const;
};

/// Options of a `config.json` with `_class_name` AutoencoderKL. Throws Errc::unreadable_config, and
/// Errc::bad_model_config with all that is wrong in it.
[[nodiscard]] AutoencoderKlOptions read_autoencoder_kl(const std::filesystem::path& config_json);
/// The same of a text; `source` stands for the file in messages.
[[nodiscard]] AutoencoderKlOptions parse_autoencoder_kl(std::string_view json, std::string source);

}  // namespace strata::models

#ifndef STRATA_COMPILED
#include <strata/models/impl/autoencoder_kl_options.ipp>
#endif
