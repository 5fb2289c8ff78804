#include "launch_rank.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <strata/comm/launched_rank.hpp>
#include <strata/core/error.hpp>
#include <strata/core/host_name.hpp>

#include "launch_environment.hpp"
#include "launch_port.hpp"
#include "launch_socket.hpp"
#include "launch_wire.hpp"
#include "out_of_memory.hpp"

namespace strata::tools {

namespace {

using Kind = Message::Kind;

/// How often the wish to stop is said again to a program that has not noted it: one that a shell script was still about to
/// start has not seen the first.
constexpr int repeat_ms = 200;
/// How often it is said to the process that was started alone. A trainer notes it at once, and what it may have started in
/// its turn, to upload something for example, is left in peace; behind a shell the trainer is another process of the group.
constexpr int times_to_it_alone = 5;

std::string host_or_unknown() {
    const std::string name = core::host_name();
    return name.empty() ? "unknown" : name;
}

std::int64_t now_ns() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

/// The process between mpirun and the program.
class Watcher {
public:
    Watcher(Wire wire, std::string socket_path) : wire_{std::move(wire)}, socket_path_{std::move(socket_path)} {
        sigset_t deaths;
        sigemptyset(&deaths);
        sigaddset(&deaths, SIGCHLD);
        deaths_ = File{::signalfd(-1, &deaths, SFD_CLOEXEC | SFD_NONBLOCK)};
    }

    int run() {
        const char* const rank = comm::launched_rank_text();
        const char* name = std::getenv(host_variable);
        if (name == nullptr && socket_path_.empty())
            name = std::getenv("SLURMD_NODENAME");  // srun brought mpirun's helper here
        wire_.send({Kind::here,
                    {rank == nullptr ? "" : rank, host_or_unknown(), name == nullptr ? "" : name,
                     std::to_string(usable_cores()),
                     std::to_string(visible_gpus("/dev", std::getenv("CUDA_VISIBLE_DEVICES")))}});
        while (true) {
            std::array<pollfd, 5> watched{pollfd{wire_.socket(), POLLIN, 0}, pollfd{deaths_.number(), POLLIN, 0},
                                          pollfd{noted_.number(), POLLIN, 0},  // a negative number is passed over
                                          pollfd{printed_[0].number(), POLLIN, 0},
                                          pollfd{printed_[1].number(), POLLIN, 0}};
            const bool repeats = process_ > 0 && stop_wanted_ && !stop_noted_;
            if (::poll(watched.data(), watched.size(), repeats ? repeat_ms : -1) < 0 && errno != EINTR)
                return launcher_is_gone();
            if (watched[2].revents != 0) read_note();
            for (const int file : {1, 2})
                if (watched.at(file + 2).revents != 0) pass_on(file);
            if (watched[1].revents != 0) reap();
            if (watched[0].revents != 0) {
                const bool connected = wire_.receive();
                while (const auto message = wire_.next())
                    if (!obey(*message)) return failed_ ? 1 : 0;
                if (!connected) return launcher_is_gone();
            }
            if (repeats) ask_to_stop();
        }
    }

private:
    /// False when this process is to leave.
    bool obey(const Message& message) {
        switch (message.kind) {
            case Kind::environment:
                for (const std::string& word : message.words)
                    if (const std::size_t equals = word.find('='); equals != std::string::npos && equals > 0)
                        ::setenv(word.substr(0, equals).c_str(), word.c_str() + equals + 1, 1);
                break;
            case Kind::program:
                start(message.words);
                break;
            case Kind::stop:
                stop_wanted_ = true;
                ask_to_stop();
                break;
            case Kind::end:
                told_to_end_ = true;
                end_program();
                break;
            case Kind::leave:
                for (const int file : {1, 2}) pass_on(file);
                return false;
            default:
                break;
        }
        return true;
    }

    void ask_to_stop() {
        if (process_ > 0) ::kill(times_asked_++ < times_to_it_alone ? process_ : -process_, SIGUSR1);
    }
    void end_program() const {
        if (process_ > 0) ::kill(-process_, SIGKILL);
    }

    int launcher_is_gone() {
        end_program();
        if (process_ > 0) ::waitpid(process_, nullptr, 0);
        if (!socket_path_.empty())
            LaunchSocket::remove(socket_path_);  // it does so itself as soon as all ranks are connected
        return 1;
    }

