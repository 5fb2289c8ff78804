#pragma once
// strata/optim/detail/device_bodies.hpp - what a thread of a GPU does in an update, as functions that the host runs
// too.
//
// A body is a plain struct that becomes the argument of a kernel; body(block, thread) is all that a thread does. Tests
// call every thread of a grid on the host, in any order, and compare bits with the CPU's loops.
//
// A thread takes a group: as many neighbours as fill 16 bytes of weights. Groups begin where the weights have an
// address that 16 divides, so a run may begin anywhere; only its first and last group are then parts.

#include <array>
#include <cassert>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

#include <strata/core/bf16.hpp>
#include <strata/core/host_device.hpp>
#include <strata/optim/elements.hpp>
#include <strata/optim/ema.hpp>
#include <strata/optim/stochastic_rounding.hpp>
#include <strata/optim/update_kernel.hpp>
#include <strata/optim/update_rule.hpp>

namespace strata::optim::detail {

/// Up to 16 bytes that are read or written by one instruction, whatever lies in them.
template <int bytes>
struct [[gnu::may_alias]] alignas(bytes) Pack {
    std::uint32_t words[bytes / 4];

    // gcc takes two reads of one address for one and keeps the alignment of either, so on the host nothing is promised.
    [[gnu::always_inline]] STRATA_HOST_DEVICE static Pack read(const void* from) noexcept {
#ifdef __CUDA_ARCH__
        return *static_cast<const Pack*>(from);
#else
        assert(reinterpret_cast<std::uintptr_t>(from) % bytes == 0);
        Pack pack;
        __builtin_memcpy(pack.words, from, bytes);
        return pack;
#endif
    }
    [[gnu::always_inline]] STRATA_HOST_DEVICE void write(void* to) const noexcept {
#ifdef __CUDA_ARCH__
        *static_cast<Pack*>(to) = *this;
#else
        assert(reinterpret_cast<std::uintptr_t>(to) % bytes == 0);
        __builtin_memcpy(to, words, bytes);
#endif
    }
};

/// Neighbours of T that one instruction moves, when a thread wants `count`.
template <class T, int count>
inline constexpr int pack_v = count* static_cast<int>(sizeof(T)) < 16 ? count : 16 / static_cast<int>(sizeof(T));

/// Reads `count` neighbours; in packs if `aligned` says that they may be.
template <class T, int count>
[[gnu::always_inline]] STRATA_HOST_DEVICE inline void read(T (&to)[count], const T* from, bool aligned) noexcept {
    constexpr int width = pack_v<T, count>;
    if (aligned) {
        for (int k = 0; k < count; k += width) {
            const auto pack = Pack<width * sizeof(T)>::read(from + k);
            for (int j = 0; j < width; ++j) {
                if constexpr (sizeof(T) == 4) {
                    to[k + j] = __builtin_bit_cast(T, pack.words[j]);
                } else {
                    to[k + j] = T{static_cast<std::uint16_t>(pack.words[j / 2] >> (j % 2 * 16))};
                }
            }
        }
    } else {
        for (int k = 0; k < count; ++k) to[k] = from[k];
    }
}

/// The counterpart of read().
template <class T, int count>
[[gnu::always_inline]] STRATA_HOST_DEVICE inline void write(T* to, const T (&from)[count], bool aligned) noexcept {
    constexpr int width = pack_v<T, count>;
    if (aligned) {
        for (int k = 0; k < count; k += width) {
            Pack<width * sizeof(T)> pack;
            for (int j = 0; j < width; j += 4 / static_cast<int>(sizeof(T))) {
                if constexpr (sizeof(T) == 4) {
                    pack.words[j] = __builtin_bit_cast(std::uint32_t, from[k + j]);
                } else {
                    pack.words[j / 2] = from[k + j].bits | static_cast<std::uint32_t>(from[k + j + 1].bits) << 16;
                }
            }
            pack.write(to + k);
        }
    } else {
        for (int k = 0; k < count; ++k) to[k] = from[k];
    }
}

/// Elements from the last address in front of `at` that 16 divides to `at`. Addresses may be a device's.
template <class T>
std::int32_t lead_of(const T* at) noexcept {
    return static_cast<std::int32_t>(reinterpret_cast<std::uintptr_t>(at) % 16 / sizeof(T));
}

/// Whether groups of `count`, the first of which begins `lead` elements in front of `at`, are packs.
template <int count, class T>
bool in_packs(const T* at, std::int32_t lead) noexcept {
    constexpr std::uintptr_t bytes = sizeof(T) * pack_v<T, count>;
    return (reinterpret_cast<std::uintptr_t>(at) - static_cast<std::uintptr_t>(lead) * sizeof(T)) % bytes == 0;
}

/// Elements from .. to - 1 of a run.
struct Group {
    std::int64_t from;
    std::int64_t to;
};

/// How elements begin .. begin + numel - 1 of a run are cut into groups of `count`, when elements -lead, count - lead,
/// 2 count - lead, ... of the run are aligned; lead is below count.
template <int count>
struct Groups {
    std::int64_t begin;
    std::int64_t numel;
    std::int32_t lead;

