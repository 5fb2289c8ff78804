#pragma once
// strata/datasets/cache_identity.hpp - what a cache entry depends on, as the text it is known by.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <strata/core/inline.hpp>
#include <strata/pictures/conditioning.hpp>
#include <strata/pictures/frame.hpp>
#include <strata/storage/content_hash.hpp>

namespace strata::datasets {

/// What an entry depends on of a conditioning picture.
struct ConditioningContent {
    pictures::ConditioningKind kind = pictures::ConditioningKind::picture;
    storage::ContentHash content;  ///< of its file
};

/// Of the latents of a picture in a frame, and of what its conditioning pictures are in the same frame. Names, places and dates have no part in it: a picture that is renamed, moved,
/// copied or touched has the latents it had, and another one in its place has not.
///
///   encoder  Autoencoder::id()
///   content  of the picture's file
///   epoch    that they are made for, with LatentCaching::each_epoch
///   conditioning  in the order of the recipe; with none the identity is as if there were no such thing
[[nodiscard]] std::string latent_identity(std::string_view encoder, const storage::ContentHash& content,
                                          const pictures::Frame& frame,
                                          std::optional<std::int64_t> epoch = std::nullopt,
                                          std::span<const ConditioningContent> conditioning = {});

/// Of an embedded caption.
///
///   encoder  TextEncoder::id()
[[nodiscard]] std::string text_identity(std::string_view encoder, std::string_view caption);

}  // namespace strata::datasets

#ifndef STRATA_COMPILED
#include <strata/datasets/impl/cache_identity.ipp>
#endif
