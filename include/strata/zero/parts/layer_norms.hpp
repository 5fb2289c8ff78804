#pragma once
// strata/zero/parts/layer_norms.hpp - LayerNorms: sums of squares of whole parameters, formed beside the state they
// are of.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include <strata/optim/layerwise_kernel.hpp>
#include <strata/zero/detail/buffer_pool.hpp>
#include <strata/zero/detail/preparation.hpp>
#include <strata/zero/memory_meter.hpp>
#include <strata/zero/parts/exchange.hpp>

namespace strata::zero {

/// One pair of sums a parameter, on each side of the bus where state is.
class LayerNorms {
public:
    LayerNorms(detail::BufferPool& pool, std::size_t parameters) : pool_{pool}, on_host_(parameters) {}

    /// The sums of this side, which begin with zero.
    [[nodiscard]] std::span<optim::NormSquares> on(Place memory) {
        if (memory == Place::host) return on_host_;
        if (!on_device_.defined()) {
            on_device_ = pool_.zeros(static_cast<std::int64_t>(2 * on_host_.size()), at::kDouble, MemoryKind::buffers,
                                     Place::device);
        }
        return {static_cast<optim::NormSquares*>(on_device_.data_ptr()), on_host_.size()};
    }
    /// Those of both sides, which are then gone.
    [[nodiscard]] std::vector<optim::NormSquares> together() {
        if (on_device_.defined()) {
            const at::Tensor copy = std::exchange(on_device_, at::Tensor{}).cpu();
            const auto* const sums = static_cast<const optim::NormSquares*>(copy.data_ptr());
            for (std::size_t i = 0; i < on_host_.size(); ++i) on_host_[i] += sums[i];
        }
        return std::move(on_host_);
    }
    /// together() of all ranks, added up in rank order; of one where every rank has all of the state. Collective.
    [[nodiscard]] std::vector<optim::NormSquares> over_ranks(Exchange& exchange, bool all_are_here) {
        std::vector<optim::NormSquares> norms = together();
        if (all_are_here) return norms;
        std::vector<optim::NormSquares> all(norms.size() * static_cast<std::size_t>(exchange.world()));
        exchange.all_gather_bytes(std::as_bytes(std::span{norms}), std::as_writable_bytes(std::span{all}));
        std::fill(norms.begin(), norms.end(), optim::NormSquares{});
        for (std::size_t i = 0; i < all.size(); ++i) norms[i % norms.size()] += all[i];
        return norms;
    }

private:
    static_assert(sizeof(optim::NormSquares) == 2 * sizeof(double));

    detail::BufferPool& pool_;
    std::vector<optim::NormSquares> on_host_;
    at::Tensor on_device_;
};

}  // namespace strata::zero
