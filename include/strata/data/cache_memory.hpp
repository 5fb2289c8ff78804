#pragma once
// strata/data/cache_memory.hpp - CacheMemory: cached tensors that stay in memory, within a number of bytes that is kept.

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include <ATen/core/Tensor.h>

#include <strata/data/detail/entry_slabs.hpp>

namespace strata::data {

/// Entries that stay in memory until a number of bytes is reached; later ones are read again each time. Thread-safe.
///
/// The bytes lie in pages of their own and not on the heap, where entries that stay would pin the holes that the temporaries
/// around them leave (5 GB for 512 MiB of 100,000 entries). What they cost in all is counted: tensors, names, identities, the table that
/// finds them, and the rest of the page that is begun. So a process grows by what it grants, and no more.
class CacheMemory {
public:
    /// What an entry holds: tensors on the CPU by name, each of any type.
    using Tensors = std::map<std::string, at::Tensor>;

    ///   budget_bytes  at most, everything included; below 1: nothing is kept
    explicit CacheMemory(std::int64_t budget_bytes)
        : keeps_{budget_bytes > 0}, slabs_{std::make_shared<detail::EntrySlabs>(budget_bytes)} {}

    /// The entry. Its tensors view the memory it is kept in, which lives as long as they do, and must not be written to.
    [[nodiscard]] std::optional<Tensors> find(const std::string& identity) const;
    /// Copies an entry into memory, if it fits and is not there yet. Tensors may be of any type and layout; on the CPU.
    void keep(const std::string& identity, const Tensors& tensors);
    /// Lets an entry go. Its place is used again when no tensor of find() views it any more.
    void drop(const std::string& identity);
    /// Whether an entry did not fit, and none has been dropped since.
    [[nodiscard]] bool is_full() const;
    [[nodiscard]] std::int64_t bytes() const;  ///< of the budget that are taken

private:
    bool keeps_;
    std::shared_ptr<detail::EntrySlabs> slabs_;  // shared with the tensors that view it
    std::atomic<bool> full_{false};
};

}  // namespace strata::data

#ifndef STRATA_COMPILED
#include <strata/data/impl/cache_memory.ipp>
#endif
