#pragma once
// bench/process_memory.hpp - what a process holds: resident memory, its anonymous part, and the tensors in it.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

namespace bench {

/// Of a line like "VmRSS:   123 kB" or "read_bytes: 123"; 0 where there is none.
inline double value_in(const char* file, const std::string& name) {
    std::ifstream lines{file};
    for (std::string word; lines >> word;) {
        double value = 0;
        if (word == name && lines >> value) return value;
    }
    return 0;
}
inline double status_gib(const char* line) { return value_in("/proc/self/status", line) / (1 << 20); }

/// Of memory of this process that is no file's, at most: programs and libraries are files, and so is what the system
/// keeps of a swap folder that refuses O_DIRECT. Looked at 50 times a second.
class AnonymousPeak {
public:
    AnonymousPeak()
        : watcher_{[this](const std::stop_token& stop) {
              while (!stop.stop_requested()) {
                  const double now = status_gib("RssAnon:");
                  if (now > most_.load()) most_ = now;
                  std::this_thread::sleep_for(std::chrono::milliseconds{20});
              }
          }} {}
    [[nodiscard]] double gib() const noexcept { return most_; }

private:
    std::atomic<double> most_ = 0;
    std::jthread watcher_;  // last: it uses the other
};

/// Counts the tensors that libtorch allocates on the CPU: in front of its allocator, once for the process. An engine's
/// own memory is not among them, its meter has that: `beside` says what that is at a moment, and the most of both
/// together is kept.
class CountedTensors final : public at::Allocator {
public:
    static CountedTensors& in_front() {
        static CountedTensors* const counted = [] {
            auto* const allocator = new CountedTensors{*c10::GetCPUAllocator()};  // outlives every tensor
            c10::SetCPUAllocator(allocator);
            return allocator;
        }();
        return *counted;
    }
    /// From now on the most is of tensors and `beside`, bytes that any thread may ask for; empty: of tensors alone.
    void begin(std::function<std::int64_t()> beside) {
        const std::lock_guard lock{mutex_};
        beside_ = std::move(beside);
        most_ = most_together_ = 0;
    }
    [[nodiscard]] std::int64_t most() const noexcept { return most_; }
    [[nodiscard]] std::int64_t most_together() const noexcept { return most_together_; }

    // libtorch has made it const or not by version, so that no function says `override`.
    at::DataPtr allocate(std::size_t bytes) const { return const_cast<CountedTensors*>(this)->counted(bytes); }
    at::DataPtr allocate(std::size_t bytes) { return counted(bytes); }
    at::DeleterFnPtr raw_deleter() const { return nullptr; }
    void copy_data(void* to, const void* from, std::size_t bytes) const { std::memcpy(to, from, bytes); }

private:
    struct Block {
        at::DataPtr memory;
        std::int64_t bytes;
    };
    explicit CountedTensors(at::Allocator& below) noexcept : below_{below} {}

    static void give_back(void* block) {
        const auto* const given = static_cast<Block*>(block);
        in_front().now_ -= given->bytes;
        delete given;
    }
    at::DataPtr counted(std::size_t bytes) {
        auto* const block = new Block{below_.allocate(bytes), static_cast<std::int64_t>(bytes)};
        const std::int64_t now = now_ += block->bytes;
        {
            const std::lock_guard lock{mutex_};
            most_ = std::max(most_.load(), now);
            most_together_ = std::max(most_together_.load(), now + (beside_ ? beside_() : 0));
        }
        return {block->memory.get(), block, &CountedTensors::give_back, at::Device{at::kCPU}};
    }

    at::Allocator& below_;
    std::mutex mutex_;
    std::function<std::int64_t()> beside_;
    std::atomic<std::int64_t> now_ = 0;
    std::atomic<std::int64_t> most_ = 0;
    std::atomic<std::int64_t> most_together_ = 0;
};

}  // namespace bench
