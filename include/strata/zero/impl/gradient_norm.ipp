#pragma once
// strata/zero/impl/gradient_norm.ipp - sums of squares that become a norm.

#include <cmath>
#include <vector>

#include <strata/core/bf16.hpp>
#include <strata/optim/clip.hpp>
#include <strata/zero/parts/gradient_norm.hpp>

namespace strata::zero {

STRATA_INLINE double squares_on_host(const at::Tensor& values) {
    return values.scalar_type() == at::kFloat ? optim::sum_of_squares<float>(detail::elements<float>(values))
                                              : optim::sum_of_squares<bf16>(detail::elements<bf16>(values));
}

STRATA_INLINE double norm_of_squares(std::span<const double> all, int world) {
    const auto ranks = static_cast<std::size_t>(world);
    const std::size_t buckets = all.size() / ranks;
    double total = 0.0;
    for (std::size_t i = 0; i < buckets; ++i) {
        for (std::size_t rank = 0; rank < ranks; ++rank) total += all[rank * buckets + i];
    }
    return std::sqrt(total) / static_cast<double>(world);  // of the mean
}

STRATA_INLINE double norm_over_ranks(Exchange& exchange, std::span<const double> mine) {
    std::vector<double> all(mine.size() * static_cast<std::size_t>(exchange.world()));
    exchange.all_gather_bytes(std::as_bytes(mine), std::as_writable_bytes(std::span{all}));
    return norm_of_squares(all, exchange.world());
}

}  // namespace strata::zero
