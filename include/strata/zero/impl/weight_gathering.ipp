#pragma once
// strata/zero/impl/weight_gathering.ipp - weights that are gathered on the channel.

#include <ATen/core/Tensor.h>

#include <strata/zero/parts/weight_gathering.hpp>

namespace strata::zero {

STRATA_INLINE void WeightGathering::next() {
    if (buckets_.replicates_state()) return;
    const std::size_t bucket = gathered_++;
    if (!buckets_[bucket].sharded) gather(bucket);
}

STRATA_INLINE void WeightGathering::gather(std::size_t bucket) {
    exchange_.post("weights", [this, all_B = buckets_[bucket].weight_B] {
        exchange_.all_gather(buckets_.own_share(all_B), all_B);
    });
}

STRATA_INLINE void WeightGathering::finish() {
    if (!buckets_.replicates_state()) {
        while (gathered_ < buckets_.size()) next();
        gathered_ = 0;
    }
    exchange_.wait();
}

}  // namespace strata::zero
