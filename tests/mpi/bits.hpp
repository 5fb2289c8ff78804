#pragma once
// tests/mpi/bits.hpp - AppendBits: results of any type as words, for comparisons in which -0 and NaN count as what they are.

#include <cstdint>
#include <cstring>
#include <vector>

namespace strata_test {

struct AppendBits {
    std::vector<std::uint32_t>& words;

    /// values  a range whose elements have at most 4 bytes
    template <class Values>
    void operator()(const Values& values) const {
        for (const auto& value : values) {
            static_assert(sizeof value <= sizeof(std::uint32_t));
            std::uint32_t word = 0;
            std::memcpy(&word, &value, sizeof value);
            words.push_back(word);
        }
    }
};

}  // namespace strata_test
