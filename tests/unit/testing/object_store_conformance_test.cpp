#include <algorithm>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <strata/storage/local.hpp>
#include <strata/testing/object_store_conformance.hpp>

#include "../../support/temporary_folder.hpp"

namespace {

using strata::Errc;
using strata::Error;
using strata_test::TemporaryFolder;
namespace storage = strata::storage;
using Bytes = std::vector<std::byte>;

/// A user's own store: a map. What it does wrong can be chosen.
class Memory {
public:
    enum class Flaw {
        none,
        forgets_versions,
        unsorted,
        folder_prefixes,
        endless_pages,
        big_pages,
        drops_page_ends,
        plus_is_blank,
        upper_case,
        wrong_range,
        quiet_get,
        nameless_get,
        keeps_removed,
        appends,
        empty_key,
        torn_puts,
        truncates
    };
    explicit Memory(Flaw flaw = Flaw::none) : flaw_{flaw} {}

    [[nodiscard]] std::vector<storage::ObjectInfo> list(std::string_view prefix) const {
        const std::lock_guard lock{mutex_};
        std::vector<storage::ObjectInfo> found;
        for (const auto& [key, object] : objects_)
            if (key.starts_with(prefix) && (flaw_ != Flaw::folder_prefixes || prefix.ends_with('/') || key == prefix))
                found.push_back({key, object.bytes.size(), object.version});
        if (flaw_ == Flaw::unsorted) std::reverse(found.begin(), found.end());
        return found;
    }
    [[nodiscard]] storage::ObjectPage list_page(std::string_view prefix, std::string_view after,
                                                std::size_t limit) const {
        storage::ObjectPage page;
        for (auto& info : list(prefix)) {
            if (info.key <= after) continue;
            if (page.objects.size() == limit && flaw_ != Flaw::big_pages) {
                page.next = page.objects.back().key;
                if (flaw_ == Flaw::drops_page_ends) page.objects.pop_back();
                break;
            }
            page.objects.push_back(std::move(info));
        }
        if (flaw_ == Flaw::endless_pages && page.next.empty() && !page.objects.empty()) page.next = "conformance/";
        return page;
    }
    [[nodiscard]] std::optional<storage::ObjectInfo> head(std::string_view key) const {
        require_key(key);
        const std::lock_guard lock{mutex_};
        const auto found = objects_.find(name(key));
        if (found == objects_.end()) return std::nullopt;
        return storage::ObjectInfo{std::string{key}, found->second.bytes.size(), found->second.version};
    }
    [[nodiscard]] bool exists(std::string_view key) const { return head(key).has_value(); }
    [[nodiscard]] Bytes get(std::string_view key) const {
        require_key(key);
        const std::lock_guard lock{mutex_};
        const auto found = objects_.find(name(key));
        read_.notify_all();
        if (found != objects_.end()) return found->second.bytes;
        if (flaw_ == Flaw::quiet_get) return {};
        throw Error{Errc::not_found, flaw_ == Flaw::nameless_get ? "no such object" : "no object '" + where(key) + "'",
                    "look elsewhere"};
    }
    [[nodiscard]] Bytes get_range(std::string_view key, std::uint64_t offset, std::uint64_t length) const {
        const Bytes all = get(key);
        if (flaw_ == Flaw::wrong_range && offset > 0 && offset < all.size()) --offset;
        const auto begin = all.begin() + static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(offset, all.size()));
        const auto rest = static_cast<std::uint64_t>(all.end() - begin);
        return {begin, begin + static_cast<std::ptrdiff_t>(std::min(length, rest))};
    }
    void put(std::string_view key, std::span<const std::byte> bytes) const {
        require_key(key);
        std::unique_lock lock{mutex_};
        if (flaw_ == Flaw::torn_puts && objects_.contains(name(key)) && key.ends_with("/atomic")) {
            objects_[name(key)].bytes.assign(bytes.begin(),
                                             bytes.begin() + static_cast<std::ptrdiff_t>(bytes.size() / 2));
            read_.wait_for(lock, std::chrono::seconds{5});  // until somebody has read the half
        }
        Object& object = objects_[name(key)];
        if (flaw_ != Flaw::appends) object.bytes.clear();
        object.bytes.insert(object.bytes.end(), bytes.begin(), bytes.end());
        if (flaw_ == Flaw::truncates && object.bytes.size() > 1'000'000) object.bytes.resize(1'000'000);
        object.version = flaw_ == Flaw::forgets_versions ? "1" : std::to_string(++version_);
    }
    void remove(std::string_view key) const {
        require_key(key);
        const std::lock_guard lock{mutex_};
        if (flaw_ != Flaw::keeps_removed) objects_.erase(name(key));
    }
    [[nodiscard]] std::string where(std::string_view key) const { return "memory:" + std::string{key}; }

private:
    struct Object {
        Bytes bytes;
        std::string version;
    };
    void require_key(std::string_view key) const {
        if (key.empty() && flaw_ != Flaw::empty_key)
            throw Error{Errc::bad_object_key, "the key is empty", "name an object"};
    }
    [[nodiscard]] std::string name(std::string_view key) const {
        std::string name{key};
        for (char& c : name) {
            if (flaw_ == Flaw::plus_is_blank && c == '+') c = ' ';
            if (flaw_ == Flaw::upper_case) c = static_cast<char>(::tolower(c));
        }
        return name;
    }
    Flaw flaw_;
    mutable std::mutex mutex_;
    mutable std::condition_variable read_;
    mutable std::map<std::string, Object> objects_;
    mutable int version_ = 0;
};
static_assert(storage::ObjectStore<Memory>);

