#pragma once
// strata/comm/impl/mpi_comm.ipp - MpiComm by point-to-point messages in pieces.

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <numeric>

#include <strata/comm/mpi_comm.hpp>
#include <strata/core/error.hpp>

namespace strata::comm {

namespace detail {

// Elements of each part that are exchanged and summed at once: two ranks' windows stay in the second-level cache.
inline constexpr std::size_t window_numel = std::size_t{1} << 17;
inline constexpr std::size_t sum_block = 256;
inline constexpr int tag = 0;  // messages of one pair of ranks arrive in the order they were sent

[[noreturn]] STRATA_INLINE void throw_mpi_error(int code, std::string_view call) {
    std::array<char, MPI_MAX_ERROR_STRING> text{};
    int length = 0;
    MPI_Error_string(code, text.data(), &length);
    throw Error{Errc::rank_failed,
                std::string{call} + " failed: " + std::string{text.data(), static_cast<std::size_t>(length)},
                "look for the first error line of the other ranks; this one only noticed that they are gone"};
}

STRATA_INLINE void check_mpi(int code, std::string_view call) {
    if (code != MPI_SUCCESS) throw_mpi_error(code, call);
}

inline float as_float(float value) noexcept { return value; }
inline float as_float(bf16 value) noexcept { return to_float(value); }
inline void store(float& to, float value) noexcept { to = value; }
inline void store(bf16& to, float value) noexcept { to = to_bf16(value); }

}  // namespace detail

STRATA_INLINE MpiComm::MpiComm(std::size_t piece_bytes)
    : piece_bytes_{piece_bytes}, exceptions_at_start_{std::uncaught_exceptions()} {
    int started = 0;
    detail::check_mpi(MPI_Initialized(&started), "MPI_Initialized");
    int level = MPI_THREAD_SINGLE;
    if (started == 0) {
        detail::check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level), "MPI_Init_thread");
        finalizes_ = true;
    } else {
        detail::check_mpi(MPI_Query_thread(&level), "MPI_Query_thread");
    }
    if (level < MPI_THREAD_SERIALIZED) {
        throw Error{Errc::rank_failed, "MPI allows calls from the main thread only",
                    "start MPI with MPI_THREAD_SERIALIZED or higher, or let strata::Session start it"};
    }
    // A communicator of its own: messages cannot mix with the program's, and errors come back as codes.
    detail::check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &comm_), "MPI_Comm_dup");
    detail::check_mpi(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    detail::check_mpi(MPI_Comm_rank(comm_, &rank_), "MPI_Comm_rank");
    detail::check_mpi(MPI_Comm_size(comm_, &world_), "MPI_Comm_size");
}

STRATA_INLINE MpiComm::~MpiComm() {
    if (std::uncaught_exceptions() > exceptions_at_start_) return;
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (finalized != 0) return;
    MPI_Comm_free(&comm_);
    if (finalizes_) MPI_Finalize();
}

STRATA_INLINE void MpiComm::abort(int status) noexcept {
    MPI_Abort(comm_, status);
    std::_Exit(status);
}

STRATA_INLINE void MpiComm::barrier() { detail::check_mpi(MPI_Barrier(comm_), "MPI_Barrier"); }

STRATA_INLINE void MpiComm::send_to(int peer, std::span<const std::byte> bytes) {
    for (std::size_t at = 0; at < bytes.size(); at += piece_bytes_) {
        const int count = static_cast<int>(std::min(piece_bytes_, bytes.size() - at));
        detail::check_mpi(MPI_Isend(bytes.data() + at, count, MPI_BYTE, peer, detail::tag, comm_,
                                    &pending_.emplace_back(MPI_REQUEST_NULL)),
                          "MPI_Isend");
    }
}

STRATA_INLINE void MpiComm::receive_from(int peer, std::span<std::byte> bytes) {
    for (std::size_t at = 0; at < bytes.size(); at += piece_bytes_) {
        const int count = static_cast<int>(std::min(piece_bytes_, bytes.size() - at));
        detail::check_mpi(MPI_Irecv(bytes.data() + at, count, MPI_BYTE, peer, detail::tag, comm_,
                                    &pending_.emplace_back(MPI_REQUEST_NULL)),
                          "MPI_Irecv");
    }
}

STRATA_INLINE void MpiComm::wait_for_all() {
    const int count = static_cast<int>(pending_.size());
    const int code = MPI_Waitall(count, pending_.data(), MPI_STATUSES_IGNORE);
    pending_.clear();
    detail::check_mpi(code, "MPI_Waitall");
}

