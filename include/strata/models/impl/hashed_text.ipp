#pragma once
// strata/models/impl/hashed_text.ipp - words, features, signs.

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include <strata/core/fnv1a.hpp>
#include <strata/core/mix.hpp>
#include <strata/models/hashed_text.hpp>

namespace strata::models {

namespace detail {

using TextVector = std::array<float, static_cast<std::size_t>(HashedText::width)>;

/// Words in order; apostrophes and hyphens separate like any other punctuation.
inline std::vector<std::string> words_of(std::string_view caption) {
    std::vector<std::string> words;
    bool inside = false;
    for (const char c : caption) {
        const auto byte = static_cast<unsigned char>(c);
        const bool upper = 'A' <= c && c <= 'Z';
        const bool part = upper || ('a' <= c && c <= 'z') || ('0' <= c && c <= '9') || byte > 127;
        if (part && !inside) words.emplace_back();
        if (part) words.back().push_back(upper ? static_cast<char>(c - 'A' + 'a') : c);
        inside = part;
    }
    return words;
}

/// Adds weight * the feature's signs. Sums of small whole numbers are exact in fp32.
inline void add_feature(TextVector& vector, std::string_view feature, float weight) {
    std::uint64_t state = core::fnv1a(feature);
    for (std::size_t i = 0; i < vector.size(); i += 64) {
        const std::uint64_t bits = core::mix(state += core::golden_step);
        for (std::size_t j = 0; j < 64; ++j) vector[i + j] += (bits >> j & 1u) != 0 ? weight : -weight;
    }
}

inline void add_word(TextVector& vector, const std::string& word) {
    const std::string marked = "<" + word + ">";
    add_feature(vector, marked, 2.0f);
    for (std::size_t i = 0; i + 3 <= marked.size(); ++i) add_feature(vector, marked.substr(i, 3), 1.0f);
}

/// Writes the vector scaled to root mean square 1; zeros stay zeros.
inline void write_scaled(const TextVector& vector, float* out) {
    double squares = 0.0;
    for (const float v : vector) squares += static_cast<double>(v) * static_cast<double>(v);
    const double rms = std::sqrt(squares / static_cast<double>(vector.size()));
    for (const float v : vector) *out++ = rms > 0.0 ? static_cast<float>(static_cast<double>(v) / rms) : 0.0f;
}

}  // namespace detail

STRATA_INLINE TextEmbedding HashedText::encode(std::string_view caption) const {
    TextEmbedding embedding{at::zeros({tokens, width}, at::kFloat), at::zeros({width}, at::kFloat)};
    const std::vector<std::string> words = detail::words_of(caption);
    detail::TextVector pooled{};
    for (std::size_t i = 0; i < words.size(); ++i) {
        if (i < static_cast<std::size_t>(tokens)) {
            detail::TextVector vector{};
            detail::add_word(vector, words[i]);
            detail::write_scaled(vector, embedding.tokens.data_ptr<float>() + static_cast<std::int64_t>(i) * width);
        }
        detail::add_word(pooled, words[i]);
        if (i > 0) detail::add_feature(pooled, words[i - 1] + " " + words[i], 2.0f);
    }
    detail::write_scaled(pooled, embedding.pooled.data_ptr<float>());
    return embedding;
}

}  // namespace strata::models
