#pragma once
// strata/train/environment.hpp - environment(): what the bits of a run depend on beside its numbers and its data.

#include <strata/checkpoint/facts.hpp>
#include <strata/core/inline.hpp>

namespace strata::train {

/// Recorded in every checkpoint. A resume under another one says what differs, and that bits will. Rank 0's
/// counts.
[[nodiscard]] checkpoint::Facts environment();

}  // namespace strata::train

#ifndef STRATA_COMPILED
#include <strata/train/impl/environment.ipp>
#endif
