#pragma once
// examples/own_timing.hpp - a moment of one's own for the update: in backward, where a build is for machines with little memory.

#include <strata/policy/setup.hpp>

namespace my {

//! [timing]
/// Update<InBackward> or Update<AfterBackward>, as a constant of the program says.
template <bool little_memory>
struct AsMemoryAllows {
    using slot = strata::slot::Timing;
    static constexpr bool in_backward = little_memory;
};
//! [timing]

}  // namespace my
