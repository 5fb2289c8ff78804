#pragma once
// strata/datasets/cache_identity.hpp - what a cache entry depends on, as the text it is known by.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <strata/core/inline.hpp>
#include <strata/datasets/sample.hpp>
#include <strata/pictures/frame.hpp>

namespace strata::datasets {

/// Of the latents of a picture in a frame.
///
///   encoder  Autoencoder::id()
///   place    of the pictures: folder_place() or a bucket's where("")
///   epoch    that they are made for, with LatentCaching::each_epoch
[[nodiscard]] std::string latent_identity(std::string_view encoder, std::string_view place, const Sample& sample,
                                          const pictures::Frame& frame,
                                          std::optional<std::int64_t> epoch = std::nullopt);

/// Of an embedded caption.
///
///   encoder  TextEncoder::id()
[[nodiscard]] std::string text_identity(std::string_view encoder, std::string_view caption);

}  // namespace strata::datasets

#ifndef STRATA_COMPILED
#include <strata/datasets/impl/cache_identity.ipp>
#endif