using Failures = std::vector<std::string>;
const strata::testing::ConformanceOptions small{.large_bytes = 2'000'000, .threads = 4};

//! [conformance]
TEST(ObjectStoreConformance, AStoreOfAUsersOwnConforms) {
    const Memory store;
    EXPECT_EQ(strata::testing::object_store_failures(store), Failures{});
}
//! [conformance]

TEST(ObjectStoreConformance, LocalConforms) {
    const TemporaryFolder folder;
    EXPECT_EQ(strata::testing::object_store_failures(strata::Local{folder.path()}), Failures{});
    EXPECT_EQ(folder.count_files(), 0);
    const strata::Local quick{folder.path() / "quick", storage::Durability::process_end};
    EXPECT_EQ(strata::testing::object_store_failures(quick, small), Failures{});
}

TEST(ObjectStoreConformance, TouchesNothingWhereSomethingIs) {
    const Memory store;
    store.put("conformance/mine", Bytes(3));
    const Failures failures = strata::testing::object_store_failures(store);
    ASSERT_EQ(failures.size(), 1U);
    EXPECT_TRUE(failures[0].starts_with("begins empty: ")) << failures[0];
    EXPECT_EQ(store.get("conformance/mine"), Bytes(3));
    EXPECT_EQ(store.list("").size(), 1U);
}

TEST(ObjectStoreConformance, EveryFlawIsFoundAndNamed) {
    using enum Memory::Flaw;
    const std::vector<std::pair<Memory::Flaw, std::string>> flaws{
        {forgets_versions, "replaces whole objects"},
        {unsorted, "lists by prefix"},
        {folder_prefixes, "lists by prefix"},
        {endless_pages, "lists in pages"},
        {big_pages, "lists in pages"},
        {drops_page_ends, "lists in pages"},
        {plus_is_blank, "keeps awkward keys apart"},
        {upper_case, "keeps awkward keys apart"},
        {wrong_range, "reads ranges"},
        {quiet_get, "knows what is missing"},
        {nameless_get, "knows what is missing"},
        {keeps_removed, "ends empty"},
        {appends, "replaces whole objects"},
        {empty_key, "refuses the empty key"},
        {torn_puts, "puts atomically"},
        {truncates, "returns what was put"},
    };
    for (const auto& [flaw, law] : flaws) {
        const Memory store{flaw};
        const Failures failures = strata::testing::object_store_failures(store, small);
        const std::string start = law + ": ";
        const bool found =
            std::ranges::any_of(failures, [&](const std::string& text) { return text.starts_with(start); });
        EXPECT_TRUE(found) << "flaw " << static_cast<int>(flaw) << " should break '" << law
                           << "'; broken: " << failures.size() << (failures.empty() ? "" : ", " + failures[0]);
    }
}

}  // namespace
