#pragma once
// strata/data/detail/entry_slabs.hpp - EntrySlabs: byte strings by key, in pages of their own that are counted to the last one.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include <strata/core/inline.hpp>

namespace strata::data::detail {

/// Byte strings of any size by key, and all they cost: their pages, the keys among them, and the pages of the table that finds
/// them. Nothing that grows with them is on the heap. Thread-safe; must be owned by a shared_ptr.
///
/// Entries are laid end to end into slabs of 8 MiB, whose pages cost nothing until they are begun; larger ones get a slab of
/// their own. The place of one that was dropped is taken by the next of its size.
class EntrySlabs : public std::enable_shared_from_this<EntrySlabs> {
public:
    ///   budget  bytes; below 1: nothing fits
    explicit EntrySlabs(std::int64_t budget) : budget_{budget} {}
    EntrySlabs(const EntrySlabs&) = delete;
    EntrySlabs& operator=(const EntrySlabs&) = delete;
    ~EntrySlabs();

    static constexpr std::size_t alignment = 64;  ///< of an entry's bytes

    /// An entry's bytes, which stay where they are while it lives.
    using Held = std::shared_ptr<std::byte>;

    /// Null if there is none.
    [[nodiscard]] Held find(std::string_view key);

    enum class Kept : std::uint8_t { now, before, does_not_fit };
    /// Adds an entry.
    ///
    ///   fill  writes its bytes, which nobody else sees yet; not called for one that does not fit or is there
    Kept add(std::string_view key, std::size_t bytes, const std::function<void(std::span<std::byte>)>& fill);

    /// Returns false if there was none.
    bool drop(std::string_view key);

    [[nodiscard]] std::int64_t bytes() const;  ///< that count against the budget

private:
    /// What an entry begins with; behind it its key, then, aligned, its bytes.
    struct Entry {
        std::uint64_t hash;
        Entry* next;              // of the same place in the table, or of the free ones of a size
        std::uint64_t all_bytes;  // with this, a multiple of the alignment
        std::uint32_t key_bytes;
        std::uint32_t holders;
        bool is_dropped;
    };
    /// Whole pages from the system.
    class Pages {
    public:
        Pages() = default;
        explicit Pages(std::size_t bytes);  ///< nothing where the system gives none
        Pages(Pages&& other) noexcept;
        Pages& operator=(Pages&& other) noexcept;
        ~Pages();
        [[nodiscard]] std::byte* begin() const noexcept { return begin_; }
        [[nodiscard]] std::size_t size() const noexcept { return bytes_; }

    private:
        std::byte* begin_ = nullptr;
        std::size_t bytes_ = 0;
    };

    [[nodiscard]] static std::byte* bytes_of(Entry& entry) noexcept;
    [[nodiscard]] static std::string_view key_of(const Entry& entry) noexcept;
    [[nodiscard]] static std::size_t bytes_for(std::string_view key, std::size_t bytes) noexcept;
    [[nodiscard]] Entry*& first(std::uint64_t hash) const noexcept;
    [[nodiscard]] Entry* look_up(std::string_view key, std::uint64_t hash) const noexcept;
    [[nodiscard]] Entry* place(std::size_t all_bytes);
    [[nodiscard]] bool grow_table();
    void give_back(Entry& entry);
    void release(Entry& entry);

    mutable std::mutex mutex_;
    std::int64_t budget_;
    std::int64_t taken_ = 0;
    std::vector<Pages> slabs_;
    std::size_t used_ = 0;  // of the last slab, which is being filled
    Pages table_;           // of Entry*, a power of two of them
    std::size_t places_ = 0;
    std::size_t entries_ = 0;             // in the table
    std::map<std::size_t, Entry*> free_;  // by all_bytes
};

}  // namespace strata::data::detail

#ifndef STRATA_COMPILED
#include <strata/data/impl/entry_slabs.ipp>
#endif
