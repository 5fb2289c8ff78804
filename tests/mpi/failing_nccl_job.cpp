// A job that cannot end well: mpirun -n N failing_nccl_job CASE, with a stand-in for NCCL. nccl_watchdog_test starts it
// and reads what it says.
//
// What must have happened before the ranks part ways is waited for with MPI itself, never by time.

#include <chrono>
#include <cstdio>
#include <exception>
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
#include <strata/comm/nccl_comm.hpp>

#include "../support/nccl_on_host.hpp"

namespace {

using strata::comm::Channel;
using strata::comm::MpiComm;
using strata::comm::NcclComm;

void work(MpiComm& host, std::string_view what) {
    const bool last = host.rank() == host.world() - 1;
    if (what == "connects") {  // and never gets there
        nccl_on_host::faults().never_connects = true;
        std::thread patience{[&] {
            while (std::string_view{host.latest_collective().op.data()} != "nccl_connect") std::this_thread::yield();
            MPI_Barrier(MPI_COMM_WORLD);
            host.set_collective_timeout(std::chrono::milliseconds{500});
        }};
        patience.detach();
        const NcclComm comm{host};
        return;
    }

    NcclComm comm{host};
    Channel channel{comm};
    std::vector<float> all(static_cast<std::size_t>(comm.world()) * 8);
    const std::span<float> mine = std::span{all}.subspan(static_cast<std::size_t>(comm.rank()) * 8, 8);
    channel.run("weights", [&] { comm.all_gather(std::as_bytes(mine), std::as_writable_bytes(std::span{all})); });
    MPI_Barrier(MPI_COMM_WORLD);
    if (what == "sleeps") {
        while (last) ::pause();
        comm.set_collective_timeout(std::chrono::milliseconds{500});
        channel.run("gradients 3", [&] { comm.reduce_scatter(std::span<const float>{all}, mine); });
    } else if (what == "throws") {  // beside a collective that nobody else comes to
        while (!last) ::pause();
        const int before = nccl_on_host::counts().groups;
        channel.post("gradients 1", [&] { comm.reduce_scatter(std::span<const float>{all}, mine); });
        while (nccl_on_host::counts().groups == before) std::this_thread::yield();
        throw std::runtime_error{"the loss is a banana"};
    } else {
        throw std::invalid_argument{std::string{what}};
    }
}

}  // namespace

int main(int argc, char** argv) {
    const std::string_view what = argc > 1 ? argv[1] : "";
    MpiComm host{{.answer_timeout = std::chrono::seconds{30}}};
    try {
        work(host, what);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "rank %d/%d: %s\n", host.rank(), host.world(), error.what());
        std::fflush(stderr);
        host.abort(3);
    }
    return 0;
}
