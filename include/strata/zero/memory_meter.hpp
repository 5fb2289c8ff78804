#pragma once
// strata/zero/memory_meter.hpp - MemoryMeter: bytes of training state, by what they hold and where they are.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string_view>
#include <utility>

#include <strata/policy/place.hpp>

namespace strata::zero {

/// What bytes hold.
enum class MemoryKind : std::uint8_t {
    parameters,  ///< in the model's precision: whole ones, and shards
    gradients,   ///< sums, and the buckets that wait for their reduction
    state,       ///< the update rule's states, fp32 master weights, averages
    gathered,    ///< parameters of units that are whole for the moment
    buffers,     ///< windows of what is on disk; the fp32 values of a bucket while an engine takes it over
};
inline constexpr std::size_t memory_kind_count = 5;
constexpr std::string_view name_of(MemoryKind kind) noexcept {
    constexpr std::string_view names[] = {"parameters", "gradients", "state", "gathered", "buffers"};
    return names[static_cast<std::size_t>(kind)];
}

using strata::Place;
using strata::place_count;
constexpr std::string_view name_of(Place place) noexcept {
    constexpr std::string_view names[] = {"device", "host", "disk"};
    return names[static_cast<std::size_t>(place)];
}

/// Bytes at this moment, and the most there have been.
struct MemoryUse {
    std::int64_t now = 0;
    std::int64_t peak = 0;
};

/// Counts what an engine allocates on this rank. Thread-safe.
class MemoryMeter {
public:
    void add(MemoryKind kind, Place place, std::int64_t bytes) noexcept {
        const std::lock_guard lock{mutex_};
        raise(uses_[index(kind, place)], bytes);
        raise(totals_[static_cast<std::size_t>(place)], bytes);
    }
    void subtract(MemoryKind kind, Place place, std::int64_t bytes) noexcept { add(kind, place, -bytes); }

    [[nodiscard]] MemoryUse of(MemoryKind kind, Place place) const noexcept {
        const std::lock_guard lock{mutex_};
        return uses_[index(kind, place)];
    }
    /// Of everything in one place; its peak is that of the sum.
    [[nodiscard]] MemoryUse total(Place place) const noexcept {
        const std::lock_guard lock{mutex_};
        return totals_[static_cast<std::size_t>(place)];
    }
    /// Peaks start anew from what there is.
    void reset_peaks() noexcept {
        const std::lock_guard lock{mutex_};
        for (MemoryUse& use : uses_) use.peak = use.now;
        for (MemoryUse& use : totals_) use.peak = use.now;
    }

private:
    static constexpr std::size_t index(MemoryKind kind, Place place) noexcept {
        return static_cast<std::size_t>(kind) * place_count + static_cast<std::size_t>(place);
    }
    static void raise(MemoryUse& use, std::int64_t bytes) noexcept {
        use.now += bytes;
        use.peak = std::max(use.peak, use.now);
    }

    mutable std::mutex mutex_;
    std::array<MemoryUse, memory_kind_count * place_count> uses_{};
    std::array<MemoryUse, place_count> totals_{};
};

}  // namespace strata::zero
