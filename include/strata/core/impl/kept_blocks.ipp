#pragma once
// strata/core/impl/kept_blocks.ipp - blocks are mappings of their own.

#include <algorithm>
#include <cstdint>
#include <iterator>

#include <sys/mman.h>
#include <unistd.h>

#include <strata/core/heap.hpp>
#include <strata/core/kept_blocks.hpp>

namespace strata::core {
namespace detail {

inline constexpr std::size_t huge_page = std::size_t{2} << 20;
inline constexpr std::size_t least_on_huge_pages = 2 * huge_page;

inline std::size_t whole_pages(std::size_t bytes) noexcept {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    return (bytes + page - 1) / page * page;
}

/// New memory of whole pages, at the beginning of a huge one where there is room for two. nullptr: the system has none.
inline void* map_block(std::size_t bytes) noexcept {
    const std::size_t slack = bytes >= least_on_huge_pages ? huge_page : 0;
    void* const mapped = ::mmap(nullptr, bytes + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) return nullptr;
    if (slack == 0) return mapped;
    const auto begin = reinterpret_cast<std::uintptr_t>(mapped);
    const std::uintptr_t first = (begin + huge_page - 1) / huge_page * huge_page;
    if (first > begin) ::munmap(mapped, first - begin);
    void* const block = reinterpret_cast<void*>(first);
    if (const std::size_t behind = begin + slack - first; behind > 0)
        ::munmap(static_cast<std::byte*>(block) + bytes, behind);
    ask_for_huge_pages(first, first + bytes);
    return block;
}

}  // namespace detail

STRATA_INLINE KeptBlocks::~KeptBlocks() { trim(); }

STRATA_INLINE void* KeptBlocks::take(std::size_t bytes) noexcept {
    const std::size_t whole = detail::whole_pages(bytes);
    void* block = nullptr;
    std::size_t size = whole;
    const std::lock_guard lock{mutex_};
    if (const auto found = kept_.lower_bound(whole); found != kept_.end() && found->first <= whole + whole / 8) {
        size = found->first;
        block = found->second;
        kept_.erase(found);
        kept_bytes_ -= size;
    }
    const std::size_t most_used = most_used_;
    used_bytes_ += size;
    most_used_ = std::max(most_used_, used_bytes_);
    free_kept(room());
    if (block == nullptr) block = detail::map_block(whole);
    try {
        if (block != nullptr) used_.emplace(block, size);
    } catch (...) {
        ::munmap(block, size);
        block = nullptr;
    }
    if (block == nullptr) {
        used_bytes_ -= size;
        most_used_ = most_used;
    }
    return block;
}

STRATA_INLINE bool KeptBlocks::give(void* block) noexcept {
    const std::lock_guard lock{mutex_};
    const auto found = used_.find(block);
    if (found == used_.end()) return false;
    const std::size_t size = found->second;
    used_.erase(found);
    used_bytes_ -= size;
    try {
        kept_.emplace(size, block);
        kept_bytes_ += size;
    } catch (...) {
        ::munmap(block, size);
    }
    free_kept(room());
    return true;
}

STRATA_INLINE void KeptBlocks::trim() noexcept {
    const std::lock_guard lock{mutex_};
    free_kept(0);
    most_used_ = most_used_before_ = used_bytes_;
    stays_.reset();
}

STRATA_INLINE void KeptBlocks::start_period() noexcept {
    const std::lock_guard lock{mutex_};
    stays_ = used_bytes_;
    most_used_before_ = most_used_;
    most_used_ = used_bytes_;
    free_kept(room());
}

STRATA_INLINE std::size_t KeptBlocks::bytes_in_use() const noexcept {
    const std::lock_guard lock{mutex_};
    return used_bytes_;
}

STRATA_INLINE std::size_t KeptBlocks::bytes_kept() const noexcept {
    const std::lock_guard lock{mutex_};
    return kept_bytes_;
}

/// How much may be kept. Called with the lock held.
STRATA_INLINE std::size_t KeptBlocks::room() const noexcept {
    const std::size_t most = std::max(most_used_, most_used_before_);
    const std::size_t comes_and_goes = most - std::min(most, stays_.value_or(most));
    return most + comes_and_goes / 4 - used_bytes_;
}

/// Called with the lock held. The largest go first: a small one fits more often.
STRATA_INLINE void KeptBlocks::free_kept(std::size_t bytes_at_most) noexcept {
    while (kept_bytes_ > bytes_at_most) {
        const auto largest = std::prev(kept_.end());
        ::munmap(largest->second, largest->first);
        kept_bytes_ -= largest->first;
        kept_.erase(largest);
    }
}

STRATA_INLINE KeptBlocks& kept_blocks() noexcept {
    static auto* const blocks = new KeptBlocks;  // never destroyed: tensors of other statics may outlive it
    return *blocks;
}

STRATA_INLINE void give_back_memory() noexcept {
    kept_blocks().trim();
    give_back_heap();
}

}  // namespace strata::core
