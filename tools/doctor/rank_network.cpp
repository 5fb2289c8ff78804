#include "rank_network.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <limits>
#include <thread>

#ifndef OMPI_SKIP_MPICXX
#define OMPI_SKIP_MPICXX 1
#endif
#include <mpi.h>

#include "rank_report.hpp"

namespace strata::tools::doctor {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::seconds;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

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

using Name = std::array<char, 256>;

constexpr int large = 4 << 20;
constexpr int round_trips = 100;

/// The side that measures. Silent where the first message does not come back in time.
PairSpeed ask(int other, const std::vector<std::string>& hosts, int rank, seconds patience) {
    PairSpeed pair;
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

}  // namespace

std::int64_t wall_ns() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
        .count();
}

std::vector<std::string> meet(const std::string& host, int rank, int world) {
    const auto until = Clock::now() + seconds{15};
    std::vector<Name> names(static_cast<std::size_t>(world), Name{});
    host.copy(names.front().data(), sizeof(Name) - 1);
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
            PairSpeed pair;
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

bool measure_pairs(const std::vector<std::pair<int, int>>& pairs, const std::vector<std::string>& hosts, int rank) {
    const seconds patience{10 + static_cast<std::int64_t>(pairs.size())};
    bool all = true;
    for (const auto& [a, b] : pairs) {
        if (rank == a) {
            const PairSpeed pair = ask(b, hosts, rank, patience);
            all = all && !pair.is_silent;
            say(said_of(pair));
        } else if (rank == b) {
            all = answer(a, patience) && all;
        }
    }
    return all;
}

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
    if (rank == 0) say(said_of_sum(values.size() * sizeof(float), best));
}

}  // namespace strata::tools::doctor
