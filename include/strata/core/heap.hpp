#pragma once
// strata/core/heap.hpp - memory and the system: what is not needed again goes back and does not wait in the heap; huge pages.

#include <cstdint>
#include <cstdlib>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <sys/mman.h>
#include <unistd.h>

namespace strata::core {

/// Gives the pages of all freed memory back to the system, which takes milliseconds: the heap of glibc holds blocks of up to 32 MiB,
/// and shrinks by itself only at its end. Thread-safe.
inline void give_back_heap() noexcept {
#ifdef __GLIBC__
    ::malloc_trim(0);
#endif
}

namespace detail {

/// Tells the system `what` (madvise) of the whole pages between two addresses.
inline void advise_pages(std::uintptr_t begin, std::uintptr_t end, int what) noexcept {
    const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    const std::uintptr_t first = (begin + page - 1) / page * page, last = end / page * page;
    if (first < last) ::madvise(reinterpret_cast<void*>(first), last - first, what);
}

}  // namespace detail

/// The whole pages between two addresses become huge ones when they are first touched, where the system has any. Thread-safe.
inline void ask_for_huge_pages(std::uintptr_t begin, std::uintptr_t end) noexcept {
    detail::advise_pages(begin, end, MADV_HUGEPAGE);
}

/// Gives the whole pages between two addresses back, whose memory its owner frees next: what was in them is gone. Where tensors of one
/// size are made and freed in turns that is needed: before glibc 2.38 an aligned block does not fit into the place that one of the same
/// size left (sourceware.org, bug 14581), so that the heap grows by all of them. Private memory only. Thread-safe.
inline void give_back_pages(std::uintptr_t begin, std::uintptr_t end) noexcept {
    detail::advise_pages(begin, end, MADV_DONTNEED);
}

}  // namespace strata::core
