#pragma once
// bench/update_kernels/by_hand.hpp - the machine's limit: in-place loops that only read and write an update's bytes.

#include <cstdint>

namespace by_hand {

/// The streams of one update over `numel` elements. Pointers that do not apply are null.
struct Streams {
    std::int64_t numel = 0;
    int kept_bytes = 4;              ///< 4: fp32 weights and states, 2: bf16
    const void* gradient = nullptr;  ///< read
    int gradient_bytes = 4;
    void* kept[3] = {};             ///< read and written: weight, states
    std::uint16_t* copy = nullptr;  ///< written
};

/// All streams at once, element by element, as an update must walk them. OpenMP, equal shares.
void together(const Streams& streams);

/// One stream after the other: fewer open pages, but no update can do it.
void one_by_one(const Streams& streams);

}  // namespace by_hand
