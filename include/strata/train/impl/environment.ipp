#pragma once
// strata/train/impl/environment.ipp - the facts that a checkpoint keeps of this build and this machine.

#include <torch/version.h>

#include <strata/train/cpu_kernels.hpp>
#include <strata/train/environment.hpp>

namespace strata::train {

STRATA_INLINE checkpoint::Facts environment() {
    checkpoint::Facts facts;
    facts.emplace_back("libtorch", TORCH_VERSION);
#ifdef STRATA_WITH_CUDA
    facts.emplace_back("device", "GPU");
#else
    facts.emplace_back("device", "CPU");
#endif
    facts.emplace_back("CPU kernels", cpu_kernels());
    return facts;
}

}  // namespace strata::train
