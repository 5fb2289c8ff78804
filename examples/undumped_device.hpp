#pragma once
// examples/undumped_device.hpp - a device of one's own: the CPU, with training state left out of core dumps.

#include <cstddef>
#include <cstdint>
#include <span>

#include <c10/core/Device.h>
#include <sys/mman.h>
#include <unistd.h>

#include <strata/offload/host_arena.hpp>
#include <strata/zero/compute_device.hpp>

namespace my {

//! [device]
/// The CPU. A run of 200 GB that crashes dumps what its threads were doing, and not its weights.
struct Undumped {
    static constexpr bool is_host = true;
    [[nodiscard]] at::Device device() const { return at::kCPU; }
    [[nodiscard]] strata::offload::Pinning pinning() const {
        return {.pin = [](std::span<std::byte> memory) { advise(memory, MADV_DONTDUMP); },
                .unpin = [](std::span<std::byte> memory) { advise(memory, MADV_DODUMP); }};
    }

private:
    /// Of the pages that lie in `memory` with all of their bytes; a wish.
    static void advise(std::span<std::byte> memory, int advice) {
        const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
        const auto from = reinterpret_cast<std::uintptr_t>(memory.data());
        const std::uintptr_t begin = (from + page - 1) / page * page, end = (from + memory.size()) / page * page;
        if (begin < end) static_cast<void>(::madvise(reinterpret_cast<void*>(begin), end - begin, advice));
    }
};
static_assert(strata::zero::ComputeDevice<Undumped>);
//! [device]

}  // namespace my
