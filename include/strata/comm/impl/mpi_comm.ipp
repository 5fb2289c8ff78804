#pragma once
// strata/comm/impl/mpi_comm.ipp - MpiComm by windows of shared memory, and by point-to-point messages in pieces.

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <thread>
#include <utility>

#include <unistd.h>

#include <strata/comm/mpi_comm.hpp>
#include <strata/core/elements.hpp>
#include <strata/core/error.hpp>
#include <strata/core/fnv1a.hpp>
#include <strata/core/independent_loop.hpp>

namespace strata::comm {

namespace detail {

// Elements of each part that are exchanged by messages and summed at once: two ranks' windows stay in the second-level
// cache.
inline constexpr std::size_t message_numel = std::size_t{1} << 17;
inline constexpr std::size_t sum_block = 1024;

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

/// For a number of ranks known to the compiler: sums stay in registers, and the loop runs as fast as memory.
template <std::size_t World, class In, class Out>
void sum_of(const In* const* addends, std::size_t count, Out* to) noexcept {
    std::array<const In*, World> from;
    std::copy_n(addends, World, from.begin());
    STRATA_INDEPENDENT_LOOP  // `to` may be an addend, and then at the same index
    for (std::size_t i = 0; i < count; ++i) {
        float sum = to_float(from[0][i]);
        for (std::size_t rank = 1; rank < World; ++rank) sum += to_float(from[rank][i]);
        to[i] = to_element<Out>(sum);
    }
}

/// to[i] = ((rank 0's + rank 1's) + rank 2's) + ... in fp32, rounded once.
///
///   addends  one pointer a rank to `count` elements; one of them may be `to` itself
template <class In, class Out>
void sum_in_rank_order(std::span<const In* const> addends, std::size_t count, Out* to) noexcept {
    switch (addends.size()) {
        case 2:
            return sum_of<2>(addends.data(), count, to);
        case 3:
            return sum_of<3>(addends.data(), count, to);
        case 4:
            return sum_of<4>(addends.data(), count, to);
        case 8:
            return sum_of<8>(addends.data(), count, to);
        default:
            break;
    }
    for (std::size_t at = 0; at < count; at += sum_block) {
        const std::size_t n = std::min(sum_block, count - at);
        std::array<float, sum_block> sums;  // on the stack, because `to` may be an addend whose turn has not come
        for (std::size_t i = 0; i < n; ++i) sums[i] = to_float(addends[0][at + i]);
        for (const In* addend : addends.subspan(1)) {
            for (std::size_t i = 0; i < n; ++i) sums[i] += to_float(addend[at + i]);
        }
        for (std::size_t i = 0; i < n; ++i) to[at + i] = to_element<Out>(sums[i]);
    }
}

/// A tag that two collectives share only when they are the same operation (or by a rare accident).
inline int tag_of(const CollectiveRecord& what, int largest) noexcept {
    const auto text = [](const auto& characters) { return std::string_view{characters.data(), characters.size()}; };
    std::uint64_t hash = core::fnv1a_start ^ what.bytes;
    hash = core::fnv1a(text(what.op), hash);
    hash = core::fnv1a(text(what.label), hash);
    return static_cast<int>((hash ^ (hash >> 32U)) % static_cast<std::uint64_t>(largest));
}

constexpr std::size_t rounds_of(std::size_t length, std::size_t window) noexcept {
    return std::max<std::size_t>(1, (length + window - 1) / window);
}

}  // namespace detail

STRATA_INLINE MpiComm::MpiComm(const MpiOptions& options)
    : piece_bytes_{options.piece_bytes}, exceptions_at_start_{std::uncaught_exceptions()} {
    assert(options.window_bytes >= 64 && options.window_bytes % 64 == 0);
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
    int* largest = nullptr;
    int known = 0;
    detail::check_mpi(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &largest, &known), "MPI_Comm_get_attr");
    if (known != 0) largest_tag_ = *largest;
    if (world_ == 1) return;
    share_memory(options);
    watchdog_.emplace(comm_, log_, level >= MPI_THREAD_MULTIPLE, options.collective_timeout, options.answer_timeout);
}

