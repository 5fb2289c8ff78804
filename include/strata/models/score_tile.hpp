#pragma once
// strata/models/score_tile.hpp - ScoreTile: what the kernels of attention know of a tile of scores.

#include <cstdint>

namespace strata::models::kernels {

/// A tile of scores, (queries, keys), and what its softmax is of: scale * score + bias, of the keys that a query sees.
struct ScoreTile {
    std::int64_t queries = 0;
    std::int64_t keys = 0;
    float scale = 1.0f;
    const float* bias = nullptr;   ///< of the tile's first query and key; nullptr for none
    std::int64_t bias_stride = 0;  ///< from query to query; 0: all have the same
    /// Keys of the tile that its first query sees, at most `keys`; where attention is causal each next query sees one
    /// more, and it may be negative.
    std::int64_t seen_by_first = 0;
    bool is_causal = false;
};

}  // namespace strata::models::kernels
