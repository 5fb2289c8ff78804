#pragma once
// strata/core/impl/thread_stacks.ipp - a signal for each thread, whose handler writes down where it was.

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <mutex>
#include <thread>
#include <vector>

#include <dirent.h>
#include <execinfo.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <strata/core/symbol_names.hpp>
#include <strata/core/thread_stacks.hpp>

namespace strata::core::detail {

/// Where a thread was.
struct CaughtStack {
    static constexpr int most = 96;
    std::array<void*, most> frames{};
    int skipped = 0;            ///< of the handler itself
    std::atomic<int> count{0};  ///< 0: it has not come yet
};

extern "C" inline void strata_catch_stack(int, siginfo_t* info, void*) {
    const int before = errno;
    if (info->si_code == SI_QUEUE && info->si_pid == ::getpid() && info->si_value.sival_ptr != nullptr) {
        auto& caught = *static_cast<CaughtStack*>(info->si_value.sival_ptr);
        caught.skipped = 2;  // this function, and the return from a signal
        caught.count.store(::backtrace(caught.frames.data(), CaughtStack::most), std::memory_order_release);
    }
    errno = before;
}

/// The signal that is ours from now on; 0: the program uses them all.
inline int stack_signal() {
    static const int number = [] {
        std::array<void*, 1> first{};
        static_cast<void>(::backtrace(first.data(), 1));  // loads what it needs, which a handler could not
        for (int candidate = SIGRTMAX; candidate > SIGRTMIN; --candidate) {
            struct sigaction present {};
            if (::sigaction(candidate, nullptr, &present) != 0 || (present.sa_flags & SA_SIGINFO) != 0 ||
                present.sa_handler != SIG_DFL)
                continue;
            struct sigaction ours {};
            ours.sa_sigaction = strata_catch_stack;
            ours.sa_flags = SA_SIGINFO | SA_RESTART;
            ::sigemptyset(&ours.sa_mask);
            if (::sigaction(candidate, &ours, nullptr) == 0) return candidate;
        }
        return 0;
    }();
    return number;
}

inline std::vector<pid_t> threads_of_process() {
    std::vector<pid_t> threads;
    if (DIR* const folder = ::opendir("/proc/self/task")) {
        while (const dirent* const entry = ::readdir(folder))
            if (const int number = std::atoi(entry->d_name); number > 0) threads.push_back(number);
        ::closedir(folder);
    }
    std::sort(threads.begin(), threads.end());
    return threads;
}

/// "thread 17 (strata-io), sleeps"
inline std::string head_of_thread(pid_t thread) {
    const std::string place = "/proc/self/task/" + std::to_string(thread);
    std::string name;
    std::getline(std::ifstream{place + "/comm"}, name);
    std::string status;
    std::getline(std::ifstream{place + "/stat"}, status);
    const std::size_t at = status.rfind(") ");
    const char state = at == std::string::npos || at + 2 >= status.size() ? '?' : status[at + 2];
    const char* const does = state == 'R'   ? ", runs"
                             : state == 'S' ? ", sleeps"
                             : state == 'D' ? ", waits in the kernel for a device or a file server"
                             : state == 'T' ? ", is stopped"
                                            : "";
    return "thread " + std::to_string(thread) + (name.empty() ? "" : " (" + name + ")") + does;
}

/// Nullptr: it has ended, or it did not come in time, and may yet: then what it writes to is left to it.
inline CaughtStack* catch_stack(pid_t thread, int number, std::chrono::milliseconds patience) {
    auto* const caught = new CaughtStack;  // NOLINT: its thread may come later than anybody waits
    siginfo_t info{};
    info.si_signo = number;
    info.si_code = SI_QUEUE;
    info.si_pid = ::getpid();
    info.si_uid = ::getuid();
    info.si_value.sival_ptr = caught;
    if (::syscall(SYS_rt_tgsigqueueinfo, ::getpid(), thread, number, &info) != 0) {
        delete caught;
        return nullptr;
    }
    const auto until = std::chrono::steady_clock::now() + patience;
    while (caught->count.load(std::memory_order_acquire) == 0) {
        if (std::chrono::steady_clock::now() >= until) return nullptr;
        std::this_thread::sleep_for(std::chrono::microseconds{200});
    }
    return caught;
}

}  // namespace strata::core::detail

namespace strata::core {

STRATA_INLINE std::string thread_stacks(std::chrono::milliseconds patience) {
    static std::mutex one_at_a_time;
    const std::lock_guard lock{one_at_a_time};
    const int number = detail::stack_signal();
    if (number == 0) return "the program uses all real-time signals, and none is left to ask its threads with\n";
    SymbolNames names;
    std::string text;
    for (const pid_t thread : detail::threads_of_process()) {
        text += detail::head_of_thread(thread) + "\n";
        detail::CaughtStack* const caught = detail::catch_stack(thread, number, patience);
        if (caught == nullptr) {
            text += "    did not answer within " + std::to_string(patience.count()) + " ms\n";
            continue;
        }
        const int count = caught->count.load(std::memory_order_acquire);
        for (int frame = std::min(caught->skipped, count); frame < count; ++frame) {
            // All but the innermost are where a call returns to, which may be the next function already.
            const auto* const address = static_cast<const char*>(caught->frames.at(static_cast<std::size_t>(frame)));
            text += "    " + names.name_of(frame == caught->skipped ? address : address - 1) + "\n";
        }
        if (count == detail::CaughtStack::most) text += "    ...\n";
        delete caught;
    }
    return text;
}

}  // namespace strata::core
