// Tar files as tar and Python write them, read by their headers only, and tar files that lie.

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <strata/storage/atomic_file.hpp>
#include <strata/storage/local.hpp>
#include <strata/storage/tar.hpp>
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

std::vector<TarMember> members_of(const std::string& tar, std::uint64_t* read = nullptr) {
    return tar_members(
        [&](std::uint64_t offset, std::uint64_t length) {
            if (read != nullptr) *read += length;
            const std::string part = tar.substr(offset, length);
            const auto* const bytes = reinterpret_cast<const std::byte*>(part.data());
            return std::vector<std::byte>(bytes, bytes + part.size());
        },
        tar.size(), "it.tar");
}

/// "name=what lies there;" for each member.
std::string shown(const std::string& tar) {
    std::string all;
    for (const TarMember& member : members_of(tar))
        all += member.name + "=" + tar.substr(member.offset, member.size) + ";";
    return all;
}

TEST(Tar, MembersLieWhereTheirHeadersSay) {
    EXPECT_EQ(shown(made_tar(
                  {{"a.jpg", "picture"}, {"a.txt", "caption"}, {"empty", ""}, {"dir/b.jpg", std::string(512, 'b')}})),
              "a.jpg=picture;a.txt=caption;empty=;dir/b.jpg=" + std::string(512, 'b') + ";");
    EXPECT_EQ(shown(std::string(1024, '\0')), "");
    EXPECT_EQ(shown(made_tar(
                  {{"./a.jpg", "x"}, {"folder/", "", '5'}, {"link", "", '2'}, {"old/", "", '\0'}, {"b", "y", '\0'}})),
              "a.jpg=x;b=y;");
    std::string without_end = made_tar({{"a", "x"}});
    without_end.resize(1024);
    EXPECT_EQ(shown(without_end), "a=x;");
}

TEST(Tar, LongNamesAreReadInEveryForm) {
    const std::string name = std::string(120, 'd') + "/" + std::string(150, 'f') + ".jpg";
    EXPECT_EQ(shown(made_tar({{"././@LongLink", name + '\0', 'L'}, {name.substr(0, 100), "gnu"}, {"b", "y"}})),
              name + "=gnu;b=y;");
    const auto record = [](const std::string& key, const std::string& value) {
        const std::string rest = " " + key + "=" + value + "\n";
        std::size_t length = rest.size() + 1;
        while (std::to_string(length).size() + rest.size() != length) ++length;
        return std::to_string(length) + rest;
    };
    EXPECT_EQ(shown(made_tar(
                  {{"PaxHeader", record("mtime", "1.5") + record("path", name), 'x'}, {"short", "pax"}, {"b", "y"}})),
              name + "=pax;b=y;");
    EXPECT_EQ(shown(made_tar({{"g", record("comment", "x"), 'g'}, {"a", "1"}, {"b", "2"}})), "a=1;b=2;");
    TarEntry prefixed{"17.jpg", "posix"};
    prefixed.prefix = "shard/cats";
    EXPECT_EQ(shown(made_tar({prefixed})), "shard/cats/17.jpg=posix;");
    // A size that only the pax header says.
    TarEntry sized{"a", "12345"};
    sized.size_field = "00000000000";
    EXPECT_EQ(shown(made_tar({{"PaxHeader", record("size", "5"), 'x'}, sized, {"b", "y"}})), "a=12345;b=y;");
}

