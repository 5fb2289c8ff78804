#pragma once
// strata/health/impl/failure_class.ipp - words of CUDA, cuDNN, cuBLAS, NCCL and libtorch, most telling first.

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <system_error>

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

/// "cudaStreamSynchronize failed", as strata says it of the runtime's calls; a file called cuda_cache is none.
STRATA_INLINE bool has_failed_call(std::string_view message) {
    constexpr std::string_view begin = "cuda", letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    for (std::size_t at = message.find(begin); at != std::string_view::npos; at = message.find(begin, at + 1)) {
        const std::string_view rest = message.substr(at + begin.size());
        const std::size_t end = std::min(rest.find_first_not_of(letters), rest.size());
        if (end > 0 && 'A' <= rest[0] && rest[0] <= 'Z' && rest.substr(end).starts_with(" failed")) return true;
    }
    return false;
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
                                  "invalid device function", "invalid configuration argument", "invalid argument",
                                  "invalid device ordinal", "too many resources requested", "invalid_value",
                                  "not_supported", "bad_param", "expected all tensors", "not compiled with",
                                  "driver version is insufficient", "cudaerrorinsufficientdriver"}))
        return FailureClass::program;
    if (text.find("nccl") != std::string::npos) {
        if (detail::has_one_of(text, {"unhandled cuda error", "ncclunhandledcudaerror", "cuda failure", "cuda error"}))
            return FailureClass::device;
        if (detail::has_one_of(text, {"ncclinvalidargument", "ncclinvalidusage", "invalid usage"}))
            return FailureClass::program;
        return FailureClass::remote;
    }
    const bool failed_here =
        detail::has_failed_call(message) ||
        detail::has_one_of(text, {"cuda error:", "cuda driver error", "cudaerror", "cudnn error", "cudnn_status_",
                                  "cublas error", "cublas_status_", "cusolver error", "cusolver_status_", "cufft error",
                                  "cusparse_status_", "illegal memory access", "unspecified launch failure"});
    return failed_here ? FailureClass::device : FailureClass::other;
}

STRATA_INLINE std::optional<int> rank_named_in(std::string_view message) {
    constexpr std::string_view word = "rank ";
    for (std::size_t at = message.find(word); at != std::string_view::npos; at = message.find(word, at + 1)) {
        if (at > 0 && message[at - 1] != ' ') continue;
        const std::string_view rest = message.substr(at + word.size());
        int rank = 0;
        if (std::from_chars(rest.data(), rest.data() + rest.size(), rank).ec == std::errc{}) return rank;
    }
    return std::nullopt;
}

}  // namespace strata::health
