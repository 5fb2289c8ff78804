#pragma once
// strata/train/impl/session.ipp - command line, output directory, and the last word of a failing rank.

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <strata/comm/agree.hpp>
#include <strata/config/schema.hpp>
#include <strata/core/error.hpp>
#include <strata/train/seed.hpp>
#include <strata/train/session.hpp>

namespace strata {
namespace train::detail {

inline Error unknown_argument(const std::string& flag) {
    const std::string_view near = config::nearest_name(flag, {"--output", "--config", "--fresh"});
    return Error{Errc::bad_argument, "the argument " + flag + " is unknown",
                 (near.empty() ? "use " : "did you mean " + std::string{near} + "? Known are ") +
                     std::string{"--output DIR (where results go), --config FILE (what to train), --fresh (start over)"}};
}

/// "2 ranks, shared memory"
template <class Comm>
std::string ranks_text(const Comm& comm) {
    std::string text = std::to_string(comm.world()) + " ranks";
    if constexpr (requires { comm.transport(); }) text += ", " + comm.transport();
    return text;
}

}  // namespace train::detail

STRATA_INLINE Session::Session(comm::DefaultComm& comm, int argc, char** argv)
    : comm_{comm}, progress_{comm.rank() == 0, comm.rank() == 0 && train::stdout_is_terminal()} {
    train::seed_generators(first_seed);
    for (int i = 1; i < argc; ++i) {
        const std::string flag = argv[i];
        const auto value = [&]() -> std::filesystem::path {
            if (i + 1 >= argc || std::string_view{argv[i + 1]}.empty())
                throw Error{Errc::bad_argument, flag + " needs a value", "type " + flag + " PATH"};
            return argv[++i];
        };
        if (flag == "--output")
            output_flag_ = value();
        else if (flag == "--config")
            config_ = value();
        else if (flag == "--fresh")
            fresh_ = true;
        else
            throw train::detail::unknown_argument(flag);
    }
}

STRATA_INLINE Session::~Session() {
    if (lock_file_ < 0) return;
    // A run that failed before it wrote anything leaves no trace: folders go only if nothing else is in them.
    if (!created_.empty()) {
        std::error_code none;
        const auto entries = std::distance(std::filesystem::directory_iterator{output_, none}, std::filesystem::directory_iterator{});
        if (!none && entries == 1) {
            ::unlink((output_ / ".lock").c_str());
            const std::filesystem::path above = created_.parent_path();
            for (auto folder = output_; folder != above && ::rmdir(folder.c_str()) == 0;) folder = folder.parent_path();
        }
    }
    ::close(lock_file_);
}

STRATA_INLINE const std::filesystem::path& Session::output(const std::filesystem::path& otherwise) {
    if (!output_.empty()) return output_;
    output_ = std::filesystem::absolute(output_flag_.value_or(otherwise)).lexically_normal();
    if (!output_.has_filename()) output_ = output_.parent_path();  // "out/" is "out"
    comm::agree(comm_, [this] {
        if (config_ && !config_asked_for_)
            throw Error{Errc::bad_argument, "this program reads no configuration file, and --config " + config_->string() + " was given",
                        "leave --config away"};
        if (comm_.rank() == 0) claim_output();
    });
    if (comm_.world() > 1) progress_.note(train::detail::ranks_text(comm_));
    return output_;
}

STRATA_INLINE void Session::claim_output() {
    const auto unwritable = [this](const std::string& why) {
        return Error{Errc::output_not_writable, "cannot write to the output directory " + output_.string() + ": " + why,
                     "choose another one with --output DIR, or change its permissions"};
    };
    std::error_code failed;
    for (auto folder = output_; !folder.empty() && !std::filesystem::exists(folder, failed); folder = folder.parent_path()) created_ = folder;
    std::filesystem::create_directories(output_, failed);
    if (failed) throw unwritable(failed.message());
    const std::filesystem::path lock = output_ / ".lock";
    lock_file_ = ::open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (lock_file_ < 0) throw unwritable(std::strerror(errno));
    if (::flock(lock_file_, LOCK_EX | LOCK_NB) != 0)
        throw Error{Errc::output_in_use, "another run works in " + output_.string(),
                    "wait for it to end, or choose another directory with --output DIR"};
}

namespace train {

STRATA_INLINE int report_failure(comm::DefaultComm* comm, std::exception_ptr failure) {
    int status = 1;
    std::string text;
    try {
        std::rethrow_exception(failure);
    } catch (const Error& error) {
        status = error.code() == Errc::interrupted ? 0 : is_bad_input(error.code()) ? 2 : 1;
        text = error.what();
    } catch (const std::exception& error) {
        text = error.what();
        text = text.substr(0, text.find('\n'));  // libtorch appends a stack trace
    } catch (...) {
        text = "unknown failure";
    }
    if (comm == nullptr || comm->world() == 1) {
        std::fprintf(stderr, "%s\n", text.c_str());
        return status;
    }
    if (status == 0) {
        if (comm->rank() == 0) std::fprintf(stderr, "%s\n", text.c_str());
        return 0;
    }
    // What is wrong with the input is wrong on every rank. Rank 0 says it and ends the job while the others
    // wait; a failure that rank 0 does not share is said by the rank that has it.
    if (comm->rank() != 0) std::this_thread::sleep_for(std::chrono::milliseconds{500});
    std::fprintf(stderr, "rank %d/%d: %s\n", comm->rank(), comm->world(), text.c_str());
    std::fflush(stderr);
    comm->abort(status);
}

STRATA_INLINE void heed_early_stop(Session& session) {
    comm::agree(session.comm(), [&] {
        if (session.stop_requested())
            throw Error{Errc::interrupted, "stopped before training began; nothing was written", "run the same command again"};
    });
}

}  // namespace train
}  // namespace strata
