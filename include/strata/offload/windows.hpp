#pragma once
// strata/offload/windows.hpp - how state is cut into windows, and how many buffers of what size they need.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <strata/core/error.hpp>
#include <strata/offload/host_memory.hpp>

namespace strata::offload {

/// The arrays of one window: bytes of each. In memory and on the disk each starts at a multiple of 64 bytes.
using WindowArrays = std::vector<std::size_t>;

inline constexpr std::size_t array_alignment = 64;

/// Bytes of a window's arrays together, with their alignment.
constexpr std::size_t payload_of(const WindowArrays& arrays) noexcept {
    std::size_t bytes = 0;
    for (const std::size_t array : arrays) bytes += (array + array_alignment - 1) / array_alignment * array_alignment;
    return bytes;
}
static_assert(payload_of({4, 64, 65}) == 64 + 64 + 128);

/// A run of elements of one bucket's share that is fetched, updated and flushed as one.
struct WindowRun {
    std::size_t bucket = 0;
    std::int64_t begin = 0;  ///< element in the bucket's share
    std::int64_t numel = 0;
    friend constexpr bool operator==(const WindowRun&, const WindowRun&) = default;
};

/// Cuts each bucket's share into windows of at most `window_numel` elements, in order; empty shares give none.
constexpr std::vector<WindowRun> cut_windows(std::span<const std::int64_t> share_numel, std::int64_t window_numel) {
    std::vector<WindowRun> windows;
    for (std::size_t bucket = 0; bucket < share_numel.size(); ++bucket) {
        for (std::int64_t at = 0; at < share_numel[bucket]; at += window_numel) {
            windows.push_back({bucket, at, std::min(window_numel, share_numel[bucket] - at)});
        }
    }
    return windows;
}

/// What a pipeline may hold in memory.
struct BufferPlan {
    std::size_t buffer_bytes = 0;
    std::size_t buffers = 0;
    [[nodiscard]] constexpr std::size_t total() const noexcept { return buffer_bytes * buffers; }
    friend constexpr bool operator==(const BufferPlan&, const BufferPlan&) = default;
};

/// Three would do for "read i + 1, update i, write i - 1" if a disk took its orders one by one. Reads and writes that
/// share it end in bursts, which many small buffers even out and few large ones do not: bench/nvme_tier/RESULT.md.
inline constexpr std::size_t usual_buffers = 16;
inline constexpr std::size_t fewest_buffers = 2;
/// On a node with memory to spare more of the state is read during backward, and written during the next forward pass.
inline constexpr std::size_t most_buffers = 64;
inline constexpr std::size_t usual_window_bytes = std::size_t{4} << 20;

/// The size of windows of state that may be cut anywhere: 4 MiB, less where the budget or an eighth of the free memory
/// does not hold the usual number of them, and never more than the largest unit fills.
///
///   budget_bytes        0: chosen from the free memory
///   largest_unit_bytes  of state; 0: unknown
constexpr std::size_t window_bytes(std::size_t budget_bytes, std::uint64_t free_bytes, std::size_t largest_unit_bytes) {
    const std::uint64_t budget = budget_bytes > 0 ? budget_bytes : free_bytes / 8;
    std::uint64_t bytes = std::min<std::uint64_t>(usual_window_bytes, budget / usual_buffers);
    if (largest_unit_bytes > 0) bytes = std::min<std::uint64_t>(bytes, largest_unit_bytes);
    return static_cast<std::size_t>(std::max<std::uint64_t>(bytes, std::uint64_t{64} << 10));
}
static_assert(window_bytes(0, std::uint64_t{8} << 30, 0) == usual_window_bytes);
static_assert(window_bytes(std::size_t{16} << 20, std::uint64_t{8} << 30, 0) == std::size_t{1} << 20);
static_assert(window_bytes(0, std::uint64_t{8} << 30, std::size_t{1} << 20) == std::size_t{1} << 20);

/// How many buffers of the largest window a pipeline gets: what the budget holds; when it is chosen, the usual number, or
/// what a 128th of the free memory holds where that is more, up to `most_buffers`. An eighth of the free memory at most,
/// at least two, and never more than there are windows.
///
///   buffer_bytes  of the largest window with its seal: SwapFile::bytes_of()
///   budget_bytes  0: chosen from the free memory
/// Throws bad_value when a budget that is set does not hold two buffers.
inline BufferPlan plan_buffers(std::size_t buffer_bytes, std::size_t windows, std::size_t budget_bytes,
                               std::uint64_t free_bytes) {
    std::size_t buffers = 0;
    if (budget_bytes > 0) {
        buffers = budget_bytes / buffer_bytes;
        if (buffers < std::min(fewest_buffers, windows)) {
            throw Error{Errc::bad_value,
                        "an offload buffer budget of " + in_gib(budget_bytes) + " does not hold two buffers of " +
                            std::to_string(buffer_bytes) + " bytes, the largest window",
                        "set it to " + std::to_string(fewest_buffers * buffer_bytes) + " bytes or more, or to 0"};
        }
    } else {
        const auto holds = [&](std::uint64_t bytes) { return static_cast<std::size_t>(bytes / buffer_bytes); };
        const std::size_t wanted = std::clamp(holds(free_bytes / 128), usual_buffers, most_buffers);
        buffers = std::clamp(holds(free_bytes / 8), fewest_buffers, wanted);
    }
    return {buffer_bytes, std::min(buffers, windows)};
}

}  // namespace strata::offload
