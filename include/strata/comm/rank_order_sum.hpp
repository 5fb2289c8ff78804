#pragma once
// strata/comm/rank_order_sum.hpp - rank_order_sum(): the sum of a reduce-scatter on a GPU, rank after rank in fp32.

#include <cstddef>
#include <cstdint>

#include <strata/core/bf16.hpp>
#include <strata/core/elements.hpp>

namespace strata::comm {

/// Where every rank's addends lie, in memory of one GPU.
template <class In>
struct RankAddends {
    const In* own;       ///< this rank's
    const In* received;  ///< the other ranks', in rank order, one run after the other
    std::size_t run;     ///< elements from one run to the next
    int rank;            ///< this one
    int world;

    /// Of any rank. On the host and on the GPU, like every constexpr function here.
    [[nodiscard]] constexpr const In* of(int other) const noexcept {
        return other == rank ? own : received + static_cast<std::size_t>(other < rank ? other : other - 1) * run;
    }
};

namespace detail {

/// `count` neighbours that are read and written at once.
template <class T, int count>
struct alignas(sizeof(T) * count < 16 ? sizeof(T) * count : 16) Neighbours {
    T at[count];
};

/// from[0 .. count) in fp32.
template <int count, class In>
constexpr Neighbours<float, count> load_neighbours(const In* from) noexcept {
    const auto values = *reinterpret_cast<const Neighbours<In, count>*>(from);
    Neighbours<float, count> wide;
    for (int k = 0; k < count; ++k) wide.at[k] = to_float(values.at[k]);
    return wide;
}

/// to[i .. i + count) = ((rank 0's + rank 1's) + rank 2's) + ... in fp32, rounded once. What a thread of the GPU does;
/// tests call it on the host.
///
///   addends, to  at element i aligned like Neighbours
template <int count, class In, class Out>
constexpr void sum_neighbours(const RankAddends<In>& addends, std::size_t i, Out* to) noexcept {
    auto sums = load_neighbours<count>(addends.of(0) + i);
    for (int rank = 1; rank < addends.world; ++rank) {
        const auto values = load_neighbours<count>(addends.of(rank) + i);
        for (int k = 0; k < count; ++k) sums.at[k] += values.at[k];
    }
    Neighbours<Out, count> rounded;
    for (int k = 0; k < count; ++k) rounded.at[k] = to_element<Out>(sums.at[k]);
    *reinterpret_cast<Neighbours<Out, count>*>(to + i) = rounded;
}

/// Elements of `In` that fill the widest load of a GPU, 16 bytes.
template <class In>
inline constexpr int most_neighbours = 16 / sizeof(In);

/// True when all runs and the result may be read and written most_neighbours at a time.
template <class In, class Out>
[[nodiscard]] bool lies_in_sixteens(const RankAddends<In>& addends, const Out* to) noexcept {
    const auto address = [](const void* at) { return reinterpret_cast<std::uintptr_t>(at); };
    return (address(addends.own) | address(addends.received) | address(to) | (addends.run * sizeof(In))) % 16 == 0;
}

}  // namespace detail

/// Queues on `stream`: to[i] = ((rank 0's + rank 1's) + rank 2's) + ... in fp32, rounded once, for i < count. The bits
/// are those of MpiComm's sums, except in NaNs of fp32, of which every processor makes its own.
///
///   addends  and `to` are in memory of the GPU that is current; `to` may be addends.own
///   stream   a cudaStream_t
///   returns  a cudaError_t: of the launch alone, which is not waited for
[[nodiscard]] int rank_order_sum(const RankAddends<float>& addends, std::size_t count, float* to,
                                 void* stream) noexcept;
[[nodiscard]] int rank_order_sum(const RankAddends<bf16>& addends, std::size_t count, bf16* to, void* stream) noexcept;
[[nodiscard]] int rank_order_sum(const RankAddends<bf16>& addends, std::size_t count, float* to, void* stream) noexcept;

}  // namespace strata::comm
