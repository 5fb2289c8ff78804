#pragma once
// strata/train/tensor_memory.hpp - keep_tensor_memory(): large tensors on the CPU take the memory that others before them had.

#include <strata/core/inline.hpp>

namespace strata::train {

/// From now on tensors on the CPU of 1 MiB and more have blocks of core::kept_blocks(): activations and gradients are the same from step
/// to step, and what one step frees the next one takes, where libtorch and glibc give it to the system and get it back page by page,
/// cleared. That was up to half of a step's processor time on a virtual machine. The process is not larger than its largest step
/// made it; between phases of a run (a model taken over, encoders let go) all that is kept goes back (core::give_back_memory()).
/// Where the system has huge pages to ask for (/sys/kernel/mm/transparent_hugepage/enabled is not `never`), tensors of 4 MiB and more do.
///
/// A Session calls it; a program with an engine alone may. Once for the process, of any thread. Local.
void keep_tensor_memory();

}  // namespace strata::train

#ifndef STRATA_COMPILED
#include <strata/train/impl/tensor_memory.ipp>
#endif
