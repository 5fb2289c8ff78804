#pragma once
// strata/train/session.hpp - one run of one program: ranks, command line, output directory; and its main.

#include <array>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <strata/comm/any_comm.hpp>
#include <strata/comm/default_comm.hpp>
#include <strata/comm/folder_keepers.hpp>
#include <strata/comm/self_comm.hpp>
#include <strata/core/error.hpp>
#include <strata/core/file_lock.hpp>
#include <strata/core/inline.hpp>
#include <strata/train/command_line.hpp>
#include <strata/train/cpu_kernels.hpp>
#include <strata/train/phases.hpp>
#include <strata/train/progress.hpp>
#include <strata/train/run_events.hpp>
#include <strata/train/run_folders.hpp>
#include <strata/train/run_health.hpp>
#include <strata/train/stop_signal.hpp>

namespace strata {

/// What a trainer needs to know of its surroundings. One a process; strata::run() makes it.
///
/// Command line: --output DIR, --fresh, --help, --version; with settings their keys, and where these are in a file
/// --config FILE. Anything else is an error that names it.
class Session {
public:
    /// What libtorch's generators are seeded with when a session starts, so that a model that is made next has the
    /// same first weights in every run. libtorch itself starts them at random. Use train::seed_generators for another.
    static constexpr std::uint64_t first_seed = 42;

    /// Over any communicator.
    ///
    ///   comm  outlives the session
    /// Local. The second one throws Error: bad_argument.
    template <comm::Communicator Comm>
    Session(Comm& comm, train::CommandLine command_line) : Session{view(comm), std::move(command_line)} {}
    template <comm::Communicator Comm>
    Session(Comm& comm, int argc, char** argv) : Session{comm, train::CommandLine::parse(argc, argv)} {}
    /// Over the communicator that this build has, which it starts: strata::run() does so too, and reports what is thrown.
    ///
    /// Collective. Throws Error: bad_argument, rank_failed.
    Session(int argc, char** argv) : Session{train::CommandLine::parse(argc, argv)} {}
    ~Session();
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    [[nodiscard]] comm::AnyComm& comm() noexcept { return comm_; }
    /// The communicator itself, for what is compiled for its type: a trainer with Ranks<Comm>. In a session of one rank a
    /// SelfComm is there too, whatever it was made over.
    ///
    /// Local. Throws Error: bad_argument where the session was made over another one.
    template <comm::Communicator Comm>
    [[nodiscard]] Comm& ranks();
    [[nodiscard]] int rank() const noexcept { return comm_.rank(); }
    [[nodiscard]] int world() const noexcept { return comm_.world(); }
    [[nodiscard]] train::Progress& progress() noexcept { return progress_; }
    /// How far what precedes training has come; shown on rank 0. For data::SourceOptions::progress.
    [[nodiscard]] train::Phases& phases() noexcept { return phases_; }
    /// What webhooks are told. They are those of the settings' `webhook_config`, or what events().set() was given before output() is
    /// first called.
    [[nodiscard]] train::RunEvents& events() noexcept { return events_; }
    /// A line that stays, of any rank, and from any thread: as progress() shows it on rank 0, on standard error elsewhere.
    void say(const std::string& line);

    /// How long a rank waits for the others in one collective before its watchdog ends the job and says who is missing;
    /// 10 minutes until it is called. A Trainer calls it with TrainOptions::collective_timeout when it is made. Counts for
    /// the collective that runs, too. Local, from any thread.
    void set_collective_timeout(std::chrono::seconds timeout) noexcept { comm_.set_collective_timeout(timeout); }

    /// Settings as the command line has them, over those of their file if they have one. A member `output_dir` is where
    /// output() is from now on, and is --output where that was given. Local. Throws Error: what reading S throws.
    template <config::Settings S>
    [[nodiscard]] S settings();

    /// True once SIGINT, SIGTERM, SIGHUP or SIGUSR1 asked this rank to stop, or a breaker of its health ends the run; other ranks may not
    /// have theirs yet.
    [[nodiscard]] bool stop_requested() const { return stop_.requested() || health_.asks_to_stop(); }

