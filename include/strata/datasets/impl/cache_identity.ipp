#pragma once
// strata/datasets/impl/cache_identity.ipp - the fields of identities. Changing them makes every entry anew.

#include <strata/core/text.hpp>
#include <strata/datasets/byte_fields.hpp>
#include <strata/datasets/cache_identity.hpp>
#include <strata/storage/digest.hpp>

namespace strata::datasets {

STRATA_INLINE std::string latent_identity(std::string_view encoder, const storage::ContentHash& content,
                                          const pictures::Frame& frame, std::optional<std::int64_t> epoch,
                                          std::span<const ConditioningContent> conditioning) {
    FieldWriter identity;
    identity << "latents 6: upright, sRGB, lanczos3, on white" << encoder << storage::to_hex(content.bytes)
             << frame.target.width << frame.target.height << core::shortest_text(frame.width)
             << core::shortest_text(frame.height) << core::shortest_text(frame.left) << core::shortest_text(frame.top);
    if (epoch) identity << *epoch;
    for (const ConditioningContent& one : conditioning)
        identity << (one.kind == pictures::ConditioningKind::mask ? "mask 1: mean over areas" : "conditioning 1")
                 << storage::to_hex(one.content.bytes);
    return identity.bytes();
}

STRATA_INLINE std::string text_identity(std::string_view encoder, std::string_view caption) {
    FieldWriter identity;
    identity << "caption 1" << encoder << caption;
    return identity.bytes();
}

}  // namespace strata::datasets
