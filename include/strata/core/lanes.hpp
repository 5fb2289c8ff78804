#pragma once
// strata/core/lanes.hpp - several fp32 numbers that are computed with at once, read from and written as fp32 or bf16.
//
// For loops that core/simd.hpp runs. Everything here is inlined, and takes and gives vectors in objects: a bare vector
// wider than the program's own registers is passed in another way, and warned about.

#include <cstdint>
#include <cstring>

#include <strata/core/bf16.hpp>

namespace strata::core {

/// `lanes` numbers in one vector of the compiler.
template <class Number, int lanes>
struct VectorOf {
    typedef Number type __attribute__((vector_size(lanes * sizeof(Number))));
};

/// fp32 numbers side by side; +, -, * and / are of each lane, with one number for all lanes on either side. Lanes<n>{}:
/// zeros.
template <int count>
struct Lanes {
    static constexpr std::int64_t width = count;
    using Floats = typename VectorOf<float, count>::type;
    using Bits = typename VectorOf<std::uint32_t, count>::type;
    using Ints = typename VectorOf<std::int32_t, count>::type;
    using Halves = typename VectorOf<std::uint16_t, count>::type;

    Floats values{};

#define STRATA_LANES_OPERATOR(op)                                                                     \
    [[gnu::always_inline]] friend inline Lanes operator op(const Lanes& a, const Lanes& b) noexcept { \
        return {a.values op b.values};                                                                \
    }                                                                                                 \
    [[gnu::always_inline]] friend inline Lanes operator op(const Lanes& a, float b) noexcept {        \
        return {a.values op b};                                                                       \
    }                                                                                                 \
    [[gnu::always_inline]] friend inline Lanes operator op(float a, const Lanes& b) noexcept { return {a op b.values}; }
    STRATA_LANES_OPERATOR(+)
    STRATA_LANES_OPERATOR(-)
    STRATA_LANES_OPERATOR(*)
    STRATA_LANES_OPERATOR(/)
#undef STRATA_LANES_OPERATOR
    [[gnu::always_inline]] inline Lanes& operator+=(const Lanes& other) noexcept {
        values += other.values;
        return *this;
    }

    [[gnu::always_inline]] static inline Lanes load(const float* from) noexcept {
        Floats floats;
        std::memcpy(&floats, from, sizeof floats);
        return {floats};
    }
    [[gnu::always_inline]] static inline Lanes load(const bf16* from) noexcept {
        Halves halves;
        std::memcpy(&halves, from, sizeof halves);
        const Bits bits = __builtin_convertvector(halves, Bits) << 16;
        return {(Floats)bits};
    }
    /// The first n < width elements; the other lanes are `rest`.
    template <class T>
    [[gnu::always_inline]] static inline Lanes load_some(const T* from, std::int64_t n, float rest) noexcept {
        T buffer[count];
        store(buffer, Lanes{} + rest);
        std::memcpy(buffer, from, static_cast<std::size_t>(n) * sizeof(T));
        return load(buffer);
    }
};

/// Writes all lanes.
template <int count>
[[gnu::always_inline]] inline void store(float* to, const Lanes<count>& lanes) noexcept {
    const auto floats = lanes.values;  // a copy, because an object whose bytes are looked at stays in memory
    std::memcpy(to, &floats, sizeof floats);
}
/// The same, rounded as to_bf16() does, but for NaNs: one stays one where its payload is in the upper bits, as that of
/// arithmetic is.
template <int count>
[[gnu::always_inline]] inline void store(bf16* to, const Lanes<count>& lanes) noexcept {
    auto bits = (typename Lanes<count>::Bits)lanes.values;
    round_to_upper_half(bits);
    const auto halves = __builtin_convertvector(bits, typename Lanes<count>::Halves);
    std::memcpy(to, &halves, sizeof halves);
}
/// Writes the first n < width lanes.
template <class T, int count>
[[gnu::always_inline]] inline void store_some(T* to, const Lanes<count>& lanes, std::int64_t n) noexcept {
    T buffer[count];
    store(buffer, lanes);
    std::memcpy(to, buffer, static_cast<std::size_t>(n) * sizeof(T));
}

/// The larger and the smaller number of each lane.
template <int count>
[[gnu::always_inline]] inline Lanes<count> max(const Lanes<count>& a, const Lanes<count>& b) noexcept {
    return {a.values > b.values ? a.values : b.values};
}
template <int count>
[[gnu::always_inline]] inline Lanes<count> min(const Lanes<count>& a, const Lanes<count>& b) noexcept {
    return {a.values < b.values ? a.values : b.values};
}

namespace detail {

/// The lower and the upper half of the lanes.
template <int count>
struct HalvesOf {
    Lanes<count / 2> low;
    Lanes<count / 2> high;

