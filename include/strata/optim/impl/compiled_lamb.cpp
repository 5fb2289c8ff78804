// strata/optim/impl/compiled_lamb.cpp - the kernels of Lamb, in strata::compiled.

#include <strata/optim/compiled_kernels.hpp>

#define STRATA_KERNEL template
#define STRATA_KERNELS STRATA_LAYERWISE(Lamb)
#include <strata/optim/impl/compiled_kernels.inc>
