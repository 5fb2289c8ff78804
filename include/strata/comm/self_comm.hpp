#pragma once
// strata/comm/self_comm.hpp - SelfComm: the group of one rank, without MPI.

#include <cassert>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <strata/comm/communicator.hpp>
#include <strata/core/bf16.hpp>
#include <strata/core/elements.hpp>

namespace strata::comm {

/// One process on its own. Every collective is at most a copy, and nothing throws.
class SelfComm {
public:
    [[nodiscard]] int rank() const noexcept { return 0; }
    [[nodiscard]] int world() const noexcept { return 1; }
    void barrier() const noexcept {}
    void broadcast(std::span<std::byte>, int) const noexcept {}

    void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) const noexcept {
        assert(mine.size() == all.size());
        if (!mine.empty()) std::memmove(all.data(), mine.data(), mine.size());
    }
    [[nodiscard]] std::vector<std::string> all_gather_varied(std::string_view mine) const {
        return {std::string{mine}};
    }

    void reduce_scatter(std::span<const float> all, std::span<float> mine) const noexcept {
        all_gather(std::as_bytes(all), std::as_writable_bytes(mine));
    }
    void reduce_scatter(std::span<const bf16> all, std::span<bf16> mine) const noexcept {
        all_gather(std::as_bytes(all), std::as_writable_bytes(mine));
    }
    void reduce_scatter(std::span<const bf16> all, std::span<float> mine) const noexcept {
        core::convert_elements(all, mine);
    }
    void all_reduce_sum(std::span<double>) const noexcept {}

    /// Nothing: no collective of one rank can wait. Here so that a program may set it whatever DefaultComm is.
    void set_collective_timeout(std::chrono::milliseconds) const noexcept {}

    /// Ends the process at once, without destructors: the caller has said why.
    [[noreturn]] void abort(int status) const noexcept { std::_Exit(status); }
};

static_assert(Communicator<SelfComm>);

}  // namespace strata::comm
