#pragma once
// strata/s3/detail/in_parallel.hpp - a loop whose turns wait for somebody else, several at once.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace strata::s3::detail {

/// Calls work(i) for i in [0, count), up to `most` at once: in this thread and in helpers that live for this call. The
/// first exception ends the rest and is thrown here.
template <class Work>
void in_parallel(std::size_t count, std::size_t most, const Work& work) {
    std::atomic<std::size_t> next{0};
    std::exception_ptr failure;
    std::mutex mutex;
    const auto run = [&] {
        for (std::size_t i = next.fetch_add(1); i < count; i = next.fetch_add(1)) {
            try {
                work(i);
            } catch (...) {
                const std::lock_guard lock{mutex};
                if (failure == nullptr) failure = std::current_exception();
                next.store(count);
                return;
            }
        }
    };
    {
        std::vector<std::jthread> helpers;
        try {
            for (std::size_t i = 1; i < std::min(count, most); ++i) helpers.emplace_back(run);
        } catch (const std::system_error&) {
            // fewer threads: slower, nothing else
        }
        run();
    }
    if (failure != nullptr) std::rethrow_exception(failure);
}

}  // namespace strata::s3::detail
