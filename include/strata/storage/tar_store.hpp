#pragma once
// strata/storage/tar_store.hpp - TarStore: the members of tar files in another store as objects, read in place.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <strata/core/error.hpp>
#include <strata/storage/object_store.hpp>
#include <strata/storage/tar.hpp>

namespace strata::storage {

/// What is kept of a tar file: its members, sorted by name, each name once (of several the last, as tar unpacks them).
struct TarIndex {
    std::vector<TarMember> members;

    [[nodiscard]] const TarMember* find(std::string_view name) const noexcept;
};

/// A TarIndex made of tar_members()' answer.
[[nodiscard]] TarIndex tar_index(std::vector<TarMember> members);

/// A file that keeps a TarIndex: published whole, with a check sum. Nothing if there is none of that tar file and
/// version, or it is damaged.
[[nodiscard]] std::optional<TarIndex> load_tar_index(const std::filesystem::path& folder, const std::string& place,
                                                     const std::string& version);
void save_tar_index(const std::filesystem::path& folder, const std::string& place, const std::string& version,
                    const TarIndex& index);

/// The members of the tar files in a store that a pattern names (matches_shard_pattern()), as an object store that is
/// only read. "train/000.tar" with the member "cat/17.jpg" gives the key "train/000/cat/17.jpg"; so what has one base
/// name in a tar file lies side by side. Every other key is that of the store below: a table beside the shards is
/// found; only members are listed.
///
/// A tar file is indexed when it is first asked for, by reading its headers, and again when its version has changed;
/// an index folder keeps that. The version of an object is the tar file's with the place in it. A read of an object
/// whose tar file has changed since it was indexed is what the store below says of a changed object, or other bytes:
/// run again after changing shards.
///
///   Store  an ObjectStore; what it is asked for at once is up to `requests`
///
/// Throws Errc::bad_tar, read_only for put() and remove(), and what the store below throws. Thread-safe; copies share
/// the index.
template <ObjectStore Store>
class TarStore {
public:
    ///   index_folder  empty: nothing is kept
    TarStore(Store below, std::string pattern, std::filesystem::path index_folder = {}, int requests = 8)
        : state_{std::make_shared<State>(std::move(below), std::move(pattern), std::move(index_folder), requests)} {}

    [[nodiscard]] std::vector<ObjectInfo> list(std::string_view prefix) const {
        std::vector<ObjectInfo> all;
        list_each(prefix, [&](ObjectInfo&& info) {
            all.push_back(std::move(info));
            return true;
        });
        return all;
    }
    void list_each(std::string_view prefix, const std::function<bool(ObjectInfo&&)>& visit) const {
        walk(prefix, "", visit);
    }
    [[nodiscard]] ObjectPage list_page(std::string_view prefix, std::string_view after, std::size_t limit) const {
        ObjectPage page;
        walk(prefix, after, [&](ObjectInfo&& info) {
            if (page.objects.size() == std::max<std::size_t>(limit, 1)) {
                page.next = page.objects.back().key;
                return false;
            }
            page.objects.push_back(std::move(info));
            return true;
        });
        return page;
    }
    [[nodiscard]] std::optional<ObjectInfo> head(std::string_view key) const {
        const auto found = find(key);
        if (!found.shard) return state_->below.head(key);
        if (found.member == nullptr) return std::nullopt;
        return info_of(*found.shard, *found.member);
    }
    [[nodiscard]] bool exists(std::string_view key) const { return head(key).has_value(); }
    [[nodiscard]] std::vector<std::byte> get(std::string_view key) const {
        const auto found = find(key);
        return found.shard ? read(found, key, 0, ~std::uint64_t{0}) : state_->below.get(key);
    }
    [[nodiscard]] std::vector<std::byte> get_range(std::string_view key, std::uint64_t offset,
                                                   std::uint64_t length) const {
        const auto found = find(key);
        return found.shard ? read(found, key, offset, length) : state_->below.get_range(key, offset, length);
    }
    [[noreturn]] void put(std::string_view key, std::span<const std::byte>) const { refuse("written", key); }
    [[noreturn]] void remove(std::string_view key) const { refuse("removed", key); }
    [[nodiscard]] std::string where(std::string_view key) const { return state_->below.where(key); }

    [[nodiscard]] int requests_at_once() const {
        if constexpr (requires { state_->below.requests_at_once(); }) return state_->below.requests_at_once();
        return 0;
    }
    void interrupt() const noexcept {
        if constexpr (requires { state_->below.interrupt(); }) state_->below.interrupt();
    }

private:
    struct Shard {
        ObjectInfo info;
        std::string folder;  // "train/000/"
        std::once_flag indexed;
        TarIndex index;
    };
    struct State {
        State(Store store, std::string names, std::filesystem::path folder, int at_once)
            : below{std::move(store)}, pattern{std::move(names)}, index_folder{std::move(folder)}, requests{at_once} {}
        Store below;
        std::string pattern;
        std::filesystem::path index_folder;
        int requests;
        std::mutex mutex;
        bool is_listed = false;
        std::map<std::string, std::shared_ptr<Shard>, std::less<>>
            shards;  // by folder: in the order of their members' keys
    };
    struct Found {
        std::shared_ptr<Shard> shard;
        const TarMember* member = nullptr;
    };

