#pragma once
// strata/train/huge_pages.hpp - use_huge_pages(): large tensors on the CPU lie on pages of 2 MiB.

#include <strata/core/inline.hpp>

namespace strata::train {

/// From now on tensors on the CPU of 32 MiB and more ask the system for huge pages (madvise, MADV_HUGEPAGE). Such tensors are new memory
/// each time, gradients of large weights in every backward pass, and clearing that page by page of 4 KiB took as long as half of the
/// arithmetic on a virtual machine; in huge pages it takes a quarter to a half of that. Nothing is kept for later and no tensor takes more
/// memory. Where the system says `never` in /sys/kernel/mm/transparent_hugepage/enabled, this changes nothing.
///
/// A Session calls it; a program with an engine alone may. Once for the process, of any thread. Local.
void use_huge_pages();

}  // namespace strata::train

#ifndef STRATA_COMPILED
#include <strata/train/impl/huge_pages.ipp>
#endif
