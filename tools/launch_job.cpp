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
}

int LaunchJob::run() {
    plan_.start.push_back(socket_->path());
    if (plan_.verbose) {
        std::string line;
        for (const std::string& word : plan_.start) line += " " + word;
        std::fprintf(stderr, "strata launch:%s\n", line.c_str());
    }
    ranks_.reserve(static_cast<std::size_t>(plan_.ranks) + 1);
    mpirun_.emplace(plan_.start);
    while (!is_over()) wait();
    return verdict();
}

bool LaunchJob::is_over() const {
    return mpirun_->has_ended() &&
           std::none_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.connected; });
}

/// Until something happens, and what then is to be done.
void LaunchJob::wait() {
    std::vector<pollfd> watched{
        {signals_.number(), POLLIN, 0}, {mpirun_->output(), POLLIN, 0}, {socket_ ? socket_->number() : -1, POLLIN, 0}};
    const std::size_t before_ranks = watched.size();
    for (const Rank& rank : ranks_) watched.push_back({rank.connected ? rank.wire.socket() : -1, POLLIN, 0});
    const bool has_deadline = !mpirun_->unsaid().empty() || last_wait_ || (asked_ > 0 && !hinted_);
    if (::poll(watched.data(), watched.size(), has_deadline ? 100 : -1) < 0) return;

    // What ranks report comes before what mpirun has to say about it.
    for (std::size_t i = before_ranks; i < watched.size(); ++i)
        if (watched[i].revents != 0) take_messages(ranks_[i - before_ranks]);
    if (watched[2].revents != 0 && socket_)  // the last rank's word may just have closed it
        while (auto wire = socket_->accept()) ranks_.push_back({.wire = std::move(*wire), .host = {}, .ended = {}});
    if (watched[0].revents != 0) take_signals();
    if (watched[1].revents != 0) mpirun_->read_output();
    look_at_time();
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
    while (const auto message = rank.wire.next()) take(rank, *message);
    if (connected) return;
    rank.connected = false;
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
        case Kind::ended:
            rank.ended =
                Ended{std::atoi(word(0).c_str()), std::strtoll(word(1).c_str(), nullptr, 10), word(2) == "1",
                      word(3).empty() ? OutOfMemory::Verdict::unknown : static_cast<OutOfMemory::Verdict>(word(3)[0])};
            if (plan_.verbose)
                say(name_of(rank) + (WIFEXITED(rank.ended->status)
                                         ? " ended with status " + std::to_string(WEXITSTATUS(rank.ended->status))
                                         : " was ended by " + name_of_signal(WTERMSIG(rank.ended->status))));
            if (rank.failed())
                end_all();
            else if (!ending_)
                rank.wire.send({Kind::leave, {}});
            break;
        default:
            break;
    }
    if (ending_ && !some_run()) let_go();
}

/// All ranks have come: none starts before, so that a stop until here has nothing to undo.
void LaunchJob::start_program() {
    started_ = true;
    socket_.reset();
    Message message{Kind::program, {plan_.program_file}};
    message.words.insert(message.words.end(), plan_.program.begin(), plan_.program.end());
    for (Rank& rank : ranks_) {
        rank.told_program = true;
        rank.wire.send(message, std::array{STDOUT_FILENO, STDERR_FILENO});
    }
}

void LaunchJob::end_all() {
    if (!ending_) last_wait_ = Clock::now() + patience;
    ending_ = true;
    for (Rank& rank : ranks_)
        if (rank.runs()) rank.wire.send({Kind::end, {}});
    if (!some_run()) let_go();
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

/// How the job ended, and the line that says so.
int LaunchJob::verdict() {
    if (ended_by_ != 0) return 128 + ended_by_;
    if (start_failure_ != 0) {
        const bool format = start_failure_ == ENOEXEC;
        throw Error{Errc::cannot_launch,
                    "the program '" + plan_.program_file + "' cannot be run: " + std::strerror(start_failure_),
                    format ? "build it for this machine; a script needs #! and its interpreter on its first line"
                           : "see whether the file, or the interpreter on its first line, can be run by itself"};
    }
    const Rank* first = nullptr;
    for (const Rank& rank : ranks_)
        if (rank.failed() && (first == nullptr || rank.ended->when < first->ended->when)) first = &rank;
    if (first != nullptr) return verdict_on(*first);

    if (!mpirun_->unsaid().empty()) mpirun_->say();
    if (mpirun_left_ranks_) {
        const int status = mpirun_->status();
        const std::string how = status > 128 ? "was ended by " + name_of_signal(status - 128)
                                             : "ended with status " + std::to_string(status);
        std::fprintf(stderr, "%s\n",
                     Error{Errc::rank_died, "mpirun " + how + " while ranks were running, and they were ended with it",
                           "look for who did that: `dmesg`, the batch system's log of this job"}
                         .what());
        return std::max(1, status);
    }
    for (const Rank& rank : ranks_) {
        if (!started_ || rank.ended) continue;
        std::fprintf(
            stderr, "%s\n",
            Error{Errc::rank_died, name_of(rank) + " is gone, because the process that watched over it was killed",
                  "look for who did that: `dmesg` on that host, the batch system's log of this job"}
                .what());
        return 128 + SIGKILL;
    }
    if (foreign_)
        throw Error{Errc::cannot_launch, "the mpirun in PATH does not number its processes as Open MPI does",
                    "let PATH find the mpirun of Open MPI 4 or 5 first, the MPI that strata is built with"};
    if (!started_ && asked_ > 0) return 0;
    if (!started_)
        throw Error{Errc::cannot_launch,
                    "mpirun ended with status " + std::to_string(mpirun_->status()) + " before all ranks were there",
                    "see what it says above, and try `mpirun -n " + std::to_string(plan_.ranks) +
                        " hostname`; strata launch wants Open MPI 4 or 5"};
    return mpirun_->status();
}

int LaunchJob::verdict_on(const Rank& rank) const {
    const int status = rank.ended->status;
    if (WIFEXITED(status)) return WEXITSTATUS(status);  // it has said why itself
    const RankDeath death{rank.number, plan_.ranks,        rank.host,         rank.process,
                          status,      rank.ended->memory, plan_.program_file};
    std::fprintf(stderr, "%s\n", error_of(death).what());
    return 128 + WTERMSIG(status);
}

}  // namespace strata::tools
