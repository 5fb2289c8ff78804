#include "held_signals.hpp"

#include <algorithm>

#include <sys/syscall.h>
#include <unistd.h>

namespace strata::tools {

namespace {

/// As the kernel takes it: bit n - 1 is signal n. The C library's call would do, were this not run before its turn.
constexpr unsigned long stop_mask() {
    unsigned long mask = 0;
    for (const int signal : stop_signals) mask |= 1UL << static_cast<unsigned>(signal - 1);
    return mask;
}

void block() {
    const unsigned long mask = stop_mask();
    ::syscall(SYS_rt_sigprocmask, SIG_BLOCK, &mask, nullptr, sizeof mask);
}

/// Runs after the dynamic linker and before any library's constructor, which together take longer than Ctrl-C from a
/// script does. Nothing is initialised yet: no call of a library but a system call.
__attribute__((no_sanitize("address", "undefined"))) void hold_before_main(int argc, char** argv,
                                                                           char** /*environment*/) {
    if (argc < 2) return;
    for (const char* const name : {"launch", "train"}) {
        int i = 0;
        while (argv[1][i] == name[i] && name[i] != '\0') ++i;
        if (argv[1][i] == name[i]) return block();
    }
}

[[gnu::section(".preinit_array"), gnu::used]] void (*const first_of_all)(int, char**, char**) = hold_before_main;

}  // namespace

void hold_stop_signals() { block(); }

sigset_t heeded_stop_signals() {
    sigset_t heeded;
    sigemptyset(&heeded);
    for (const int signal : stop_signals) {
        struct sigaction action {};
        ::sigaction(signal, nullptr, &action);
        if (action.sa_handler != SIG_IGN) sigaddset(&heeded, signal);
    }
    return heeded;
}

bool is_stop_held() {
    const sigset_t heeded = heeded_stop_signals();
    sigset_t held;
    ::sigpending(&held);
    return std::any_of(stop_signals.begin(), stop_signals.end(), [&](int signal) {
        return ::sigismember(&heeded, signal) == 1 && ::sigismember(&held, signal) == 1;
    });
}

}  // namespace strata::tools
