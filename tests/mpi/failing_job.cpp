// A job that cannot end well: mpirun -n N failing_job CASE. mpi_watchdog_test starts it and reads what it says.
//
// What must have happened before the ranks part ways is waited for with MPI itself, never by time.

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <fstream>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <unistd.h>

#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <strata/comm/channel.hpp>
#include <strata/comm/mpi_comm.hpp>

namespace {

using strata::comm::Channel;
using strata::comm::MpiComm;
using strata::comm::MpiOptions;

[[noreturn]] void sleep_for_ever() {
    while (true) ::pause();
}

std::vector<std::int64_t> gather(MpiComm& comm, std::int64_t mine) {
    std::vector<std::int64_t> all(static_cast<std::size_t>(comm.world()));
    comm.all_gather(std::as_bytes(std::span{&mine, 1}), std::as_writable_bytes(std::span{all}));
    return all;
}

/// Collective 1: every rank's process number. Done on all ranks when it returns.
std::vector<std::int64_t> meet(MpiComm& comm, Channel<MpiComm>& channel) {
    const auto processes = channel.run("parameters", [&] { return gather(comm, ::getpid()); });
    MPI_Barrier(MPI_COMM_WORLD);
    return processes;
}

/// Collective 2, which times out.
void wait_in_vain(MpiComm& comm, Channel<MpiComm>& channel) {
    comm.set_collective_timeout(std::chrono::milliseconds{500});
    std::vector<float> all(static_cast<std::size_t>(comm.world()) * 8);
    std::array<float, 8> mine{};
    channel.run("gradients 3", [&] { comm.reduce_scatter(std::span<const float>{all}, std::span<float>{mine}); });
}

bool is_stopped(std::int64_t process) {
    std::ifstream in{"/proc/" + std::to_string(process) + "/stat"};
    std::string text;
    std::getline(in, text);
    return text.find(") T ") != std::string::npos;
}

void work(MpiComm& comm, std::string_view what) {
    const bool last = comm.rank() == comm.world() - 1;
    Channel channel{comm};
    if (what == "absent") {  // the last rank has not been in any collective
        if (last) sleep_for_ever();
        wait_in_vain(comm, channel);
    } else if (what == "sleeps") {
        meet(comm, channel);
        if (last) sleep_for_ever();
        wait_in_vain(comm, channel);
    } else if (what == "stops") {
        const auto processes = meet(comm, channel);
        if (last) ::raise(SIGSTOP);
        while (!is_stopped(processes.back())) std::this_thread::yield();
        wait_in_vain(comm, channel);
    } else if (what == "differs") {  // one operation under two names
        const auto ticket = channel.post(last ? "losses" : "norms", [&] { (void)gather(comm, 1); });
        if (comm.transport() != "shared memory") {  // both are inside before the time is set
            while (comm.latest_collective().number == 0) std::this_thread::yield();
            MPI_Barrier(MPI_COMM_WORLD);
            comm.set_collective_timeout(std::chrono::milliseconds{500});
        }
        ticket.wait();
    } else if (what ==
               "throws") {  // beside a collective that nobody else comes to, and with another one waiting behind it
        if (!last) sleep_for_ever();
        std::atomic<bool> begun = false;
        channel.post("gradients 1", [&] {
            begun = true;
            comm.barrier();
        });
        channel.post("gradients 2", [&] { comm.barrier(); });
        while (!begun) std::this_thread::yield();
        throw std::runtime_error{"the loss is a banana"};
    } else if (what == "throws_in_operation") {
        channel.post("gradients 1", [&] {
            if (last) throw std::runtime_error{"the disk is full"};
            comm.barrier();
        });
        const auto later = channel.post("gradients 2", [&] { comm.barrier(); });
        later.wait();
    } else {
        throw std::invalid_argument{std::string{what}};
    }
}

}  // namespace

int main(int argc, char** argv) {
    const std::string_view what = argc > 1 ? argv[1] : "";
    const std::string_view way = argc > 2 ? argv[2] : "";
    int level = 0;
    if (way == "serialized") MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level);
    MpiComm comm{
        {.answer_timeout = std::chrono::seconds{way == "impatient" ? 1 : 30}, .shared_memory = way != "messages"}};
    try {
        work(comm, what);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "rank %d/%d: %s\n", comm.rank(), comm.world(), error.what());
        std::fflush(stderr);
        comm.abort(3);
    }
    return 0;
}
