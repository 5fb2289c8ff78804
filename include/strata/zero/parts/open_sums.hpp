#pragma once
// strata/zero/parts/open_sums.hpp - OpenSums: the sums of gradients beside a pass over state, a bucket's from its first run to its last.

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include <ATen/core/Tensor.h>

#include <strata/offload/window_pipeline.hpp>
#include <strata/policy/place.hpp>
#include <strata/zero/detail/preparation.hpp>
#include <strata/zero/parts/buckets.hpp>
#include <strata/zero/parts/gradient_reduction.hpp>

namespace strata::zero {

/// This rank's sums, or those of all ranks where each updates all of the state: then the next bucket's are collected meanwhile.
class OpenSums {
public:
    /// Both outlive it.
    OpenSums(GradientReduction& gradients, const Buckets& buckets) : gradients_{gradients}, buckets_{buckets} {}

    /// A pass over all buckets begins, and has ended. Collective where every rank has all of the state.
    void begin() {
        if (buckets_.replicates_state()) gradients_.gather_sums(0);
    }
    void end() {
        if (buckets_.replicates_state()) gradients_.drop_gathered(buckets_.size() - 1);
    }
    /// Before a run and after it. Throws what a tier's disk meets.
    template <class Run>
    void open(const Run& run) {
        if (run.begin != 0) return;
        if (!buckets_.replicates_state()) {
            sums_ = gradients_.open_sum(run.bucket, offload::Access::read);
            return;
        }
        if (run.bucket > 0) gradients_.drop_gathered(run.bucket - 1);
        gradients_.gather_sums(run.bucket + 1);
        sums_ = gradients_.gathered_B(run.bucket);
    }
    template <class Run>
    void close(const Run& run) {
        if (!run.last) return;
        sums_.reset();
        if (!buckets_.replicates_state()) gradients_.close_sum(run.bucket, offload::Access::read);
    }

    /// In place of open() and close(): the sums of the next bucket are these, until put_away().
    void lay_out(at::Tensor sums) { sums_ = std::move(sums); }
    void put_away() { sums_.reset(); }

    /// The sums of a run that is open, and where they are.
    template <class Gradient, class Run>
    [[nodiscard]] std::span<const Gradient> of(const Run& run) const {
        return detail::elements<const Gradient>(sums_).subspan(static_cast<std::size_t>(run.begin),
                                                               static_cast<std::size_t>(run.numel));
    }
    template <class Run>
    [[nodiscard]] Place memory_of(const Run& run) const {
        return gradients_.memory_of(run.bucket);
    }

private:
    GradientReduction& gradients_;
    const Buckets& buckets_;
    at::Tensor sums_;
};

}  // namespace strata::zero
