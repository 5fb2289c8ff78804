#pragma once
// strata/data/impl/entry_slabs.ipp - pages, the table, and the places of entries.

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include <sys/mman.h>
#include <unistd.h>

#include <strata/core/fnv1a.hpp>
#include <strata/data/detail/entry_slabs.hpp>

namespace strata::data::detail {

inline constexpr std::size_t slab_bytes = std::size_t{8} << 20;

[[nodiscard]] constexpr std::size_t up_to_multiple(std::size_t bytes, std::size_t of) noexcept {
    return (bytes + of - 1) / of * of;
}

/// Bytes as they count: in pages.
[[nodiscard]] inline std::size_t in_pages(std::size_t bytes) noexcept {
    static const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    return up_to_multiple(bytes, page);
}

// ---- pages -------------------------------------------------------------------------------------------------------------

STRATA_INLINE EntrySlabs::Pages::Pages(std::size_t bytes) {
    const std::size_t all = in_pages(bytes);
    void* const got = ::mmap(nullptr, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (got == MAP_FAILED) return;
    // A huge page would cost 2 MiB when its first byte is written, and be counted as one small page.
    (void)::madvise(got, all, MADV_NOHUGEPAGE);
    begin_ = static_cast<std::byte*>(got);
    bytes_ = all;
}

STRATA_INLINE EntrySlabs::Pages::Pages(Pages&& other) noexcept
    : begin_{std::exchange(other.begin_, nullptr)}, bytes_{std::exchange(other.bytes_, 0)} {}

STRATA_INLINE EntrySlabs::Pages& EntrySlabs::Pages::operator=(Pages&& other) noexcept {
    std::swap(begin_, other.begin_);
    std::swap(bytes_, other.bytes_);
    return *this;
}

STRATA_INLINE EntrySlabs::Pages::~Pages() {
    if (begin_ != nullptr) (void)::munmap(begin_, bytes_);
}

STRATA_INLINE EntrySlabs::~EntrySlabs() = default;

// ---- entries -----------------------------------------------------------------------------------------------------------

STRATA_INLINE std::size_t EntrySlabs::bytes_for(std::string_view key, std::size_t bytes) noexcept {
    return up_to_multiple(sizeof(Entry) + key.size(), alignment) + up_to_multiple(bytes, alignment);
}

STRATA_INLINE std::byte* EntrySlabs::bytes_of(Entry& entry) noexcept {
    return reinterpret_cast<std::byte*>(&entry) + up_to_multiple(sizeof(Entry) + entry.key_bytes, alignment);
}

STRATA_INLINE std::string_view EntrySlabs::key_of(const Entry& entry) noexcept {
    return {reinterpret_cast<const char*>(&entry + 1), entry.key_bytes};
}

STRATA_INLINE EntrySlabs::Entry*& EntrySlabs::first(std::uint64_t hash) const noexcept {
    return reinterpret_cast<Entry**>(table_.begin())[hash & (places_ - 1)];
}

STRATA_INLINE EntrySlabs::Entry* EntrySlabs::look_up(std::string_view key, std::uint64_t hash) const noexcept {
    if (places_ == 0) return nullptr;
    for (Entry* entry = first(hash); entry != nullptr; entry = entry->next)
        if (entry->hash == hash && key_of(*entry) == key) return entry;
    return nullptr;
}

STRATA_INLINE bool EntrySlabs::grow_table() {
    if (entries_ < places_) return true;
    const std::size_t places = std::max<std::size_t>(2 * places_, 512);
    const auto more = static_cast<std::int64_t>(in_pages(places * sizeof(Entry*)) - table_.size());
    if (taken_ + more > budget_) return false;
    Pages table{places * sizeof(Entry*)};
    if (table.begin() == nullptr) return false;
    const Pages before = std::exchange(table_, std::move(table));
    const std::size_t places_before = std::exchange(places_, places);
    for (std::size_t i = 0; i < places_before; ++i)
        for (Entry* entry = reinterpret_cast<Entry**>(before.begin())[i]; entry != nullptr;) {
            Entry* const next = entry->next;
            entry->next = std::exchange(first(entry->hash), entry);
            entry = next;
        }
    taken_ += more;
    return true;
}

/// Room for an entry, nullptr if the budget or the system has none.
STRATA_INLINE EntrySlabs::Entry* EntrySlabs::place(std::size_t all_bytes) {
    if (const auto found = free_.find(all_bytes); found != free_.end()) {
        Entry* const entry = found->second;
        if (entry->next == nullptr)
            free_.erase(found);
        else
            found->second = entry->next;
        return entry;
    }
    const bool is_large = all_bytes > slab_bytes / 4;
    const bool begins_slab = is_large || slabs_.empty() || used_ + all_bytes > slabs_.back().size();
    const std::size_t used = begins_slab ? 0 : used_;
    const auto more = static_cast<std::int64_t>(in_pages(used + all_bytes) - in_pages(used));
    if (taken_ + more > budget_) return nullptr;
    std::byte* begin = nullptr;
    if (begins_slab) {
        Pages pages{is_large ? all_bytes : slab_bytes};
        begin = pages.begin();
        if (begin == nullptr) return nullptr;
        // The slab that is being filled stays the last one.
        slabs_.insert(is_large && !slabs_.empty() ? slabs_.end() - 1 : slabs_.end(), std::move(pages));
        if (!is_large) used_ = all_bytes;
        if (is_large && slabs_.size() == 1) used_ = slabs_.back().size();
    } else {
        begin = slabs_.back().begin() + used_;
        used_ += all_bytes;
    }
    taken_ += more;
    return reinterpret_cast<Entry*>(begin);
}

STRATA_INLINE EntrySlabs::Kept EntrySlabs::add(std::string_view key, std::size_t bytes,
                                               const std::function<void(std::span<std::byte>)>& fill) {
    const std::uint64_t hash = core::fnv1a(key);
    const std::size_t all_bytes = bytes_for(key, bytes);
    Entry* entry = nullptr;
    {
        const std::lock_guard lock{mutex_};
        if (look_up(key, hash) != nullptr) return Kept::before;
        if (static_cast<std::int64_t>(all_bytes) > budget_ || !grow_table()) return Kept::does_not_fit;
        entry = place(all_bytes);
        if (entry == nullptr) return Kept::does_not_fit;
    }
    new (entry) Entry{hash, nullptr, all_bytes, static_cast<std::uint32_t>(key.size()), 0, true};
    std::memcpy(static_cast<void*>(entry + 1), key.data(), key.size());
    try {
        fill({bytes_of(*entry), bytes});
    } catch (...) {
        const std::lock_guard lock{mutex_};
        give_back(*entry);
        throw;
    }
    const std::lock_guard lock{mutex_};
    if (look_up(key, hash) != nullptr || !grow_table()) {  // others were busy meanwhile
        give_back(*entry);
        return look_up(key, hash) != nullptr ? Kept::before : Kept::does_not_fit;
    }
    entry->is_dropped = false;
    entry->next = std::exchange(first(hash), entry);
    ++entries_;
    return Kept::now;
}

STRATA_INLINE void EntrySlabs::give_back(Entry& entry) {
    Entry*& others = free_[entry.all_bytes];
    entry.next = std::exchange(others, &entry);
}

STRATA_INLINE EntrySlabs::Held EntrySlabs::find(std::string_view key) {
    const std::uint64_t hash = core::fnv1a(key);
    Entry* entry = nullptr;
    {
        const std::lock_guard lock{mutex_};
        entry = look_up(key, hash);
        if (entry == nullptr) return nullptr;
        ++entry->holders;
    }
    return {bytes_of(*entry), [all = shared_from_this(), entry](std::byte*) { all->release(*entry); }};
}

STRATA_INLINE void EntrySlabs::release(Entry& entry) {
    const std::lock_guard lock{mutex_};
    if (--entry.holders == 0 && entry.is_dropped) give_back(entry);
}

STRATA_INLINE bool EntrySlabs::drop(std::string_view key) {
    const std::uint64_t hash = core::fnv1a(key);
    const std::lock_guard lock{mutex_};
    Entry* const entry = look_up(key, hash);
    if (entry == nullptr) return false;
    Entry** link = &first(hash);
    while (*link != entry) link = &(*link)->next;
    *link = entry->next;
    entry->is_dropped = true;
    --entries_;
    if (entry->holders == 0) give_back(*entry);
    return true;
}

STRATA_INLINE std::int64_t EntrySlabs::bytes() const {
    const std::lock_guard lock{mutex_};
    return taken_;
}

}  // namespace strata::data::detail
