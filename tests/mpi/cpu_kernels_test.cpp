// The program chooses its CPU kernels itself, whatever started it, and says which they are.

#include <array>
#include <cstdio>
#include <string>

#include <sys/wait.h>

#include <gtest/gtest.h>

namespace {

struct Outcome {
    int status = 0;
    std::string text;
};

/// By itself, without mpirun.
Outcome run_with(const std::string& environment) {
    const std::string command = "env -u OPENBLAS_CORETYPE -u OPENBLAS_L2_SIZE -u ATEN_CPU_CAPABILITY " + environment +
                                " " STRATA_KERNELS_JOB " one '' 'two words' 2>&1";
    Outcome outcome;
    std::FILE* const pipe = ::popen(command.c_str(), "r");
    std::array<char, 4096> piece{};
    while (const std::size_t n = std::fread(piece.data(), 1, piece.size(), pipe)) outcome.text.append(piece.data(), n);
    const int status = ::pclose(pipe);
    outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return outcome;
}

bool has_avx512() {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

TEST(CpuKernels, WhatTheProcessorHasIsUsedAndNamed) {
    const Outcome outcome = run_with("");
    EXPECT_EQ(outcome.status, 0) << outcome.text;
    EXPECT_NE(outcome.text.find("\nlibtorch "), std::string::npos) << outcome.text;
    if (has_avx512()) {
        EXPECT_NE(outcome.text.find("\nlibtorch AVX512"), std::string::npos) << outcome.text;
    }
}

TEST(CpuKernels, WhatIsSetStays) {
    const Outcome outcome = run_with("ATEN_CPU_CAPABILITY=default OPENBLAS_CORETYPE=Sandybridge");
    EXPECT_EQ(outcome.status, 0) << outcome.text;
    EXPECT_EQ(outcome.text.find("AVX512"), std::string::npos) << outcome.text;
    if (outcome.text.find("OpenBLAS") != std::string::npos) {
        EXPECT_NE(outcome.text.find("OpenBLAS Sandybridge"), std::string::npos) << outcome.text;
    }
}

TEST(CpuKernels, AProgramWhoseOpenBlasChoseLessStartsOnceMoreAsItWas) {
    if (!has_avx512()) GTEST_SKIP() << "no AVX-512 here: there is nothing to choose";
    const Outcome outcome = run_with("OPENBLAS_CORETYPE=Haswell");
    EXPECT_EQ(outcome.status, 0) << outcome.text;
    if (outcome.text.find("OpenBLAS") == std::string::npos) GTEST_SKIP() << "this libtorch computes without OpenBLAS";
    int first = 0;
    int then = 0;
    ASSERT_EQ(std::sscanf(outcome.text.c_str(), "first pid %d\nthen pid %d", &first, &then), 2) << outcome.text;
    EXPECT_EQ(first, then) << "the same process";
    EXPECT_EQ(outcome.text, "first pid " + std::to_string(first) + "\nthen pid " + std::to_string(then) +
                                ", SIGUSR2 pending, words [one] [] [two words]\nlibtorch AVX512, OpenBLAS SkylakeX\n");
}

}  // namespace
