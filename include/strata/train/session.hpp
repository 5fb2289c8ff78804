#pragma once
// strata/train/session.hpp - one run of one program: ranks, command line, output directory; and its main.

#include <chrono>
#include <concepts>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <optional>

#include <strata/comm/default_comm.hpp>
#include <strata/core/inline.hpp>
#include <strata/train/cpu_kernels.hpp>
#include <strata/train/progress.hpp>
#include <strata/train/stop_signal.hpp>

namespace strata {

/// What a trainer needs to know of its surroundings. One a process; strata::run() makes it.
///
/// Command line: --output DIR, --config FILE, --fresh. Anything else is an error that names it.
class Session {
public:
    /// What libtorch's generators are seeded with when a session starts, so that a model that is made next has the
    /// same first weights in every run. libtorch itself starts them at random. Use train::seed_generators for another.
    static constexpr std::uint64_t first_seed = 42;

    ///   comm  outlives the session
    /// Local. Throws Error: bad_argument.
    Session(comm::DefaultComm& comm, int argc, char** argv);
    ~Session();
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    [[nodiscard]] comm::DefaultComm& comm() noexcept { return comm_; }
    [[nodiscard]] int rank() const noexcept { return comm_.rank(); }
    [[nodiscard]] int world() const noexcept { return comm_.world(); }
    [[nodiscard]] train::Progress& progress() noexcept { return progress_; }

    /// How long a rank waits for the others in one collective before its watchdog ends the job and says who is missing;
    /// 10 minutes until it is called. A Trainer calls it with TrainOptions::collective_timeout when it is made. Counts for
    /// the collective that runs, too. Local, from any thread.
    void set_collective_timeout(std::chrono::seconds timeout) noexcept { comm_.set_collective_timeout(timeout); }

    /// --config FILE, if it was given. A program that never asks has no use for one: output() then refuses the flag.
    [[nodiscard]] const std::optional<std::filesystem::path>& config_file() noexcept {
        config_asked_for_ = true;
        return config_;
    }

    /// True once SIGINT, SIGTERM, SIGHUP or SIGUSR1 asked this rank to stop; other ranks may not have theirs yet.
    [[nodiscard]] bool stop_requested() const noexcept { return stop_.requested(); }

    /// --fresh: what an earlier run left in the output directory is to be started over.
    [[nodiscard]] bool fresh() const noexcept { return fresh_; }

    /// The output directory: --output DIR, else `otherwise`. The first call makes it, locks it against
    /// other runs, and says on rank 0 how several ranks exchange their bytes; later calls return the same one.
    ///
    /// Collective. Throws Error on all ranks: output_not_writable, output_in_use, bad_argument.
    const std::filesystem::path& output(const std::filesystem::path& otherwise = "output");

private:
    void claim_output();

    comm::DefaultComm& comm_;
    train::Progress progress_;
    std::optional<std::filesystem::path> config_;
    std::optional<std::filesystem::path> output_flag_;
    std::filesystem::path output_;
    bool fresh_ = false;
    bool config_asked_for_ = false;
    int lock_file_ = -1;
    std::filesystem::path created_;  // the topmost folder that this session made for its output; empty if none
    train::StopSignal stop_;
};

namespace train {
/// Reports a failure in one line on standard error, and ends every rank of the job.
///
/// Returns 0 for Errc::interrupted, which all ranks throw together; 2 for bad input (is_bad_input); 1 otherwise.
///
///   comm  nullptr when the ranks could not be started
[[nodiscard]] int report_failure(comm::DefaultComm* comm, std::exception_ptr failure);

/// Leaves before anything is begun, if any rank was asked to stop by now.
///
/// Collective. Throws Error on all ranks: interrupted.
void heed_early_stop(Session& session);
}  // namespace train

/// The body of a trainer's main: starts the ranks, makes the session, calls `body`, and turns an exception
/// into one line on standard error and an exit status. A rank that throws takes the whole job down.
///
/// It comes first in main: it may start the program anew (train::choose_cpu_kernels), and stop signals are heeded from here on.
///
///   body     Session& -> void
///   returns  0, also when it was stopped by a signal; 2 after bad input; 1 after another failure
template <std::invocable<Session&> Body>
int run(int argc, char** argv, Body&& body) {
    train::choose_cpu_kernels();
    const train::StopSignal stop;  // before the ranks start, which takes longest
    std::optional<comm::DefaultComm> comm;
    try {
        comm.emplace();
        Session session{*comm, argc, argv};
        train::heed_early_stop(session);
        body(session);
        return 0;
    } catch (...) {
        return train::report_failure(comm ? &*comm : nullptr, std::current_exception());
    }
}

}  // namespace strata

#ifndef STRATA_COMPILED
#include <strata/train/impl/session.ipp>
#endif
