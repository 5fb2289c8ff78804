#pragma once
// strata/zero/impl/take_over_values.ipp - the values that parameters begin with, where they have memory and where not.

#include <algorithm>

#include <ATen/ops/from_blob.h>

#include <strata/zero/parts/take_over.hpp>

namespace strata::zero {

STRATA_INLINE void TakeOver::read_values(DeferredUnit& unit, const std::vector<at::Tensor>& tensors, std::int64_t begin,
                                         const at::Tensor& values) {
    try {
        const std::int64_t end = begin + values.numel();
        std::int64_t at = 0;  // of a tensor
        for (const at::Tensor& tensor : tensors) {
            const std::int64_t from = std::max(begin, at);
            const std::int64_t to = std::min(end, at + tensor.numel());
            if (from < to) {
                const at::Tensor part = values.narrow(0, from - begin, to - from);
                if (const auto number = unit.find(tensor))
                    unit.values->read(*number, from - at, part);
                else
                    part.copy_(tensor.detach().flatten().narrow(0, from - at, to - from));
            }
            at += tensor.numel();
        }
    } catch (...) {
        if (!failure_) failure_ = std::current_exception();
    }
}

STRATA_INLINE DeferredUnit* TakeOver::deferred_of(std::size_t bucket, bool all) const noexcept {
    const Bucket& b = buckets_[bucket].bucket;
    DeferredUnit* found = nullptr;
    for (std::size_t i = 0; i < b.parameter_count; ++i) {
        DeferredUnit* const unit = deferred_of(trained_[b.first_parameter + i]);
        if (unit == nullptr && all) return nullptr;
        if (unit != nullptr) found = unit;
    }
    return found;
}

STRATA_INLINE std::vector<at::Tensor> TakeOver::tensors_of(std::size_t bucket) const {
    const Bucket& b = buckets_[bucket].bucket;
    std::vector<at::Tensor> tensors;
    for (std::size_t i = 0; i < b.parameter_count; ++i) tensors.push_back(trained_[b.first_parameter + i].tensor);
    return tensors;
}

/// The values of a bucket (B), those of rank 0.
STRATA_INLINE at::Tensor TakeOver::all_values(std::size_t bucket) {
    const Bucket& b = buckets_[bucket].bucket;
    const Parameter& first = trained_[b.first_parameter];
    const std::int64_t padded = buckets_.padded_of(bucket);
    // Its pages come one by one, while those of a unit that is made for it go.
    const at::Tensor values_B = pool_.empty(padded, at::kFloat, MemoryKind::buffers, Place::device);
    values_B.narrow(0, b.numel, padded - b.numel).zero_();
    if (options_.gather) options_.gather(first.tensor);
    if (DeferredUnit* const unit = deferred_of(bucket, false)) {
        if (exchange_.rank() == 0) read_values(*unit, tensors_of(bucket), 0, values_B.narrow(0, 0, b.numel));
        unit->values->let_go();
    } else {
        for (std::size_t i = b.first_parameter; i < b.first_parameter + b.parameter_count; ++i) {
            const TrainedParameter& p = buckets_.parameter(i);
            values_B.narrow(0, p.offset, p.tensor.numel()).view(p.tensor.sizes()).copy_(trained_[i].tensor.detach());
        }
    }
    exchange_.broadcast(values_B);
    return values_B;
}

/// A tensor whose views can be made, and that has its memory later.
STRATA_INLINE at::Tensor TakeOver::without_memory(std::int64_t numel, at::ScalarType dtype) const {
    static char place = 0;  // nobody reads or writes it
    const at::Device device = pool_.device_of(Place::device);
    return at::for_blob(&place, {numel})
        .options(at::TensorOptions{}.dtype(dtype).device(device))
        .target_device(device)
        .make_tensor();
}

STRATA_INLINE std::int64_t TakeOver::bytes_beside() const {
    std::int64_t most = 0;
    for (const std::vector<Parameter>* group : {&trained_, &frozen_}) {
        for (const Parameter& parameter : *group) {
            if (DeferredUnit* const unit = deferred_of(parameter)) most = std::max(most, unit->values->bytes_beside());
        }
    }
    return most;
}

STRATA_INLINE void TakeOver::end_values() {
    bool any = false;
    for (const std::vector<Parameter>* group : {&trained_, &frozen_}) {
        for (const Parameter& parameter : *group) any = any || deferred_of(parameter) != nullptr;
    }
    for (const FrozenUnit& unit : frozen_units_) any = any || unit.packed != nullptr;
    if (!any) return;
    exchange_.agree([this] {
        if (failure_) std::rethrow_exception(failure_);
    });
    for (const std::vector<Parameter>* group : {&trained_, &frozen_}) {
        for (const Parameter& parameter : *group) {
            if (parameter.link) parameter.link->deferred.reset();
        }
    }
}

}  // namespace strata::zero
