#pragma once
// strata/zero/impl/memory_forecast.ipp - what is kept whole, and parameters that are shapes alone.

#include <ATen/ops/from_blob.h>

#include <strata/zero/memory_forecast.hpp>

namespace strata::zero {

STRATA_INLINE Parameter outlined_parameter(std::string name, const std::vector<std::int64_t>& sizes, std::int32_t unit,
                                           bool is_trained) {
    static char place = 0;  // nobody reads or writes it
    at::Tensor tensor = at::for_blob(&place, sizes).options(at::TensorOptions{}.dtype(at::kFloat)).make_tensor();
    tensor.set_requires_grad(is_trained);
    return {.name = std::move(name), .tensor = std::move(tensor), .unit = unit};
}

namespace detail {

STRATA_INLINE void forecast_the_rest(MemoryForecast& forecast, const Buckets& buckets,
                                     const std::vector<Parameter>& frozen, const std::vector<FrozenUnit>& frozen_units,
                                     const PassFacts& facts) {
    ForecastSums sums{forecast};
    const auto element = [&](bool excepted) {
        return static_cast<std::int64_t>(c10::elementSize(excepted ? facts.excepted_dtype : facts.dtype));
    };
    for (std::size_t i = 0; i < buckets.size(); ++i) {
        const std::int64_t all = buckets.padded_of(i);
        const bool excepted = buckets.excepted(i);
        if (!buckets[i].sharded) sums.add(MemoryKind::parameters, Place::device, all * element(excepted));
        sums.add(MemoryKind::gradients, Place::device,
                 GradientReduction::bytes_kept(facts.gradients, excepted, all, buckets.share_of(i)));
    }
    for (const Parameter& parameter : frozen) {
        if (buckets.shards_units() && shards_frozen(parameter)) continue;
        const at::Tensor& tensor = parameter.tensor;
        const std::int64_t size =
            tensor.is_floating_point() ? element(parameter.excepted) : static_cast<std::int64_t>(tensor.element_size());
        forecast.frozen += tensor.numel() * size;
    }
    forecast.most = forecast.made;
    const PassPeaks peaks = pass_peaks(buckets, frozen_units, facts);
    const auto raise = [&](MemoryKind kind, std::int64_t bytes) {
        forecast.most[static_cast<std::size_t>(kind)][Place::device] += bytes;
    };
    raise(MemoryKind::gradients, peaks.gradients);
    raise(MemoryKind::gathered, peaks.gathered);
    raise(MemoryKind::buffers, peaks.buffers);
}

}  // namespace detail
}  // namespace strata::zero