    /// What the program has printed so far, where it does not print to the launcher's own files.
    void pass_on(int file) {
        File& from = printed_.at(file - 1);
        // Some at a time: the launcher's words are heard in between.
        for (int pieces = 0; from.is_open() && pieces < 16; ++pieces) {
            std::array<char, 16384> bytes{};
            const ssize_t n = ::read(from.number(), bytes.data(), bytes.size());
            if (n < 0 && errno == EINTR) continue;
            if (n < 0 && errno == EAGAIN) return;
            if (n <= 0)
                from = File{};
            else
                wire_.send(
                    {Kind::output, {std::to_string(file), std::string(bytes.data(), static_cast<std::size_t>(n))}});
        }
    }

    void read_note() {
        std::array<char, 64> bytes{};
        const ssize_t n = ::read(noted_.number(), bytes.data(), bytes.size());
        if (n < 0) return;
        if (n == 0) {  // no process has its other end any more
            noted_ = File{};
            return;
        }
        const std::string_view notes{bytes.data(), static_cast<std::size_t>(n)};
        if (notes.find('f') != std::string_view::npos) wire_.send({Kind::faulty, {}});
        reason_is_told_ = reason_is_told_ || notes.find('e') != std::string_view::npos;
        if (notes.find('s') == std::string_view::npos) return;
        if (!stop_noted_) wire_.send({Kind::confirmed, {}});
        stop_noted_ = true;
    }

    void reap() {
        signalfd_siginfo info{};
        while (::read(deaths_.number(), &info, sizeof info) == sizeof info) continue;
        int status = 0;
        if (process_ <= 0 || ::waitpid(process_, &status, WNOHANG) != process_) return;
        const std::int64_t when = now_ns();
        read_note();  // its last word may have come with its end
        // What the program had started. Where a signal ended a shell, the trainer behind it would live on and keep its locks.
        if (told_to_end_ || WIFSIGNALED(status)) end_program();
        const bool by_sigkill = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
        const char memory =
            static_cast<char>(by_sigkill && !told_to_end_ ? memory_->verdict(process_) : OutOfMemory::Verdict::unknown);
        failed_ = status != 0;
        process_ = -1;
        for (const int file : {1, 2}) pass_on(file);
        wire_.send({Kind::ended,
                    {std::to_string(status), std::to_string(when), told_to_end_ ? "1" : "0", std::string(1, memory),
                     reason_is_told_ ? "1" : "0"}});
    }

    ///   words  path of the program, and its arguments from its name on
    void start(const std::vector<std::string>& words) {
        std::vector<File> outputs = wire_.take_files();
        for (const int file : {1, 2}) {
            if (outputs.size() == 2) break;
            std::array<int, 2> pipe{};
            if (::pipe2(pipe.data(), O_CLOEXEC) != 0) break;
            ::fcntl(pipe[0], F_SETFL, O_NONBLOCK);
            printed_.at(file - 1) = File{pipe[0]};
            outputs.emplace_back(pipe[1]);
        }
        std::array<int, 2> noted{};
        std::array<int, 2> failure{};
        if (outputs.size() != 2 || words.size() < 2 || ::pipe2(noted.data(), O_CLOEXEC | O_NONBLOCK) != 0 ||
            ::pipe2(failure.data(), O_CLOEXEC) != 0) {
            wire_.send({Kind::failed, {std::to_string(errno)}});
            return;
        }
        noted_ = File{noted[0]};
        const File noted_writer{noted[1]};
        const File failure_reader{failure[0]};
        File failure_writer{failure[1]};
        struct stat pipe {};
        ::fstat(noted_writer.number(), &pipe);
        ::setenv(stop_noted_variable,
                 (std::to_string(noted_writer.number()) + ":" + std::to_string(pipe.st_ino)).c_str(), 1);
        memory_.emplace();
        const pid_t watcher = ::getpid();
        process_ = ::fork();
        if (process_ == 0) become_program(words, outputs, noted_writer.number(), failure_writer.number(), watcher);
        const int fork_failure = errno;
        failure_writer = File{};
        int cause = process_ < 0 ? fork_failure : 0;
        if (process_ > 0) {
            ::setpgid(process_, process_);  // the child does the same: whoever comes first
            while (::read(failure_reader.number(), &cause, sizeof cause) < 0 && errno == EINTR) continue;
        }
        if (cause == 0) {
            wire_.send({Kind::started, {std::to_string(process_)}});
            return;
        }
        if (process_ > 0) ::waitpid(process_, nullptr, 0);
        process_ = -1;
        failed_ = true;
        wire_.send({Kind::failed, {std::to_string(cause)}});
    }

