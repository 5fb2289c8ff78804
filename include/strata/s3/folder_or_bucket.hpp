#pragma once
// strata/s3/folder_or_bucket.hpp - FolderOrBucket: the store of Backend<S3>, whose data sets may be of both types.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <strata/s3/s3.hpp>
#include <strata/storage/any_object_store.hpp>
#include <strata/storage/local.hpp>
#include <strata/storage/object_store.hpp>

namespace strata::s3 {

/// A folder of this machine, a bucket of an S3 server, or whatever else a data set is read from, whichever it was made
/// of. Does what that does.
class FolderOrBucket {
    template <class Call>
    decltype(auto) visit(const Call& call) const {
        return std::visit(call, store_);
    }

public:
    explicit FolderOrBucket(std::filesystem::path folder,
                            storage::Durability durability = storage::Durability::power_loss)
        : store_{Local{std::move(folder), durability}} {}
    explicit FolderOrBucket(S3Options bucket) : store_{S3{std::move(bucket)}} {}
    explicit FolderOrBucket(Local folder) : store_{std::move(folder)} {}
    explicit FolderOrBucket(S3 bucket) : store_{std::move(bucket)} {}
    explicit FolderOrBucket(storage::AnyObjectStore other) : store_{std::move(other)} {}

    [[nodiscard]] bool is_bucket() const noexcept { return bucket() != nullptr; }

    [[nodiscard]] std::vector<storage::ObjectInfo> list(std::string_view prefix) const {
        return visit([&](const auto& store) { return store.list(prefix); });
    }
    [[nodiscard]] storage::ObjectPage list_page(std::string_view prefix, std::string_view after,
                                                std::size_t limit) const {
        return visit([&](const auto& store) { return store.list_page(prefix, after, limit); });
    }
    void list_each(std::string_view prefix, const std::function<bool(storage::ObjectInfo&&)>& each) const {
        visit([&](const auto& store) { storage::list_each(store, prefix, each); });
    }
    [[nodiscard]] std::optional<storage::ObjectInfo> head(std::string_view key) const {
        return visit([&](const auto& store) { return store.head(key); });
    }
    [[nodiscard]] bool exists(std::string_view key) const {
        return visit([&](const auto& store) { return store.exists(key); });
    }
    [[nodiscard]] std::vector<std::byte> get(std::string_view key) const {
        return visit([&](const auto& store) { return store.get(key); });
    }
    [[nodiscard]] storage::VersionedBytes get_versioned(std::string_view key) const {
        return visit([&](const auto& store) { return storage::get_versioned(store, key); });
    }
    [[nodiscard]] std::vector<std::byte> get_range(std::string_view key, std::uint64_t offset,
                                                   std::uint64_t length) const {
        return visit([&](const auto& store) { return store.get_range(key, offset, length); });
    }
    void put(std::string_view key, std::span<const std::byte> bytes) const {
        visit([&](const auto& store) { store.put(key, bytes); });
    }
    void remove(std::string_view key) const {
        visit([&](const auto& store) { store.remove(key); });
    }
    [[nodiscard]] std::string where(std::string_view key) const {
        return visit([&](const auto& store) { return store.where(key); });
    }

    /// See Local; nothing is left in a bucket but parts of uploads, which its lifecycle rule removes.
    std::int64_t remove_leftovers() const {
        const Local* const folder = std::get_if<Local>(&store_);
        return folder != nullptr ? folder->remove_leftovers() : 0;
    }
    /// See S3; 0 for a folder.
    [[nodiscard]] int requests_at_once() const noexcept {
        const auto* const other = std::get_if<storage::AnyObjectStore>(&store_);
        return is_bucket() ? bucket()->requests_at_once() : other != nullptr ? other->requests_at_once() : 0;
    }
    /// See S3; nothing for a folder.
    [[nodiscard]] S3Traffic traffic() const { return is_bucket() ? bucket()->traffic() : S3Traffic{}; }
    /// See S3; a folder's calls go on.
    void interrupt() const noexcept {
        if (is_bucket()) bucket()->interrupt();
        if (const auto* const other = std::get_if<storage::AnyObjectStore>(&store_)) other->interrupt();
    }

private:
    [[nodiscard]] const S3* bucket() const noexcept { return std::get_if<S3>(&store_); }

    std::variant<Local, S3, storage::AnyObjectStore> store_;
};
static_assert(storage::ObjectStore<FolderOrBucket>);

}  // namespace strata::s3
