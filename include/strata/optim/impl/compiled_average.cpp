// strata/optim/impl/compiled_average.cpp - the kernels of averages of weights, in strata::compiled.

#include <strata/optim/compiled_kernels.hpp>

#define STRATA_KERNEL template
#define STRATA_KERNELS STRATA_AVERAGE
#include <strata/optim/impl/compiled_kernels.inc>
