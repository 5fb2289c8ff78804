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

/// Called with the lock held, as the next three. A kept block that wastes an eighth at most, which counts as in use.
STRATA_INLINE std::optional<KeptBlocks::Block> KeptBlocks::take_fitting(std::size_t bytes) noexcept {
    const auto found = kept_.lower_bound(bytes);
    if (found == kept_.end() || found->first > bytes + bytes / 8) return std::nullopt;
    Block block = found->second;
    kept_.erase(found);
    kept_bytes_ -= block.held;
    block.used = block.held;
    return block;
}

/// Any kept block that the request fits into; the smallest of those that need no new pages, else what needs the fewest.
STRATA_INLINE std::optional<KeptBlocks::Block> KeptBlocks::take_larger(std::size_t bytes) noexcept {
    auto found = kept_.lower_bound(bytes);
    if (found == kept_.end())
        while (found != kept_.begin() && (found == kept_.end() || found->second.mapped < bytes)) --found;
    if (found == kept_.end() || found->second.mapped < bytes) return std::nullopt;
    Block block = found->second;
    kept_.erase(found);
    kept_bytes_ -= block.held;
    block.held = std::max(block.held, bytes);
    block.used = bytes;
    kept_bytes_ += block.held - block.used;
    return block;
}

STRATA_INLINE void* KeptBlocks::take(std::size_t bytes) noexcept {
    const std::size_t whole = detail::whole_pages(bytes);
    const std::lock_guard lock{mutex_};
    const std::size_t most_used = most_used_;
    std::optional<Block> block = take_fitting(whole);
    const std::size_t used = block ? block->used : whole;
    used_bytes_ += used;
    most_used_ = std::max(most_used_, used_bytes_);
    if (!block && kept_bytes_ > room()) block = take_larger(whole);
    free_kept(room());
    if (!block) block = Block{detail::map_block(whole), whole, whole, whole};
    try {
        if (block->begin != nullptr) {
            used_.emplace(block->begin, *block);
            if (block->held > block->used) with_tail_.insert(block->begin);
        }
    } catch (...) {
        used_.erase(block->begin);
        kept_bytes_ -= block->held - block->used;
        ::munmap(block->begin, block->mapped);
        block->begin = nullptr;
    }
    if (block->begin == nullptr) {
        used_bytes_ -= used;
        most_used_ = most_used;
    }
    return block->begin;
}

STRATA_INLINE bool KeptBlocks::give(void* begin) noexcept {
    const std::lock_guard lock{mutex_};
    const auto found = used_.find(begin);
    if (found == used_.end()) return false;
    const Block block = found->second;
    used_.erase(found);
    with_tail_.erase(begin);
    used_bytes_ -= block.used;
    try {
        kept_.emplace(block.held, block);
        kept_bytes_ += block.used;
    } catch (...) {
        kept_bytes_ -= block.held - block.used;
        ::munmap(begin, block.mapped);
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
    free_tails(0);  // nobody has use of them as long as what is in use now stays
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
    while (kept_bytes_ > bytes_at_most && !kept_.empty()) {
        const auto largest = std::prev(kept_.end());
        ::munmap(largest->second.begin, largest->second.mapped);
        kept_bytes_ -= largest->first;
        kept_.erase(largest);
    }
    if (kept_bytes_ > bytes_at_most) free_tails(bytes_at_most);
}

/// Pages of blocks in use that nobody uses. Called with the lock held.
STRATA_INLINE void KeptBlocks::free_tails(std::size_t bytes_at_most) noexcept {
    while (kept_bytes_ > bytes_at_most && !with_tail_.empty()) {
        const auto first = with_tail_.begin();
        Block& block = used_.at(*first);
        const std::size_t tail = block.held - block.used;
        // Memory that is locked does not go.
        if (::madvise(static_cast<std::byte*>(block.begin) + block.used, tail, MADV_DONTNEED) == 0) {
            kept_bytes_ -= tail;
            block.held = block.used;
        }
        with_tail_.erase(first);
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
