// A program whose OpenBLAS chose kernels without AVX-512: kernels_job ARGUMENT... says what it is when strata::run has begun.
// cpu_kernels_test starts it with OPENBLAS_CORETYPE=Haswell, which it forgets as soon as OpenBLAS has read it.

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <signal.h>
#include <unistd.h>

#include <strata/train/session.hpp>

int main(int argc, char** argv) {
    if (const char* const core = std::getenv("OPENBLAS_CORETYPE"); core != nullptr && std::string{core} == "Haswell") {
        ::unsetenv("OPENBLAS_CORETYPE");
        sigset_t held;
        sigemptyset(&held);
        sigaddset(&held, SIGUSR2);
        ::pthread_sigmask(SIG_BLOCK, &held, nullptr);
        std::raise(SIGUSR2);
        std::printf("first pid %d\n", static_cast<int>(::getpid()));
        std::fflush(stdout);
    }
    return strata::run(1, argv, [&](strata::Session&) {  // it passes on fewer words than it was given
        sigset_t pending;
        ::sigpending(&pending);
        std::printf("then pid %d, SIGUSR2 %s, words", static_cast<int>(::getpid()),
                    sigismember(&pending, SIGUSR2) == 1 ? "pending" : "lost");
        for (int i = 1; i < argc; ++i) std::printf(" [%s]", argv[i]);
        std::printf("\n%s\n", strata::train::cpu_kernels().c_str());
    });
}
