#pragma once
// strata/storage/impl/content_hash.ipp - a SHA-256 cut to half of its length.

#include <algorithm>
#include <cstring>

#include <strata/storage/content_hash.hpp>
#include <strata/storage/digest.hpp>

namespace strata::storage {

STRATA_INLINE ContentHash ContentHash::of_text(std::string_view text) noexcept {
    ContentHash hash;
    if (text.size() == hash.bytes.size()) std::memcpy(hash.bytes.data(), text.data(), text.size());
    return hash;
}

STRATA_INLINE ContentHash content_hash(std::span<const std::byte> bytes) {
    const Sha256 whole = sha256(bytes);
    ContentHash half;
    std::copy_n(whole.begin(), half.bytes.size(), half.bytes.begin());
    return half;
}

}  // namespace strata::storage