    /// Watches this rank's GPU and its host until the session ends, as docs/health.md says: lines about faults, and for `breaker` stop and drain
    /// stop_requested(). A Trainer calls it with TrainOptions::health when it is made; the first call counts.
    ///
    ///   gpu      CUDA's number of the GPU in this process; none where the CPU computes
    ///   folders  whose disks matter beside that of the output directory: of state that is offloaded
    /// Local.
    void watch_health(const health::HealthOptions& options, std::optional<unsigned> gpu,
                      std::vector<std::filesystem::path> folders = {});
    /// The same with sources of the program's own.
    ///
    ///   what  that is watched beside the host, for messages: "GPU 1 (NVIDIA H100)"
    void watch_health(const health::HealthOptions& options, health::HealthSources sources, const std::string& what);
    [[nodiscard]] train::RunHealth& health() noexcept { return health_; }

    /// --fresh: what an earlier run left in the output directory is to be started over.
    [[nodiscard]] bool fresh() const noexcept { return command_line_.fresh; }

    /// The output directory: --output DIR, else `output_dir` of the settings, else "output". The first call makes it,
    /// locks it against other runs, and says on rank 0 how several ranks exchange their bytes, and which hosts have one of their
    /// own; later calls return the same one.
    ///
    /// Collective. Throws Error on all ranks: output_not_writable, output_in_use.
    const std::filesystem::path& output() { return output(output_dir_); }
    /// The same with a default of the program's own.
    const std::filesystem::path& output(const std::filesystem::path& otherwise);

    /// Which ranks see the same output directory, once output() was called. Hosts that share none have one each: then checkpoints are
    /// copied to all of them, and other files are rank 0's.
    [[nodiscard]] const comm::FolderKeepers& output_keepers() const noexcept { return keepers_; }
    /// Whether this rank is the first of those that see its output directory.
    [[nodiscard]] bool keeps_output() const noexcept { return keepers_.keeps(comm_.rank()); }

    /// After bad input: if nothing was trained in the output directory yet, what this run made there goes, and folders
    /// that it made for it. strata::run() calls it. Local; any rank may, rank 0 need not be able to any more.
    void leave_no_trace() noexcept;

    /// The folder of a trainer: the output directory, or NAME below it (RunFolders::take()). The first call does what output()
    /// does. Throws what both throw.
    [[nodiscard]] std::filesystem::path take_folder(const std::string& name);

private:
    /// An AnyComm is taken as it is, so that what it is of is still known.
    template <class Comm>
    static std::shared_ptr<comm::AnyComm> view(Comm& comm) {
        if constexpr (std::same_as<Comm, comm::AnyComm>) {
            return {std::shared_ptr<void>{}, &comm};
        } else {
            return std::make_shared<comm::AnyComm>(comm);
        }
    }
    explicit Session(train::CommandLine command_line);
    Session(std::shared_ptr<comm::AnyComm> comm, train::CommandLine command_line);
    [[noreturn]] static void refuse_other_ranks();
    [[nodiscard]] std::filesystem::path folder_of_output() const;

    void claim_output(const std::filesystem::path& output);
    void find_keepers(const std::filesystem::path& output);
    void remove_leftovers(const std::filesystem::path& folder);
    void remove_traces(bool refused) noexcept;
    void remove_folders(std::filesystem::path folder);
    void remove_empty_start(const std::filesystem::path& folder);

    /// What the output directory was when this run came. Equal on all ranks that see rank 0's; a rank that keeps another has that one's.
    struct Claim {
        std::array<std::uint64_t, 2> lock{};  // device and file number of .lock
        std::uint64_t made_folders = 0;       // the last of its path that this run made
        bool had_lock = true;
        bool had_index = true;
        std::array<char, 16> job{};  // what events call this run
    };

