// strata/optim/impl/compiled_adam.cpp - the kernels of Adam, in strata::compiled.

#include <strata/optim/compiled_kernels.hpp>

#define STRATA_KERNEL template
#define STRATA_KERNELS STRATA_ELEMENTWISE(Adam)
#include <strata/optim/impl/compiled_kernels.inc>
