#pragma once
// examples/own_recompute.hpp - a choice of one's own of what runs again in backward: the first half of the units.
//
// Activations of the last units are used first: backward begins with them. Those of the first ones are kept longest, so
// that they are what is worth making again.

#include <cstdint>

#include <strata/policy/setup.hpp>

namespace my {

//! [predicate]
/// The first half of a model's units keep their inputs only, and run again in backward.
struct FirstHalf {
    static bool recomputes(std::int32_t unit, std::int32_t units) { return 2 * unit < units; }
};
static_assert(strata::UnitPredicate<FirstHalf>);
//! [predicate]

}  // namespace my
