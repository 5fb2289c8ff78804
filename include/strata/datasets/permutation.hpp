#pragma once
// strata/datasets/permutation.hpp - a seeded order of 0 .. count-1 of which any place can be asked for, without memory.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include <strata/core/mix.hpp>
#include <strata/core/random.hpp>

namespace strata::datasets {

/// An order of 0 .. count-1 that follows from a key.
///
/// A Feistel network over the smallest power of two that holds count (Luby and Rackoff 1988; halves of unequal size
/// take turns), walked until it is inside (Black and Rogaway 2002, "Ciphers with arbitrary finite domains": cycle
/// walking); on the average fewer than two walks of 12 rounds, some 50 ns a place. Up to 16, where such networks do
/// not reach all orders alike, the order is shuffled by Fisher and Yates.
class Permutation {
public:
    ///   count  1 to 2^62
    constexpr Permutation(std::int64_t count, std::uint64_t key) noexcept : count_{static_cast<std::uint64_t>(count)} {
        if (count_ <= shuffled_.size()) {
            for (std::size_t i = 0; i < shuffled_.size(); ++i) shuffled_[i] = static_cast<std::uint8_t>(i);
            core::shuffle(shuffled_.begin(), shuffled_.begin() + count, core::Random{key});
            return;
        }
        const int bits = static_cast<int>(std::bit_width(count_ - 1));
        low_bits_ = (bits + 1) / 2;
        low_mask_ = (std::uint64_t{1} << low_bits_) - 1;
        high_mask_ = (std::uint64_t{1} << (bits - low_bits_)) - 1;
        key_ = core::mix(key + core::golden_step);
    }

    /// What stands at a place of [0, count).
    [[nodiscard]] constexpr std::int64_t at(std::int64_t place) const noexcept {
        if (count_ <= shuffled_.size()) return shuffled_[static_cast<std::size_t>(place)];
        auto value = static_cast<std::uint64_t>(place);
        do value = walk(value);
        while (value >= count_);
        return static_cast<std::int64_t>(value);
    }

private:
    [[nodiscard]] constexpr std::uint64_t walk(std::uint64_t value) const noexcept {
        std::uint64_t low = value & low_mask_;
        std::uint64_t high = value >> low_bits_;
        std::uint64_t round_key = key_;
        for (int round = 0; round < rounds; round += 2) {
            high ^= core::mix(low ^ (round_key += core::golden_step)) & high_mask_;
            low ^= core::mix(high ^ (round_key += core::golden_step)) & low_mask_;
        }
        return high << low_bits_ | low;
    }

    static constexpr int rounds = 12;
    std::uint64_t count_;
    std::array<std::uint8_t, 16> shuffled_{};  // of small counts
    int low_bits_ = 0;
    std::uint64_t low_mask_ = 0;
    std::uint64_t high_mask_ = 0;
    std::uint64_t key_ = 0;
};

}  // namespace strata::datasets
