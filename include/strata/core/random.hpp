#pragma once
// strata/core/random.hpp - seeded numbers that are the same on every machine: std's distributions and shuffle are not.

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string_view>
#include <utility>

#include <strata/core/fnv1a.hpp>
#include <strata/core/mix.hpp>

namespace strata::core {

/// One number from several, for exactly the purpose they name; the order counts.
constexpr std::uint64_t combine(std::initializer_list<std::uint64_t> parts) noexcept {
    std::uint64_t state = core::golden_step;
    for (const std::uint64_t part : parts) state = core::mix(state + core::golden_step + core::mix(part));
    return state;
}

/// A number for a text: its FNV-1a, stirred.
constexpr std::uint64_t number_of(std::string_view text) noexcept { return core::mix(core::fnv1a(text)); }

/// A number in [0, 1) from random bits.
constexpr double unit_interval(std::uint64_t random) noexcept { return static_cast<double>(random >> 11) * 0x1p-53; }
static_assert(unit_interval(0) == 0 && unit_interval(~std::uint64_t{0}) < 1);

/// SplitMix64.
class Random {
public:
    explicit constexpr Random(std::uint64_t state) noexcept : state_{state} {}
    constexpr std::uint64_t next() noexcept { return core::mix(state_ += core::golden_step); }
    /// Uniform in [0, bound), bound >= 1: numbers beyond the largest multiple of bound are drawn again.
    constexpr std::uint64_t below(std::uint64_t bound) noexcept {
        const std::uint64_t rest = (std::numeric_limits<std::uint64_t>::max() % bound + 1) % bound;
        std::uint64_t number = next();
        while (number > std::numeric_limits<std::uint64_t>::max() - rest) number = next();
        return number % bound;
    }

private:
    std::uint64_t state_;
};

/// Fisher and Yates.
template <class Iterator>
constexpr void shuffle(Iterator begin, Iterator end, Random random) {
    for (auto left = static_cast<std::uint64_t>(end - begin); left > 1; --left)
        std::swap(begin[static_cast<std::ptrdiff_t>(left - 1)], begin[static_cast<std::ptrdiff_t>(random.below(left))]);
}

}  // namespace strata::core
