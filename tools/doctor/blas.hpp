#pragma once
// tools/doctor/blas.hpp - the library for matrices that libtorch computes with: which kernels it takes, and how fast they are.

#include <optional>
#include <span>
#include <string>

#include "line.hpp"
#include "processor.hpp"

namespace strata::tools::doctor {

/// A library as one process has it: which kernels, is decided when it is loaded.
struct BlasFacts {
    std::string library;    ///< "libblas.so.3"; empty: none can be loaded
    std::string kind;       ///< "OpenBLAS", "MKL", "BLIS"; empty: none of these
    std::string core;       ///< OpenBLAS's name of its kernels: "Haswell"
    int parallel = -1;      ///< of OpenBLAS: 0 one thread, 1 threads of its own, 2 OpenMP
    double operations = 0;  ///< floating-point, a second, of a product of fp32 matrices; 0: not measured
    int threads = 0;
    std::string failure;  ///< why nothing is known
};

/// What `strata doctor-blas` does: loads the library, multiplies for a third of a second, prints the facts as JSON. It is a process of
/// its own, because OPENBLAS_CORETYPE counts when the library is loaded, and because a wrong one ends a process by SIGILL.
int blas_command(std::span<const std::string> words);

/// Asks such a process; `core` goes into its OPENBLAS_CORETYPE where it is not empty.
[[nodiscard]] BlasFacts look_at_blas(const std::string& core);

/// Kernels that strata::run would let OpenBLAS take in place of these; empty where it leaves them (train/cpu_kernels.hpp).
///
///   is_set  OPENBLAS_CORETYPE is
[[nodiscard]] std::string better_core(const BlasFacts& facts, const ProcessorFacts& processor, bool is_set);

///   better  the same with better_core(), where there is one
///   set     OPENBLAS_CORETYPE as it is set; empty: it is not
[[nodiscard]] Line judge(const BlasFacts& facts, const std::optional<BlasFacts>& better,
                         const ProcessorFacts& processor, const std::string& set);

}  // namespace strata::tools::doctor
