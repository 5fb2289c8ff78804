#pragma once
// strata/offload/host_arena.hpp - one aligned allocation of host memory that is there for good once it is made.

#include <cstddef>
#include <span>
#include <string_view>

#include <strata/core/error.hpp>
#include <strata/options/pipeline_options.hpp>

namespace strata::offload {

/// Page-aligned host memory for buffers that a disk or a GPU reads and writes directly. Zero at first; freed at the
/// end.
///
/// The need is compared with what is free before anything is allocated, and every page is touched at once: a node that
/// is too small says so at the start and not in the middle of a run. Huge pages are asked for, because they make direct
/// I/O cheaper; a kernel that has none gives small ones.
class HostArena {
public:
    /// Local. Throws not_enough_memory.
    ///
    ///   what   what the memory is for, as the beginning of a sentence
    ///   bytes  rounded up to whole pages
    HostArena(std::string_view what, std::size_t bytes, Pinning pinning = {});
    HostArena(const HostArena&) = delete;
    HostArena& operator=(const HostArena&) = delete;
    ~HostArena();

    [[nodiscard]] std::span<std::byte> bytes() const noexcept { return bytes_; }

private:
    std::span<std::byte> bytes_;
    Pinning pinning_;
};

}  // namespace strata::offload

#ifndef STRATA_COMPILED
#include <strata/offload/impl/host_arena.ipp>
#endif
