#pragma once
// strata/zero/parts/gradient_norm.hpp - GradientNorm: the 2-norm of the mean gradient over all ranks.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include <strata/core/bf16.hpp>
#include <strata/optim/clip.hpp>
#include <strata/policy/place.hpp>
#include <strata/zero/compute_device.hpp>
#include <strata/zero/detail/buffer_pool.hpp>
#include <strata/zero/detail/preparation.hpp>
#include <strata/zero/parts/exchange.hpp>

namespace strata::zero {

/// Sums of squares by bucket and rank, added up in that order: the same bits at every stage.
template <ComputeDevice Compute>
class GradientNorm {
public:
    /// All of it outlives this object.
    GradientNorm(Exchange& exchange, detail::BufferPool& pool, const Compute& compute)
        : exchange_{exchange}, pool_{pool}, compute_{compute} {}

    /// sums  one a bucket: this rank's share (S), summed over ranks and not divided
    /// Collective; the same on every rank.
    [[nodiscard]] double operator()(const std::vector<at::Tensor>& sums) {
        const std::vector<double> mine = squares(sums);
        const auto world = static_cast<std::size_t>(exchange_.world());
        std::vector<double> all(mine.size() * world);
        exchange_.all_gather_bytes(std::as_bytes(std::span{mine}), std::as_writable_bytes(std::span{all}));
        double total = 0.0;
        for (std::size_t i = 0; i < mine.size(); ++i) {
            for (std::size_t rank = 0; rank < world; ++rank) total += all[rank * mine.size() + i];
        }
        return std::sqrt(total) / static_cast<double>(world);  // of the mean
    }

private:
    [[nodiscard]] static bool is_fp32(const at::Tensor& sum) { return sum.scalar_type() == at::kFloat; }
    [[nodiscard]] std::vector<double> squares(const std::vector<at::Tensor>& sums) {
        std::vector<double> found(sums.size());
        if constexpr (Compute::is_host) {
            for (std::size_t i = 0; i < sums.size(); ++i)
                found[i] = is_fp32(sums[i]) ? optim::sum_of_squares<float>(detail::elements<float>(sums[i]))
                                            : optim::sum_of_squares<bf16>(detail::elements<bf16>(sums[i]));
        } else {
            const at::Tensor there = pool_.empty(std::ssize(sums), at::kDouble, MemoryKind::buffers, Place::device);
            for (std::size_t i = 0; i < sums.size(); ++i) {
                auto* const to = static_cast<double*>(there.data_ptr()) + i;
                is_fp32(sums[i]) ? compute_.template sum_of_squares<float>(detail::elements<const float>(sums[i]), to)
                                 : compute_.template sum_of_squares<bf16>(detail::elements<const bf16>(sums[i]), to);
            }
            const at::Tensor here = there.cpu();
            std::copy_n(static_cast<const double*>(here.data_ptr()), found.size(), found.begin());
        }
        return found;
    }

    Exchange& exchange_;
    detail::BufferPool& pool_;
    const Compute& compute_;
};

}  // namespace strata::zero
