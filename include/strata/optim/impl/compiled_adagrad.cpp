// strata/optim/impl/compiled_adagrad.cpp - the kernels of Adagrad, in strata::compiled.

#include <strata/optim/compiled_kernels.hpp>

#define STRATA_KERNEL template
#define STRATA_KERNELS STRATA_ELEMENTWISE(Adagrad)
#include <strata/optim/impl/compiled_kernels.inc>
