#pragma once
// strata/data/tensor_cache.hpp - tensors that took work to make, kept by what they were made from.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include <strata/core/error.hpp>
#include <strata/data/cache_memory.hpp>
#include <strata/data/named_tensors.hpp>
#include <strata/storage/object_store.hpp>

namespace strata::data {

/// What an entry inside gzip may unpack to; a small hostile file fills no memory.
inline constexpr std::uint64_t most_entry_bytes = std::uint64_t{1} << 30;

/// The object an entry is kept under: 128 bits of FNV-1a over its identity, "ab/cdef....safetensors[.gz]".
///
///   identity  everything the tensors depend on; two that differ never share an entry, because the identity
///             itself is kept inside and compared
[[nodiscard]] std::string cache_name(std::string_view identity, bool compress);

/// An entry as bytes: a safetensors file of the tensors, each in its own element type, with the identity in its metadata, inside
/// gzip if `compress`. Throws Errc::unsupported_dtype for an element type that safetensors files have no name for.
/// The metadata begins with `crc32c`, eight hexadecimal digits: the CRC32C of the whole file, length, header and numbers,
/// with eight '0' in their place. What deflate makes less than a tenth smaller, such as numbers whose mantissas are noise to
/// the last bit, is kept inside gzip as it is: unpacking it is then a copy.
[[nodiscard]] std::vector<std::byte> pack_entry(const NamedTensors& tensors, std::string_view identity, bool compress);

/// The tensors of an entry. Throws Errc::bad_cache_entry, naming `place`, when the bytes are damaged, hold
/// another identity or an element type that no tensor has, and Errc::unsummed_cache_entry for one without check sum, as versions
/// before wrote them.
[[nodiscard]] NamedTensors unpack_entry(std::span<const std::byte> bytes, std::string_view identity, bool compress,
                                        std::string_view place);

/// How an entry was come by.
enum class CacheOutcome : std::uint8_t {
    found,
    made,      ///< there was none
    rebuilt,   ///< made again, because it was damaged
    replaced,  ///< made again, because an earlier version wrote it without a check sum
};

/// A cache in an object store, in front of it some memory, which caches may share: each sees only the entries of its
/// own place there. Thread-safe; entries are written atomically, so ranks and
/// runs may share the store, and interrupted work goes on where it ended.
template <storage::ObjectStore Store>
class TensorCache {
public:
    ///   folder  in front of all names: empty, or one that ends with '/'
    TensorCache(Store store, bool compress, std::shared_ptr<CacheMemory> memory, std::string folder = {})
        : store_{std::move(store)},
          folder_{std::move(folder)},
          place_{store_.where(folder_) + '\n'},
          compress_{compress},
          memory_{std::move(memory)} {}

    /// True if the store has an entry; whether it is intact shows when it is read.
    [[nodiscard]] bool contains(const std::string& identity) const { return store_.exists(name(identity)); }
    /// Where the entry is, for messages.
    [[nodiscard]] std::string where(const std::string& identity) const { return store_.where(name(identity)); }
    /// Where all entries are, for messages.
    [[nodiscard]] std::string where() const { return store_.where(folder_); }
    /// The store's own place, which caches with another folder in it share.
    [[nodiscard]] std::string root() const { return store_.where(""); }
    [[nodiscard]] const CacheMemory& memory() const noexcept { return *memory_; }
    /// Throws what the store throws when nothing can be written; leaves no object behind.
    void require_writable() const {
        leave_mark(".write_test");
        remove_mark(".write_test");
    }

    /// Objects that are no entries, by which ranks find out whether they see the same cache. Throw what the store throws.
    void leave_mark(const std::string& mark) const { store_.put(folder_ + mark, {}); }
    [[nodiscard]] bool has_mark(const std::string& mark) const { return store_.exists(folder_ + mark); }
    void remove_mark(const std::string& mark) const { store_.remove(folder_ + mark); }

