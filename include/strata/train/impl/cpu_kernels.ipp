#pragma once
// strata/train/impl/cpu_kernels.ipp - two environment variables, and one look at what became of them.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <dlfcn.h>
#include <unistd.h>

#include <ATen/Version.h>

#include <strata/core/simd.hpp>
#include <strata/train/cpu_kernels.hpp>

namespace strata::train {
namespace detail {

/// Nothing for a program whose libtorch brings another library for matrices.
inline const char* openblas_core() {
    using Name = char* (*)();
    const auto name = reinterpret_cast<Name>(::dlsym(RTLD_DEFAULT, "openblas_get_corename"));
    return name == nullptr ? nullptr : name();
}

inline bool has_avx512(std::string_view openblas_core) {
    for (const std::string_view core : {"SkylakeX", "Cooperlake", "SapphireRapids"})
        if (openblas_core == core) return true;
    return false;
}

inline bool mpi_runs() {
    using Initialized = int (*)(int*);
    const auto initialized = reinterpret_cast<Initialized>(::dlsym(RTLD_DEFAULT, "MPI_Initialized"));
    int yes = 0;
    return initialized != nullptr && initialized(&yes) == 0 && yes != 0;
}

/// The program from its start, in this process, with the words it was started with: main may have passed on fewer. Comes
/// back only if that cannot be done.
inline void start_again() {
    std::ifstream command_line{"/proc/self/cmdline", std::ios::binary};
    std::vector<std::string> words;
    for (std::string word; std::getline(command_line, word, '\0');) words.push_back(word);
    if (words.empty()) return;
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    std::error_code failed;
    const std::filesystem::path self = "/proc/self/exe";
    std::filesystem::path file = std::filesystem::read_symlink(self, failed);
    if (failed || file.filename().string().starts_with("ld-")) return;  // `ld.so PROGRAM`: the file is not the program
    // By its name, so that tools that list processes show it; unless another file has that name by now.
    if (!std::filesystem::equivalent(file, self, failed) || failed) file = self;
    ::execv(file.c_str(), argv.data());
}

}  // namespace detail

STRATA_INLINE void choose_cpu_kernels() {
    // What kernels of both libraries are compiled for; on less than that they would die of SIGILL.
    if (!core::cpu_features().avx512) return;
    ::setenv("ATEN_CPU_CAPABILITY", "avx512", 0);  // libtorch reads it when it first computes
    const char* const core = detail::openblas_core();
    if (core == nullptr || detail::has_avx512(core) || std::getenv("OPENBLAS_CORETYPE") != nullptr ||
        detail::mpi_runs())
        return;
    ::setenv("OPENBLAS_CORETYPE", "SkylakeX", 1);  // and so this is done once
    detail::start_again();
    ::unsetenv("OPENBLAS_CORETYPE");
}

STRATA_INLINE std::string cpu_kernels() {
    // libtorch 1.13 says it nowhere else.
    constexpr std::string_view mark = "CPU capability usage: ";
    const std::string config = at::show_config();
    const std::size_t at = config.find(mark);
    std::string text = "libtorch";
    if (at != std::string::npos)
        text += " " + config.substr(at + mark.size(), config.find('\n', at) - at - mark.size());
    if (const char* const core = detail::openblas_core()) text += ", OpenBLAS " + std::string{core};
    return text;
}

}  // namespace strata::train
