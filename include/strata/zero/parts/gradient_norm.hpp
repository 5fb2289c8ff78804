#pragma once
// strata/zero/parts/gradient_norm.hpp - GradientNorm: the 2-norm of the mean gradient over all ranks.

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include <strata/core/bf16.hpp>
#include <strata/core/inline.hpp>
#include <strata/policy/place.hpp>
#include <strata/zero/compute_device.hpp>
#include <strata/zero/detail/buffer_pool.hpp>
#include <strata/zero/detail/preparation.hpp>
#include <strata/zero/parts/exchange.hpp>
#include <strata/zero/parts/gradient_reduction.hpp>
#include <strata/zero/parts/staging.hpp>

namespace strata::zero {

/// Of a tensor's elements, fp32 or bf16, in host memory. Local.
[[nodiscard]] double squares_on_host(const at::Tensor& values);
/// The norm of the mean that sums of squares make.
///
///   all  by rank, then by bucket
[[nodiscard]] double norm_of_squares(std::span<const double> all, int world);
/// The same of every rank's. Collective.
///
///   mine  by bucket
[[nodiscard]] double norm_over_ranks(Exchange& exchange, std::span<const double> mine);

/// Sums of squares by bucket and rank, added up in that order: the same bits at every stage.
template <ComputeDevice Compute>
class GradientNorm {
public:
    /// All of it outlives this object.
    GradientNorm(Exchange& exchange, detail::BufferPool& pool, const Compute& compute)
        : exchange_{exchange}, pool_{pool}, compute_{compute} {}

    /// Of the sums of a step, which are not divided. Collective; the same on every rank. Throws what a tier's disk meets.
    [[nodiscard]] double operator()(GradientReduction& gradients) {
        const std::vector<double> mine = squares(gradients);
        gradients.tell_failure();
        return norm_over_ranks(exchange_, mine);
    }

    /// The squares of one bucket's sum, which is on the device. Local.
    [[nodiscard]] double squares_of(const at::Tensor& sum_S) {
        if constexpr (Compute::is_host) {
            return squares_on_host(sum_S);
        } else {
            const at::Tensor there = pool_.empty(1, at::kDouble, MemoryKind::buffers, Place::device);
            add_squares(sum_S, Place::device, static_cast<double*>(there.data_ptr()));
            return there.cpu().item().toDouble();
        }
    }
    /// The norm that they make.
    ///
    ///   all  by rank, then by bucket
    [[nodiscard]] double norm_of(std::span<const double> all) const { return norm_of_squares(all, exchange_.world()); }

private:
    [[nodiscard]] static bool is_fp32(const at::Tensor& sum) { return sum.scalar_type() == at::kFloat; }

    /// Those of every bucket, whose sums may be in either memory.
    [[nodiscard]] std::vector<double> squares(GradientReduction& gradients) {
        std::vector<double> found(gradients.buckets());
        if constexpr (Compute::is_host) {
            gradients.for_each_sum(offload::Access::read,
                                   [&](std::size_t i, const at::Tensor& sum_S) { found[i] = squares_of(sum_S); });
        } else {
            const at::Tensor there =
                pool_.zeros(static_cast<std::int64_t>(found.size()), at::kDouble, MemoryKind::buffers, Place::device);
            gradients.for_each_sum(offload::Access::read, [&](std::size_t i, const at::Tensor& sum_S) {
                add_squares(sum_S, memory_of<Compute>(gradients.memory_of(i)),
                            static_cast<double*>(there.data_ptr()) + i);
            });
            const at::Tensor here = there.cpu();
            std::copy_n(static_cast<const double*>(here.data_ptr()), found.size(), found.begin());
        }
        return found;
    }
    ///   to  a device address
    void add_squares(const at::Tensor& sum_S, Place is, double* to) {
        const auto add = [&]<class Gradient>(std::span<const Gradient> sum) {
            Staging staging{pool_};
            compute_.template sum_of_squares<Gradient>(staging.take(sum, is, Place::device, true), to);
        };
        is_fp32(sum_S) ? add(detail::elements<const float>(sum_S)) : add(detail::elements<const bf16>(sum_S));
    }

    Exchange& exchange_;
    detail::BufferPool& pool_;
    const Compute& compute_;
};

}  // namespace strata::zero

#ifndef STRATA_COMPILED
#include <strata/zero/impl/gradient_norm.ipp>
#endif