    using Shards = std::map<std::string, std::shared_ptr<Shard>, std::less<>>;
    [[nodiscard]] const Shards& shards() const {
        const std::lock_guard lock{state_->mutex};
        if (state_->is_listed) return state_->shards;
        Shards found;
        const std::string& pattern = state_->pattern;
        const std::string fixed = pattern.substr(0, pattern.find_first_of("*{"));
        storage::list_each(state_->below, fixed, [&](ObjectInfo&& info) {
            if (!matches_shard_pattern(info.key, pattern)) return true;
            auto shard = std::make_shared<Shard>();
            shard->folder = (info.key.ends_with(".tar") ? info.key.substr(0, info.key.size() - 4) : info.key) + "/";
            shard->info = std::move(info);
            found.insert_or_assign(shard->folder, std::move(shard));
            return true;
        });
        state_->shards = std::move(found);
        state_->is_listed = true;
        return state_->shards;
    }

    const TarIndex& index_of(Shard& shard) const {
        std::call_once(shard.indexed, [&] {
            const std::string place = state_->below.where(shard.info.key);
            if (!state_->index_folder.empty())
                if (auto kept = load_tar_index(state_->index_folder, place, shard.info.version)) {
                    shard.index = std::move(*kept);
                    return;
                }
            shard.index = tar_index(tar_members(
                [&](std::uint64_t offset, std::uint64_t length) {
                    return state_->below.get_range(shard.info.key, offset, length);
                },
                shard.info.size, place));
            if (!state_->index_folder.empty())
                save_tar_index(state_->index_folder, place, shard.info.version, shard.index);
        });
        return shard.index;
    }

    [[nodiscard]] Found find(std::string_view key) const {
        const Shards& all = shards();
        for (std::size_t slash = key.rfind('/'); slash != std::string_view::npos && slash > 0;
             slash = key.rfind('/', slash - 1)) {
            const auto at = all.find(key.substr(0, slash + 1));
            if (at == all.end()) continue;
            return {at->second, index_of(*at->second).find(key.substr(slash + 1))};
        }
        return {};
    }
    [[nodiscard]] ObjectInfo info_of(const Shard& shard, const TarMember& member) const {
        return {shard.folder + member.name, member.size, shard.info.version + "@" + std::to_string(member.offset)};
    }

    std::vector<std::byte> read(const Found& found, std::string_view key, std::uint64_t offset,
                                std::uint64_t length) const {
        if (found.member == nullptr)
            throw Error{
                Errc::not_found,
                "there is no '" + where(key) + "': tar file '" + where(found.shard->info.key) + "' has no such member",
                "correct the name"};
        const std::uint64_t left = offset < found.member->size ? found.member->size - offset : 0;
        if (left == 0) return {};
        const std::uint64_t wanted = std::min(length, left);
        std::vector<std::byte> bytes =
            state_->below.get_range(found.shard->info.key, found.member->offset + offset, wanted);
        if (bytes.size() != wanted)
            throw Error{Errc::object_changed, "tar file '" + where(found.shard->info.key) + "' is shorter than it was",
                        "start again"};
        return bytes;
    }

    /// Visits members behind `after`, some shards indexed ahead of the walk.
    void walk(std::string_view prefix, std::string_view after, const std::function<bool(ObjectInfo&&)>& visit) const {
        std::vector<Shard*> wanted;
        for (const auto& [folder, shard] : shards()) {
            const std::string_view both = std::string_view{folder}.substr(0, prefix.size());
            if (!prefix.starts_with(both)) continue;
            if (!after.empty() && folder < after && !after.starts_with(folder)) continue;
            wanted.push_back(shard.get());
        }
        const auto ahead = static_cast<std::size_t>(std::max(state_->requests, 1));
        for (std::size_t first = 0; first < wanted.size(); first += ahead) {
            const std::size_t count = std::min(ahead, wanted.size() - first);
            index_all(std::span{wanted}.subspan(first, count));
            for (std::size_t i = first; i < first + count; ++i)
                for (const TarMember& member : wanted[i]->index.members) {
                    ObjectInfo info = info_of(*wanted[i], member);
                    if (!info.key.starts_with(prefix) || (!after.empty() && info.key.compare(after) <= 0)) continue;
                    if (!visit(std::move(info))) return;
                }
        }
    }

    void index_all(std::span<Shard* const> some) const {
        std::vector<std::exception_ptr> failures(some.size());
        std::vector<std::thread> threads;
        for (std::size_t i = 1; i < some.size(); ++i)
            threads.emplace_back([&, i] {
                try {
                    (void)index_of(*some[i]);
                } catch (...) {
                    failures[i] = std::current_exception();
                }
            });
        try {
            (void)index_of(*some[0]);
        } catch (...) {
            failures[0] = std::current_exception();
        }
        for (std::thread& thread : threads) thread.join();
        for (const std::exception_ptr& failure : failures)
            if (failure) std::rethrow_exception(failure);
    }

    [[noreturn]] void refuse(const char* what, std::string_view key) const {
        throw Error{Errc::read_only, "'" + where(key) + "' cannot be " + what + ": tar files are only read",
                    "keep caches in a folder or a bucket"};
    }

    std::shared_ptr<State> state_;
};

}  // namespace strata::storage

#ifndef STRATA_COMPILED
#include <strata/storage/impl/tar_store.ipp>
#endif
