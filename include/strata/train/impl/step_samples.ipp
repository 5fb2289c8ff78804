#pragma once
// strata/train/impl/step_samples.ipp - names of samples as part of a sentence.

#include <algorithm>
#include <utility>

#include <strata/train/step_samples.hpp>

namespace strata::train {

STRATA_INLINE void StepSamples::add(std::vector<std::string> names, bool finite) {
    micro_batches_.push_back({std::move(names), finite});
}

STRATA_INLINE std::string StepSamples::text(bool loss_is_finite, std::size_t most) const {
    std::string text;
    std::size_t named = 0, more = 0;
    for (const MicroBatch& micro_batch : micro_batches_) {
        if (!loss_is_finite && micro_batch.finite) continue;
        for (const std::string& name : micro_batch.names) {
            if (named == most) {
                ++more;
                continue;
            }
            text += (named++ == 0 ? "" : ", ") + name;
        }
    }
    if (more > 0) text += " and " + std::to_string(more) + " more";
    return text;
}

STRATA_INLINE std::string naming_samples(std::span<const std::string> by_rank) {
    constexpr std::size_t most_ranks = 4;
    std::string text;
    std::size_t named = 0, more = 0;
    for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
        if (by_rank[rank].empty()) continue;
        if (named == most_ranks) {
            ++more;
            continue;
        }
        text += named++ == 0 ? "; its samples" : ",";
        if (by_rank.size() > 1) text += " on rank " + std::to_string(rank);
        text += ": " + by_rank[rank];
    }
    if (more > 0) text += ", and those of " + std::to_string(more) + " more ranks";
    return text;
}

}  // namespace strata::train