    /// Removes temporary files of killed writers, where the store leaves any; returns how many.
    std::int64_t remove_leftovers() const {
        if constexpr (requires { store_.remove_leftovers(); })
            return store_.remove_leftovers();
        else
            return 0;
    }

    /// Removes an entry; nothing happens if there is none.
    void remove(const std::string& identity) const {
        memory_->drop(place_ + identity);
        store_.remove(name(identity));
    }
    /// Removes all entries below the folder from the store, and not from memory.
    void clear() const {
        for (const storage::ObjectInfo& object : store_.list(folder_)) store_.remove(object.key);
    }

    /// What find() came upon: the entry, or why it must be made.
    struct Found {
        std::optional<NamedTensors> tensors;
        CacheOutcome outcome = CacheOutcome::found;
    };
    /// The entry, unless there is none, or it is damaged, without check sum or not `intact`.
    ///
    ///   intact  (const NamedTensors&) -> bool; whether names, types and shapes are the expected ones
    /// Throws what the store throws where that says nothing about the entry.
    template <class Intact>
    [[nodiscard]] Found find(const std::string& identity, const Intact& intact) const {
        const std::string in_memory = place_ + identity;
        if (std::optional<NamedTensors> kept = memory_->find(in_memory)) return {std::move(kept)};
        const std::string name = this->name(identity);
        try {
            const std::vector<std::byte> bytes = store_.get(name);
            NamedTensors tensors = unpack_entry(bytes, identity, compress_, store_.where(name));
            if (!intact(tensors)) return {std::nullopt, CacheOutcome::rebuilt};
            memory_->keep(in_memory, tensors);
            return {std::move(tensors)};
        } catch (const Error& error) {
            return {std::nullopt, outcome_of(error)};
        }
    }

    /// Writes an entry, in place of one that is there. Throws what the store throws.
    void put(const std::string& identity, const NamedTensors& tensors) const {
        store_.put(name(identity), pack_entry(tensors, identity, compress_));
        memory_->keep(place_ + identity, tensors);
    }

    /// find(), and where that finds nothing what `make` makes, which is put() there.
    ///
    ///   make  () or (CacheOutcome why) -> NamedTensors
    /// Throws what `make` and the store throw, and Errc::bad_cache_entry when `make` itself gives what is not intact.
    template <class Make, class Intact>
    std::pair<NamedTensors, CacheOutcome> get(const std::string& identity, const Make& make,
                                              const Intact& intact) const {
        Found found = find(identity, intact);
        if (found.tensors) return {std::move(*found.tensors), CacheOutcome::found};
        NamedTensors tensors = [&] {
            if constexpr (std::invocable<const Make&, CacheOutcome>)
                return make(found.outcome);
            else
                return make();
        }();
        if (!intact(tensors))
            throw Error{Errc::bad_cache_entry, "what was made for '" + where(identity) + "' has a wrong shape or type",
                        "make tensors of the names, types and shapes that are asked for"};
        put(identity, tensors);
        return {std::move(tensors), found.outcome};
    }

private:
    [[nodiscard]] std::string name(const std::string& identity) const {
        return folder_ + cache_name(identity, compress_);
    }
    /// Why an entry must be made, from what is being caught. Throws it again if it says nothing of the entry.
    [[nodiscard]] static CacheOutcome outcome_of(const Error& error) {
        switch (error.code()) {
            case Errc::not_found:
                return CacheOutcome::made;
            case Errc::bad_cache_entry:
            case Errc::bad_answer:
                return CacheOutcome::rebuilt;  // a bucket's bytes are not those that were written
            case Errc::unsummed_cache_entry:
                return CacheOutcome::replaced;
            default:
                throw;
        }
    }

    Store store_;
    std::string folder_;
    std::string place_;  // of the folder in the store, and what ends it
    bool compress_;
    std::shared_ptr<CacheMemory> memory_;
};

}  // namespace strata::data

#ifndef STRATA_COMPILED
#include <strata/data/impl/tensor_cache.ipp>
#endif
