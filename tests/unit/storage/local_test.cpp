#include <fstream>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <strata/storage/atomic_file.hpp>
#include <strata/storage/local.hpp>

#include "../../support/temporary_folder.hpp"

namespace {

using strata::Errc;
using strata::Local;
using strata_test::TemporaryFolder;
using strata_test::thrown_by;

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span{text.data(), text.size()}); }
std::string text(const std::vector<std::byte>& b) { return {reinterpret_cast<const char*>(b.data()), b.size()}; }

TEST(Local, ReturnsWhatWasPutAndMakesFoldersForIt) {
    const TemporaryFolder folder;
    const Local store{folder.path() / "not" / "there"};
    store.put("a/b/c.bin", bytes("hello"));
    EXPECT_EQ(text(store.get("a/b/c.bin")), "hello");
    store.put("a/b/c.bin", bytes("other"));
    EXPECT_EQ(text(store.get("a/b/c.bin")), "other");
    EXPECT_EQ(folder.count_files(), 1);
}

TEST(Local, ListsSortedKeysThatStartWithThePrefix) {
    const TemporaryFolder folder;
    const Local store{folder.path()};
    for (const char* key : {"b/2.png", "b/10.png", "a.png", "b.txt", "bc/x y ü+%.png"}) store.put(key, bytes("1234"));
    std::vector<std::string> keys;
    for (const auto& info : store.list("")) {
        keys.push_back(info.key);
        EXPECT_EQ(info.size, 4U);
        EXPECT_FALSE(info.version.empty());
    }
    EXPECT_EQ(keys, (std::vector<std::string>{"a.png", "b.txt", "b/10.png", "b/2.png", "bc/x y ü+%.png"}));
    EXPECT_EQ(store.list("b/").size(), 2U);
    EXPECT_EQ(store.list("b/1").size(), 1U);
    EXPECT_EQ(store.list("b").size(), 4U);
    EXPECT_EQ(store.list("c").size(), 0U);
    EXPECT_EQ(Local{folder.path() / "missing"}.list("").size(), 0U);
}

TEST(Local, AReplacedFileHasAnotherVersionWhateverItsSizeAndDateSay) {
    const TemporaryFolder folder;
    const Local store{folder.path()};
    store.put("a", bytes("first"));
    const auto first = store.head("a").value();
    EXPECT_EQ(store.head("a").value().version, first.version);
    EXPECT_EQ(store.list("").at(0).version, first.version);
    const auto date = std::filesystem::last_write_time(folder.path() / "a");
    store.put("a", bytes("other"));  // beside the first one until it takes its place, so its inode is another
    std::filesystem::last_write_time(folder.path() / "a", date);
    const auto second = store.head("a").value();
    EXPECT_EQ(second.size, first.size);
    EXPECT_NE(second.version, first.version);
    // Written in place: the time of change tells, as soon as the clock of the file system has moved on.
    do {
        std::ofstream{folder.path() / "a"} << "third";
        std::filesystem::last_write_time(folder.path() / "a", date);
    } while (store.head("a").value().version == second.version);
    EXPECT_EQ(std::filesystem::last_write_time(folder.path() / "a"), date);
    EXPECT_EQ(store.head("a").value().size, first.size);
}

TEST(Local, FollowsLinksAndIsNotCaughtInALinkToAParent) {
    const TemporaryFolder folder;
    const Local store{folder.path() / "data"};
    store.put("sub/a.png", bytes("1"));
    strata::storage::write_file(folder.path() / "elsewhere.png", bytes("22"));
    std::filesystem::create_symlink(folder.path() / "elsewhere.png", folder.path() / "data" / "link.png");
    std::filesystem::create_symlink(folder.path() / "gone.png", folder.path() / "data" / "dangling.png");
    std::filesystem::create_directory_symlink(folder.path() / "data", folder.path() / "data" / "sub" / "loop");
    const auto found = store.list("");
    ASSERT_EQ(found.size(), 2U);
    EXPECT_EQ(found[0].key, "link.png");
    EXPECT_EQ(found[0].size, 2U);
    EXPECT_EQ(found[1].key, "sub/a.png");
}

TEST(Local, RangesEndWhereTheObjectEnds) {
    const TemporaryFolder folder;
    const Local store{folder.path()};
    store.put("k", bytes("0123456789"));
    EXPECT_EQ(text(store.get_range("k", 2, 3)), "234");
    EXPECT_EQ(text(store.get_range("k", 8, 100)), "89");
    EXPECT_EQ(text(store.get_range("k", 10, 1)), "");
    EXPECT_EQ(text(store.get_range("k", ~std::uint64_t{0}, 1)), "");
}

TEST(Local, VersionChangesWithTheBytes) {
    const TemporaryFolder folder;
    const Local store{folder.path()};
    store.put("k", bytes("one"));
    const auto before = store.head("k");
    store.put("k", bytes("two"));
    ASSERT_TRUE(before && store.head("k"));
    EXPECT_NE(before->version, store.head("k")->version);
}

TEST(Local, MissingObjectsAreNamed) {
    const TemporaryFolder folder;
    const Local store{folder.path()};
    EXPECT_FALSE(store.exists("no.png"));
    EXPECT_FALSE(store.head("no/no.png"));
    store.remove("no.png");
    const auto error = thrown_by([&] { (void)store.get("no.png"); });
    EXPECT_EQ(error.code, Errc::not_found);
    EXPECT_TRUE(error.says((folder.path() / "no.png").string())) << error.message;
    store.put("yes.png", bytes(""));
    EXPECT_TRUE(store.exists("yes.png"));
    store.remove("yes.png");
    EXPECT_FALSE(store.exists("yes.png"));
}

TEST(Local, RefusesKeysThatLeaveTheFolder) {
    const TemporaryFolder folder;
    const Local store{folder.path() / "in"};
    using std::string_literals::operator""s;
    for (const std::string& key : {"../x"s, "a/../../x"s, "/etc/passwd"s, ""s, "a//b"s, "./a"s, "a/"s, "a\0b"s}) {
        EXPECT_EQ(thrown_by([&] { store.put(key, bytes("1")); }).code, Errc::bad_object_key) << key;
        EXPECT_EQ(thrown_by([&] { (void)store.get(key); }).code, Errc::bad_object_key) << key;
    }
    EXPECT_EQ(folder.count_files(), 0);
}

TEST(Local, ReadersNeverSeeAPartOfAnObjectThatIsReplaced) {
    const TemporaryFolder folder;
    const Local store{folder.path()};
    const std::string first(100'000, 'a');
    const std::string second(100'000, 'b');
    store.put("k", bytes(first));
    std::thread writer{[&] {
        for (int i = 0; i < 20; ++i) store.put("k", bytes(i % 2 == 0 ? second : first));
    }};
    for (int i = 0; i < 200; ++i) {
        const std::string seen = text(store.get("k"));
        EXPECT_TRUE(seen == first || seen == second);
    }
    writer.join();
    EXPECT_EQ(store.list("").size(), 1U);
}

}  // namespace
