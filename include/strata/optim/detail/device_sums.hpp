#pragma once
// strata/optim/detail/device_sums.hpp - sums of squares on a GPU, in the order in which the CPU adds them up.
//
// A block takes a chunk. 256 threads read it tile by tile and leave fp32 numbers in shared memory; a warp of its own
// adds up the tile before in double, one thread for each of the 16 running sums that the CPU keeps as well. So
// additions that wait for each other hide behind memory, and the sums have the CPU's bits.

#include <cassert>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include <strata/core/host_device.hpp>
#include <strata/optim/clip.hpp>
#include <strata/optim/detail/device_bodies.hpp>
#include <strata/optim/elements.hpp>

namespace strata::optim::detail {

/// sum + value value. The square of an fp32 number is exact in double, so a fused operation rounds as two do.
[[gnu::always_inline]] STRATA_HOST_DEVICE inline double add_square(double sum, float value) noexcept {
    const auto wide = static_cast<double>(value);
    return ::fma(wide, wide, sum);
}

/// ((total + from[0]) + from[1]) + ..., read a few at a time: memory is slower than additions that wait for each other.
template <class T>
[[gnu::always_inline]] STRATA_HOST_DEVICE inline T add_in_order(T total, const T* from, std::int64_t numel) noexcept {
    constexpr int ahead = 16;
    std::int64_t i = 0;
    for (; i + ahead <= numel; i += ahead) {
        T values[ahead];
        for (int k = 0; k < ahead; ++k) values[k] = from[i + k];
        for (int k = 0; k < ahead; ++k) total += values[k];
    }
    for (; i < numel; ++i) total += from[i];
    return total;
}

/// What a block works on: elements begin .. begin + numel - 1 of a run. Tile t begins `lead` elements before
/// begin + t tile_numel, where addresses are aligned.
struct ChunkPlace {
    std::int64_t begin;
    std::int64_t numel;
    std::int32_t lead;
    RandomPlace random;   // of its first element
    std::int64_t result;  // its number among the results
};

/// Threads of a block that read.
inline constexpr int lane_sum_fillers = 256;

/// A block of threads that goes through a chunk in steps; all threads finish a step before one begins the next.
///
///   Fill  sums, how many sums of squares there are; tile_numel; chunk(block); fill(), which writes the numbers of one
///         tile; and finish(), which takes the sums
template <class Fill>
struct LaneSums {
    static constexpr int lanes = 16;
    static constexpr int fillers = lane_sum_fillers;
    static constexpr int threads = fillers + 32;
    static constexpr int sums = Fill::sums;
    static constexpr int tile_numel = Fill::tile_numel;
    struct alignas(16) Shared {
        float tile[2][sums][tile_numel + 16];  // 16 more, so that two sums' lanes meet in no bank
        double sum[sums * lanes];
    };
    static_assert(sums <= 2 && tile_numel % lanes == 0 && sizeof(Shared) <= 48 * 1024);

    Fill fill;

    [[nodiscard]] STRATA_HOST_DEVICE static std::int64_t tiles(const ChunkPlace& chunk) noexcept {
        return (chunk.lead + chunk.numel + tile_numel - 1) / tile_numel;
    }
    [[nodiscard]] STRATA_HOST_DEVICE static std::int64_t steps(const ChunkPlace& chunk) noexcept {
        return tiles(chunk) + 2;  // sums are one tile behind; the last step is finish()
    }

