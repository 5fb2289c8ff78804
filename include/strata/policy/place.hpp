#pragma once
// strata/policy/place.hpp - Place: where bytes are.

#include <cstddef>
#include <cstdint>

namespace strata {

/// Where bytes are, nearest to the computation first. On the CPU device and host are the same memory; what a policy
/// moves to Cpu counts as host.
enum class Place : std::uint8_t { device, host, disk };
inline constexpr std::size_t place_count = 3;

/// Bytes in every place.
struct PlaceBytes {
    std::int64_t of[place_count] = {};

    [[nodiscard]] static constexpr PlaceBytes at(Place place, std::int64_t bytes) noexcept {
        PlaceBytes all;
        all[place] = bytes;
        return all;
    }
    [[nodiscard]] constexpr std::int64_t& operator[](Place place) noexcept {
        return of[static_cast<std::size_t>(place)];
    }
    [[nodiscard]] constexpr std::int64_t operator[](Place place) const noexcept {
        return of[static_cast<std::size_t>(place)];
    }
    /// What is not on the disk.
    [[nodiscard]] constexpr std::int64_t in_memory() const noexcept {
        return (*this)[Place::device] + (*this)[Place::host];
    }
    friend constexpr PlaceBytes operator+(PlaceBytes a, const PlaceBytes& b) noexcept {
        for (std::size_t i = 0; i < place_count; ++i) a.of[i] += b.of[i];
        return a;
    }
    friend constexpr PlaceBytes operator-(PlaceBytes a, const PlaceBytes& b) noexcept {
        for (std::size_t i = 0; i < place_count; ++i) a.of[i] -= b.of[i];
        return a;
    }
    friend constexpr bool operator==(const PlaceBytes&, const PlaceBytes&) = default;
};
static_assert((PlaceBytes::at(Place::host, 3) + PlaceBytes::at(Place::disk, 4)).in_memory() == 3);

}  // namespace strata