    std::shared_ptr<comm::AnyComm> any_;
    comm::AnyComm& comm_;
    comm::SelfComm alone_;
    train::Progress progress_;
    train::Phases phases_;
    train::CommandLine command_line_;
    std::filesystem::path output_dir_ = "output";
    std::filesystem::path output_;
    Claim claim_;
    comm::FolderKeepers keepers_;
    core::FileLock lock_;  // of a rank that keeps the output directory
    train::RunFolders folders_;
    train::StopSignal stop_;
    train::RunEvents events_;  // behind progress_, which its threads write to, as that of the next does
    train::RunHealth health_;
};

namespace train {
/// Reports a failure in one line on standard error, and ends every rank of the job.
///
/// Returns 0 for Errc::interrupted, which all ranks throw together; 2 for bad input (is_bad_input); what EndedByFault says; 1 otherwise.
///
///   comm  nullptr when the ranks could not be started
[[nodiscard]] int report_failure(comm::AnyComm* comm, std::exception_ptr failure);

/// What is done about a failure that a program's body ended with: webhooks are told, bad input leaves no trace. Throws it, or the fault of a GPU
/// or host that is behind it (EndedByFault).
///
/// Collective where all ranks were interrupted, else local.
[[noreturn]] void end_badly(Session& session, std::exception_ptr failure);

/// Leaves before anything is begun, if any rank was asked to stop by now.
///
/// Collective. Throws Error on all ranks: interrupted.
void heed_early_stop(Session& session);
}  // namespace train

/// run() over a communicator of one's own: comm::SelfComm, say, in a build with MPI.
///
///   Comm  is made without arguments, and destroyed behind the session
template <comm::Communicator Comm, config::Settings... Settings, std::invocable<Session&, const Settings&...> Body>
int run_on(int argc, char** argv, Body&& body);

/// The body of a trainer's main: starts the ranks, makes the session, calls `body`, and turns an exception
/// into one line on standard error and an exit status. A rank that throws takes the whole job down. --help and
/// --version are answered before all that.
///
/// It comes first in main: it may start the program anew (train::choose_cpu_kernels), and stop signals are heeded from here on.
///
///   Settings  what the program is told by its command line, and by a file where they are FileSettings: a struct that
///             describes itself, as a trainer's Options do, or has a schema():
///             strata::run<train::ConfigFor<MyTrainer>>(argc, argv, [](Session&, const config::TrainerConfig&) { ... })
///   body      Session&, const Settings&... -> void
///   returns   0, also when it was stopped by a signal; 2 after bad input; 69 and 70 after a fault of a GPU or host that ended the run
///             (health::status_of_fault); 1 after another failure
template <config::Settings... Settings, std::invocable<Session&, const Settings&...> Body>
int run(int argc, char** argv, Body&& body) {
    return run_on<comm::DefaultComm, Settings...>(argc, argv, std::forward<Body>(body));
}

template <comm::Communicator Comm, config::Settings... Settings, std::invocable<Session&, const Settings&...> Body>
int run_on(int argc, char** argv, Body&& body) {
    const std::array<train::SettingsKeys, sizeof...(Settings)> keys{train::SettingsKeys::of<Settings>()...};
    if (const auto status = train::answer_question(argc, argv, keys)) return *status;
    train::choose_cpu_kernels();
    const train::StopSignal stop;  // before the ranks start, which takes longest
    std::optional<Comm> comm;
    std::optional<comm::AnyComm> ranks;
    try {
        ranks.emplace(comm.emplace());
        Session session{*ranks, train::CommandLine::parse(argc, argv, keys)};
        try {
            train::heed_early_stop(session);
            std::forward<Body>(body)(session, session.settings<Settings>()...);
            session.health().heed(session.comm());
        } catch (...) {
            train::end_badly(session, std::current_exception());
        }
        return 0;
    } catch (...) {
        return train::report_failure(ranks ? &*ranks : nullptr, std::current_exception());
    }
}

template <comm::Communicator Comm>
Comm& Session::ranks() {
    if (Comm* const itself = comm_.as<Comm>()) return *itself;
    if constexpr (std::same_as<Comm, comm::SelfComm>) {
        if (world() == 1) return alone_;
    }
    refuse_other_ranks();
}

template <config::Settings S>
S Session::settings() {
    S settings = [this] {
        if constexpr (train::FileSettings<S>)
            return S::load(command_line_.config_file(S::default_file), command_line_.overrides);
        else
            return config::schema_of<S>().read(command_line_.overrides);
    }();
    if constexpr (requires { output_dir_ = settings.output_dir; }) {
        if (command_line_.output) {
            for (const config::Override& given : command_line_.overrides)
                if (given.name == "output_dir")
                    throw Error{Errc::bad_argument, "--output and --output_dir both say where results go",
                                "keep one of them"};
            settings.output_dir = *command_line_.output;
        }
        output_dir_ = settings.output_dir;
    }
    if constexpr (requires { events_.set(settings.webhooks); }) events_.set(settings.webhooks);
    if constexpr (requires { settings.reading.warnings(); })
        for (const std::string& line : settings.reading.warnings()) progress_.note(line);
    return settings;
}

}  // namespace strata

#ifndef STRATA_COMPILED
#include <strata/train/impl/session.ipp>
#endif
