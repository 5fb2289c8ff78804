#pragma once
// strata/offload/impl/host_arena.ipp - mmap, huge pages, and touching every page.

#include <cstdint>
#include <string>
#include <utility>

#include <sys/mman.h>

#include <strata/offload/host_arena.hpp>
#include <strata/offload/host_memory.hpp>

namespace strata::offload {

STRATA_INLINE HostArena::HostArena(std::string_view what, std::size_t bytes, Pinning pinning)
    : pinning_{std::move(pinning)} {
    constexpr std::size_t page = 4096;
    const std::size_t size = (bytes + page - 1) / page * page;
    if (size == 0) return;
    const std::string fix = "lower the buffer budget, run fewer ranks on this node, or end what else uses its memory";
    require_host_memory(what, size, fix);
    void* const memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {  // a limit that free_host_memory() does not know, as of `ulimit -v`
        throw Error{
            Errc::not_enough_memory,
            std::string{what} + " needs " + in_gib(size) + " of host memory on this node, and the system refuses them",
            fix};
    }
    bytes_ = {static_cast<std::byte*>(memory), size};
    static_cast<void>(::madvise(memory, size, MADV_HUGEPAGE));
    for (std::size_t at = 0; at < size; at += page) {
        *static_cast<volatile std::byte*>(bytes_.data() + at) = std::byte{0};
    }
    if (!pinning_.pin) return;
    try {
        pinning_.pin(bytes_);
    } catch (...) {
        ::munmap(memory, size);
        throw;
    }
}

STRATA_INLINE HostArena::~HostArena() {
    if (bytes_.empty()) return;
    if (pinning_.unpin) pinning_.unpin(bytes_);
    ::munmap(bytes_.data(), bytes_.size());
}

}  // namespace strata::offload
