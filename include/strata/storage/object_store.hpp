#pragma once
// strata/storage/object_store.hpp - the concept of a place where named bytes live.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace strata::storage {

/// What a store knows about an object without reading it.
struct ObjectInfo {
    std::string key;         ///< '/'-separated, relative to the store's root
    std::uint64_t size = 0;  ///< bytes
    /// Changes whenever the bytes do, and may change when they do not: ETag, times and inode, ...; never empty. One that
    /// stays although the bytes changed, such as a time that programs set back, leaves a change unnoticed.
    std::string version;
};

/// A part of a listing.
struct ObjectPage {
    std::vector<ObjectInfo> objects;  ///< sorted by key; may be empty
    std::string next;                 ///< what the listing goes on behind; empty: nothing follows
};

/// A place bytes live under names: a directory, a bucket, memory.
///
/// Keys are relative paths with '/' between their parts: no leading '/', no empty, "." or ".." part. A store may take
/// more than that, and lists what it takes.
///
/// Semantic requirements (the compiler cannot check them):
///   * every call may be made from any thread at any time
///   * list(prefix) returns all objects whose key starts with the characters of `prefix`, sorted by key's bytes
///   * list_page(prefix, after, limit) returns the first of them behind `after` ("": from the start), between one and
///     `limit` or as many as there are; `after` is the `next` of an earlier page, of this or an earlier process, and
///     objects that were there all the time are listed once, whatever came and went meanwhile
///   * head of a missing object is nullopt; get and get_range of one throw Errc::not_found
///   * get_range(key, offset, length) returns bytes [offset, min(offset + length, size)), so fewer at the end
///   * objects of any size that fits into memory can be got and put
///   * put is atomic: a reader sees the old bytes, the new bytes or nothing, never a part; after it
///     returns every rank that can see the store sees the new bytes
///   * remove of a missing object does nothing
///   * where(key) is what a person would look for: a path, a URL; it appears in messages, and tells stores apart
/// testing/object_store_conformance.hpp checks a store against this list.
template <class S>
concept ObjectStore = requires(const S& s, std::string_view key, std::uint64_t offset, std::uint64_t length,
                               std::size_t limit, std::span<const std::byte> bytes) {
    { s.list(key) } -> std::same_as<std::vector<ObjectInfo>>;
    { s.list_page(key, key, limit) } -> std::same_as<ObjectPage>;
    { s.head(key) } -> std::same_as<std::optional<ObjectInfo>>;
    { s.exists(key) } -> std::same_as<bool>;
    { s.get(key) } -> std::same_as<std::vector<std::byte>>;
    { s.get_range(key, offset, length) } -> std::same_as<std::vector<std::byte>>;
    { s.put(key, bytes) } -> std::same_as<void>;
    { s.remove(key) } -> std::same_as<void>;
    { s.where(key) } -> std::same_as<std::string>;
};

/// list() for a store that has list_page(): all pages, one after the other.
///
///   page_limit  most objects a page
template <class Store>
[[nodiscard]] std::vector<ObjectInfo> list_by_pages(const Store& store, std::string_view prefix,
                                                    std::size_t page_limit = 1000) {
    std::vector<ObjectInfo> all;
    std::string after;
    do {
        ObjectPage page = store.list_page(prefix, after, page_limit);
        all.insert(all.end(), std::make_move_iterator(page.objects.begin()),
                   std::make_move_iterator(page.objects.end()));
        after = std::move(page.next);
    } while (!after.empty());
    return all;
}

/// Calls visit(ObjectInfo&&) for each object whose key starts with `prefix`, in the order of keys, until it returns
/// false: a listing that can be stopped and watched. One walk of a store that has list_each() itself, else by pages.
template <class Store, std::predicate<ObjectInfo&&> Visit>
void list_each(const Store& store, std::string_view prefix, const Visit& visit) {
    if constexpr (requires(const std::function<bool(ObjectInfo &&)>& each) { store.list_each(prefix, each); }) {
        store.list_each(prefix, visit);
    } else {
        std::string after;
        do {
            ObjectPage page = store.list_page(prefix, after, 1000);
            for (ObjectInfo& info : page.objects)
                if (!visit(std::move(info))) return;
            after = std::move(page.next);
        } while (!after.empty());
    }
}

/// All bytes of an object, and the version they are of.
struct VersionedBytes {
    std::vector<std::byte> bytes;
    std::string version;  ///< as ObjectInfo has it; empty for an object that is gone by now
};

/// get() for those who keep what they find out together with its version: if that is the version of an earlier listing, the
/// bytes are those that were listed. One request to a store that has get_versioned() itself; else head() follows get(), so the
/// version of an object that was replaced between the two is never that of an earlier listing. Throws what the store throws.
template <ObjectStore Store>
[[nodiscard]] VersionedBytes get_versioned(const Store& store, std::string_view key) {
    if constexpr (requires { store.get_versioned(key); }) {
        return store.get_versioned(key);
    } else {
        VersionedBytes object{store.get(key), {}};
        if (std::optional<ObjectInfo> info = store.head(key)) object.version = std::move(info->version);
        return object;
    }
}

namespace archetype {

/// The least an ObjectStore may be: not copyable, not default constructible, nothing but the calls.
struct ObjectStore {
    ObjectStore() = delete;
    ObjectStore(ObjectStore&&) = delete;
    [[nodiscard]] std::vector<ObjectInfo> list(std::string_view prefix) const;
    [[nodiscard]] ObjectPage list_page(std::string_view prefix, std::string_view after, std::size_t limit) const;
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
