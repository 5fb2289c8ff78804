#pragma once
// tests/support/changed_bytes.hpp - what somebody, or a disk, does to a file; the same on every run.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "made_files.hpp"

namespace strata_test {

/// splitmix64 (Steele, Lea, Flood 2014).
struct Numbers {
    std::uint64_t state;
    std::uint64_t next() {
        state += 0x9E3779B97F4A7C15U;
        std::uint64_t z = state;
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
        return z ^ (z >> 31);
    }
    std::size_t below(std::size_t count) { return static_cast<std::size_t>(next() % count); }
};

/// One to four changes: bytes replaced, flipped, left out, doubled, extreme numbers, the end cut off.
inline Bytes changed(const Bytes& file, Numbers& numbers) {
    Bytes result = file;
    for (std::size_t change = 0; change <= numbers.below(4) && !result.empty(); ++change) {
        const std::size_t at = numbers.below(result.size());
        const std::size_t some = 1 + numbers.below(std::min<std::size_t>(result.size() - at, 24));
        const auto place = result.begin() + static_cast<std::ptrdiff_t>(at);
        switch (numbers.below(6)) {
            case 0:
                *place = static_cast<std::byte>(numbers.next());
                break;
            case 1:
                *place ^= static_cast<std::byte>(1U << numbers.below(8));
                break;
            case 2:
                result.erase(place, place + static_cast<std::ptrdiff_t>(some));
                break;
            case 3:
                result = inserted(result, at, Bytes(place, place + static_cast<std::ptrdiff_t>(some)));
                break;
            case 4:
                for (std::size_t i = at; i < std::min(at + 4, result.size()); ++i)
                    result[i] =
                        std::array{std::byte{0xFF}, std::byte{0x7F}, std::byte{0x80}, std::byte{0}}[numbers.below(4)];
                break;
            default:
                result.resize(at);
                break;
        }
    }
    return result;
}

}  // namespace strata_test
