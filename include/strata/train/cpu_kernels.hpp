#pragma once
// strata/train/cpu_kernels.hpp - which CPU kernels libtorch and OpenBLAS compute with: chosen, and named.

#include <string>

#include <strata/core/inline.hpp>

namespace strata::train {

/// On a processor with AVX-512, sees to it that libtorch and OpenBLAS use it: libtorch 1.13 does not find out by itself, and
/// OpenBLAS not on every processor. So a run has the same bits whatever started it. ATEN_CPU_CAPABILITY and
/// OPENBLAS_CORETYPE stay as they are where they are set.
///
/// OpenBLAS has chosen before main begins. Where it chose kernels without AVX-512, this starts the program once more with
/// OPENBLAS_CORETYPE set: same process, arguments, signal mask and pending signals. So strata::run(), which calls this, should
/// come first in main. It is not done once MPI runs.
///
/// Local.
void choose_cpu_kernels();

/// The kernels that are in use: "libtorch AVX512, OpenBLAS SkylakeX"; "libtorch AVX2" alone where libtorch computes without
/// OpenBLAS. Where the text differs, bits do.
[[nodiscard]] std::string cpu_kernels();

}  // namespace strata::train

#ifndef STRATA_COMPILED
#include <strata/train/impl/cpu_kernels.ipp>
#endif
