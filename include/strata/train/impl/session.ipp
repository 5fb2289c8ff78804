#pragma once
// strata/train/impl/session.ipp - the output directory, and the last word of a failing rank.

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

#include <strata/comm/agree.hpp>
#include <strata/comm/launched_rank.hpp>
#include <strata/config/model_record.hpp>
#include <strata/core/environment.hpp>
#include <strata/core/error.hpp>
#include <strata/core/host_name.hpp>
#include <strata/core/printable.hpp>
#include <strata/core/text.hpp>
#include <strata/core/thrown_type.hpp>
#include <strata/health/failure_class.hpp>
#include <strata/health/nvml.hpp>
#include <strata/storage/leftovers.hpp>
#include <strata/train/run_log.hpp>
#include <strata/train/seed.hpp>
#include <strata/train/session.hpp>
#include <strata/train/stall_record.hpp>
#include <strata/train/tensor_memory.hpp>
#include <strata/webhooks/health_event.hpp>

namespace strata {
namespace train::detail {

/// What a run makes in its output directory before training begins: its lock, the index of pictures, the list of those
/// that are left out, and beside state on disk the lock of SwapFolder.
inline constexpr std::string_view lock_name = ".lock", index_name = "index", skipped_name = "skipped.txt",
                                  swap_lock_name = ".strata-swap.lock";

/// Which file it is; zeros if it cannot be asked.
inline std::array<std::uint64_t, 2> identity_of(const std::filesystem::path& file) {
    struct ::stat status {};
    if (::stat(file.c_str(), &status) != 0) return {};
    return {static_cast<std::uint64_t>(status.st_dev), static_cast<std::uint64_t>(status.st_ino)};
}

/// How many folders of a path are not there.
inline std::uint64_t folders_to_make(std::filesystem::path folder) {
    std::uint64_t count = 0;
    std::error_code failed;
    for (; folder.has_relative_path() && !std::filesystem::exists(folder, failed); folder = folder.parent_path())
        ++count;
    return count;
}

inline bool holds_only(const std::filesystem::path& folder, std::initializer_list<std::string_view> names) {
    std::error_code failed;
    for (std::filesystem::directory_iterator at{folder, failed}, end; !failed && at != end; at.increment(failed))
        if (std::find(names.begin(), names.end(), at->path().filename().string()) == names.end()) return false;
    return !failed;
}

/// "2 ranks, shared memory"
inline std::string ranks_text(const comm::AnyComm& comm) {
    std::string text = std::to_string(comm.world()) + " ranks";
    if (const std::string transport = comm.transport(); !transport.empty()) text += ", " + transport;
    return text;
}

/// Who tells webhooks of this run. Its job is what the launcher calls it, where it does.
inline webhooks::Origin origin_of(const comm::AnyComm& comm, const std::array<char, 16>& job,
                                  const std::filesystem::path& output) {
    webhooks::Origin origin{.job_id = {job.data(), job.size()},
                            .host = core::host_name(),
                            .rank = comm.rank(),
                            .world = comm.world(),
                            .run = output.filename().string()};
    for (const char* name : {"SLURM_JOB_ID", "SIMPLETUNER_JOB_ID", "STRATA_JOB_ID"})
        if (const auto id = process_environment(name); id && !id->empty()) origin.job_id = *id;
    return origin;
}

}  // namespace train::detail

STRATA_INLINE Session::Session(std::shared_ptr<comm::AnyComm> comm, train::CommandLine command_line)
    : any_{std::move(comm)},
      comm_{*any_},
      progress_{comm_.rank() == 0, comm_.rank() == 0 && train::is_terminal(STDOUT_FILENO)},
      phases_{comm_.rank() == 0,
              comm_.rank() == 0 && train::is_terminal(STDERR_FILENO),
              {.tell = [this](const train::PhaseNews& news) { events_.phase_goes_on(news); }}},
      command_line_{std::move(command_line)} {
    train::seed_generators(first_seed);
    train::keep_tensor_memory();
}

STRATA_INLINE void Session::say(const std::string& line) {
    phases_.clear_line();
    if (rank() == 0)
        progress_.note(line);
    else
        phases_.note("rank " + std::to_string(rank()) + ": " + line);
}

namespace train::detail {

/// The build's communicator, and what looks at it.
struct OwnRanks {
    comm::DefaultComm comm;
    comm::AnyComm any{comm};
};
inline std::shared_ptr<comm::AnyComm> start_ranks() {
    choose_cpu_kernels();
    auto own = std::make_shared<OwnRanks>();
    comm::AnyComm* const any = &own->any;
    return {std::move(own), any};
}

}  // namespace train::detail

STRATA_INLINE Session::Session(train::CommandLine command_line)
    : Session{train::detail::start_ranks(), std::move(command_line)} {}

STRATA_INLINE void Session::refuse_other_ranks() {
    throw Error{Errc::bad_argument, "a trainer is made for another communicator than its session was made over",
                "give the trainer Ranks<Comm> with the session's communicator, or make the session over the trainer's: "
                "`Session session{comm, argc, argv}` or `strata::run_on<Comm>(argc, argv, body)`"};
}

STRATA_INLINE Session::~Session() {
    comm_.on_stall({});
    health_.end();  // which tells events
    events_.end();  // what it leaves in the folder is gone before the folder may be
    if (!lock_.is_held()) return;
    if (claim_.lock == train::detail::identity_of(output_ / train::detail::lock_name)) remove_traces(false);
}

STRATA_INLINE const std::filesystem::path& Session::output(const std::filesystem::path& otherwise) {
    if (!output_.empty()) return output_;
    std::filesystem::path output =
        std::filesystem::absolute(command_line_.output.value_or(otherwise)).lexically_normal();
    if (!output.has_filename()) output = output.parent_path();  // "out/" is "out"
    comm::agree(comm_, [&] {
        if (comm_.rank() == 0) claim_output(output);
    });
    output_ = std::move(output);
    comm_.broadcast(std::as_writable_bytes(std::span{&claim_, 1}), 0);
    find_keepers(output_);
    if (comm_.world() > 1) progress_.note(train::detail::ranks_text(comm_));
    events_.begin(output_, train::detail::origin_of(comm_, claim_.job, output_),
                  [this](const std::string& line) { say(line); });
    if (const auto why = process_environment(comm::restarted_variable); why && !why->empty())
        events_.restarted(process_environment(comm::restarts_variable).value_or(""), core::printable(*why));
    comm_.on_stall([this, folder = output_](const comm::Stall& stall) {
        train::note_reason_is_told();  // the line of a stall, which is told before this
        return train::keep_stall(folder, events_, stall);
    });
    return output_;
}

STRATA_INLINE void Session::find_keepers(const std::filesystem::path& output) {
    const std::uint64_t to_make =
        train::detail::folders_to_make(output);  // before another rank of this host makes them
    keepers_ = comm::find_keepers(comm_, output, output / train::detail::lock_name);
    if (keepers_.is_shared()) return;
    comm::agree(comm_, [&] {
        if (keepers_.of(rank()) == 0) return;
        claim_ = {.job = claim_.job};
        if (!keeps_output()) return;
        const std::array<char, 16> job = claim_.job;
        claim_output(output);
        claim_.made_folders = to_make;
        claim_.job = job;
    });
    const std::vector<std::string> hosts = comm_.all_gather_varied(core::host_name());
    std::string others;
    for (const int keeper : keepers_.all())
        if (keeper != 0) others += (others.empty() ? "" : ", ") + hosts[static_cast<std::size_t>(keeper)];
    progress_.note(output.string() + " is another folder on " + others +
                   ": every checkpoint is copied there, as a whole; all else is on " + hosts.front());
}

STRATA_INLINE void Session::claim_output(const std::filesystem::path& output) {
    namespace fs = std::filesystem;
    std::error_code failed;
    claim_.made_folders = train::detail::folders_to_make(output);
    const auto refuse = [&](const std::string& why) {
        remove_folders(output);
        throw Error{Errc::output_not_writable, "cannot write to the output directory " + output.string() + ": " + why,
                    "choose another one with --output DIR, or change its permissions"};
    };
    fs::create_directories(output, failed);
    if (failed) refuse(failed.message());
    const fs::path lock = output / train::detail::lock_name;
    claim_.had_lock = fs::exists(lock, failed);
    claim_.had_index = fs::exists(output / train::detail::index_name, failed);
    failed = lock_.hold(lock);
    if (failed == std::errc::operation_would_block)
        throw Error{Errc::output_in_use,
                    "another run works in " + output.string() + ": " + core::FileLock::holder(lock),
                    "wait for it to end, or choose another directory with --output DIR"};
    if (failed) refuse(failed.message());
    claim_.lock = train::detail::identity_of(lock);
    const std::string job = webhooks::random_digits();
    std::copy_n(job.begin(), std::min(job.size(), claim_.job.size()), claim_.job.begin());
    remove_leftovers(output);
}

STRATA_INLINE std::filesystem::path Session::take_folder(const std::string& name) {
    std::filesystem::path folder = folders_.take(output(), name);
    if (!name.empty() && comm_.rank() == 0) remove_leftovers(folder);
    return folder;
}

/// Reports and pictures that a killed run was writing; under the lock nobody else writes here.
STRATA_INLINE void Session::remove_leftovers(const std::filesystem::path& folder) {
    if (const std::int64_t removed = storage::remove_leftovers(folder, 1, std::chrono::seconds{0}); removed > 0)
        progress_.note("removed " + std::to_string(removed) + " temporary file" + (removed == 1 ? "" : "s") +
                       " that killed runs left in " + folder.string());
}

STRATA_INLINE void Session::leave_no_trace() noexcept {
    health_.end();  // which tells events
    events_.end();
    // Also by a rank that fails alone: it ends the job, and rank 0 with it before that could do this. On another host
    // the same path may be another folder, so the lock has to be the one that rank 0 has taken.
    if (!output_.empty() && claim_.lock == train::detail::identity_of(output_ / train::detail::lock_name))
        remove_traces(true);
}

/// Of a trainer that has done no step: fit() opens its log, and makes the folder of its checkpoints with room in it.
STRATA_INLINE void Session::remove_empty_start(const std::filesystem::path& folder) {
    std::error_code failed;
    const auto log = folder / train::RunLog::log_name;
    if (std::filesystem::file_size(log, failed) == 0 && !failed) {
        ::unlink(log.c_str());
        ::unlink((folder / config::model_record_name).c_str());
    }
    ::rmdir((folder / "checkpoints").c_str());
    if (folder != output_) ::rmdir(folder.c_str());
}

/// Of what was made here everything goes that holds nothing; after bad input the index of pictures as well, which any
/// other end keeps, because the next start goes on with it.
STRATA_INLINE void Session::remove_traces(bool refused) noexcept {
    namespace fs = std::filesystem;
    using train::detail::holds_only, train::detail::lock_name, train::detail::index_name, train::detail::skipped_name,
        train::detail::swap_lock_name;
    try {
        for (const fs::path& folder : folders_.taken()) remove_empty_start(folder);
        if (refused && !claim_.had_index &&
            holds_only(output_, {lock_name, index_name, skipped_name, swap_lock_name})) {
            std::error_code failed;
            for (fs::directory_iterator at{output_ / index_name, failed}, end; !failed && at != end;
                 at.increment(failed)) {
                const std::string name = at->path().filename().string();
                if (name.ends_with(".sqlite") || name.ends_with(".sqlite-journal")) ::unlink(at->path().c_str());
            }
            ::rmdir((output_ / index_name).c_str());
            ::unlink((output_ / skipped_name).c_str());
        }
        const bool is_new = claim_.made_folders > 0;
        if ((is_new || (refused && !claim_.had_lock)) && holds_only(output_, {lock_name, swap_lock_name})) {
            if (is_new) ::unlink((output_ / swap_lock_name).c_str());
            ::unlink((output_ / lock_name).c_str());
        }
        remove_folders(output_);
    } catch (const std::exception&) {  // no memory for a name: what is left is a lock file
    }
}

/// Those that this run made and that are empty.
STRATA_INLINE void Session::remove_folders(std::filesystem::path folder) {
    for (; claim_.made_folders > 0 && (::rmdir(folder.c_str()) == 0 || errno == ENOENT); --claim_.made_folders)
        folder = folder.parent_path();
}

/// The output directory, or what there is already of the path to it: they are most likely on one disk.
STRATA_INLINE std::filesystem::path Session::folder_of_output() const {
    if (!output_.empty()) return output_;
    std::error_code failed;
    std::filesystem::path folder = std::filesystem::absolute(command_line_.output.value_or(output_dir_), failed);
    while (!std::filesystem::exists(folder, failed) && folder.has_relative_path()) folder = folder.parent_path();
    return folder;
}

STRATA_INLINE void Session::watch_health(const health::HealthOptions& options, std::optional<unsigned> gpu,
                                         std::vector<std::filesystem::path> folders) {
    if (health_.watches()) return;
    folders.insert(folders.begin(), folder_of_output());
    if (!gpu) return watch_health(options, health::sources_of({}, std::move(folders)), "");
    const health::OpenedGpu opened = health::open_gpu(*gpu);
    if (!opened.note.empty()) say("the health of GPU " + std::to_string(*gpu) + ": " + opened.note);
    health::HealthSources sources = health::sources_of(opened, std::move(folders));
    sources.computes_on_gpu = true;
    watch_health(options, std::move(sources),
                 opened.monitor ? "GPU " + std::to_string(*gpu) + " (" + opened.monitor->name() + ")" : "");
}

STRATA_INLINE void Session::watch_health(const health::HealthOptions& options, health::HealthSources sources,
                                         const std::string& what) {
    std::string where = "rank " + std::to_string(rank()) + "/" + std::to_string(world()) + " on " + core::host_name();
    if (!what.empty()) where += ", " + what;
    health_.watch(options, std::move(sources), std::move(where),
                  [this](const health::Fault& fault, const std::string& line) {
                      say(line);
                      const bool is_of_call = fault.kind == health::FaultKind::cuda_error;
                      events_.tell(webhooks::gpu_fault_event(fault, health_.monitor()->snapshot().gpu,
                                                             fault.critical ? "circuit_opened" : "warned",
                                                             is_of_call ? health_.thrown() : ""));
                  });
}

namespace train {

namespace detail {

/// Throws EndedByFault where the failure was that of a GPU, or a stop that a fault had asked for.
inline void throw_fault_behind(Session& session, const std::exception_ptr& failure) {
    try {
        std::rethrow_exception(failure);
    } catch (const EndedByFault&) {
    } catch (const Error& error) {
        if (error.code() == Errc::interrupted) session.health().heed(session.comm());
        // What strata says of files, keys and servers is no call of a GPU, whatever its words. Ranks throw the same Error together: it says whose
        // failure it was, or it is nobody's.
        const bool is_of_a_call = error.code() == Errc::step_failed || error.code() == Errc::device_failed ||
                                  error.code() == Errc::rank_failed;
        if (is_of_a_call && (session.world() == 1 || health::rank_named_in(error.problem())))
            session.health().failed(error.problem(), session.rank(), core::thrown_type(error));
    } catch (const std::exception& error) {
        session.health().failed(error.what(), session.rank(), core::thrown_type(error));
    } catch (...) {
    }
}

inline bool is_of_input(const std::exception_ptr& failure) {
    try {
        std::rethrow_exception(failure);
    } catch (const Error& error) {
        return is_bad_input(error.code());
    } catch (...) {
        return false;
    }
}

}  // namespace detail

STRATA_INLINE void end_badly(Session& session, std::exception_ptr failure) {
    try {
        detail::throw_fault_behind(session, failure);
    } catch (const EndedByFault&) {
        failure = std::current_exception();
    }
    session.events().failed(failure);
    if (detail::is_of_input(failure)) session.leave_no_trace();
    std::rethrow_exception(failure);
}

STRATA_INLINE int report_failure(comm::AnyComm* comm, std::exception_ptr failure) {
    int status = 1;
    bool is_of_another = false;
    std::string text;
    try {
        std::rethrow_exception(failure);
    } catch (const EndedByFault& fault) {
        status = fault.status();
        text = fault.what();
    } catch (const Error& error) {
        status = error.code() == Errc::interrupted ? 0 : is_bad_input(error.code()) ? 2 : 1;
        is_of_another = error.code() == Errc::rank_failed &&
                        health::classify_failure(error.problem()) == health::FailureClass::remote;
        text = error.what();
    } catch (const std::exception& error) {
        text = core::printable(core::first_line(error.what()));
    } catch (...) {
        text = "unknown failure";
    }
    note_reason_is_told();
    if (comm == nullptr || comm->world() == 1) {
        std::fprintf(stderr, "%s\n", text.c_str());
        return status;
    }
    if (status == 0) {
        if (comm->rank() == 0) std::fprintf(stderr, "%s\n", text.c_str());
        return 0;
    }
    // What is wrong with the input is wrong on every rank. Rank 0 says it and ends the job while the others
    // wait; a failure that rank 0 does not share is said by the rank that has it. Who only sees that another one failed lets
    // that one, which knows why, say so and end the job.
    if (is_of_another)
        std::this_thread::sleep_for(std::chrono::seconds{10});
    else if (comm->rank() != 0)
        std::this_thread::sleep_for(std::chrono::milliseconds{500});
    std::fprintf(stderr, "rank %d/%d on %s: %s\n", comm->rank(), comm->world(), core::host_name().c_str(),
                 text.c_str());
    std::fflush(stderr);
    comm->abort(status);
}

STRATA_INLINE void heed_early_stop(Session& session) {
    comm::agree(session.comm(), [&] {
        if (session.stop_requested())
            throw Error{Errc::interrupted, "stopped before training began; nothing was written",
                        "run the same command again"};
    });
}

}  // namespace train
}  // namespace strata