TEST(Tar, LargeMembersAreNotRead) {
    std::vector<TarEntry> entries;
    for (int i = 0; i < 20; ++i) {
        entries.push_back({std::to_string(i) + ".jpg", std::string(200'000, 'x')});
        entries.push_back({std::to_string(i) + ".txt", "caption"});
        entries.push_back({std::to_string(i) + ".json", "{}"});
    }
    std::uint64_t read = 0;
    EXPECT_EQ(members_of(made_tar(entries), &read).size(), 60U);
    EXPECT_LE(read, 21U * (16U << 10));  // one window a picture, its caption and its JSON
}

TEST(Tar, TheTarOfThisMachineIsRead) {
    if (std::system("tar --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "there is no tar";
    const TemporaryFolder folder;
    const std::string deep = std::string(90, 'd') + "/" + std::string(90, 'e') + "/" + std::string(120, 'f') + ".jpg";
    const Local files{folder.path() / "in"};
    for (const std::string& name : {std::string{"a.jpg"}, std::string{"a.txt"}, deep, std::string{"grün.png"}})
        files.put(name, std::as_bytes(std::span{name}));
    for (const std::string format : {"ustar", "gnu", "pax", "posix", "v7"}) {
        const std::string tar = (folder.path() / (format + ".tar")).string();
        const std::string leave_out = format == "ustar" || format == "v7" ? " --exclude=ddd*" : "";
        const std::string command =
            "tar" + leave_out + " --format=" + format + " -C " + (folder.path() / "in").string() + " -cf " + tar + " .";
        ASSERT_EQ(std::system(command.c_str()), 0) << command;
        const std::vector<std::byte> bytes = read_file(tar);
        const std::string text{reinterpret_cast<const char*>(bytes.data()), bytes.size()};
        const auto members = members_of(text);
        EXPECT_EQ(members.size(), leave_out.empty() ? 4U : 3U) << format;
        for (const TarMember& member : members)
            EXPECT_EQ(text.substr(member.offset, member.size), member.name) << format;
    }
}

TEST(Tar, WhatCannotBeReadInPlaceIsRefusedInASentence) {
    const auto says = [](const std::string& tar, const std::string& why) {
        const auto refused = thrown_by([&] { (void)members_of(tar); });
        EXPECT_EQ(refused.code, Errc::bad_tar);
        EXPECT_TRUE(refused.says("it.tar") && refused.says(why)) << refused.message;
    };
    says("\x1F\x8B" + std::string(2000, 'x'), "compressed with gzip");
    says("\x28\xB5\x2F\xFD" + std::string(2000, 'x'), "compressed with zstd");
    says(std::string(2000, 'x'), "it is no tar file");
    says("", "ends in the middle");
    says("short", "ends in the middle");
    says(made_tar({{"a", "x", 'S'}}), "sparse");
    says(made_tar({{"p", "22 GNU.sparse.major=1\n", 'x'}, {"a", "x"}}), "sparse");
    says(made_tar({{"a", "x", 'M'}}), "several volumes");
    for (const char* name : {"/etc/passwd", "../x", "a/../../x", "a//b"})
        says(made_tar({{name, "x"}}), "no relative path");
    says(made_tar({{"p", "99 path=x\n", 'x'}, {"a", "x"}}), "a pax header is damaged");
    TarEntry huge{"a", "x"};
    huge.size_field = "77777777777";
    says(made_tar({huge}), "behind the end of the file");
}

TEST(Tar, EveryPrefixAndEveryChangedHeaderGivesMembersOrARefusal) {
    const std::string tar = made_tar({{"a.jpg", "picture"}, {"p", "18 path=dir/b.jpg\n", 'x'}, {"b", "other"}});
    for (std::size_t size = 0; size < tar.size(); ++size) {
        const std::string part = tar.substr(0, size);
        try {
            for (const TarMember& member : members_of(part)) EXPECT_LE(member.offset + member.size, part.size());
        } catch (const strata::Error& error) {
            EXPECT_EQ(error.code(), Errc::bad_tar);
        }
    }
    int refused = 0;
    for (std::size_t at = 0; at < 512; ++at)
        for (const int flip : {1, 0x80, 0xFF}) {
            std::string changed = tar;
            changed[at] = static_cast<char>(changed[at] ^ flip);
            try {
                (void)members_of(changed);
            } catch (const strata::Error& error) {
                EXPECT_EQ(error.code(), Errc::bad_tar);
                ++refused;
            }
        }
    EXPECT_GE(refused, 3 * 510);  // the check sum is over all of a header; two bytes end its own field
}

TEST(Tar, PatternsNameShards) {
    EXPECT_TRUE(matches_shard_pattern("train-000.tar", "*.tar"));
    EXPECT_FALSE(matches_shard_pattern("train-000.tar.gz", "*.tar"));
    EXPECT_FALSE(matches_shard_pattern("deep/train-000.tar", "*.tar"));
    EXPECT_TRUE(matches_shard_pattern("deep/train-000.tar", "*/*.tar"));
    EXPECT_TRUE(matches_shard_pattern("t-007.tar", "t-{000..127}.tar"));
    EXPECT_FALSE(matches_shard_pattern("t-7.tar", "t-{000..127}.tar"));
    EXPECT_FALSE(matches_shard_pattern("t-128.tar", "t-{000..127}.tar"));
    EXPECT_TRUE(matches_shard_pattern("t-7.tar", "t-{0..127}.tar"));
    EXPECT_FALSE(matches_shard_pattern("t-007.tar", "t-{0..127}.tar"));
    EXPECT_TRUE(matches_shard_pattern("a-7-x.tar", "*-{5..9}-x.tar"));
    EXPECT_FALSE(matches_shard_pattern("t-.tar", "t-{0..9}.tar"));
    EXPECT_TRUE(matches_shard_pattern("t.tar", "t.tar"));
    EXPECT_FALSE(matches_shard_pattern("", "t"));
}

}  // namespace
