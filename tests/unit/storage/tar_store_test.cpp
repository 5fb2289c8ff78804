// Members of tar files as objects: keys, ranges, the index that is kept, and what is below.

#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <strata/storage/local.hpp>
#include <strata/storage/tar_store.hpp>

#include "../../support/made_tar.hpp"
#include "../../support/temporary_folder.hpp"

namespace {

using namespace strata::storage;
using strata::Errc;
using strata::Local;
using strata_test::made_tar;
using strata_test::TarEntry;
using strata_test::TemporaryFolder;
using strata_test::thrown_by;

std::string text_of(const std::vector<std::byte>& bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
void put(const Local& store, const std::string& key, const std::string& text) {
    store.put(key, std::as_bytes(std::span{text}));
}

struct Shards {
    TemporaryFolder folder;
    Local below{folder.path() / "data"};
    Shards() {
        put(below, "train/001.tar", made_tar({{"b.txt", "caption b"}, {"b.jpg", "picture b"}}));
        put(below, "train/000.tar",
            made_tar({{"17.jpg", "old"}, {"17.txt", "caption"}, {"17.jpg", "picture"}, {"x/y.jpg", "deep"}}));
        put(below, "train/notes.txt", "no shard");
        put(below, "table.csv", "a,b\n");
    }
    [[nodiscard]] TarStore<Local> store(const std::string& pattern = "train/*.tar") const {
        return TarStore<Local>{below, pattern, folder.path() / "index"};
    }
};

std::vector<std::string> keys_of(const std::vector<ObjectInfo>& infos) {
    std::vector<std::string> keys;
    for (const ObjectInfo& info : infos) keys.push_back(info.key);
    return keys;
}

TEST(TarStore, ListsMembersByTheirKeys) {
    const Shards shards;
    const auto store = shards.store();
    const std::vector<std::string> all{"train/000/17.jpg", "train/000/17.txt", "train/000/x/y.jpg", "train/001/b.jpg",
                                       "train/001/b.txt"};
    EXPECT_EQ(keys_of(store.list("")), all);
    EXPECT_EQ(keys_of(store.list("train/000/17")), (std::vector<std::string>{all[0], all[1]}));
    EXPECT_EQ(keys_of(store.list("train/00")), all);
    EXPECT_EQ(keys_of(store.list("train/001/")), (std::vector<std::string>{all[3], all[4]}));
    EXPECT_TRUE(store.list("other").empty());
    std::vector<std::string> by_pages;
    std::string after;
    do {
        const ObjectPage page = store.list_page("", after, 2);
        for (const ObjectInfo& info : page.objects) by_pages.push_back(info.key);
        EXPECT_LE(page.objects.size(), 2U);
        after = page.next;
    } while (!after.empty());
    EXPECT_EQ(by_pages, all);
    EXPECT_EQ(keys_of(shards.store("train/{000..000}.tar").list("")).size(), 3U);
}

TEST(TarStore, ReadsMembersInPlace) {
    const Shards shards;
    const auto store = shards.store();
    EXPECT_EQ(text_of(store.get("train/000/17.jpg")), "picture");  // of one name the last
    EXPECT_EQ(text_of(store.get("train/000/x/y.jpg")), "deep");
    EXPECT_EQ(text_of(store.get_range("train/001/b.jpg", 8, 100)), "b");
    EXPECT_EQ(text_of(store.get_range("train/001/b.jpg", 9, 1)), "");
    EXPECT_EQ(text_of(store.get_range("train/001/b.jpg", ~std::uint64_t{0}, 1)), "");
    EXPECT_EQ(store.head("train/001/b.jpg")->size, 9U);
    EXPECT_NE(store.head("train/001/b.jpg")->version, store.head("train/001/b.txt")->version);
    EXPECT_FALSE(store.exists("train/001/c.jpg"));
    const auto missing = thrown_by([&] { (void)store.get("train/001/c.jpg"); });
    EXPECT_EQ(missing.code, Errc::not_found);
    EXPECT_TRUE(missing.says("has no such member")) << missing.message;
    EXPECT_EQ(text_of(store.get("table.csv")), "a,b\n");  // of the store below
    EXPECT_FALSE(store.exists("other.csv"));
    EXPECT_EQ(thrown_by([&] { store.put("train/001/c.jpg", {}); }).code, Errc::read_only);
    EXPECT_EQ(thrown_by([&] { store.remove("train/001/b.jpg"); }).code, Errc::read_only);
}

TEST(TarStore, AnIndexIsMadeOnceForEachVersion) {
    const Shards shards;
    EXPECT_EQ(shards.store().list("").size(), 5U);
    const std::filesystem::path folder = shards.folder.path() / "index" / "tar";
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator{folder}) files.push_back(entry.path());
    ASSERT_EQ(files.size(), 2U);
    const std::string place = shards.below.where("train/001.tar");
    const auto kept =
        load_tar_index(shards.folder.path() / "index", place, shards.below.head("train/001.tar")->version);
    ASSERT_TRUE(kept);
    EXPECT_EQ(kept->members.size(), 2U);
    EXPECT_FALSE(load_tar_index(shards.folder.path() / "index", place, "another version"));
    // It is used: with one member less in it, there is one less.
    save_tar_index(shards.folder.path() / "index", place, shards.below.head("train/001.tar")->version,
                   {{kept->members[0]}});
    EXPECT_EQ(shards.store().list("").size(), 4U);
    // A damaged one is not.
    for (const std::filesystem::path& file : files) {
        std::string bytes = text_of(read_file(file));
        bytes.back() = '!';
        write_file(file, bytes);
    }
    EXPECT_EQ(shards.store().list("").size(), 5U);
    // Nor is one of an older shard.
    put(shards.below, "train/001.tar",
        made_tar({{"new.jpg", "new"}, {"newer.jpg", "newer"}, {"newest.jpg", "newest"}}));
    EXPECT_EQ(shards.store().list("train/001").size(), 3U);
}

TEST(TarStore, ADamagedShardIsNamed) {
    const Shards shards;
    put(shards.below, "train/002.tar", "no tar at all");
    const auto refused = thrown_by([&] { (void)shards.store().list(""); });
    EXPECT_EQ(refused.code, Errc::bad_tar);
    EXPECT_TRUE(refused.says("002.tar")) << refused.message;
    EXPECT_EQ(text_of(shards.store().get("train/000/17.jpg")), "picture");  // the others are none the worse
}

}  // namespace
