#include "launch_output.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <strata/core/error.hpp>

namespace strata::tools {

LaunchOutput::LaunchOutput(std::filesystem::path log_folder, bool tags) : folder_{std::move(log_folder)}, tags_{tags} {
    std::error_code failed;
    if (!folder_.empty()) std::filesystem::create_directories(folder_, failed);
    if (failed || (!folder_.empty() && ::access(folder_.c_str(), W_OK) != 0))
        throw Error{Errc::output_not_writable,
                    "the folder for logs '" + folder_.string() +
                        "' cannot be written: " + (failed ? failed.message() : std::string{std::strerror(errno)}),
                    "give --log-dir a folder that you may write to"};
}

void LaunchOutput::take(int rank, int file, std::string_view bytes) {
    if (file != 1 && file != 2) return;
    if (!folder_.empty()) {
        File& log = logs_[rank];
        if (!log.is_open())
            log = File{::open((folder_ / ("rank_" + std::to_string(rank) + ".log")).c_str(),
                              O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)};
        for (std::string_view rest = bytes; log.is_open() && !rest.empty();) {
            const ssize_t n = ::write(log.number(), rest.data(), rest.size());
            if (n < 0 && errno == EINTR) continue;
            if (n <= 0) break;  // a full disk costs the log, and not the run
            rest.remove_prefix(static_cast<std::size_t>(n));
        }
    }
    show(rank, file, bytes);
}

void LaunchOutput::show(int rank, int file, std::string_view bytes) {
    std::string& waiting = waiting_.at(file - 1);
    if (!tags_) {
        waiting += bytes;
        return;
    }
    std::string& line = lines_[rank].at(file - 1);
    while (!bytes.empty()) {
        const std::size_t end = bytes.find('\n');
        line += bytes.substr(0, end);
        if (end == std::string_view::npos) return;
        waiting += "[rank " + std::to_string(rank) + "] " + line + "\n";
        line.clear();
        bytes.remove_prefix(end + 1);
    }
}

void LaunchOutput::close(int rank) {
    for (const int file : {1, 2})
        if (const auto found = lines_.find(rank); found != lines_.end() && !found->second.at(file - 1).empty())
            show(rank, file, "\n");
    lines_.erase(rank);
    logs_.erase(rank);
}

void LaunchOutput::write(int file) {
    std::string& waiting = waiting_.at(file - 1);
    std::size_t written = 0;
    while (written < waiting.size()) {
        // A pipe that can be written takes this much without waiting. The file may be another process's too, so it is not made
        // one that never waits.
        pollfd watched{file, POLLOUT, 0};
        if (::poll(&watched, 1, 0) <= 0) break;
        const ssize_t n =
            ::write(file, waiting.data() + written, std::min<std::size_t>(PIPE_BUF, waiting.size() - written));
        if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (n <= 0) {  // `| tee log` is gone
            written = waiting.size();
            break;
        }
        written += static_cast<std::size_t>(n);
    }
    waiting.erase(0, written);
}

void LaunchOutput::finish(int milliseconds) {
    for (const int file : {1, 2}) {
        write(file);
        while (has_waiting(file)) {
            pollfd watched{file, POLLOUT, 0};
            if (::poll(&watched, 1, milliseconds) <= 0) break;
            write(file);
        }
    }
}

}  // namespace strata::tools