STRATA_INLINE MpiComm::~MpiComm() {
    if (interrupted_ || std::uncaught_exceptions() > exceptions_at_start_) return;
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (finalized != 0) return;
    if (watchdog_) watchdog_->leave();
    MPI_Comm_free(&comm_);
    if (finalizes_) MPI_Finalize();
}

STRATA_INLINE void MpiComm::abort(int status) noexcept {
    MPI_Abort(comm_, status);
    std::_Exit(status);
}

STRATA_INLINE void MpiComm::set_collective_timeout(std::chrono::milliseconds timeout) noexcept {
    if (watchdog_) watchdog_->set_timeout(timeout);
}

STRATA_INLINE void MpiComm::on_stall(StallHook hook) {
    if (watchdog_) watchdog_->on_stall(std::move(hook));
}

// ---- shared memory: one rank makes it, the others map it, and all agree on whether that worked
// -----------------------

STRATA_INLINE void MpiComm::share_memory(const MpiOptions& options) {
    if (!options.shared_memory) {
        transport_ = "MPI, because shared memory is switched off";
        return;
    }
    MPI_Comm host = MPI_COMM_NULL;
    detail::check_mpi(MPI_Comm_split_type(comm_, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host), "MPI_Comm_split_type");
    int on_host = 0;
    MPI_Comm_size(host, &on_host);
    MPI_Comm_free(&host);
    int fewest = 0;
    detail::check_mpi(MPI_Allreduce(&on_host, &fewest, 1, MPI_INT, MPI_MIN, comm_), "MPI_Allreduce");
    if (fewest != world_) {
        transport_ = "MPI, because the ranks are on several hosts";
        return;
    }

    // What cannot be had on one rank is had on none. The reason travels, because the ranks' transports must agree.
    const std::size_t bytes = SharedWindows::bytes_for(world_, options.window_bytes);
    std::array<std::int64_t, 3> place{::getpid(), -1, 0};  // process, file, token
    std::array<char, 256> reason{};
    const auto attempt = [&](auto&& make) {
        try {
            memory_.emplace(make());
        } catch (const Error& error) {
            std::copy_n(error.problem().begin(), std::min(error.problem().size(), reason.size() - 1), reason.begin());
        }
    };
    if (rank_ == 0) {
        attempt([&] { return SharedMemory::create(bytes); });
        if (memory_) {
            place[1] = memory_->file();
            place[2] = std::chrono::steady_clock::now().time_since_epoch().count();
            std::memcpy(memory_->data() + bytes - sizeof place[2], &place[2], sizeof place[2]);  // the end of a window
        }
    }
    detail::check_mpi(MPI_Bcast(place.data(), 3, MPI_INT64_T, 0, comm_), "MPI_Bcast");
    if (rank_ != 0 && place[1] >= 0) {
        attempt([&] {
            SharedMemory opened = SharedMemory::open(place[0], static_cast<int>(place[1]), bytes);
            // In another container the same number may be another process.
            if (std::memcmp(opened.data() + bytes - sizeof place[2], &place[2], sizeof place[2]) != 0)
                throw Error{Errc::io_failed, "process " + std::to_string(place[0]) + " is not rank 0",
                            "let the ranks use MPI, as MpiComm does by itself"};
            return opened;
        });
    }
    const int failed_here = reason[0] != '\0' ? rank_ : world_;
    int failed = world_;
    detail::check_mpi(MPI_Allreduce(&failed_here, &failed, 1, MPI_INT, MPI_MIN, comm_), "MPI_Allreduce");
    if (failed < world_) {
        detail::check_mpi(MPI_Bcast(reason.data(), static_cast<int>(reason.size()), MPI_CHAR, failed, comm_),
                          "MPI_Bcast");
        memory_.reset();
        transport_ = std::string{"MPI, because "} + reason.data() + " on rank " + std::to_string(failed);
        return;
    }
    memory_->close_file();
    windows_.emplace(memory_->data(), rank_, world_, options.window_bytes, interrupted_);
    transport_ = "shared memory";
}

template <class Fill, class Take>
void MpiComm::exchange(const CollectiveRecord& what, std::size_t rounds, Fill&& fill, Take&& take) {
    try {
        windows_->exchange(what, rounds, fill, take);
    } catch (...) {
        interrupt();  // ranks are at different windows now: nothing that follows could be right
        throw;
    }
}

