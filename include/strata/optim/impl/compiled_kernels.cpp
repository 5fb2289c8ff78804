// strata/optim/impl/compiled_kernels.cpp - the kernels of optim/compiled_kernels.hpp, in strata::compiled.

#include <strata/optim/compiled_kernels.hpp>

#define STRATA_KERNEL template
#include <strata/optim/impl/compiled_kernels.inc>
