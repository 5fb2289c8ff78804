#pragma once
// strata/health/impl/failure_class.ipp - words of CUDA, cuDNN, cuBLAS, NCCL and libtorch, most telling first.

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string>

#include <strata/core/inline.hpp>
#include <strata/health/failure_class.hpp>

namespace strata::health {

namespace detail {

STRATA_INLINE std::string in_lower_case(std::string_view text) {
    std::string lower{text};
    for (char& c : lower)
        if ('A' <= c && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return lower;
}

STRATA_INLINE bool has_one_of(const std::string& text, std::initializer_list<std::string_view> words) {
    return std::any_of(words.begin(), words.end(),
                       [&text](std::string_view word) { return text.find(word) != std::string::npos; });
}

}  // namespace detail

STRATA_INLINE FailureClass classify_failure(std::string_view message) {
    const std::string text = detail::in_lower_case(message);
    const bool of_gpu = detail::has_one_of(text, {"cuda", "cudnn", "cublas", "nccl", "cusolver", "cufft", "nvlink"});
    // What hardware says of itself, whoever passes it on.
    if (detail::has_one_of(text, {"uncorrectable ecc", "fallen off the bus", "hardware stack error",
                                  "uncorrectable nvlink", "nvlink error was detected", "cudaerroreccuncorrectable",
                                  "cudaerrornvlinkuncorrectable", "cudaerrorhardwarestackerror"}))
        return FailureClass::device;
    // libtorch's own "CUDA out of memory", cudaErrorMemoryAllocation, and the same of libraries. That of the host is none of ours.
    if (of_gpu && detail::has_one_of(text, {"out of memory", "cudaerrormemoryallocation", "alloc_failed",
                                            "alloc failed", "can't allocate memory"}))
        return FailureClass::out_of_memory;
    if (detail::has_one_of(text, {"device-side assert", "device side assert", "cudaerrorassert", "no kernel image",
                                  "invalid device function", "invalid configuration argument",
                                  "too many resources requested", "invalid_value", "not_supported", "bad_param"}))
        return FailureClass::program;
    if (text.find("nccl") != std::string::npos) {
        if (detail::has_one_of(text, {"unhandled cuda error", "ncclunhandledcudaerror", "cuda failure", "cuda error"}))
            return FailureClass::device;
        if (detail::has_one_of(text, {"ncclinvalidargument", "ncclinvalidusage", "invalid argument", "invalid usage"}))
            return FailureClass::program;
        return FailureClass::remote;
    }
    return of_gpu || detail::has_one_of(text, {"illegal memory access", "unspecified launch failure"})
               ? FailureClass::device
               : FailureClass::other;
}

STRATA_INLINE std::vector<int> ranks_to_blame(std::span<const RankFailure> reports, int world) {
    std::vector<int> blamed;
    const auto take = [&](auto&& holds) {
        for (const RankFailure& report : reports)
            if (holds(report.failure)) blamed.push_back(report.rank);
    };
    take([](FailureClass failure) { return failure == FailureClass::device; });
    if (blamed.empty()) take([](FailureClass failure) { return failure != FailureClass::remote; });
    if (blamed.empty() && !reports.empty())
        for (int rank = 0; rank < world; ++rank)
            if (std::none_of(reports.begin(), reports.end(),
                             [rank](const RankFailure& report) { return report.rank == rank; }))
                blamed.push_back(rank);
    std::sort(blamed.begin(), blamed.end());
    return blamed;
}

}  // namespace strata::health