STRATA_INLINE void MpiComm::broadcast(std::span<std::byte> bytes, int root) {
    for (std::size_t at = 0; at < bytes.size(); at += piece_bytes_) {
        const int count = static_cast<int>(std::min(piece_bytes_, bytes.size() - at));
        detail::check_mpi(MPI_Bcast(bytes.data() + at, count, MPI_BYTE, root, comm_), "MPI_Bcast");
    }
}

STRATA_INLINE void MpiComm::all_gather(std::span<const std::byte> mine, std::span<std::byte> all) {
    assert(all.size() == mine.size() * static_cast<std::size_t>(world_));
    if (mine.empty()) return;
    const auto part = [&](int rank) { return all.subspan(static_cast<std::size_t>(rank) * mine.size(), mine.size()); };
    // Starting with the next rank, not with rank 0, so that no rank is everybody's first partner.
    for (int step = 1; step < world_; ++step) {
        receive_from((rank_ - step + world_) % world_, part((rank_ - step + world_) % world_));
        send_to((rank_ + step) % world_, mine);
    }
    if (part(rank_).data() != mine.data()) std::memmove(part(rank_).data(), mine.data(), mine.size());
    wait_for_all();
}

STRATA_INLINE std::vector<std::string> MpiComm::all_gather_varied(std::string_view mine) {
    const std::uint64_t length = mine.size();
    std::vector<std::uint64_t> lengths(static_cast<std::size_t>(world_));
    all_gather(std::as_bytes(std::span{&length, 1}), std::as_writable_bytes(std::span{lengths}));
    std::vector<std::string> all;
    for (const std::uint64_t n : lengths) all.emplace_back(n, '\0');
    for (int peer = 0; peer < world_; ++peer) {
        if (peer == rank_) continue;
        receive_from(peer, std::as_writable_bytes(std::span{all[static_cast<std::size_t>(peer)]}));
        send_to(peer, std::as_bytes(std::span{mine}));
    }
    all[static_cast<std::size_t>(rank_)] = mine;
    wait_for_all();
    return all;
}

template <class In, class Out>
void MpiComm::sum_parts(std::span<const In> all, std::span<Out> mine) {
    const auto world = static_cast<std::size_t>(world_);
    const auto self = static_cast<std::size_t>(rank_);
    assert(all.size() == mine.size() * world);
    const std::size_t numel = mine.size();
    const std::size_t window = std::min({detail::window_numel, std::max<std::size_t>(1, piece_bytes_ / sizeof(In)),
                                         std::max<std::size_t>(1, numel)});
    received_.resize(window * world * sizeof(In));
    In* const received = reinterpret_cast<In*>(received_.data());  // vector storage is aligned for any In

    for (std::size_t begin = 0; begin < numel; begin += window) {
        const std::size_t count = std::min(window, numel - begin);
        for (std::size_t step = 1; step < world; ++step) {
            const std::size_t source = (self + world - step) % world;
            const std::size_t target = (self + step) % world;
            receive_from(static_cast<int>(source),
                         std::as_writable_bytes(std::span{received + source * window, count}));
            send_to(static_cast<int>(target), std::as_bytes(all.subspan(target * numel + begin, count)));
        }
        wait_for_all();
        for (std::size_t at = 0; at < count; at += detail::sum_block) {
            const std::size_t n = std::min(detail::sum_block, count - at);
            // A block of sums on the stack: `mine` may lie in `all`, where this rank's addend still stands.
            std::array<float, detail::sum_block> sums;
            for (std::size_t rank = 0; rank < world; ++rank) {
                const In* addend =
                    rank == self ? all.data() + self * numel + begin + at : received + rank * window + at;
                if (rank == 0) {
                    for (std::size_t i = 0; i < n; ++i) sums[i] = detail::as_float(addend[i]);
                } else {
                    for (std::size_t i = 0; i < n; ++i) sums[i] += detail::as_float(addend[i]);
                }
            }
            for (std::size_t i = 0; i < n; ++i) detail::store(mine[begin + at + i], sums[i]);
        }
    }
}

STRATA_INLINE void MpiComm::reduce_scatter(std::span<const float> all, std::span<float> mine) { sum_parts(all, mine); }
STRATA_INLINE void MpiComm::reduce_scatter(std::span<const bf16> all, std::span<bf16> mine) { sum_parts(all, mine); }
STRATA_INLINE void MpiComm::reduce_scatter(std::span<const bf16> all, std::span<float> mine) { sum_parts(all, mine); }

STRATA_INLINE void MpiComm::all_reduce_sum(std::span<double> values) {
    std::vector<double> all(values.size() * static_cast<std::size_t>(world_));
    all_gather(std::as_bytes(values), std::as_writable_bytes(std::span{all}));
    for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = all[i];
        for (std::size_t rank = 1; rank < static_cast<std::size_t>(world_); ++rank) {
            values[i] += all[rank * values.size() + i];
        }
    }
}

}  // namespace strata::comm
