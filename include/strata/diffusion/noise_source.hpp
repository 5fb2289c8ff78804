#pragma once
// strata/diffusion/noise_source.hpp - NoiseSource: random numbers for training, the same on every device.

#include <cstdint>
#include <utility>
#include <vector>

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <strata/core/inline.hpp>

namespace strata::diffusion {

/// Generators on the CPU, one for a whole batch or one a picture, and tensors drawn from them: fp32 on the CPU. Copies
/// share the generators.
class NoiseSource {
public:
    /// libtorch's default generator of the CPU, which torch::manual_seed() sets and checkpoints keep.
    [[nodiscard]] static NoiseSource of_process();
    [[nodiscard]] static NoiseSource seeded(std::uint64_t seed);
    /// One generator a picture, begun by the bytes of x[i]: whatever batch a picture is in, it meets the same noise at
    /// the same level. What a model is evaluated with. x is copied to the CPU.
    [[nodiscard]] static NoiseSource of_pictures(const at::Tensor& x);

    /// Standard normal; shape[0] is the number of pictures.
    [[nodiscard]] at::Tensor normal(at::IntArrayRef shape) const;
    /// Uniform in [0, 1).
    [[nodiscard]] at::Tensor uniform(at::IntArrayRef shape) const;

private:
    explicit NoiseSource(std::vector<at::Generator> generators) : generators_{std::move(generators)} {}
    template <class Fill>
    [[nodiscard]] at::Tensor filled(at::IntArrayRef shape, Fill fill) const;

    std::vector<at::Generator> generators_;
};

}  // namespace strata::diffusion

#ifndef STRATA_COMPILED
#include <strata/diffusion/impl/noise_source.ipp>
#endif
