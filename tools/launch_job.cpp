#include "launch_job.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <strata/core/error.hpp>

#include "held_signals.hpp"
#include "rank_death.hpp"

namespace strata::tools {

namespace {

using namespace std::chrono_literals;
using Kind = Message::Kind;

/// mpirun reports the death of a rank in a dozen lines of its own. They come with the watcher's report or right after
/// it, so what mpirun says is kept back for this long: when it turns out to be about something else it is shown.
constexpr auto mpirun_is_heard_after = 2s;

/// How long processes that were ended may take to go, before mpirun is ended too, and then killed.
constexpr auto patience = 10s;

constexpr auto time_between_probes = 15s;

/// How long a program may take to hear that it is to stop, before a person is told that none has.
constexpr auto hint_after = 10s;

/// Output of the ranks goes where this process's own goes; a number that is free would become some other file's.
void open_closed_outputs() {
    for (const int file : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
        while (::fcntl(file, F_GETFD) < 0)
            if (::open("/dev/null", O_RDWR) < 0) return;
}

}  // namespace

LaunchJob::LaunchJob(LaunchPlan plan) : plan_{std::move(plan)} {
    open_closed_outputs();
    ::signal(SIGPIPE, SIG_IGN);  // `strata launch ... | tee log` and Ctrl-C: tee is gone first
    ::signal(SIGCHLD, SIG_DFL);  // who started this command may have ignored it, and then mpirun's end is never told
    sigset_t awaited = heeded_stop_signals();
    sigaddset(&awaited, SIGCHLD);
    ::sigprocmask(SIG_BLOCK, &awaited, nullptr);
    signals_ = File{::signalfd(-1, &awaited, SFD_CLOEXEC | SFD_NONBLOCK)};
    socket_.emplace();
    output_ = plan_.output;
    if (output_ == nullptr) output_ = &own_output_.emplace(std::filesystem::path{}, false);
}

LaunchOutcome LaunchJob::run() {
    plan_.start.push_back(socket_->path());
    if (plan_.port != nullptr) plan_.start.push_back(plan_.port->reach());
    if (plan_.verbose) {
        std::string line;
        for (const std::string& word : plan_.start) line += " " + word;
        std::fprintf(stderr, "strata launch:%s\n", line.c_str());
    }
    ranks_.reserve(static_cast<std::size_t>(plan_.ranks) + 1);
    if (plan_.port != nullptr) ::setenv(launcher_socket_variable, socket_->path().c_str(), 1);
    mpirun_.emplace(plan_.start);
    while (!is_over()) wait();
    for (const Rank& rank : ranks_) output_->close(rank.number);
    output_->finish(ended_by_ != 0 ? 0 : 10'000);
    outcome_.status = verdict();
    outcome_.lost = lost_hosts();
    outcome_.drained = drained_hosts();
    if (asked_ > 0) outcome_.is_to_grow = false;  // a person's wish to stop that came meanwhile is what it stopped for
    outcome_.may_restart = outcome_.status != 0 && asked_ == 0 && started_;
    return outcome_;
}

bool LaunchJob::is_over() const {
    return mpirun_->has_ended() &&
           std::none_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.connected; });
}

/// Until something happens, and what then is to be done.
void LaunchJob::wait() {
    std::vector<pollfd> watched{
        {signals_.number(), POLLIN, 0}, {mpirun_->output(), POLLIN, 0}, {socket_ ? socket_->number() : -1, POLLIN, 0}};
    for (const int file : {STDOUT_FILENO, STDERR_FILENO})
        watched.push_back({output_->has_waiting(file) ? file : -1, POLLOUT, 0});
    const std::size_t before_ranks = watched.size();
    const bool hears = !output_->is_full() || ending_;  // who is to end may be waiting to be read
    for (const Rank& rank : ranks_) watched.push_back({rank.connected && hears ? rank.wire.socket() : -1, POLLIN, 0});
    const std::size_t behind_ranks = watched.size();
    if (plan_.port != nullptr)
        for (const int number : plan_.port->numbers()) watched.push_back({number, POLLIN, 0});
    if (plan_.nodes != nullptr)
        for (const int number : plan_.nodes->numbers()) watched.push_back({number, POLLIN, 0});
    const bool has_deadline = !mpirun_->unsaid().empty() || last_wait_ || (asked_ > 0 && !hinted_);
    if (::poll(watched.data(), watched.size(), has_deadline ? 100 : plan_.port != nullptr ? 1000 : -1) < 0) return;

    // What ranks report comes before what mpirun has to say about it.
    for (std::size_t i = before_ranks; i < behind_ranks; ++i)
        if (watched[i].revents != 0) take_messages(ranks_[i - before_ranks]);
    if (watched[2].revents != 0 && socket_)  // the last rank's word may just have closed it
        while (auto wire = socket_->accept())
            ranks_.push_back({.wire = std::move(*wire), .host = {}, .known_as = {}, .ended = {}});
    let_in();
    for (const int file : {STDOUT_FILENO, STDERR_FILENO})
        if (output_->has_waiting(file)) output_->write(file);
    std::erase_if(ranks_, [](const Rank& rank) { return rank.is_none; });
    if (watched[0].revents != 0) take_signals();
    if (watched[1].revents != 0) mpirun_->read_output();
    look_for_hosts();
    look_at_time();
}

/// Ranks of other hosts, and hosts that were started by themselves.
void LaunchJob::let_in() {
    if (plan_.port != nullptr)
        for (Wire& wire : plan_.port->accept())
            ranks_.push_back({.wire = std::move(wire), .host = {}, .known_as = {}, .is_local = false, .ended = {}});
    if (plan_.nodes == nullptr) return;
    plan_.nodes->take_messages();
    if (plan_.nodes->take_wish_to_stop() && asked_++ == 0) ask_to_stop();
    for (const std::string& name : plan_.nodes->take_lost()) {
        if (std::none_of(plan_.hosts.begin(), plan_.hosts.end(),
                         [&](const LaunchHost& host) { return host.name == name; }))
            continue;  // it was in reserve
        outcome_.lost.push_back(name);
        // Its connections to ranks notice later.
        for (Rank& rank : ranks_)
            if (rank.known_as == name && rank.connected && !rank.ended) rank.connected = false;
        if (!started_) {
            mpirun_->signal(SIGTERM);
            let_go();
        }
        if (!ending_) end_all();
    }
}

/// Asks hosts that are not there, where they do not come by themselves.
void LaunchJob::look_for_hosts() {
    if (plan_.absent.empty() || !started_ || outcome_.is_to_grow) return;
    if (!probe_) {
        if (Clock::now() >= next_probe_) probe_.emplace(plan_.absent, plan_.remote_shell, 20);
        return;
    }
    if (probe_->goes_on()) return;
    grow(probe_->answered());
    probe_.reset();
    next_probe_ = Clock::now() + time_between_probes;
}

/// All ranks save, and the launch goes on with the hosts that have come, where it has a use for them.
void LaunchJob::grow(const std::vector<std::string>& come) {
    if (!plan_.would_grow || !started_ || asked_ > 0 || ending_ || outcome_.is_to_grow) return;
    if (come.empty() || !plan_.would_grow(come)) return;
    outcome_.is_to_grow = true;
    std::fprintf(stderr, "a host has come back: stopping after this step, to go on with it\n");
    for (Rank& rank : ranks_)
        if (rank.runs()) rank.wire.send({Kind::stop, {}});
}

void LaunchJob::take_signals() {
    signalfd_siginfo info{};
    while (::read(signals_.number(), &info, sizeof info) == sizeof info) {
        if (info.ssi_signo != SIGCHLD) {
            ++asked_;
            if (asked_ == 1 && !plan_.ends_when_asked) {
                ask_to_stop();
            } else if (ended_by_ == 0 && (!started_ || some_run())) {
                ended_by_ = static_cast<int>(info.ssi_signo);
                end_all();
                if (!started_) mpirun_->signal(SIGTERM);
            }
            continue;
        }
        mpirun_->poll();
        if (!mpirun_->has_ended()) continue;
        // What it left behind is ended by us.
        mpirun_left_ranks_ = mpirun_left_ranks_ || (some_run() && !ending_);
        if (mpirun_left_ranks_ && !ending_) end_all();
        if (!some_run()) let_go();
    }
}

void LaunchJob::ask_to_stop() {
    asked_at_ = Clock::now();
    if (ending_ || mpirun_->has_ended()) return;
    if (!started_) {
        std::fprintf(stderr, "stopped before training began; nothing was started\n");
        let_go();
        return;
    }
    if (!some_run()) return;
    std::fprintf(stderr, "stopping after this step (again to stop at once)\n");
    for (Rank& rank : ranks_)
        if (rank.runs()) rank.wire.send({Kind::stop, {}});
}

void LaunchJob::take_messages(Rank& rank) {
    const bool connected = rank.wire.receive();
    while (auto message = rank.wire.next()) {
        if (message->kind == Kind::node && !rank.is_local && plan_.nodes != nullptr) {
            plan_.nodes->take(std::move(rank.wire), *message);
            rank.is_none = true;
            std::vector<std::string> come;
            for (const LaunchHost& host : plan_.nodes->hosts()) come.push_back(host.name);
            grow(come);
            return;
        }
        if (message->kind == Kind::done && rank.number < 0 && rank.is_local) {  // `strata launch-shell`
            if (!started_ && host_without_start_.empty() && !message->words.empty())
                host_without_start_ = message->words.front();
            rank.is_none = true;
            return;
        }
        take(rank, *message);
    }
    if (connected && rank.wire.failure() == 0) return;
    rank.connected = false;
    rank.is_none = rank.number < 0 && !rank.is_local;
    if (rank.is_none) return;
    // Its watcher is gone, and was not told to leave: the kernel has ended the program with it.
    if (started_ && !rank.ended) end_all();
}

void LaunchJob::take(Rank& rank, const Message& message) {
    const auto word = [&](std::size_t i) { return i < message.words.size() ? message.words[i] : std::string{}; };
    switch (message.kind) {
        case Kind::here: {
            const std::string number = plan_.ranks == 1 && word(0).empty() ? "0" : word(0);
            rank.number = number.empty() ? -1 : std::atoi(number.c_str());
            rank.host = word(1);
            rank.known_as = word(2);
            rank.cores = std::max(1, std::atoi(word(3).c_str()));
            rank.gpus = std::atoi(word(4).c_str());
            const auto same = std::count_if(ranks_.begin(), ranks_.end(),
                                            [&](const Rank& other) { return other.number == rank.number; });
            foreign_ = foreign_ || rank.number < 0 || rank.number >= plan_.ranks || same > 1;
            if (asked_ > 0 || ending_ || foreign_) {
                let_go();
            } else if (std::count_if(ranks_.begin(), ranks_.end(), [](const Rank& each) { return each.number >= 0; }) ==
                       plan_.ranks) {
                start_program();
            }
            break;
        }
        case Kind::started:
            rank.process = std::atoi(word(0).c_str());
            if (plan_.verbose) say(name_of(rank) + " runs");
            break;
        case Kind::failed:
            start_failure_ = std::max(1, std::atoi(word(0).c_str()));
            rank.ended = Ended{.told_to = true};
            end_all();
            break;
        case Kind::confirmed:
            confirmed_ = true;
            if (plan_.verbose) say(name_of(rank) + " has taken the wish to stop");
            break;
        case Kind::faulty:
            rank.is_on_faulty_host = true;
            if (plan_.verbose) say(name_of(rank) + " says that its host has a fault");
            break;
        case Kind::output:
            output_->take(rank.number, std::atoi(word(0).c_str()), word(1));
            break;
        case Kind::ended:
            rank.order = ++ends_told_;
            output_->close(rank.number);
            rank.ended =
                Ended{std::atoi(word(0).c_str()), std::strtoll(word(1).c_str(), nullptr, 10), word(2) == "1",
                      word(3).empty() ? OutOfMemory::Verdict::unknown : static_cast<OutOfMemory::Verdict>(word(3)[0]),
                      word(4) == "1"};
            if (plan_.verbose)
                say(name_of(rank) + (WIFEXITED(rank.ended->status)
                                         ? " ended with status " + std::to_string(WEXITSTATUS(rank.ended->status))
                                         : " was ended by " + name_of_signal(WTERMSIG(rank.ended->status))));
            if (rank.has_fault())
                leave_together();
            else if (rank.failed())
                end_all();
            else if (!ending_ && !leaving_)
                rank.wire.send({Kind::leave, {}});
            break;
        default:
            break;
    }
    if ((ending_ || leaving_) && !some_run()) let_go();
}

/// All ranks have come: none starts before, so that a stop until here has nothing to undo.
void LaunchJob::start_program() {
    started_ = true;
    socket_.reset();
    name_hosts();
    warn_of_gpus();
    Message message{Kind::program, {plan_.program_file}};
    message.words.insert(message.words.end(), plan_.program.begin(), plan_.program.end());
    for (Rank& rank : ranks_) {
        if (!rank.connected || rank.number < 0) continue;
        rank.told_program = true;
        if (!plan_.hosts.empty())
            rank.wire.send({Kind::environment, environment_of(rank)});
        else if (!plan_.environment.empty())
            rank.wire.send({Kind::environment, plan_.environment});
        if (rank.is_local && plan_.output == nullptr)
            rank.wire.send(message, std::array{STDOUT_FILENO, STDERR_FILENO});
        else
            rank.wire.send(message);
    }
}

/// A rank whose host was reached by its name has been told it. Those that mpirun started itself are on the one host that is left.
void LaunchJob::name_hosts() {
    std::string own;
    for (const LaunchHost& host : plan_.hosts) {
        const bool is_told =
            std::any_of(ranks_.begin(), ranks_.end(), [&](const Rank& rank) { return rank.known_as == host.name; });
        if (!is_told && own.empty()) own = host.name;
    }
    for (Rank& rank : ranks_)
        if (rank.known_as.empty()) rank.known_as = own;
}

/// The first two hosts that differ in GPUs, and the first with more or fewer ranks than GPUs.
void LaunchJob::warn_of_gpus() const {
    const Rank* first = nullptr;
    for (const Rank& rank : ranks_) {
        if (rank.number < 0) continue;
        if (first == nullptr) first = &rank;
        if (rank.gpus == first->gpus) continue;
        say("warning: host " + first->host + " has " + std::to_string(first->gpus) + " GPUs and host " + rank.host +
            " has " + std::to_string(rank.gpus) + "; a step waits for the slowest rank");
        break;
    }
    for (const Rank& rank : ranks_) {
        if (rank.number < 0) continue;
        // Of a host's slots some are left out on purpose.
        const auto host = std::find_if(plan_.hosts.begin(), plan_.hosts.end(),
                                       [&](const LaunchHost& one) { return one.name == rank.known_as; });
        const bool is_filtered = host != plan_.hosts.end() && host->is_filtered;
        const std::string warning =
            warning_of_gpus(rank.host, ranks_beside(rank), is_filtered ? ranks_beside(rank) : rank.gpus);
        if (warning.empty()) continue;
        say("warning: " + warning);
        break;
    }
}

/// Ranks of its host, with itself.
int LaunchJob::ranks_beside(const Rank& rank) const {
    return static_cast<int>(std::count_if(ranks_.begin(), ranks_.end(), [&](const Rank& other) {
        return other.host == rank.host && other.known_as == rank.known_as;
    }));
}

std::vector<std::string> LaunchJob::environment_of(const Rank& rank) const {
    std::vector<std::string> words = plan_.environment;
    const std::string threads =
        plan_.threads.empty() ? std::to_string(std::max(1, rank.cores / ranks_beside(rank))) : plan_.threads;
    words.push_back("OMP_NUM_THREADS=" + threads);
    for (const LaunchHost& host : plan_.hosts) {
        if (host.name != rank.known_as || !host.is_filtered) continue;
        std::string list;
        for (const std::int64_t slot : host.slots) list += (list.empty() ? "" : ",") + std::to_string(slot);
        words.push_back("CUDA_VISIBLE_DEVICES=" + list);
    }
    if (plan_.verbose) {
        std::string line = "rank " + std::to_string(rank.number) + " on host " + rank.host + ":";
        for (std::size_t i = plan_.environment.size(); i < words.size(); ++i) line += " " + words[i];
        say(line);
    }
    return words;
}

void LaunchJob::end_all() {
    if (!ending_) last_wait_ = Clock::now() + patience;
    ending_ = true;
    for (Rank& rank : ranks_)
        if (rank.runs()) rank.wire.send({Kind::end, {}});
    if (!some_run()) let_go();
}

/// All ranks have agreed to end because of a fault on one, which mpirun would not let them as soon as a watcher left with a failure.
void LaunchJob::leave_together() {
    if (!leaving_ && !last_wait_) last_wait_ = Clock::now() + patience;
    leaving_ = true;
}

bool LaunchJob::some_run() const {
    return std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.runs(); });
}