    [[nodiscard]] STRATA_HOST_DEVICE constexpr std::int64_t first() const noexcept { return (begin + lead) / count; }
    [[nodiscard]] STRATA_HOST_DEVICE constexpr std::int64_t size() const noexcept {
        return (begin + numel + lead + count - 1) / count - first();
    }
    /// Group number `at`; empty from size() on.
    [[nodiscard]] [[gnu::always_inline]] STRATA_HOST_DEVICE constexpr Group operator[](std::int64_t at) const noexcept {
        const std::int64_t from = (first() + at) * count - lead;
        const std::int64_t to = from + count;
        return {from < begin ? begin : from, to < begin + numel ? to : begin + numel};
    }
};
static_assert(Groups<4>{0, 10, 3}.size() == 4 && Groups<4>{0, 10, 3}[0].to == 1 && Groups<4>{0, 10, 3}[3].from == 9);
static_assert(Groups<4>{6, 3, 0}.size() == 2 && Groups<4>{6, 3, 0}[0].from == 6 && Groups<4>{6, 3, 0}[1].to == 9);

/// Random bits of element i of a run. fp32 needs none.
struct RandomPlace {
    RandomBlock random;
    std::uint32_t index = 0;
};
template <KeptElement W>
[[gnu::always_inline]] STRATA_HOST_DEVICE inline RandomPlace random_at(const StochasticRounding& rounding,
                                                                       std::int64_t i) noexcept {
    if constexpr (std::same_as<W, float>) {
        return {};
    } else {
        const std::int64_t element = rounding.first_element + i;
        return {RandomBlock{rounding, element / chunk_numel}, static_cast<std::uint32_t>(element % chunk_numel)};
    }
}

/// optim::update() of one group.
template <ElementwiseRule Rule, bool with_copy, GradientElement G, KeptElement W, CopyElement C>
struct UpdateBody {
    static constexpr int threads = 256;
    static constexpr int count = 16 / sizeof(W);
    static constexpr std::size_t states = state_count_v<Rule>;

    typename Rule::Scalars scalars;
    GradientTransform transform;
    StochasticRounding rounding;  // not looked at for fp32
    Groups<count> groups;
    const G* gradient;
    W* weight;
    W* state[states + 1];  // one more, because a rule may have no state
    C* copy;
    bool gradient_in_packs;
    bool state_in_packs;
    bool copy_in_packs;

