#pragma once
// strata/zero/parts/weight_gathering.hpp - WeightGathering: the new weights of a bucket come to the ranks that keep it whole.

#include <cstddef>

#include <strata/core/inline.hpp>
#include <strata/zero/parts/buckets.hpp>
#include <strata/zero/parts/exchange.hpp>

namespace strata::zero {

/// Gathers weights on the channel while the next bucket is updated.
class WeightGathering {
public:
    /// Both outlive it.
    WeightGathering(Exchange& exchange, const Buckets& buckets) noexcept : exchange_{exchange}, buckets_{buckets} {}

    /// The next bucket's share has its new weights on this rank. In the order of buckets. Where every rank updates all
    /// of the state there is nothing to gather, and shards stay shards. Collective.
    void next();
    /// Gathers a bucket, whoever keeps its state. Collective.
    void gather(std::size_t bucket);
    /// Gathers what a pass that failed on this rank has not, and returns when all is there. Collective.
    void finish();

private:
    Exchange& exchange_;
    const Buckets& buckets_;
    std::size_t gathered_ = 0;  // buckets 0 .. gathered_ - 1 are, or are on their way
};

}  // namespace strata::zero

#ifndef STRATA_COMPILED
#include <strata/zero/impl/weight_gathering.ipp>
#endif
