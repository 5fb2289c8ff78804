#pragma once
// strata/datasets/latent_caching.hpp - when the latents of a data set are made, and for how long they are kept.

#include <cstdint>

#include <strata/config/dataset.hpp>

namespace strata::datasets {

/// What the keys that begin with `vae_cache_` ask for.
enum class LatentCaching : std::uint8_t {
    ahead,       ///< all before the first step, kept for good
    on_demand,   ///< at a picture's first visit, kept for good
    each_epoch,  ///< at a picture's first visit in an epoch, kept until the epoch is over
    none,        ///< at each visit
};

/// `vae_cache_disable` is none, `vae_cache_clear_each_epoch` each_epoch, `vae_cache_ondemand` and `skip_file_discovery` vae
/// on_demand; the first that is given counts. Pictures that are cropped at random need one of the first two
/// (config::load_datasets).
[[nodiscard]] constexpr LatentCaching latent_caching(const config::ImageDataset& dataset) noexcept {
    if (dataset.vae_cache_disable) return LatentCaching::none;
    if (dataset.vae_cache_clear_each_epoch) return LatentCaching::each_epoch;
    if (dataset.is_cropped_at_random()) return LatentCaching::none;
    return dataset.vae_cache_ondemand || dataset.skip_file_discovery.vae ? LatentCaching::on_demand
                                                                         : LatentCaching::ahead;
}

}  // namespace strata::datasets