    [[noreturn]] static void become_program(const std::vector<std::string>& words, const std::vector<File>& outputs,
                                            int noted, int failure, pid_t watcher) {
        // A group of its own: what mpirun sends its children reaches the watcher alone, which knows better.
        ::setpgid(0, 0);
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != watcher) ::_exit(1);
        ::dup2(::open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
        ::dup2(outputs[0].number(), STDOUT_FILENO);
        ::dup2(outputs[1].number(), STDERR_FILENO);
        ::fcntl(noted, F_SETFD, 0);
        for (int signal = 1; signal < SIGRTMIN; ++signal) ::signal(signal, SIG_DFL);
        // `strata launch ... | tee log` and Ctrl-C: tee is gone at once, and a rank that prints must still be able to save.
        ::signal(SIGPIPE, SIG_IGN);
        // SIGUSR1 waits until train::StopSignal lets it in: the wish to stop can come before the program can hear it. A shell
        // may unblock it (dash does), and would die of it; there it is ignored, and comes again.
        ::signal(SIGUSR1, SIG_IGN);
        sigset_t held;
        sigemptyset(&held);
        sigaddset(&held, SIGUSR1);
        ::sigprocmask(SIG_SETMASK, &held, nullptr);
        std::vector<char*> argv;
        for (std::size_t i = 1; i < words.size(); ++i) argv.push_back(const_cast<char*>(words[i].c_str()));
        argv.push_back(nullptr);
        ::execv(words[0].c_str(), argv.data());
        const int cause = errno;
        [[maybe_unused]] const ssize_t said = ::write(failure, &cause, sizeof cause);
        ::_exit(1);
    }

    Wire wire_;
    std::string socket_path_;
    File deaths_;
    File noted_;
    std::array<File, 2> printed_;
    std::optional<OutOfMemory> memory_;
    pid_t process_ = -1;
    int times_asked_ = 0;
    bool stop_wanted_ = false;
    bool stop_noted_ = false;
    bool told_to_end_ = false;
    bool reason_is_told_ = false;
    bool failed_ = false;
};

}  // namespace

int launch_rank_command(std::span<const std::string> words) {
    // mpirun sends its children SIGTERM when it ends a job; the launcher decides here what is done about that.
    sigset_t all;
    sigfillset(&all);
    ::sigprocmask(SIG_SETMASK, &all, nullptr);
    ::signal(SIGCHLD, SIG_DFL);
    if (words.empty() || words.size() > 2)
        throw Error{Errc::bad_argument, "strata launch-rank is a part of strata launch, and not for typing",
                    "type strata launch -n RANKS -- PROGRAM"};
    const char* const key = std::getenv(key_variable);
    const std::string secret = key == nullptr ? "" : key;
    ::unsetenv(key_variable);  // of no use to the program
    // A host with a name was reached over the network, though the path may lead somewhere there too.
    const bool is_remote = words.size() == 2 && std::getenv(host_variable) != nullptr;
    std::optional<Wire> wire;
    if (!is_remote) wire = LaunchSocket::connect(words.front());
    if (wire) return Watcher{std::move(*wire), words.front()}.run();
    if (words.size() == 1) {  // the launcher is gone
        LaunchSocket::remove(words.front());
        return 1;
    }
    std::string why;
    wire = LaunchPort::connect(words.back(), secret, lost_after_seconds, why);
    if (!wire)
        throw Error{Errc::node_missing,
                    "host " + host_or_unknown() + " cannot reach the launcher at " + words.back() + ": " + why,
                    "open that port, and those above 1024, between the hosts of this launch"};
    return Watcher{std::move(*wire), {}}.run();
}

}  // namespace strata::tools
