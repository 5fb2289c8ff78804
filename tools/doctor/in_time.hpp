#pragma once
// tools/doctor/in_time.hpp - in_time(): a check that may hang, waited for so long and no longer.

#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace strata::tools::doctor {

/// What `work` returns, or nothing where it has not returned in time: it goes on in its thread, for a file server that does not
/// answer lets nobody go. The program then ends by _Exit(), which waits for no thread; so `work` holds nothing of its caller's.
/// Throws what `work` throws.
template <class Work>
[[nodiscard]] auto in_time(std::chrono::milliseconds patience, Work work) -> std::optional<decltype(work())> {
    struct Shared {
        std::mutex mutex;
        std::condition_variable done;
        std::optional<decltype(work())> result;
        std::exception_ptr failure;
    };
    const auto shared = std::make_shared<Shared>();
    std::thread{[shared, work = std::move(work)] {
        std::optional<decltype(work())> result;
        std::exception_ptr failure;
        try {
            result.emplace(work());
        } catch (...) {
            failure = std::current_exception();
        }
        const std::lock_guard lock{shared->mutex};
        shared->result = std::move(result);
        shared->failure = failure;
        shared->done.notify_all();
    }}.detach();
    std::unique_lock lock{shared->mutex};
    shared->done.wait_for(lock, patience, [&] { return shared->result || shared->failure; });
    if (shared->failure) std::rethrow_exception(shared->failure);
    return std::move(shared->result);
}

}  // namespace strata::tools::doctor
