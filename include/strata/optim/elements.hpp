#pragma once
// strata/optim/elements.hpp - number formats of what the kernels read and write, and how runs are cut into chunks.

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <limits>

#include <strata/core/bf16.hpp>
#include <strata/core/elements.hpp>
#include <strata/core/fp16.hpp>
#include <strata/core/host_device.hpp>

namespace strata::optim {

/// What gradients are kept in.
template <class G>
concept GradientElement = std::same_as<G, float> || std::same_as<G, bf16> || std::same_as<G, fp16>;

/// What parameters are kept in beside their fp32 master.
template <class C>
concept CopyElement = std::same_as<C, bf16> || std::same_as<C, fp16>;

/// What a gradient goes through on its way into an update: clamp(factor g, -limit, limit), in registers.
///
/// The factor takes the mean over ranks, the loss scale and the clipping by norm; the limit is the clipping by value,
/// as torch.nn.utils.clip_grad_value_ has it. NaN stays NaN.
struct GradientTransform {
    float factor = 1.0F;
    float limit = std::numeric_limits<float>::infinity();

    constexpr GradientTransform() = default;
    constexpr GradientTransform(float factor_, float limit_ = std::numeric_limits<float>::infinity()) noexcept
        : factor{factor_}, limit{limit_} {}

    [[gnu::always_inline]] STRATA_HOST_DEVICE constexpr float operator()(float gradient) const noexcept {
        const float scaled = gradient * factor;
        const float below = scaled > limit ? limit : scaled;
        return below < -limit ? -limit : below;
    }
};
static_assert(GradientTransform{0.5F, 2.0F}(-9.0F) == -2.0F && GradientTransform{0.5F}(-9.0F) == -4.5F);

namespace detail {

// Elements a thread takes at a time: large enough to hide the start of a thread, small enough to share out evenly.
inline constexpr std::int64_t chunk_numel = std::int64_t{1} << 16;

/// Calls `call(chunk, begin, numel)` for the chunks of a run of `numel` elements, on OpenMP's threads where the program
/// is compiled with it. Chunks end where (phase + element) is a multiple of chunk_numel.
template <class Call>
void for_chunks(std::int64_t numel, Call&& call, std::int64_t phase = 0) {
    const std::int64_t first = phase % chunk_numel;
    const std::int64_t chunks = (first + numel + chunk_numel - 1) / chunk_numel;
#ifdef _OPENMP
#pragma omp parallel for schedule(static) if (chunks > 1)
#endif
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
        const std::int64_t begin = std::max<std::int64_t>(0, chunk * chunk_numel - first);
        const std::int64_t end = std::min(numel, (chunk + 1) * chunk_numel - first);
        call(chunk, begin, end - begin);
    }
}

}  // namespace detail

}  // namespace strata::optim
