// strata-doctor - a rank of `strata doctor -n N`: it says what it sees of its host, of the other ranks and of a shared folder.

#include <algorithm>
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
#include <iterator>
#include <limits>
#include <mutex>
#include <optional>
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

#include "../arguments.hpp"
#include "../launch_rank.hpp"
#include "blas.hpp"
#include "host_checks.hpp"
#include "in_time.hpp"
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

void say(const std::string& text) {
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
}

std::int64_t wall_ns() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
        .count();
}

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

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
                say(doctor::said_of_failure(rank_ + " has waited " + std::to_string(patience_.count()) + " s for " +
                                            what_));
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

/// False where it has not happened in time: then the request stays, and MPI is not to be used for more.
bool wait_for(MPI_Request& request, Clock::time_point until) {
    for (std::int64_t turn = 0;; ++turn) {
        int done = 0;
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        if (done != 0) return true;
        if (Clock::now() >= until) return false;
        if (turn > 10'000)
            std::this_thread::sleep_for(std::chrono::microseconds{50});
        else
            std::this_thread::yield();
    }
}

/// As the hostfile has it, for that is what a person knows; the host's own name where it was not started by a remote shell.
std::string host_name() {
    const char* const name = std::getenv(strata::tools::host_variable);
    return name == nullptr || *name == '\0' ? doctor::own_name() : std::string{name};
}

using Name = std::array<char, 256>;

/// All ranks' hosts, or none where one of them is not reached. Point to point, so that it is known which.
std::vector<std::string> meet(int rank, int world) {
    const auto until = Clock::now() + seconds{15};
    std::vector<Name> names(static_cast<std::size_t>(world), Name{});
    host_name().copy(names.front().data(), sizeof(Name) - 1);
    constexpr int tag = 1;
    const int bytes = static_cast<int>(sizeof(Name)) * world;
    if (rank == 0) {
        std::vector<MPI_Request> requests(static_cast<std::size_t>(world), MPI_REQUEST_NULL);
        for (int other = 1; other < world; ++other)
            MPI_Irecv(names[static_cast<std::size_t>(other)].data(), sizeof(Name), MPI_BYTE, other, tag, MPI_COMM_WORLD,
                      &requests[static_cast<std::size_t>(other)]);
        std::vector<int> silent;
        for (int other = 1; other < world; ++other)
            if (!wait_for(requests[static_cast<std::size_t>(other)], until)) silent.push_back(other);
        for (const int other : silent) {
            doctor::PairSpeed pair;
            pair.from = names.front().data();
            pair.to = "rank " + std::to_string(other);
            pair.is_silent = true;
            say(said_of(pair));
        }
        if (!silent.empty()) names.front() = Name{};
        for (int other = 1; other < world; ++other) {
            if (std::find(silent.begin(), silent.end(), other) != silent.end()) continue;
            MPI_Request sent = MPI_REQUEST_NULL;
            MPI_Isend(names.data(), bytes, MPI_BYTE, other, tag, MPI_COMM_WORLD, &sent);
            if (!wait_for(sent, Clock::now() + seconds{5})) return {};
        }
    } else {
        MPI_Request request = MPI_REQUEST_NULL;
        MPI_Isend(names.front().data(), sizeof(Name), MPI_BYTE, 0, tag, MPI_COMM_WORLD, &request);
        if (!wait_for(request, until)) return {};
        MPI_Irecv(names.data(), bytes, MPI_BYTE, 0, tag, MPI_COMM_WORLD, &request);
        if (!wait_for(request, until + seconds{10})) return {};
    }
    if (names.front().front() == '\0') return {};
    std::vector<std::string> hosts;
    for (const Name& name : names) hosts.emplace_back(name.data());
    return hosts;
}

/// Pairs of ranks to measure, in the order in which all of them do: one rank a host, every host with every other up to 16 of them, else
/// the first with every other and each with the next; where there is one host, its first two ranks.
std::vector<std::pair<int, int>> pairs_of(const std::vector<std::string>& hosts) {
    std::vector<int> firsts;
    for (std::size_t rank = 0; rank < hosts.size(); ++rank)
        if (std::find(hosts.begin(), hosts.end(), hosts[rank]) == hosts.begin() + static_cast<std::ptrdiff_t>(rank))
            firsts.push_back(static_cast<int>(rank));
    if (firsts.size() == 1 && hosts.size() > 1) return {{0, 1}};
    std::vector<std::pair<int, int>> pairs;
    for (std::size_t a = 0; a < firsts.size(); ++a)
        for (std::size_t b = a + 1; b < firsts.size(); ++b)
            if (firsts.size() <= 16 || a == 0 || b == a + 1) pairs.emplace_back(firsts[a], firsts[b]);
    return pairs;
}

constexpr int large = 4 << 20;
constexpr int round_trips = 100;

/// The side that measures. Silent where the first message does not come back in time.
doctor::PairSpeed ask(int other, const std::vector<std::string>& hosts, int rank, seconds patience) {
    doctor::PairSpeed pair;
    pair.from = hosts[static_cast<std::size_t>(rank)];
    pair.to = hosts[static_cast<std::size_t>(other)];
    std::int64_t mine = 0;
    std::int64_t theirs = 0;
    double least = std::numeric_limits<double>::max();
    for (int turn = 0; turn < round_trips; ++turn) {
        const auto begin = Clock::now();
        const std::int64_t wall = wall_ns();
        MPI_Request sent = MPI_REQUEST_NULL;
        MPI_Request came = MPI_REQUEST_NULL;
        MPI_Irecv(&theirs, 1, MPI_INT64_T, other, 2, MPI_COMM_WORLD, &came);
        MPI_Isend(&mine, 1, MPI_INT64_T, other, 2, MPI_COMM_WORLD, &sent);
        if (!wait_for(came, begin + patience) || !wait_for(sent, begin + patience)) {
            pair.is_silent = true;
            return pair;
        }
        const double took = seconds_since(begin);
        if (took >= least) continue;
        least = took;
        pair.clock_ahead = (static_cast<double>(theirs - wall) - took * 1e9 / 2) / 1e9;
    }
    pair.seconds = least;
    std::vector<std::byte> bytes(large);
    const auto exchange = [&] {
        const auto begin = Clock::now();
        MPI_Send(bytes.data(), large, MPI_BYTE, other, 3, MPI_COMM_WORLD);
        MPI_Recv(bytes.data(), large, MPI_BYTE, other, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        return seconds_since(begin);
    };
    double best = exchange();
    mine = std::clamp<std::int64_t>(static_cast<std::int64_t>(0.5 / best), 1, 16);
    MPI_Send(&mine, 1, MPI_INT64_T, other, 4, MPI_COMM_WORLD);
    for (std::int64_t turn = 0; turn < mine; ++turn) best = std::min(best, exchange());
    pair.bytes_per_second = 2.0 * large / best;
    return pair;
}

/// The side that answers. False where it is not asked.
bool answer(int other, seconds patience) {
    std::int64_t number = 0;
    for (int turn = 0; turn < round_trips; ++turn) {
        MPI_Request request = MPI_REQUEST_NULL;
        MPI_Irecv(&number, 1, MPI_INT64_T, other, 2, MPI_COMM_WORLD, &request);
        if (!wait_for(request, Clock::now() + patience)) return false;
        number = wall_ns();
        MPI_Send(&number, 1, MPI_INT64_T, other, 2, MPI_COMM_WORLD);
    }
    std::vector<std::byte> bytes(large);
    const auto exchange = [&] {
        MPI_Recv(bytes.data(), large, MPI_BYTE, other, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(bytes.data(), large, MPI_BYTE, other, 3, MPI_COMM_WORLD);
    };
    exchange();
    MPI_Recv(&number, 1, MPI_INT64_T, other, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (std::int64_t turn = 0; turn < number; ++turn) exchange();
    return true;
}

/// False where a pair has not answered.
bool measure_pairs(const std::vector<std::pair<int, int>>& pairs, const std::vector<std::string>& hosts, int rank) {
    const seconds patience{10 + static_cast<std::int64_t>(pairs.size())};
    bool all = true;
    for (const auto& [a, b] : pairs) {
        if (rank == a) {
            const doctor::PairSpeed pair = ask(b, hosts, rank, patience);
            all = all && !pair.is_silent;
            say(said_of(pair));
        } else if (rank == b) {
            all = answer(a, patience) && all;
        }
    }
    return all;
}

/// The best of three, of at most 64 MiB, less where a megabyte takes long.
void measure_sum(int rank) {
    const auto sum = [](std::vector<float>& values) {
        MPI_Barrier(MPI_COMM_WORLD);
        const auto begin = Clock::now();
        MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        double took = seconds_since(begin);
        MPI_Allreduce(MPI_IN_PLACE, &took, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        return took;
    };
    constexpr std::size_t megabyte = std::size_t{1} << 18U;  // of fp32
    std::vector<float> values(megabyte);
    (void)sum(values);
    const auto times = static_cast<std::size_t>(std::clamp(1.0 / std::max(sum(values), 1e-6), 1.0, 64.0));
    values.assign(times * megabyte, 0.0F);
    double best = sum(values);
    for (int turn = 0; turn < 2; ++turn) best = std::min(best, sum(values));
    if (rank == 0) say(doctor::said_of_sum(values.size() * sizeof(float), best));
}

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
    const std::int64_t now = wall_ns();
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
    say(said_of(shared));
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank != 0) return;
    std::vector<int> unseen;
    for (int other = 1; other < world; ++other)
        if (!fs::exists(file_of(other), failed) && (!unseen.empty() || !appears(file_of(other), token)))
            unseen.push_back(other);
    if (!unseen.empty()) say(doctor::said_of_unseen(unseen));
    fs::remove_all(place, failed);
}

int run(const std::vector<std::string>& words) {
    const strata::tools::Arguments arguments{"strata-doctor", words, options};
    const std::string own = host_name();
    say(doctor::said_of_host(own, ::getuid(), ::getgid()));
    static Watch watch{"rank " + std::to_string(strata::comm::launched_rank()) + " on " + own};
    watch.expect("MPI to start", seconds{45});
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
    say(doctor::said_of_library(text.substr(0, text.find_first_of(",\n"))));

    watch.expect("the other ranks to say their names by MPI", seconds{45});
    const std::vector<std::string> hosts = meet(rank, world);
    bool all_answer = !hosts.empty();
    if (all_answer) {
        const auto pairs = pairs_of(hosts);
        watch.expect("messages between two hosts", seconds{20 + 2 * static_cast<std::int64_t>(pairs.size())});
        all_answer = measure_pairs(pairs, hosts, rank);
    }
    if (all_answer) {
        watch.expect("a sum of all ranks", seconds{30});
        if (world > 1) measure_sum(rank);
        if (const auto folder = arguments.text("--shared")) {
            watch.expect("a file of every rank in " + *folder, seconds{40});
            share(*folder, arguments.text("--token").value_or("none"), rank, world);
        }
        watch.expect("MPI to end", seconds{20});
        MPI_Finalize();
    }
    const bool is_first = all_answer ? std::find(hosts.begin(), hosts.end(), own) == hosts.begin() + rank : false;
    if (is_first && own != arguments.text("--own-host")) {
        watch.expect("its host to be looked at", seconds{150});
        std::vector<doctor::FolderPlace> folders;
        for (const std::string& word : arguments.words())
            if (const auto purpose = doctor::purpose_of(word.substr(0, word.find('='))))
                folders.push_back({*purpose, word.substr(word.find('=') + 1)});
        say(said_of(doctor::check_host(folders)));
    }
    say(doctor::said_at_end());
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
