#pragma once
// strata/storage/local.hpp - Local: a directory of this machine as an object store.

#include <cstdint>
#include <filesystem>
#include <functional>

#include <strata/storage/atomic_file.hpp>
#include <strata/storage/object_store.hpp>

namespace strata {

/// A directory as an object store; a key is a path below it.
///
/// list() follows symbolic links, goes into folders once along each path (a link to a parent ends
/// there) and leaves out files that AtomicFile has not published. A page costs a look into each folder
/// that has keys behind `after`. The version is size, time of modification, time of change (ctime, which no program can
/// set back) in nanoseconds, and inode: a file that was replaced has another one whatever its size and date say, and so has
/// one that was only touched, moved or copied. put() is storage::AtomicFile. Thread-safe; holds nothing but the path.
///
/// Throws Errc::not_found, Errc::no_space, Errc::io_failed with the path, and Errc::bad_object_key
/// for a key that is empty or would leave the directory.
class Local {
public:
    /// The directory need not exist before the first put().
    explicit Local(std::filesystem::path root, storage::Durability durability = storage::Durability::power_loss);

    [[nodiscard]] const std::filesystem::path& root() const noexcept { return root_; }

    [[nodiscard]] std::vector<storage::ObjectInfo> list(std::string_view prefix) const;  ///< empty if nothing is there
    [[nodiscard]] storage::ObjectPage list_page(std::string_view prefix, std::string_view after,
                                                std::size_t limit) const;
    /// One walk over the folder: objects in the order of keys, until `visit` returns false.
    void list_each(std::string_view prefix, const std::function<bool(storage::ObjectInfo&&)>& visit) const;
    [[nodiscard]] std::optional<storage::ObjectInfo> head(std::string_view key) const;
    [[nodiscard]] bool exists(std::string_view key) const;
    [[nodiscard]] std::vector<std::byte> get(std::string_view key) const;
    [[nodiscard]] std::vector<std::byte> get_range(std::string_view key, std::uint64_t offset,
                                                   std::uint64_t length) const;
    void put(std::string_view key, std::span<const std::byte> bytes) const;
    void remove(std::string_view key) const;
    [[nodiscard]] std::string where(std::string_view key) const;

    /// Removes what killed writers left below the folder (storage::remove_leftovers()); returns how many files.
    std::int64_t remove_leftovers() const;

private:
    [[nodiscard]] std::filesystem::path path_of(std::string_view key) const;
    std::filesystem::path root_;
    storage::Durability durability_;
};
static_assert(storage::ObjectStore<Local>);

}  // namespace strata

#ifndef STRATA_COMPILED
#include <strata/storage/impl/local.ipp>
#endif
