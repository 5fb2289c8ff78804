// strata-doctor - a rank of `strata doctor -n N`: it says what it sees of its host, of the other ranks and of a shared folder.

#include <array>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#ifndef OMPI_SKIP_MPICXX
#define OMPI_SKIP_MPICXX 1
#endif
#include <mpi.h>
#include <sys/stat.h>
#include <unistd.h>

#include <strata/comm/launched_rank.hpp>
#include <strata/core/host_name.hpp>

#include "../arguments.hpp"
#include "../launch_rank.hpp"
#include "blas.hpp"
#include "host_checks.hpp"
#include "rank_network.hpp"
#include "rank_report.hpp"
#include "small_file.hpp"

namespace {

namespace fs = std::filesystem;
namespace doctor = strata::tools::doctor;
using Clock = std::chrono::steady_clock;
using std::chrono::seconds;
using strata::tools::Option;

constexpr std::array options{
    Option{"--own-host", "NAME", "the host of the command, which looks at it by itself"},
    Option{"--shared", "FOLDER", "that all ranks are to share"},
    Option{"--token", "TEXT", "in names of files there"},
};

/// As the hostfile has it, for that is what a person knows; the host's own name where it was not started by a remote shell.
std::string host_name() {
    const char* const name = std::getenv(strata::tools::host_variable);
    return name == nullptr || *name == '\0' ? strata::core::host_name() : std::string{name};
}

/// Ends this process with a word on what it waited for, when that takes too long: no call of MPI has an end of its own. Lives as long as the
/// process does.
class Watch {
public:
    explicit Watch(std::string rank) : rank_{std::move(rank)}, thread_{[this] { run(); }} { thread_.detach(); }
    void expect(std::string what, seconds patience) {
        const std::lock_guard lock{mutex_};
        what_ = std::move(what);
        until_ = Clock::now() + patience;
        patience_ = patience;
        changed_.notify_all();
    }

private:
    void run() {
        std::unique_lock lock{mutex_};
        while (true) {
            if (Clock::now() >= until_) {
                doctor::say(doctor::said_of_failure(rank_ + " has waited " + std::to_string(patience_.count()) +
                                                    " s for " + what_));
                std::_Exit(3);
            }
            changed_.wait_until(lock, until_);
        }
    }
    std::string rank_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::string what_ = "its start";
    seconds patience_{60};
    Clock::time_point until_ = Clock::now() + seconds{60};
    std::thread thread_;
};

/// Waits up to 10 s for a file, for a file server's clients may remember for a while that it was not there.
bool appears(const fs::path& file, const std::string& text) {
    const auto until = Clock::now() + seconds{10};
    while (doctor::small_file(file) != text) {
        if (Clock::now() >= until) return false;
        // Opening the folder anew makes a client ask.
        std::error_code none;
        (void)fs::directory_iterator{file.parent_path(), none};
        std::this_thread::sleep_for(std::chrono::milliseconds{50});
    }
    return true;
}

/// Its own file; what it says is the token.
void write_own(const fs::path& file, const std::string& token, doctor::SharedFolder& shared) {
    errno = 0;
    const std::int64_t now = doctor::wall_ns();
    {
        std::ofstream out{file, std::ios::binary};
        out << token;
        out.flush();
        if (!out) {
            shared.failure = errno == 0 ? "the file cannot be written" : std::strerror(errno);
            return;
        }
    }
    struct stat status {};
    if (::stat(file.c_str(), &status) != 0) return;
    shared.owner = status.st_uid;
    const double written =
        static_cast<double>(status.st_mtim.tv_sec) + static_cast<double>(status.st_mtim.tv_nsec) / 1e9;
    shared.clock_ahead = written - static_cast<double>(now) / 1e9;
}

/// Every rank writes a file and looks for rank 0's; rank 0 looks for all.
void share(const fs::path& folder, const std::string& token, int rank, int world) {
    const fs::path place = folder / (".strata-doctor-" + token);
    const auto file_of = [&](int of) { return place / ("rank_" + std::to_string(of)); };
    doctor::SharedFolder shared;
    std::error_code failed;
    if (rank == 0) {
        fs::create_directory(place, failed);
        if (failed)
            shared.failure = failed.message();
        else
            write_own(file_of(0), token, shared);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    shared.sees_first = rank == 0 ? shared.failure.empty() : appears(file_of(0), token);
    if (rank != 0 && shared.sees_first) write_own(file_of(rank), token, shared);
    doctor::say(said_of(shared));
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank != 0) return;
    std::vector<int> unseen;
    for (int other = 1; other < world; ++other)
        if (!fs::exists(file_of(other), failed) && (!unseen.empty() || !appears(file_of(other), token)))
            unseen.push_back(other);
    if (!unseen.empty()) doctor::say(doctor::said_of_unseen(unseen));
    fs::remove_all(place, failed);
}

/// NAME=FOLDER of the command line.
std::vector<doctor::FolderPlace> folders_of(const strata::tools::Arguments& arguments) {
    std::vector<doctor::FolderPlace> folders;
    for (const std::string& word : arguments.words())
        if (const auto purpose = doctor::purpose_of(word.substr(0, word.find('='))))
            folders.push_back({*purpose, word.substr(word.find('=') + 1)});
    return folders;
}

int run(const std::vector<std::string>& words) {
    const strata::tools::Arguments arguments{"strata-doctor", words, options};
    const std::string own = host_name();
    doctor::say(doctor::said_of_host(own, ::getuid(), ::getgid()));
    static Watch watch{"rank " + std::to_string(strata::comm::launched_rank()) + " on " + own};
    // Before MPI, so that what is said of a host is there where messages between hosts get stuck, which is when it is wanted most.
    constexpr seconds host_patience{150};
    if (strata::comm::launched_local_rank() == 0 && own != arguments.text("--own-host")) {
        watch.expect("its host to be looked at", host_patience);
        doctor::say(said_of(doctor::check_host(folders_of(arguments))));
    }
    // Ends when the last rank has come to it, and others' hosts may take long to look at.
    watch.expect("MPI to start", host_patience + seconds{30});
    int provided = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
    int rank = 0;
    int world = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world);
    std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> library{};
    int length = 0;
    MPI_Get_library_version(library.data(), &length);
    const std::string text{library.data()};
    doctor::say(doctor::said_of_library(text.substr(0, text.find_first_of(",\n"))));

    watch.expect("the other ranks to say their names by MPI", seconds{45});
    const std::vector<std::string> hosts = doctor::meet(own, rank, world);
    bool all_answer = !hosts.empty();
    if (all_answer) {
        const auto pairs = doctor::pairs_of(hosts);
        watch.expect("messages between two hosts", seconds{20 + 2 * static_cast<std::int64_t>(pairs.size())});
        all_answer = doctor::measure_pairs(pairs, hosts, rank);
    }
    if (all_answer) {
        watch.expect("a sum of all ranks", seconds{30});
        if (world > 1) doctor::measure_sum(rank);
        if (const auto folder = arguments.text("--shared")) {
            watch.expect("a file of every rank in " + *folder, seconds{40});
            share(*folder, arguments.text("--token").value_or("none"), rank, world);
        }
        watch.expect("MPI to end", seconds{20});
        MPI_Finalize();
    }
    doctor::say(doctor::said_at_end());
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    const std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
    if (!words.empty() && words.front() == "doctor-blas") return doctor::blas_command({});
    int status = 1;
    try {
        status = run(words);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
    }
    // A thread may still wait for a file server, and MPI for a host.
    std::_Exit(status);
}