    [[gnu::always_inline]] STRATA_HOST_DEVICE void operator()(std::int64_t block, std::int32_t thread) const {
        const Group group = groups[block * threads + thread];
        const RandomPlace place = random_at<W>(rounding, group.from);
        if (group.to - group.from == count && place.index + count <= chunk_numel) {
            whole(group.from, place);
        } else {
            for (std::int64_t i = group.from; i < group.to; ++i) {
                const RandomPlace own = random_at<W>(rounding, i);
                update_element<Rule, with_copy>(scalars, transform, own.random, own.index, gradient, weight, state,
                                                copy, i);
            }
        }
    }

private:
    [[gnu::always_inline]] STRATA_HOST_DEVICE void whole(std::int64_t at, const RandomPlace& place) const {
        G g[count];
        W w[count];
        W s[states + 1][count];
        [[maybe_unused]] C c[count];
        W* pointers[states + 1];
        read(g, gradient + at, gradient_in_packs);
        read(w, weight + at, true);
        for (std::size_t k = 0; k < states; ++k) {
            read(s[k], state[k] + at, state_in_packs);
            pointers[k] = s[k];
        }
        for (int i = 0; i < count; ++i) {
            update_element<Rule, with_copy>(scalars, transform, place.random,
                                            place.index + static_cast<std::uint32_t>(i), g, w, pointers, c, i);
        }
        write(weight + at, w, true);
        for (std::size_t k = 0; k < states; ++k) write(state[k] + at, s[k], state_in_packs);
        if constexpr (with_copy) write(copy + at, c, copy_in_packs);
    }
};

/// optim::update_average() of one group.
template <KeptElement W>
struct AverageBody {
    static constexpr int threads = 256;
    static constexpr int count = 4;  // 16 bytes of the average

    float share;
    Groups<count> groups;
    const W* weight;
    float* average;
    bool weight_in_packs;

    [[gnu::always_inline]] STRATA_HOST_DEVICE void operator()(std::int64_t block, std::int32_t thread) const {
        const Group group = groups[block * threads + thread];
        if (group.to - group.from == count) {
            W w[count];
            float a[count];
            read(w, weight + group.from, weight_in_packs);
            read(a, average + group.from, true);
            for (int i = 0; i < count; ++i) a[i] = averaged(a[i], to_float(w[i]), share);
            write(average + group.from, a, true);
        } else {
            for (std::int64_t i = group.from; i < group.to; ++i) {
                average[i] = averaged(average[i], to_float(weight[i]), share);
            }
        }
    }
};

/// Blocks of `threads` for that many groups.
constexpr std::int64_t blocks_for(std::int64_t groups, int threads) noexcept {
    return (groups + threads - 1) / threads;
}

/// Calls launch(body, blocks) for optim::update(); nothing for an empty run.
template <ElementwiseRule Rule, bool with_copy, GradientElement G, KeptElement W, CopyElement C, class Launch>
void launch_update(const typename Rule::Scalars& scalars, const GradientTransform& transform,
                   std::span<const G> gradient, std::span<W> weight,
                   const std::array<std::span<W>, state_count_v<Rule>>& state, std::span<C> copy,
                   const StochasticRounding& rounding, Launch&& launch) {
    using Body = UpdateBody<Rule, with_copy, G, W, C>;
    assert(gradient.size() == weight.size() && (!with_copy || copy.size() == weight.size()));
    if (weight.empty()) return;
    const std::int32_t lead = lead_of(weight.data());
    Body body{.scalars = scalars,
              .transform = transform,
              .rounding = rounding,
              .groups = {0, static_cast<std::int64_t>(weight.size()), lead},
              .gradient = gradient.data(),
              .weight = weight.data(),
              .state = {},
              .copy = copy.data(),
              .gradient_in_packs = in_packs<Body::count>(gradient.data(), lead),
              .state_in_packs = true,
              .copy_in_packs = in_packs<Body::count>(copy.data(), lead)};
    for (std::size_t k = 0; k < state_count_v<Rule>; ++k) {
        assert(state[k].size() == weight.size());
        body.state[k] = state[k].data();
        body.state_in_packs = body.state_in_packs && in_packs<Body::count>(state[k].data(), lead);
    }
    launch(body, blocks_for(body.groups.size(), Body::threads));
}

/// The same for optim::update_average().
template <KeptElement W, class Launch>
void launch_update_average(double decay, std::span<const W> weight, std::span<float> average, Launch&& launch) {
    using Body = AverageBody<W>;
    assert(weight.size() == average.size());
    if (average.empty()) return;
    const std::int32_t lead = lead_of(average.data());
    const Body body{.share = static_cast<float>(1.0 - decay),
                    .groups = {0, static_cast<std::int64_t>(average.size()), lead},
                    .weight = weight.data(),
                    .average = average.data(),
                    .weight_in_packs = in_packs<Body::count>(weight.data(), lead)};
    launch(body, blocks_for(body.groups.size(), Body::threads));
}

}  // namespace strata::optim::detail
