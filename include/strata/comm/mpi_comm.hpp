#pragma once
// strata/comm/mpi_comm.hpp - MpiComm: all ranks of an MPI job.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// The C++ bindings were removed from MPI 3.0; Open MPI still offers them, with warnings.
#ifndef OMPI_SKIP_MPICXX
#define OMPI_SKIP_MPICXX 1
#endif
#include <mpi.h>

#include <strata/comm/communicator.hpp>
#include <strata/core/bf16.hpp>
#include <strata/core/inline.hpp>

namespace strata::comm {

/// MPI_COMM_WORLD behind the Communicator concept; buffers of any size.
///
/// Reductions are an exchange of parts and a local sum in rank order instead of MPI_Reduce_scatter: that knows no bf16,
/// promises no order of the sum, and measured a quarter of the speed.
class MpiComm {
public:
    /// The largest single message: MPI counts are int, so longer buffers travel in pieces.
    static constexpr std::size_t default_piece_bytes = std::size_t{1} << 30;

    /// Collective. Starts MPI unless the program has done so; the one that starts it also finalizes it.
    ///
    ///   piece_bytes  1 .. INT_MAX; the same on every rank
    /// Throws rank_failed when MPI does not start or lacks MPI_THREAD_SERIALIZED.
    explicit MpiComm(std::size_t piece_bytes = default_piece_bytes);

    /// While an exception unwinds the stack MPI is left as it is: finalizing would wait for ranks that
    /// wait for this one. The process then ends without MPI_Finalize, upon which mpirun ends the job.
    ~MpiComm();
    MpiComm(const MpiComm&) = delete;
    MpiComm& operator=(const MpiComm&) = delete;

    [[nodiscard]] int rank() const noexcept { return rank_; }
    [[nodiscard]] int world() const noexcept { return world_; }
    void barrier();
    void broadcast(std::span<std::byte> bytes, int root);
    void all_gather(std::span<const std::byte> mine, std::span<std::byte> all);
    [[nodiscard]] std::vector<std::string> all_gather_varied(std::string_view mine);
    void reduce_scatter(std::span<const float> all, std::span<float> mine);
    void reduce_scatter(std::span<const bf16> all, std::span<bf16> mine);
    void reduce_scatter(std::span<const bf16> all, std::span<float> mine);
    void all_reduce_sum(std::span<double> values);
    [[noreturn]] void abort(int status) noexcept;

private:
    void send_to(int peer, std::span<const std::byte> bytes);
    void receive_from(int peer, std::span<std::byte> bytes);
    void wait_for_all();
    template <class In, class Out>
    void sum_parts(std::span<const In> all, std::span<Out> mine);

    MPI_Comm comm_ = MPI_COMM_NULL;
    std::size_t piece_bytes_;
    int rank_ = 0;
    int world_ = 1;
    int exceptions_at_start_;
    bool finalizes_ = false;
    std::vector<MPI_Request> pending_;
    std::vector<std::byte> received_;  // parts of other ranks, one window at a time
};

static_assert(Communicator<MpiComm>);

}  // namespace strata::comm

#ifndef STRATA_COMPILED
#include <strata/comm/impl/mpi_comm.ipp>
#endif