    [[gnu::always_inline]] explicit inline HalvesOf(const Lanes<count>& x) noexcept {
        const auto floats = x.values;  // a copy, because an object whose bytes are looked at stays in memory
        typename Lanes<count / 2>::Floats half;
        std::memcpy(&half, &floats, sizeof half);
        low.values = half;
        std::memcpy(&half, reinterpret_cast<const char*>(&floats) + sizeof half, sizeof half);
        high.values = half;
    }
};

}  // namespace detail

/// Sum of the lanes, always in the same tree: half and half.
template <int count>
[[gnu::always_inline]] inline float sum(const Lanes<count>& x) noexcept {
    if constexpr (count == 2) {
        return x.values[0] + x.values[1];
    } else {
        const detail::HalvesOf<count> halves{x};
        return sum(halves.low + halves.high);
    }
}

/// The largest lane.
template <int count>
[[gnu::always_inline]] inline float largest(const Lanes<count>& x) noexcept {
    if constexpr (count == 2) {
        return x.values[0] > x.values[1] ? x.values[0] : x.values[1];
    } else {
        const detail::HalvesOf<count> halves{x};
        return largest(max(halves.low, halves.high));
    }
}

/// e^x within 3e-7 + 1e-7 |x| of it: 2^n * 2^f, |f| <= 1/2, by the Taylor polynomial of degree 6. At most 2^126, at
/// least its inverse.
template <int count>
[[gnu::always_inline]] inline Lanes<count> exp(const Lanes<count>& x) noexcept {
    using Floats = typename Lanes<count>::Floats;
    using Ints = typename Lanes<count>::Ints;
    const Lanes<count> t = min(max(x * 1.44269504F, Lanes<count>{} - 126.0F), Lanes<count>{} + 126.0F);
    const float magic = 12582912.0F;  // 1.5 * 2^23: adding it leaves the rounded integer in the low bits
    const Lanes<count> shifted = t + magic;
    const Lanes<count> u = (t - (shifted - magic)) * 0.693147181F;
    Lanes<count> p = u * (1.0F / 720.0F) + 1.0F / 120.0F;
    p = p * u + 1.0F / 24.0F;
    p = p * u + 1.0F / 6.0F;
    p = p * u + 0.5F;
    p = p * u + 1.0F;
    p = p * u + 1.0F;
    const Ints exponent = ((Ints)shifted.values - 0x4b400000 + 127) << 23;
    return p * Lanes<count>{(Floats)exponent};
}

/// The first n lanes of x; zero in the others.
template <int count>
[[gnu::always_inline]] inline Lanes<count> first_lanes(const Lanes<count>& x, std::int64_t n) noexcept {
    typename Lanes<count>::Ints number{};
    for (int i = 0; i < count; ++i) number[i] = i;
    return {number < static_cast<std::int32_t>(n) ? x.values : typename Lanes<count>::Floats{}};
}

/// Lanes 2i and 2i + 1 change places.
template <int count>
[[gnu::always_inline]] inline Lanes<count> swap_pairs(const Lanes<count>& x) noexcept {
    Lanes<count> swapped;
#ifdef __clang__  // has no __builtin_shuffle, and makes one instruction of this
    for (int i = 0; i < count; ++i) swapped.values[i] = x.values[i ^ 1];
#else
    typename Lanes<count>::Ints number{};
    for (int i = 0; i < count; ++i) number[i] = i;
    swapped.values = __builtin_shuffle(x.values, number ^ 1);
#endif
    return swapped;
}

}  // namespace strata::core
