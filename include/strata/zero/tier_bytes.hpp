#pragma once
// strata/zero/tier_bytes.hpp - TierBytes: what a class of a tier will take, said before there is one.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

#include <strata/policy/place.hpp>

namespace strata::zero {

/// Bytes that a class of a tier takes on a rank from its make() on, as a MemoryMeter counts them.
struct TierBytes {
    PlaceBytes kept{};     ///< of what it keeps
    PlaceBytes buffers{};  ///< MemoryKind::buffers
    bool is_exact =
        true;  ///< to the byte; false: `kept` is what bytes() says, which may be too much, and of buffers nothing is known

    friend constexpr TierBytes operator+(const TierBytes& a, const TierBytes& b) noexcept {
        return {a.kept + b.kept, a.buffers + b.buffers, a.is_exact && b.is_exact};
    }
};

/// What the buffers of a tier depend on.
struct TierRoom {
    std::size_t budget_bytes = 0;  ///< for them: PipelineOptions::budget_bytes
    std::uint64_t free_bytes = 0;  ///< of the host's memory when they are made; only where the budget is 0

    /// For one of the tiers that a tier is made of, as TierContext::part() has it.
    [[nodiscard]] constexpr TierRoom part(std::size_t sharers) const noexcept {
        return {budget_bytes / sharers, free_bytes};
    }
};

/// What a class `state` or `shards` of a tier may say besides, as a static function: all that it takes.
template <class S>
concept SaysWhatItTakes = requires(std::span<const std::int64_t> numels, const TierRoom& room) {
    { S::takes(numels, room) } -> std::same_as<TierBytes>;
};

/// What a class of a tier takes for parts of these sizes. One that says nothing, or whose takes() is of a base class that keeps something
/// else, is counted by its bytes(), and not exact. Throws what its functions throw.
template <class S>
[[nodiscard]] TierBytes taken_by(std::span<const std::int64_t> numels, const TierRoom& room) {
    const PlaceBytes kept = S::bytes(numels);
    if constexpr (SaysWhatItTakes<S>) {
        const TierBytes taken = S::takes(numels, room);
        if (taken.kept.in_memory() == kept.in_memory()) return taken;
    }
    return {kept, {}, false};
}

}  // namespace strata::zero
