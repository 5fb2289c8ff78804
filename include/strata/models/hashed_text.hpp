#pragma once
// strata/models/hashed_text.hpp - HashedText: captions as vectors without a trained text encoder.

#include <cstdint>
#include <string>
#include <string_view>

#include <torch/torch.h>

#include <strata/core/inline.hpp>
#include <strata/models/encoders.hpp>

namespace strata::models {

/// A TextEncoder that hashes words and their letters (feature hashing: Weinberger et al. 2009, arXiv:0902.2206; letter
/// n-grams: Bojanowski et al. 2017, arXiv:1607.04606), so that equal words get equal and similar words similar vectors.
///
/// A caption is cut into words: runs of ASCII letters, digits and bytes above 127; letters are lowered. Every feature
/// is a vector of 128 signs from a hash of its bytes. A word's vector is 2 * (the whole word) + its letter trigrams
/// (with a mark at both ends); tokens are the vectors of the first 8 words, the rest are zero. pooled adds the word
/// vectors of the whole caption, and 2 * the sign vector of every pair of neighbouring words. Each vector is scaled to a
/// root mean square of 1. An empty caption is all zeros, which is what training without a caption sees.
/// The same bits on every machine. Stateless, thread-safe.
class HashedText {
public:
    static constexpr std::int64_t tokens = 8;
    static constexpr std::int64_t width = 128;

    /// Part of the identity of cached embeddings; changes with any change of the numbers.
    [[nodiscard]] std::string id() const { return "hashed-text-8x128-v1"; }

    /// tokens (8, 128) and pooled (128), fp32.
    [[nodiscard]] TextEmbedding encode(std::string_view caption) const;
};

}  // namespace strata::models

#ifndef STRATA_COMPILED
#include <strata/models/impl/hashed_text.ipp>
#endif
