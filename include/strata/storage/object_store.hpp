#pragma once
// strata/storage/object_store.hpp - the concept of a place where named bytes live.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace strata::storage {

/// What a store knows about an object without reading it.
struct ObjectInfo {
    std::string key;         ///< '/'-separated, relative to the store's root
    std::uint64_t size = 0;  ///< bytes
    std::string version;     ///< changes whenever the bytes do: modification time, ETag, ...; never empty
};

/// A place bytes live under names: a directory, a bucket, memory.
///
/// Keys are relative paths with '/' between their parts: no leading '/', no empty, "." or ".." part.
///
/// Semantic requirements (the compiler cannot check them):
///   * every call may be made from any thread at any time
///   * list(prefix) returns all objects whose key starts with the characters of `prefix`, sorted by key
///   * head of a missing object is nullopt; get and get_range of one throw Errc::not_found
///   * get_range(key, offset, length) returns bytes [offset, min(offset + length, size)), so fewer at the end
///   * put is atomic: a reader sees the old bytes, the new bytes or nothing, never a part; after it
///     returns every rank that can see the store sees the new bytes
///   * remove of a missing object does nothing
///   * where(key) is what a person would look for: a path, a URL; it appears in messages
template <class S>
concept ObjectStore = requires(const S& s, std::string_view key, std::uint64_t offset, std::uint64_t length,
                               std::span<const std::byte> bytes) {
    { s.list(key) } -> std::same_as<std::vector<ObjectInfo>>;
    { s.head(key) } -> std::same_as<std::optional<ObjectInfo>>;
    { s.exists(key) } -> std::same_as<bool>;
    { s.get(key) } -> std::same_as<std::vector<std::byte>>;
    { s.get_range(key, offset, length) } -> std::same_as<std::vector<std::byte>>;
    { s.put(key, bytes) } -> std::same_as<void>;
    { s.remove(key) } -> std::same_as<void>;
    { s.where(key) } -> std::same_as<std::string>;
};

namespace archetype {

/// The least an ObjectStore may be: not copyable, not default constructible, nothing but the calls.
struct ObjectStore {
    ObjectStore() = delete;
    ObjectStore(ObjectStore&&) = delete;
    [[nodiscard]] std::vector<ObjectInfo> list(std::string_view prefix) const;
    [[nodiscard]] std::optional<ObjectInfo> head(std::string_view key) const;
    [[nodiscard]] bool exists(std::string_view key) const;
    [[nodiscard]] std::vector<std::byte> get(std::string_view key) const;
    [[nodiscard]] std::vector<std::byte> get_range(std::string_view key, std::uint64_t offset,
                                                   std::uint64_t length) const;
    void put(std::string_view key, std::span<const std::byte> bytes) const;
    void remove(std::string_view key) const;
    [[nodiscard]] std::string where(std::string_view key) const;
};

}  // namespace archetype
static_assert(ObjectStore<archetype::ObjectStore>);

}  // namespace strata::storage
