#pragma once
// strata/core/independent_loop.hpp - STRATA_INDEPENDENT_LOOP: no pass of the loop below reads what another writes.

/// In front of a loop over arrays that the compiler could take for overlapping: gcc then makes vectors of it without
/// looking at the addresses first. clang has no such word that it does not complain of where a loop cannot be made of
/// vectors; it compares the addresses once, before the loop.
#ifdef __clang__
#define STRATA_INDEPENDENT_LOOP
#else
#define STRATA_INDEPENDENT_LOOP _Pragma("GCC ivdep")
#endif
