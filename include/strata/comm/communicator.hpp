#pragma once
// strata/comm/communicator.hpp - Communicator: what strata asks of a group of ranks.

#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <strata/core/bf16.hpp>
#include <strata/core/policy.hpp>

namespace strata::comm {

namespace detail {

/// A `static constexpr bool takes_device_memory`, or none at all.
template <class C>
inline constexpr bool says_whose_memory = !requires {
    C::takes_device_memory;
}
|| requires { typename strata::detail::Constant<static_cast<bool>(C::takes_device_memory)>; };

}  // namespace detail

/// A fixed group of processes, numbered 0 .. world() - 1, that call the same collectives in the same order.
///
/// Everything but rank(), world() and abort() is collective and returns when the caller's part is done.
///   * barrier(): no rank returns before every rank has called it.
///   * broadcast(bytes, root): after it `bytes` of every rank are root's.
///   * all_gather(mine, all): `all` is every rank's `mine`, in rank order; mine has the same size on every
///     rank, all.size() == mine.size() * world(), and `mine` may be the rank's own part of `all`.
///   * all_gather_varied(mine): the same for byte strings of any length.
///   * reduce_scatter(all, mine): all.size() == mine.size() * world(); `mine` becomes the sum over ranks of
///     their part number rank() of `all`. Sums are formed in fp32 as ((rank 0 + rank 1) + rank 2) + ..., and rounded
///     once to the type of `mine`: the result depends on the world, never on timing. `mine` may be the rank's
///     own part of `all`. The other parts of `all` are left as they were.
///   * all_reduce_sum(values): every value becomes its sum over ranks, in rank order, the same bits everywhere.
///   * abort(status): ends every process of the group with `status`; never returns.
/// Failures throw Error{Errc::rank_failed}. One thread at a time may be inside a communicator.
///
/// A communicator with `static constexpr bool takes_device_memory = true` takes spans of a GPU's memory in broadcast(),
/// all_gather() and reduce_scatter(), and has a host() for a few bytes in host memory: takes_device_memory_v, host_of().
template <class C>
concept Communicator = detail::says_whose_memory<C> &&
    requires(C& comm, std::span<std::byte> bytes, std::span<const std::byte> mine, std::string_view text,
             std::span<const float> floats, std::span<float> float_share, std::span<const bf16> halves,
             std::span<bf16> half_share, std::span<double> sums) {
    { comm.rank() } -> std::same_as<int>;
    { comm.world() } -> std::same_as<int>;
    comm.barrier();
    comm.broadcast(bytes, 0);
    comm.all_gather(mine, bytes);
    { comm.all_gather_varied(text) } -> std::same_as<std::vector<std::string>>;
    comm.reduce_scatter(floats, float_share);
    comm.reduce_scatter(halves, half_share);
    comm.reduce_scatter(halves, float_share);
    comm.all_reduce_sum(sums);
    requires noexcept(comm.abort(1));
};

/// Whether the spans of broadcast, all_gather and reduce_scatter are memory of a GPU.
template <class C>
inline constexpr bool takes_device_memory_v = [] {
    if constexpr (requires { typename strata::detail::Constant<static_cast<bool>(C::takes_device_memory)>; })
        return static_cast<bool>(C::takes_device_memory);
    return false;
}();

/// The communicator of the same ranks for bytes in host memory: comm.host() where there is one, else `comm` itself.
template <class C>
[[nodiscard]] auto& host_of(C& comm) noexcept {
    if constexpr (requires { comm.host(); }) {
        return comm.host();
    } else {
        return comm;
    }
}

namespace archetype {

/// The least a Communicator may be: what compiles against it asks for nothing else.
struct Communicator {
    Communicator() = delete;
    Communicator(Communicator&&) = delete;
    int rank();
    int world();
    void barrier();
    void broadcast(std::span<std::byte>, int root);
    void all_gather(std::span<const std::byte> mine, std::span<std::byte> all);
    std::vector<std::string> all_gather_varied(std::string_view mine);
    void reduce_scatter(std::span<const float> all, std::span<float> mine);
    void reduce_scatter(std::span<const bf16> all, std::span<bf16> mine);
    void reduce_scatter(std::span<const bf16> all, std::span<float> mine);
    void all_reduce_sum(std::span<double> values);
    [[noreturn]] void abort(int status) noexcept;
};

}  // namespace archetype

static_assert(Communicator<archetype::Communicator>);
static_assert(!takes_device_memory_v<archetype::Communicator>);

}  // namespace strata::comm
