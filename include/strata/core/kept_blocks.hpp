#pragma once
// strata/core/kept_blocks.hpp - KeptBlocks: large blocks of memory that are kept for the next one who needs one of their size.

#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include <strata/core/inline.hpp>

namespace strata::core {

/// A training step takes the same blocks as the one before, and the system clears every page before a program has it: of new memory that
/// takes as long as much of what is then computed in it. So blocks that are given back are kept, as many as keep what is held at or below
/// the most that was in use at once, and, from the second period on, a quarter more of what comes and goes in one: sizes do not fit into one
/// another without gaps, as they do not on a heap.
///
/// A block serves a request that is up to an eighth smaller. Where a new one would make others go, one of them serves any request that fits
/// into it: what the request does not use of it counts as kept, and goes before more is held than that. Blocks of 4 MiB and more
/// ask for huge pages. Thread-safe.
class KeptBlocks {
public:
    /// Smaller requests are the heap's, which keeps what it needs.
    static constexpr std::size_t least_bytes = std::size_t{1} << 20;

    KeptBlocks() = default;
    KeptBlocks(const KeptBlocks&) = delete;
    KeptBlocks& operator=(const KeptBlocks&) = delete;
    /// Gives back what is kept. Blocks in use stay their users'.
    ~KeptBlocks();

    /// A block of at least so many bytes, aligned to a page, whose contents are anything. nullptr: the system has none.
    [[nodiscard]] void* take(std::size_t bytes) noexcept;
    /// A block is no longer used. False: it is none of take()'s.
    bool give(void* block) noexcept;
    /// Gives all that is kept back to the system. What is kept from now on follows what is in use from now on.
    void trim() noexcept;
    /// The same work begins again, a training step: what is in use now stays, and what was in use before the last such call no longer counts.
    void start_period() noexcept;

    [[nodiscard]] std::size_t bytes_in_use() const noexcept;
    [[nodiscard]] std::size_t bytes_kept() const noexcept;

private:
    struct Block {
        void* begin = nullptr;
        std::size_t mapped = 0;
        std::size_t held = 0;  // from the beginning on: bytes whose pages may be there
        std::size_t used = 0;  // of those, what counts as in use
    };

    [[nodiscard]] std::size_t room() const noexcept;
    [[nodiscard]] std::optional<Block> take_fitting(std::size_t bytes) noexcept;
    [[nodiscard]] std::optional<Block> take_larger(std::size_t bytes) noexcept;
    void free_kept(std::size_t bytes_at_most) noexcept;
    void free_tails(std::size_t bytes_at_most) noexcept;

    mutable std::mutex mutex_;
    std::unordered_map<void*, Block> used_;
    std::unordered_set<void*> with_tail_;     // of used_, those that hold more than is used
    std::multimap<std::size_t, Block> kept_;  // by what they hold
    std::size_t used_bytes_ = 0;
    std::size_t kept_bytes_ = 0;        // tails included
    std::size_t most_used_ = 0;         // at once, in this period
    std::size_t most_used_before_ = 0;  // in the one before
    std::optional<std::size_t> stays_;  // in use when the period began; none before the first
};

/// Those of the process, which last as long as it does.
[[nodiscard]] KeptBlocks& kept_blocks() noexcept;

/// Gives what is kept, and the pages of all memory that was freed, back to the system: where what comes next needs other memory than
/// what was before. Takes milliseconds. Thread-safe.
void give_back_memory() noexcept;

}  // namespace strata::core

#ifndef STRATA_COMPILED
#include <strata/core/impl/kept_blocks.ipp>
#endif
