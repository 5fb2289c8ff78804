#pragma once
// strata/core/inline.hpp - STRATA_INLINE: the one switch between header-only and compiled use.
//
// Bodies that need not be templates live in <room>/impl/*.ipp. A header includes its .ipp as its
// last line unless STRATA_COMPILED is defined; linking strata::compiled defines it and supplies the
// same bodies once, so a program's translation units do not compile them again.

#ifdef STRATA_COMPILED
#define STRATA_INLINE
#else
#define STRATA_INLINE inline
#endif
