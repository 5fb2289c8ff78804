// strata/optim/impl/compiled_sgd.cpp - the kernels of Sgd, in strata::compiled.

#include <strata/optim/compiled_kernels.hpp>

#define STRATA_KERNEL template
#define STRATA_KERNELS STRATA_ELEMENTWISE(Sgd)
#include <strata/optim/impl/compiled_kernels.inc>
