#include "processor.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include <strata/core/text.hpp>

#include "../launch_environment.hpp"
#include "small_file.hpp"

namespace strata::tools::doctor {

ProcessorFacts parse_processor(std::string_view cpuinfo) {
    ProcessorFacts facts;
    std::istringstream in{std::string{cpuinfo}};
    for (std::string line; std::getline(in, line) && (facts.name.empty() || facts.flags.empty());) {
        const std::size_t colon = line.find(':');
        if (colon == std::string::npos) continue;
        const std::string_view key = core::trimmed(std::string_view{line}.substr(0, colon));
        const std::string_view value = core::trimmed(std::string_view{line}.substr(colon + 1));
        if (key == "model name" && facts.name.empty()) facts.name = value;
        if (key != "flags" || !facts.flags.empty()) continue;
        std::istringstream flags{std::string{value}};
        for (std::string flag; flags >> flag;) facts.flags.insert(flag);
    }
    return facts;
}

ProcessorFacts look_at_processor() {
    ProcessorFacts facts = parse_processor(small_file("/proc/cpuinfo").value_or(""));
    facts.cores = cores_to_run_on();
    facts.quota = parse_quota(small_file("/sys/fs/cgroup/cpu.max").value_or(""));
    if (const char* const set = std::getenv("ATEN_CPU_CAPABILITY")) facts.aten_capability = set;
    return facts;
}

Line judge(const ProcessorFacts& facts) {
    const bool avx512 = facts.has_avx512();
    const bool avx2 = facts.has_avx2();
    std::string found = facts.name.empty() ? "a processor without a name" : facts.name;
    found += ", " + std::to_string(facts.cores) + (facts.cores == 1 ? " core: " : " cores: ");
    found += avx512 ? "AVX-512" : avx2 ? "AVX2, no AVX-512" : facts.flags.empty() ? "not x86-64" : "no AVX2";
    const bool bf16 = facts.has("avx512_bf16") || facts.has("amx_bf16");
    found += facts.has("amx_bf16")      ? ", bf16 products by AMX"
             : facts.has("avx512_bf16") ? ", bf16 products"
                                        : ", no bf16 products: bf16 is computed as fp32";
    Line line = ok("processor", found);
    if (!avx2 && !facts.flags.empty()) {
        line = warning(
            "processor", found,
            "use a processor of the last ten years, or let the virtual machine show its features (QEMU: -cpu host)");
    } else if (const std::string& aten = facts.aten_capability;
               !aten.empty() && ((avx512 && aten != "avx512") || aten == "default")) {
        line = warning("processor", found + "; libtorch is told to use less of it: ATEN_CPU_CAPABILITY=" + aten,
                       "unset ATEN_CPU_CAPABILITY: strata's programs choose by themselves");
    } else if (facts.quota && *facts.quota + 0.5 < facts.cores) {
        std::array<char, 32> quota{};
        std::snprintf(quota.data(), quota.size(), "%.3g", *facts.quota);
        line = warning("processor",
                       found + "; its cgroup gives this process the time of " + quota.data() +
                           " of them, and threads of all " + std::to_string(facts.cores) + " would wait for each other",
                       "set OMP_NUM_THREADS=" + std::to_string(std::max(1, static_cast<int>(*facts.quota))) +
                           ", or give the container more (--cpus, resources.limits.cpu)");
    }
    line.values = {{"name", facts.name}, {"cores", facts.cores}, {"avx2", avx2}, {"avx512", avx512}, {"bf16", bf16}};
    if (facts.quota) line.values["quota"] = *facts.quota;
    return line;
}

}  // namespace strata::tools::doctor
