#include "launch_node.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <strata/core/error.hpp>
#include <strata/core/host_name.hpp>
#include <strata/core/printable.hpp>

#include "held_signals.hpp"
#include "launch_handshake.hpp"
#include "launch_port.hpp"
#include "launch_rank.hpp"

namespace strata::tools {

namespace {

using Kind = Message::Kind;
using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr std::size_t most_text = 65536;  // of what a line prints, its end is kept

std::string host_or_unknown() {
    const std::string name = core::host_name();
    return name.empty() ? "unknown" : name;
}

class NodeRun {
public:
    explicit NodeRun(const NodePlan& plan) : plan_{plan} {
        ::signal(SIGPIPE, SIG_IGN);
        ::signal(SIGCHLD, SIG_DFL);
        // What the line leaves behind becomes a child of this process, which can end it then.
        ::prctl(PR_SET_CHILD_SUBREAPER, 1);
        sigset_t awaited = heeded_stop_signals();
        sigaddset(&awaited, SIGCHLD);
        ::sigprocmask(SIG_BLOCK, &awaited, nullptr);
        signals_ = File{::signalfd(-1, &awaited, SFD_CLOEXEC | SFD_NONBLOCK)};
    }

    int run() {
        while (true) {
            std::optional<Wire> wire = connected();
            if (!wire) {
                std::fprintf(stderr, "stopped before training began; nothing was started\n");
                return 0;
            }
            wire->send({Kind::node,
                        {std::to_string(plan_.machine_rank), std::to_string(plan_.slots), host_or_unknown(),
                         std::to_string(plan_.machines)}});
            if (plan_.verbose) std::fprintf(stderr, "strata launch: connected to %s\n", plan_.first.c_str());
            const std::optional<int> status = serve(*wire);
            end_children();
            if (status) return *status;
            if (!plan_.comes_back)
                throw Error{
                    Errc::host_lost,
                    "the connection to the first node at " + plan_.first +
                        " broke, and the ranks of this one were ended",
                    "see what the first node says, and start all nodes again; with --max-restarts they find each "
                    "other again by themselves"};
            std::fprintf(stderr, "strata launch: the connection to %s broke; connecting again\n", plan_.first.c_str());
        }
    }

private:
    /// None where a signal asked this process to stop meanwhile.
    std::optional<Wire> connected() {
        const auto until = Clock::now() + std::chrono::seconds{plan_.wait_seconds};
        while (true) {
            std::string why;
            if (auto wire = LaunchPort::connect(plan_.first, plan_.key, lost_after_seconds, why)) return wire;
            if (why == another_secret)
                throw Error{Errc::node_refused,
                            "the first node at " + plan_.first + " has another secret than this one",
                            "give all nodes the same STRATA_LAUNCH_SECRET, or the same --secret-file"};
            if (Clock::now() >= until)
                throw Error{Errc::node_missing,
                            "the first node at " + plan_.first + " was not reached within " +
                                std::to_string(plan_.wait_seconds) + " s: " + why,
                            "start machine_rank 0, check main_process_ip and main_process_port, and open that port"};
            pollfd watched{signals_.number(), POLLIN, 0};
            ::poll(&watched, 1, 300);
            if (take_signals() > 0) return std::nullopt;
        }
    }

    /// How many of them asked this process to stop.
    int take_signals() {
        int asked = 0;
        signalfd_siginfo info{};
        while (::read(signals_.number(), &info, sizeof info) == sizeof info)
            if (info.ssi_signo != SIGCHLD) {
                ++asked;
                last_signal_ = static_cast<int>(info.ssi_signo);
            }
        return asked;
    }