// ---- messages: sent and received at once, waited for together -------------------------------------------------------

STRATA_INLINE CollectiveLog::Running MpiComm::begin(std::string_view op, std::size_t bytes) {
    if (interrupted_) throw_interrupted(log_.latest());
    return log_.begin(op, bytes);
}

STRATA_INLINE void MpiComm::send_to(int peer, std::span<const std::byte> bytes) {
    for (std::size_t at = 0; at < bytes.size(); at += piece_bytes_) {
        const int count = static_cast<int>(std::min(piece_bytes_, bytes.size() - at));
        detail::check_mpi(
            MPI_Isend(bytes.data() + at, count, MPI_BYTE, peer, tag_, comm_, &pending_.emplace_back(MPI_REQUEST_NULL)),
            "MPI_Isend");
    }
}

STRATA_INLINE void MpiComm::receive_from(int peer, std::span<std::byte> bytes) {
    for (std::size_t at = 0; at < bytes.size(); at += piece_bytes_) {
        const int count = static_cast<int>(std::min(piece_bytes_, bytes.size() - at));
        detail::check_mpi(
            MPI_Irecv(bytes.data() + at, count, MPI_BYTE, peer, tag_, comm_, &pending_.emplace_back(MPI_REQUEST_NULL)),
            "MPI_Irecv");
    }
}

STRATA_INLINE void MpiComm::wait_for_all(const CollectiveRecord& what) {
    // MPI_Waitall spins and cannot be interrupted. Messages on the way come within the first turns, about 0.1 ms; who
    // waits longer waits for a rank that is late, and leaves the core to others meanwhile, the longer the more.
    constexpr int turns_before_sleep = 500;
    for (int turn = 0;; turn = std::min(turn + 1, turns_before_sleep + 1000)) {
        int done = 0;
        const int code = MPI_Testall(static_cast<int>(pending_.size()), pending_.data(), &done, MPI_STATUSES_IGNORE);
        if (code != MPI_SUCCESS) pending_.clear();
        detail::check_mpi(code, "MPI_Testall");
        if (done != 0) break;
        if (interrupted_.load(std::memory_order_relaxed)) {
            for (MPI_Request& request : pending_) {
                if (request == MPI_REQUEST_NULL) continue;
                MPI_Cancel(&request);
                MPI_Request_free(&request);
            }
            pending_.clear();
            throw_interrupted(what);
        }
        if (turn >= turns_before_sleep)
            std::this_thread::sleep_for(std::chrono::microseconds{std::min(20 + (turn - turns_before_sleep), 1000)});
    }
    pending_.clear();
}

// ---- the collectives -----------------------------------------------------------------------------------------------

STRATA_INLINE void MpiComm::barrier() {
    const auto running = begin("barrier", 0);
    gather(running.record(), {}, {});
}

STRATA_INLINE void MpiComm::broadcast(std::span<std::byte> bytes, int root) {
    const auto running = begin("broadcast", bytes.size());
    if (world_ == 1) return;
    if (!windows_) return broadcast_by_messages(running.record(), bytes, root);
    const std::size_t window = windows_->window_bytes();
    const auto piece = [&](std::size_t round) {
        return bytes.subspan(round * window, std::min(window, bytes.size() - round * window));
    };
    exchange(
        running.record(), detail::rounds_of(bytes.size(), window),
        [&](std::size_t round, std::byte* to) {
            const auto from = piece(round);
            if (rank_ == root && !from.empty()) std::memcpy(to, from.data(), from.size());
        },
        [&](std::size_t round) {
            const auto to = piece(round);
            if (rank_ != root && !to.empty()) std::memcpy(to.data(), windows_->window_of(root), to.size());
        });
}

STRATA_INLINE void MpiComm::broadcast_by_messages(const CollectiveRecord& what, std::span<std::byte> bytes, int root) {
    tag_ = detail::tag_of(what, largest_tag_);
    // A binomial tree over the ranks counted from the root: who has the bytes hands them on at half the distance.
    const int place = (rank_ - root + world_) % world_;
    int distance = 1;
    while (distance < world_ && (place & distance) == 0) distance *= 2;
    if (place != 0) {
        receive_from((place - distance + root) % world_, bytes);
        wait_for_all(what);
    }
    for (distance /= 2; distance > 0; distance /= 2) {
        if (place + distance < world_) send_to((place + distance + root) % world_, bytes);
    }
    wait_for_all(what);
}