void LaunchJob::let_go() {
    if (!last_wait_) last_wait_ = Clock::now() + patience;
    for (Rank& rank : ranks_)
        if (rank.connected) rank.wire.send({Kind::leave, {}});
}

void LaunchJob::look_at_time() {
    const auto now = Clock::now();
    const bool all_well = !ending_ && asked_ == 0;
    if (!mpirun_->unsaid().empty() &&
        (plan_.verbose || (all_well && now - mpirun_->first_unsaid() > mpirun_is_heard_after)))
        mpirun_->say();
    if (asked_ > 0 && !hinted_ && now - asked_at_ > hint_after) {
        hinted_ = true;
        if (!confirmed_ && !ending_ && some_run())
            std::fprintf(
                stderr,
                "no rank has heard it yet: the program is busy starting, or is none of strata's; again stops it at once\n");
    }
    if (!last_wait_ && started_ &&
        std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.ended.has_value(); }))
        last_wait_ = now + patience;
    if (!last_wait_ || now < *last_wait_) return;
    last_wait_ = now + patience;
    mpirun_->signal(++pressure_ == 1 ? SIGTERM : SIGKILL);
    if (pressure_ < 4) return;
    for (Rank& rank : ranks_) {  // stuck in the kernel, on a disk that does not answer for example
        if (rank.connected) std::fprintf(stderr, "%s does not end, and is left behind\n", name_of(rank).c_str());
        rank.connected = false;
    }
}

std::string LaunchJob::name_of(const Rank& rank) const {
    return "rank " + std::to_string(rank.number) + "/" + std::to_string(plan_.ranks) + " on host " + rank.host +
           " (pid " + std::to_string(rank.process) + ")";
}

void LaunchJob::say(const std::string& line) const { std::fprintf(stderr, "strata launch: %s\n", line.c_str()); }

}  // namespace strata::tools
