#pragma once
// strata/diffusion/impl/noise_source.ipp - tensors of noise.

#include <cstddef>
#include <string_view>
#include <utility>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/empty.h>

#include <strata/core/mix.hpp>
#include <strata/core/random.hpp>
#include <strata/diffusion/noise_source.hpp>

namespace strata::diffusion {

STRATA_INLINE NoiseSource NoiseSource::of_process() { return NoiseSource{{at::detail::getDefaultCPUGenerator()}}; }

STRATA_INLINE NoiseSource NoiseSource::seeded(std::uint64_t seed) {
    return NoiseSource{{at::detail::createCPUGenerator(core::seed_of_32_bits(seed, 0))}};
}

STRATA_INLINE NoiseSource NoiseSource::of_pictures(const at::Tensor& x) {
    const at::Tensor on_cpu = x.detach().cpu().contiguous();
    std::vector<at::Generator> generators;
    for (std::int64_t i = 0; i < on_cpu.size(0); ++i) {
        const at::Tensor picture = on_cpu[i];
        const std::string_view bytes{static_cast<const char*>(picture.data_ptr()), picture.nbytes()};
        generators.push_back(at::detail::createCPUGenerator(core::number_of(bytes)));
    }
    return NoiseSource{std::move(generators)};
}

template <class Fill>
at::Tensor NoiseSource::filled(at::IntArrayRef shape, Fill fill) const {
    at::Tensor result = at::empty(shape, at::TensorOptions().dtype(at::kFloat));
    if (generators_.size() == 1) {
        fill(result, generators_[0]);
    } else {
        for (std::size_t i = 0; i < generators_.size(); ++i) {
            at::Tensor picture = result[static_cast<std::int64_t>(i)];
            fill(picture, generators_[i]);
        }
    }
    return result;
}

STRATA_INLINE at::Tensor NoiseSource::normal(at::IntArrayRef shape) const {
    return filled(shape, [](at::Tensor& x, const at::Generator& generator) { x.normal_(0, 1, generator); });
}

STRATA_INLINE at::Tensor NoiseSource::uniform(at::IntArrayRef shape) const {
    return filled(shape, [](at::Tensor& x, const at::Generator& generator) { x.uniform_(0, 1, generator); });
}

}  // namespace strata::diffusion