STRATA_INLINE void MpiComm::gather(const CollectiveRecord& what, std::span<const std::byte> mine,
                                   std::span<std::byte> all) {
    assert(all.size() == mine.size() * static_cast<std::size_t>(world_));
    const auto part = [&](int rank) { return all.subspan(static_cast<std::size_t>(rank) * mine.size(), mine.size()); };
    if (!mine.empty() && part(rank_).data() != mine.data()) std::memmove(part(rank_).data(), mine.data(), mine.size());
    if (world_ == 1) return;
    // Each rank starts with the next one, not with rank 0, so that no rank is everybody's first partner.
    if (windows_) {
        const std::size_t window = windows_->window_bytes();
        const auto length = [&](std::size_t round) { return std::min(window, mine.size() - round * window); };
        exchange(
            what, detail::rounds_of(mine.size(), window),
            [&](std::size_t round, std::byte* to) {
                if (!mine.empty()) std::memcpy(to, mine.data() + round * window, length(round));
            },
            [&](std::size_t round) {
                for (int step = 1; step < world_ && !mine.empty(); ++step) {
                    const int from = (rank_ + step) % world_;
                    std::memcpy(part(from).data() + round * window, windows_->window_of(from), length(round));
                }
            });
        return;
    }
    tag_ = detail::tag_of(what, largest_tag_);
    std::vector<std::byte> tokens(mine.empty() ? static_cast<std::size_t>(world_) : 0);  // a barrier: one byte each
    for (int step = 1; step < world_; ++step) {
        const int from = (rank_ - step + world_) % world_;
        receive_from(from, mine.empty() ? std::span{tokens}.subspan(static_cast<std::size_t>(from), 1) : part(from));
        send_to((rank_ + step) % world_,
                mine.empty() ? std::span<const std::byte>{tokens}.subspan(static_cast<std::size_t>(rank_), 1) : mine);
    }
    wait_for_all(what);
}

STRATA_INLINE void MpiComm::all_gather(std::span<const std::byte> mine, std::span<std::byte> all) {
    const auto running = begin("all_gather", mine.size());
    gather(running.record(), mine, all);
}

STRATA_INLINE std::vector<std::string> MpiComm::all_gather_varied(std::string_view mine) {
    const auto running = begin("all_gather_varied", 0);
    const std::uint64_t length = mine.size();
    std::vector<std::uint64_t> lengths(static_cast<std::size_t>(world_));
    gather(running.record(), std::as_bytes(std::span{&length, 1}), std::as_writable_bytes(std::span{lengths}));
    std::vector<std::string> all;
    for (const std::uint64_t n : lengths) all.emplace_back(n, '\0');
    all[static_cast<std::size_t>(rank_)] = mine;
    const auto text_of = [&](int rank) {
        return std::as_writable_bytes(std::span{all[static_cast<std::size_t>(rank)]});
    };
    if (windows_) {
        const std::size_t window = windows_->window_bytes();
        const auto piece = [&](int rank, std::size_t round) {
            const auto text = text_of(rank);
            const std::size_t begin_at = std::min(text.size(), round * window);
            return text.subspan(begin_at, std::min(window, text.size() - begin_at));
        };
        exchange(
            running.record(), detail::rounds_of(*std::max_element(lengths.begin(), lengths.end()), window),
            [&](std::size_t round, std::byte* to) {
                const auto from = piece(rank_, round);
                if (!from.empty()) std::memcpy(to, from.data(), from.size());
            },
            [&](std::size_t round) {
                for (int rank = 0; rank < world_; ++rank) {
                    const auto to = piece(rank, round);
                    if (rank != rank_ && !to.empty()) std::memcpy(to.data(), windows_->window_of(rank), to.size());
                }
            });
        return all;
    }
    for (int peer = 0; peer < world_; ++peer) {
        if (peer == rank_) continue;
        receive_from(peer, text_of(peer));
        send_to(peer, text_of(rank_));
    }
    wait_for_all(running.record());
    return all;
}

