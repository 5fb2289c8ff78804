#pragma once
// tools/doctor/processor.hpp - the processor: its cores, and the instructions that training is fast with.

#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "line.hpp"

namespace strata::tools::doctor {

struct ProcessorFacts {
    std::string name;                          ///< as the kernel has it; may be empty
    std::set<std::string, std::less<>> flags;  ///< "avx2", "avx512_bf16"; none on other machines than x86-64
    int cores = 1;                             ///< that this process may run on
    std::optional<double> quota{};             ///< cores' worth of time that its cgroup gives it
    std::string aten_capability{};             ///< ATEN_CPU_CAPABILITY as it is set

    [[nodiscard]] bool has(std::string_view flag) const { return flags.contains(flag); }
    /// What strata's loops, libtorch and OpenBLAS want for their kernels of AVX-512.
    [[nodiscard]] bool has_avx512() const {
        return has("avx512f") && has("avx512bw") && has("avx512dq") && has("avx512vl") && has("fma");
    }
    [[nodiscard]] bool has_avx2() const { return has("avx2") && has("fma"); }
};

/// Of the text of /proc/cpuinfo: name and flags.
[[nodiscard]] ProcessorFacts parse_processor(std::string_view cpuinfo);

[[nodiscard]] ProcessorFacts look_at_processor();
[[nodiscard]] Line judge(const ProcessorFacts& facts);

}  // namespace strata::tools::doctor
