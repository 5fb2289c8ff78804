#pragma once
// tests/support/other_process.hpp - another process that holds something, a lock say, until it is ended.

#include <csignal>
#include <stdexcept>
#include <string>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace strata_test {

class OtherProcess {
public:
    /// `hold` runs in the other process, which then waits to be ended; what it made lives until then. false: it failed.
    template <class Hold>
    explicit OtherProcess(Hold&& hold) {
        int ready[2];
        if (::pipe(ready) != 0) throw std::runtime_error{"no pipe"};
        const pid_t test = ::getpid();
        process_ = ::fork();
        if (process_ == 0) {
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (::getppid() != test) ::_exit(1);
            try {
                const auto held = hold();
                if (held && ::write(ready[1], "x", 1) == 1)
                    while (true) ::pause();
            } catch (...) {
            }
            ::_exit(1);
        }
        ::close(ready[1]);
        char byte = 0;
        const bool is_held = ::read(ready[0], &byte, 1) == 1;
        ::close(ready[0]);
        if (!is_held) throw std::runtime_error{"the other process failed"};
    }
    OtherProcess(const OtherProcess&) = delete;
    OtherProcess& operator=(const OtherProcess&) = delete;
    ~OtherProcess() { end(); }

    void end() {
        if (process_ <= 0) return;
        ::kill(process_, SIGKILL);
        ::waitpid(process_, nullptr, 0);
        process_ = 0;
    }
    /// "process 4711 on host "
    [[nodiscard]] std::string name() const { return "process " + std::to_string(process_) + " on host "; }

private:
    pid_t process_ = 0;
};

}  // namespace strata_test
