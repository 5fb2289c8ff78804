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
#include <strata/storage/object_store.hpp>

namespace strata::data {

/// fp32 tensors on the CPU by name: what one cache entry holds.
using NamedTensors = std::map<std::string, at::Tensor>;

/// What an entry inside gzip may unpack to; a small hostile file fills no memory.
inline constexpr std::uint64_t most_entry_bytes = std::uint64_t{1} << 30;

/// The object an entry is kept under: 128 bits of FNV-1a over its identity, "ab/cdef....safetensors[.gz]".
///
///   identity  everything the tensors depend on; two that differ never share an entry, because the identity
///             itself is kept inside and compared
[[nodiscard]] std::string cache_name(std::string_view identity, bool compress);

/// An entry as bytes: a safetensors file of fp32 tensors with the identity in its metadata, inside gzip if `compress`.
/// The metadata begins with `crc32c`, eight hexadecimal digits: the CRC32C of the whole file, length, header and numbers,
/// with eight '0' in their place. What deflate makes less than a tenth smaller, such as numbers whose mantissas are noise to
/// the last bit, is kept inside gzip as it is: unpacking it is then a copy.
[[nodiscard]] std::vector<std::byte> pack_entry(const NamedTensors& tensors, std::string_view identity, bool compress);

/// The tensors of an entry. Throws Errc::bad_cache_entry, naming `place`, when the bytes are damaged, hold
/// another identity or another type than fp32, and Errc::unsummed_cache_entry for one without check sum, as versions
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
        store_.put(folder_ + ".write_test", {});
        store_.remove(folder_ + ".write_test");
    }

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

    /// The entry, made by `make` and stored when there is none, or it is damaged, without check sum or not `intact`.
    ///
    ///   make    () or (CacheOutcome why) -> NamedTensors
    ///   intact  (const NamedTensors&) -> bool; whether names and shapes are the expected ones
    /// Throws what `make` and the store throw, and Errc::bad_cache_entry when `make` itself gives what is not intact.
    template <class Make, class Intact>
    std::pair<NamedTensors, CacheOutcome> get(const std::string& identity, const Make& make,
                                              const Intact& intact) const {
        const std::string in_memory = place_ + identity;
        if (std::optional<NamedTensors> kept = memory_->find(in_memory)) return {std::move(*kept), CacheOutcome::found};
        const std::string name = this->name(identity);
        CacheOutcome outcome = CacheOutcome::made;
        try {
            const std::vector<std::byte> bytes = store_.get(name);
            NamedTensors tensors = unpack_entry(bytes, identity, compress_, store_.where(name));
            if (intact(tensors)) {
                memory_->keep(in_memory, tensors);
                return {std::move(tensors), CacheOutcome::found};
            }
            outcome = CacheOutcome::rebuilt;
        } catch (const Error& error) {
            outcome = outcome_of(error);
        }
        NamedTensors tensors = [&] {
            if constexpr (std::invocable<const Make&, CacheOutcome>)
                return make(outcome);
            else
                return make();
        }();
        if (!intact(tensors))
            throw Error{Errc::bad_cache_entry,
                        "what an encoder made for '" + store_.where(name) + "' has a wrong shape or type",
                        "let encode() return fp32 tensors of the shapes that its concept states"};
        store_.put(name, pack_entry(tensors, identity, compress_));
        memory_->keep(in_memory, tensors);
        return {std::move(tensors), outcome};
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
