// strata/optim/impl/compiled_lion.cpp - the kernels of Lion, in strata::compiled.

#include <strata/optim/compiled_kernels.hpp>

#define STRATA_KERNEL template
#define STRATA_KERNELS STRATA_ELEMENTWISE(Lion)
#include <strata/optim/impl/compiled_kernels.inc>