template <class In, class Out>
void MpiComm::sum_by_windows(const CollectiveRecord& what, std::span<const In> all, std::span<Out> mine) {
    const auto world = static_cast<std::size_t>(world_);
    const auto self = static_cast<std::size_t>(rank_);
    const std::size_t numel = mine.size();
    // A window holds a run of elements of every other rank's part; the first is that of the rank after its owner.
    const std::size_t run = windows_->window_bytes() / (world - 1) / sizeof(In);
    const auto length = [&](std::size_t round) { return std::min(run, numel - round * run); };
    std::vector<const In*> addends(world);
    exchange(
        what, detail::rounds_of(numel, run),
        [&](std::size_t round, std::byte* to) {
            for (std::size_t step = 1; step < world && numel > 0; ++step) {
                const In* const from = all.data() + (self + step) % world * numel + round * run;
                std::memcpy(to + (step - 1) * run * sizeof(In), from, length(round) * sizeof(In));
            }
        },
        [&](std::size_t round) {
            if (numel == 0) return;
            for (std::size_t rank = 0; rank < world; ++rank) {
                const std::size_t step = (self + world - rank) % world;
                addends[rank] =
                    rank == self
                        ? all.data() + self * numel + round * run
                        : reinterpret_cast<const In*>(windows_->window_of(static_cast<int>(rank))) + (step - 1) * run;
            }
            detail::sum_in_rank_order<In>(addends, length(round), mine.data() + round * run);
        });
}

template <class In, class Out>
void MpiComm::sum_by_messages(const CollectiveRecord& what, std::span<const In> all, std::span<Out> mine) {
    const auto world = static_cast<std::size_t>(world_);
    const auto self = static_cast<std::size_t>(rank_);
    const std::size_t numel = mine.size();
    const std::size_t window = std::min(
        {detail::message_numel, std::max<std::size_t>(1, piece_bytes_ / sizeof(In)), std::max<std::size_t>(1, numel)});
    received_.resize(window * world * sizeof(In));
    In* const received = reinterpret_cast<In*>(received_.data());  // vector storage is aligned for any In
    std::vector<const In*> addends(world);
    tag_ = detail::tag_of(what, largest_tag_);
    for (std::size_t begin = 0; begin < numel; begin += window) {
        const std::size_t count = std::min(window, numel - begin);
        for (std::size_t step = 1; step < world; ++step) {
            const std::size_t source = (self + world - step) % world;
            const std::size_t target = (self + step) % world;
            receive_from(static_cast<int>(source),
                         std::as_writable_bytes(std::span{received + source * window, count}));
            send_to(static_cast<int>(target), std::as_bytes(all.subspan(target * numel + begin, count)));
        }
        wait_for_all(what);
        for (std::size_t rank = 0; rank < world; ++rank) {
            addends[rank] = rank == self ? all.data() + self * numel + begin : received + rank * window;
        }
        detail::sum_in_rank_order<In>(addends, count, mine.data() + begin);
    }
}

template <class In, class Out>
void MpiComm::sum_parts(std::span<const In> all, std::span<Out> mine) {
    assert(all.size() == mine.size() * static_cast<std::size_t>(world_));
    const auto running = begin("reduce_scatter", all.size_bytes());
    if (windows_)
        sum_by_windows(running.record(), all, mine);
    else
        sum_by_messages(running.record(), all, mine);
}

STRATA_INLINE void MpiComm::reduce_scatter(std::span<const float> all, std::span<float> mine) { sum_parts(all, mine); }
STRATA_INLINE void MpiComm::reduce_scatter(std::span<const bf16> all, std::span<bf16> mine) { sum_parts(all, mine); }
STRATA_INLINE void MpiComm::reduce_scatter(std::span<const bf16> all, std::span<float> mine) { sum_parts(all, mine); }

STRATA_INLINE void MpiComm::all_reduce_sum(std::span<double> values) {
    const auto running = begin("all_reduce_sum", values.size_bytes());
    std::vector<double> all(values.size() * static_cast<std::size_t>(world_));
    gather(running.record(), std::as_bytes(values), std::as_writable_bytes(std::span{all}));
    for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = all[i];
        for (std::size_t rank = 1; rank < static_cast<std::size_t>(world_); ++rank) {
            values[i] += all[rank * values.size() + i];
        }
    }
}

}  // namespace strata::comm