    /// The launch's status; none where the connection broke.
    std::optional<int> serve(Wire& wire) {
        int asked = 0;
        while (true) {
            std::array<pollfd, 3> watched{pollfd{wire.socket(), POLLIN, 0}, pollfd{signals_.number(), POLLIN, 0},
                                          pollfd{printed_.number(), POLLIN, 0}};
            if (::poll(watched.data(), watched.size(), -1) < 0 && errno != EINTR) return std::nullopt;
            if (watched[2].revents != 0) read_text();
            if (watched[1].revents != 0) {
                if (const int more = take_signals(); more > 0) {
                    asked += more;
                    if (asked == 1)
                        std::fprintf(stderr, "all hosts are asked to stop (again to end this one at once)\n");
                    wire.send({Kind::stop, {}});
                    if (asked > 1) return 128 + last_signal_;
                }
                reap(wire);
            }
            if (watched[0].revents == 0) continue;
            const bool connected = wire.receive();
            while (const auto message = wire.next()) {
                const auto word = [&](std::size_t i) {
                    return i < message->words.size() ? message->words[i] : std::string{};
                };
                if (message->kind == Kind::leave) return std::atoi(word(0).c_str());
                if (message->kind == Kind::refused)
                    throw Error{Errc::node_refused,
                                "the first node at " + plan_.first + " did not let this one in: " + word(0), word(1)};
                if (message->kind == Kind::line) start(wire, word(0), word(1));
                if (message->kind == Kind::end && line_ > 0) ::kill(-line_, SIGKILL);
            }
            if (!connected || wire.failure() != 0) return std::nullopt;
        }
    }

    void start(Wire& wire, const std::string& name, const std::string& line) {
        end_children();  // of a start that has failed
        text_.clear();
        std::array<int, 2> pipe{};
        if (::pipe2(pipe.data(), O_CLOEXEC) != 0 || (line_ = ::fork()) < 0) {
            wire.send({Kind::done, {std::to_string(255 << 8), std::string{std::strerror(errno)} + "\n"}});
            return;
        }
        if (line_ == 0) {
            ::setpgid(0, 0);
            ::prctl(PR_SET_PDEATHSIG, SIGTERM);
            ::dup2(::open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
            ::dup2(pipe[1], STDOUT_FILENO);
            ::dup2(pipe[1], STDERR_FILENO);
            for (const int signal : stop_signals) ::signal(signal, SIG_DFL);
            ::signal(SIGPIPE, SIG_DFL);
            sigset_t none;
            sigemptyset(&none);
            ::sigprocmask(SIG_SETMASK, &none, nullptr);
            ::setenv(host_variable, name.c_str(), 1);
            ::setenv(key_variable, plan_.key.c_str(), 1);
            if (::geteuid() == 0)
                for (const char* const allowed : {"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM",
                                                  "PRTE_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM"})
                    ::setenv(allowed, "1", 0);
            ::execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
            ::_exit(127);
        }
        ::setpgid(line_, line_);
        ::close(pipe[1]);
        ::fcntl(pipe[0], F_SETFL, O_NONBLOCK);
        printed_ = File{pipe[0]};
        if (plan_.verbose) std::fprintf(stderr, "strata launch: runs %s\n", core::printable(line).c_str());
    }

    void read_text() {
        while (printed_.is_open()) {
            std::array<char, 4096> bytes{};
            const ssize_t n = ::read(printed_.number(), bytes.data(), bytes.size());
            if (n < 0 && errno == EINTR) continue;
            if (n < 0 && errno == EAGAIN) return;
            if (n <= 0) {
                printed_ = File{};
                return;
            }
            text_.append(bytes.data(), static_cast<std::size_t>(n));
            if (text_.size() > most_text) text_.erase(0, text_.size() - most_text);
        }
    }

    void reap(Wire& wire) {
        int status = 0;
        for (pid_t process = ::waitpid(-1, &status, WNOHANG); process > 0; process = ::waitpid(-1, &status, WNOHANG)) {
            if (process != line_) continue;
            line_ = -1;
            read_text();
            printed_ = File{};
            wire.send({Kind::done, {std::to_string(status), text_}});
        }
    }

    /// The line, and what it has left behind: those that watch over ranks see the launcher's end themselves, and clear up.
    void end_children() {
        if (line_ > 0) ::kill(-line_, SIGTERM);
        const auto until = Clock::now() + 10s;
        while (true) {
            const pid_t ended = ::waitpid(-1, nullptr, WNOHANG);
            if (ended < 0 && errno == ECHILD) break;
            if (ended > 0) continue;
            if (Clock::now() >= until) {
                std::ifstream children{"/proc/self/task/" + std::to_string(::getpid()) + "/children"};
                for (pid_t child = -1; children >> child;) ::kill(child, SIGKILL);
            }
            ::poll(nullptr, 0, 20);
        }
        line_ = -1;
        printed_ = File{};
    }

    const NodePlan& plan_;
    File signals_;
    File printed_;
    std::string text_;
    pid_t line_ = -1;
    int last_signal_ = SIGTERM;
};

}  // namespace

int run_node(const NodePlan& plan) { return NodeRun{plan}.run(); }

}  // namespace strata::tools
