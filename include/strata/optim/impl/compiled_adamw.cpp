// strata/optim/impl/compiled_adamw.cpp - the kernels of AdamW, in strata::compiled.

#include <strata/optim/compiled_kernels.hpp>

#define STRATA_KERNEL template
#define STRATA_KERNELS STRATA_ELEMENTWISE(AdamW)
#include <strata/optim/impl/compiled_kernels.inc>