    /// What a thread does in step t: tile t, or the sums of tile t - 1.
    [[gnu::always_inline]] STRATA_HOST_DEVICE void step(const ChunkPlace& chunk, std::int64_t t, std::int32_t thread,
                                                        Shared& shared) const {
        const std::int64_t count = tiles(chunk);
        const std::int32_t adder = thread - fillers;
        if (adder < 0) {
            if (t < count) fill.fill(chunk, t * tile_numel - chunk.lead, thread, shared.tile[t % 2]);
        } else if (t == 0) {
            if (adder < sums * lanes) shared.sum[adder] = 0.0;
        } else if (t <= count) {
            if (adder < sums * lanes) add(chunk, t - 1, adder, shared);
        } else if (adder == 0) {
            fill.finish(chunk, shared.sum);
        }
    }

private:
    [[gnu::always_inline]] STRATA_HOST_DEVICE static void add(const ChunkPlace& chunk, std::int64_t t,
                                                              std::int32_t adder, Shared& shared) {
        constexpr int ahead = 16;
        const float* const values = shared.tile[t % 2][adder / lanes];
        const std::int32_t first = adder % lanes + chunk.lead;  // in tile 0; below it lies what is not of the chunk
        const std::int64_t left = chunk.numel + chunk.lead - t * tile_numel;
        const auto end = static_cast<std::int32_t>(left < tile_numel ? left : tile_numel);
        std::int32_t at = t == 0 ? first : first % lanes;
        double total = shared.sum[adder];
        for (; at + (ahead - 1) * lanes < end; at += ahead * lanes) {
            float next[ahead];
            for (int k = 0; k < ahead; ++k) next[k] = values[at + k * lanes];
            for (int k = 0; k < ahead; ++k) total = add_square(total, next[k]);
        }
        for (; at < end; at += lanes) total = add_square(total, values[at]);
        shared.sum[adder] = total;
    }
};

/// The sums of squares of chunks.
template <GradientElement G>
struct SquareFill {
    static constexpr int sums = 1;
    static constexpr int tile_numel = 4096;
    static constexpr int count = 16 / sizeof(G);
    static constexpr int fillers = lane_sum_fillers;
    static constexpr int rounds = tile_numel / (fillers * count);

    const G* values;
    std::int64_t numel;
    std::int32_t lead;
    double* partial;  // one a chunk

    [[nodiscard]] STRATA_HOST_DEVICE ChunkPlace chunk(std::int64_t block) const noexcept {
        const std::int64_t begin = block * chunk_numel;
        const std::int64_t left = numel - begin;
        return {begin, left < chunk_numel ? left : chunk_numel, lead, {}, block};  // chunk_numel is a multiple of count
    }
    /// The tile whose first place is element `origin` of the chunk, where that is one of it.
    [[gnu::always_inline]] STRATA_HOST_DEVICE void fill(const ChunkPlace& chunk, std::int64_t origin,
                                                        std::int32_t thread,
                                                        float (&tile)[sums][tile_numel + 16]) const {
        const G* const from = values + chunk.begin;
        G group[rounds][count];
        STRATA_UNROLL
        for (int r = 0; r < rounds; ++r) {
            const std::int64_t at = origin + (r * fillers + thread) * count;
            if (at >= 0 && at + count <= chunk.numel) {
                read(group[r], from + at, true);
            } else {
                for (int i = 0; i < count; ++i) group[r][i] = at + i >= 0 && at + i < chunk.numel ? from[at + i] : G{};
            }
        }
        STRATA_UNROLL
        for (int r = 0; r < rounds; ++r) {
            float wide[count];
            for (int i = 0; i < count; ++i) wide[i] = to_float(group[r][i]);
            write(tile[0] + (r * fillers + thread) * count, wide, true);
        }
    }
    STRATA_HOST_DEVICE void finish(const ChunkPlace& chunk, const double* lane_sums) const {
        partial[chunk.result] = add_in_order(0.0, lane_sums, 16);
    }
};

/// *result = the chunks' sums in order; for one thread.
struct SquareTotal {
    static constexpr int threads = 32;
    const double* partial;
    std::int64_t chunks;
    double* result;

    STRATA_HOST_DEVICE void operator()(std::int64_t, std::int32_t thread) const {
        if (thread == 0) *result = add_in_order(0.0, partial, chunks);
    }
};

/// Calls launch(body, blocks) for optim::sum_of_squares().
template <GradientElement G, class Launch>
void launch_sum_of_squares(std::span<const G> values, std::span<double> partial, double* result, Launch&& launch) {
    const auto numel = static_cast<std::int64_t>(values.size());
    const std::int64_t chunks = (numel + chunk_numel - 1) / chunk_numel;
    assert(chunks <= static_cast<std::int64_t>(partial.size()));
    if (chunks > 0) {
        launch(LaneSums<SquareFill<G>>{{values.data(), numel, lead_of(values.data()), partial.data()}}, chunks);
    }
    launch(SquareTotal{partial.data(), chunks, result}, std::int64_t{1});
}

}  // namespace strata::optim::detail
