#include "blas.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#include <dlfcn.h>

#include <nlohmann/json.hpp>

#include "../launch_environment.hpp"
#include "other_program.hpp"

namespace strata::tools::doctor {

namespace {

using Product = void (*)(const char*, const char*, const int*, const int*, const int*, const float*, const float*,
                         const int*, const float*, const int*, const float*, float*, const int*);

/// The one that Debian's libtorch links comes first.
constexpr std::array<const char*, 4> libraries{"libblas.so.3", "libopenblas.so.0", "libmkl_rt.so.2", "libmkl_rt.so"};

template <class Function>
Function symbol(void* library, const char* name) {
    return reinterpret_cast<Function>(::dlsym(library, name));
}

/// The best of what fits into a third of a second, after one product that wakes threads up.
double measure(Product product) {
    using Clock = std::chrono::steady_clock;
    constexpr int n = 1024;
    const std::vector<float> a(std::size_t{n} * n, 0.5F);
    const std::vector<float> b(std::size_t{n} * n, 0.25F);
    std::vector<float> c(std::size_t{n} * n);
    const float one = 1;
    const float none = 0;
    const auto multiply = [&] { product("N", "N", &n, &n, &n, &one, a.data(), &n, b.data(), &n, &none, c.data(), &n); };
    multiply();
    if (c.front() != 0.125F * n || c.back() != 0.125F * n) return 0;
    double least = 1e9;
    const auto begin = Clock::now();
    do {
        const auto start = Clock::now();
        multiply();
        least = std::min(least, std::chrono::duration<double>(Clock::now() - start).count());
    } while (Clock::now() - begin < std::chrono::milliseconds{330});
    return 2.0 * n * n * n / least;
}

BlasFacts load_blas() {
    BlasFacts facts;
    void* library = nullptr;
    for (const char* const name : libraries) {
        library = ::dlopen(name, RTLD_NOW | RTLD_GLOBAL);
        if (library == nullptr) continue;
        facts.library = name;
        break;
    }
    if (library == nullptr) return facts;
    const auto product = symbol<Product>(library, "sgemm_");
    if (const auto core = symbol<char* (*)()>(library, "openblas_get_corename")) {
        facts.kind = "OpenBLAS";
        facts.core = core();
        if (const auto parallel = symbol<int (*)()>(library, "openblas_get_parallel")) facts.parallel = parallel();
        if (const auto threads = symbol<int (*)()>(library, "openblas_get_num_threads")) facts.threads = threads();
    } else if (::dlsym(library, "MKL_Get_Version") != nullptr) {
        facts.kind = "MKL";
    } else if (::dlsym(library, "bli_info_get_version_str") != nullptr) {
        facts.kind = "BLIS";
    }
    if (product == nullptr)
        facts.failure = facts.library + " has no product of matrices";
    else
        facts.operations = measure(product);
    return facts;
}

/// What kernels of that name compute with: 2 AVX-512, 1 AVX2, 0 less.
int level_of_core(std::string_view core) {
    for (const std::string_view one : {"SkylakeX", "Cooperlake", "SapphireRapids"})
        if (core == one) return 2;
    for (const std::string_view one : {"Haswell", "Zen", "Excavator"})
        if (core == one) return 1;
    return 0;
}

int level_of(const ProcessorFacts& processor) { return processor.has_avx512() ? 2 : processor.has_avx2() ? 1 : 0; }

std::string in_gflops(double operations) {
    std::array<char, 48> text{};
    std::snprintf(text.data(), text.size(), "%.0f GFLOP/s", operations / 1e9);
    return text.data();
}

}  // namespace

int blas_command(std::span<const std::string>) {
    const BlasFacts facts = load_blas();
    const nlohmann::json json{{"library", facts.library}, {"kind", facts.kind},
                              {"core", facts.core},       {"parallel", facts.parallel},
                              {"threads", facts.threads}, {"operations", facts.operations},
                              {"failure", facts.failure}};
    std::printf("%s\n", json.dump().c_str());
    return 0;
}

BlasFacts look_at_blas(const std::string& core) {
    std::vector<std::string> changed;
    if (!core.empty()) changed.push_back("OPENBLAS_CORETYPE=" + core);
    const OtherProgram other = run_other({"/proc/self/exe", "doctor-blas"}, std::chrono::seconds{20}, changed);
    BlasFacts facts;
    const nlohmann::json json = nlohmann::json::parse(other.out, nullptr, false);
    if (!other.is_in_time) {
        facts.failure = "a product of two 1024 x 1024 matrices took longer than 20 s";
    } else if (!json.is_object()) {
        facts.failure =
            "the process that was to multiply two matrices ended with status " + std::to_string(other.status);
    } else {
        facts.library = json.value("library", "");
        facts.kind = json.value("kind", "");
        facts.core = json.value("core", "");
        facts.parallel = json.value("parallel", -1);
        facts.threads = json.value("threads", 0);
        facts.operations = json.value("operations", 0.0);
        facts.failure = json.value("failure", "");
    }
    return facts;
}

std::string better_core(const BlasFacts& facts, const ProcessorFacts& processor, bool is_set) {
    return !is_set && facts.kind == "OpenBLAS" && level_of(processor) == 2 && level_of_core(facts.core) < 2 ? "SkylakeX"
                                                                                                            : "";
}

Line judge(const BlasFacts& facts, const std::optional<BlasFacts>& better, const ProcessorFacts& processor,
           const std::string& set) {
    const std::string subject = "BLAS";
    const std::string install = "apt install libopenblas0-openmp";
    if (!facts.failure.empty())
        return warning(subject, facts.failure + (set.empty() ? "" : ", with OPENBLAS_CORETYPE=" + set),
                       set.empty() ? install : "unset OPENBLAS_CORETYPE");
    if (facts.library.empty())
        return warning(subject, "no library for matrices is installed where libtorch of a distribution looks for it",
                       install + "; a libtorch that brings its own (MKL) needs none");
    std::string found = facts.library + (facts.kind.empty() ? " of no known kind" : ", " + facts.kind);
    if (!facts.core.empty()) found += " with kernels for " + facts.core;
    if (facts.operations > 0) found += ": " + in_gflops(facts.operations) + " of fp32";
    if (facts.threads > 0)
        found += " on " + std::to_string(facts.threads) + (facts.threads == 1 ? " thread" : " threads");
    Line line = ok(subject, found);
    if (facts.operations <= 0) {
        line = problem(subject, found + "; its product of two matrices is wrong",
                       set.empty() ? "install another: " + install : "unset OPENBLAS_CORETYPE, or " + install);
    } else if (facts.kind.empty()) {
        line = warning(subject, found + ": likely the reference library, many times slower than others", install);
    } else if (facts.kind == "OpenBLAS" && level_of_core(facts.core) < level_of(processor) && better) {
        line =
            ok(subject,
               found + "; OpenBLAS does not know this processor's AVX-512: strata's programs set OPENBLAS_CORETYPE=" +
                   better->core + (better->operations > 0 ? ", with " + in_gflops(better->operations) : "") +
                   "; others need it set");
        if (!better->failure.empty() || better->operations <= 0)
            line =
                problem(subject,
                        found + "; strata's programs set OPENBLAS_CORETYPE=SkylakeX on this processor, and with it " +
                            (better->failure.empty() ? "a product is wrong" : better->failure),
                        "export OPENBLAS_CORETYPE=" + facts.core + " and ATEN_CPU_CAPABILITY=avx2");
    } else if (facts.kind == "OpenBLAS" && level_of_core(facts.core) < level_of(processor)) {
        line = warning(subject,
                       found + (set.empty() ? "; the processor has more than these kernels use"
                                            : "; OPENBLAS_CORETYPE=" + set + " wastes what the processor has besides"),
                       set.empty()
                           ? "export OPENBLAS_CORETYPE=" + std::string{processor.has_avx512() ? "SkylakeX" : "Haswell"}
                           : "unset OPENBLAS_CORETYPE");
    } else if (facts.kind == "OpenBLAS" && (facts.parallel == 0 || facts.parallel == 1)) {
        line =
            warning(subject,
                    found + (facts.parallel == 0 ? "; it computes on one thread only"
                                                 : "; its threads are its own, and heed no OMP_NUM_THREADS of a rank"),
                    install + ", and choose it by update-alternatives --config libblas.so.3-$(uname -m)-linux-gnu");
    }
    line.values = {{"library", facts.library},
                   {"kind", facts.kind},
                   {"core", facts.core},
                   {"threads", facts.threads},
                   {"flops", facts.operations}};
    if (better) line.values["better"] = {{"core", better->core}, {"flops", better->operations}};
    return line;
}

}  // namespace strata::tools::doctor
