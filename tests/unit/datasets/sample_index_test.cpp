// The index file by itself: what is kept, and what becomes of it when a program or a disk fails.

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <strata/datasets/sample_index.hpp>

#include "../../support/other_process.hpp"
#include "../../support/temporary_folder.hpp"

namespace {

using namespace strata::datasets;
using namespace strata::pictures;
using strata::Errc;
using strata_test::OtherProcess;
using strata_test::TemporaryFolder;
using strata_test::thrown_by;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

IndexedPicture picture(const std::string& key, std::int64_t width = 640) {
    IndexedPicture one;
    one.sample = {key, "v1", 1234, {width, 480}, "a caption of " + key, {}};
    one.size_source = 0xFEDCBA9876543210U;
    one.caption_source = 7;
    return one;
}

strata::storage::ContentHash content(std::string_view file) {
    return strata::storage::content_hash(std::as_bytes(std::span{file.data(), file.size()}));
}

void write(SampleIndex& index, const std::vector<IndexedPicture>& pictures) {
    std::vector<const IndexedPicture*> pointers;
    for (const IndexedPicture& one : pictures) pointers.push_back(&one);
    index.write(pointers);
}

void write(SampleIndex& index, const IndexedPicture& one) {
    const IndexedPicture* const pointer = &one;
    index.write({&pointer, 1});
}

/// An index of `count` pictures in a folder; its file.
fs::path made(const fs::path& folder, int count) {
    SampleIndex index{folder, "set", "/place"};
    std::vector<IndexedPicture> pictures;
    for (int i = 0; i < count; ++i) pictures.push_back(picture("p" + std::to_string(10000 + i) + ".png", i));
    write(index, pictures);
    return index.file();
}

TEST(SampleIndex, GivesBackWhatWasWritten) {
    const TemporaryFolder folder;
    {
        SampleIndex index{folder.path() / "new" / "folder", "set", "/place"};
        EXPECT_TRUE(index.take_pictures().empty());
        IndexedPicture second = picture("b/caf\xE9 ' ;.png");
        second.sample.other_captions = {"second", "drit\nte"};
        second.decoded = true;
        second.sample.content = content("b");
        second.pixel_fault = std::make_unique<PictureFault>(PictureFault{SkipReason::unreadable, "cut off", true});
        IndexedPicture third = picture("c");
        third.sample.version = "";
        third.sample.caption = "";
        third.size_fault = std::make_unique<PictureFault>(PictureFault{SkipReason::unreadable, "empty", true});
        third.pixel_fault =
            std::make_unique<PictureFault>(PictureFault{SkipReason::unsupported_format, "a GIF", false});
        std::vector<IndexedPicture> pictures;
        pictures.push_back(std::move(third));
        pictures.push_back(picture("a"));
        pictures.push_back(picture("gone"));
        pictures.push_back(std::move(second));
        write(index, pictures);
        const std::vector<std::string> gone{"gone", "never there"};
        index.write({}, gone, {{"listed", "textfile"}});
        EXPECT_EQ(index.fact("listed"), "textfile");
    }
    SampleIndex index{folder.path() / "new" / "folder", "set", "/place"};
    EXPECT_EQ(index.notice(), "");
    EXPECT_EQ(index.fact("listed"), "textfile");
    EXPECT_EQ(index.fact("nothing"), "");
    const auto pictures = index.take_pictures();
    ASSERT_EQ(pictures.size(), 3U);
    EXPECT_EQ(pictures[0].sample.key, "a");
    EXPECT_EQ(pictures[0].sample.version, "v1");
    EXPECT_EQ(pictures[0].sample.bytes, 1234U);
    EXPECT_EQ(pictures[0].sample.size, (PictureSize{640, 480}));
    EXPECT_EQ(pictures[0].sample.caption, "a caption of a");
    EXPECT_EQ(pictures[0].size_source, 0xFEDCBA9876543210U);
    EXPECT_EQ(pictures[0].caption_source, 7U);
    EXPECT_FALSE(pictures[0].decoded || pictures[0].size_fault || pictures[0].pixel_fault);
    EXPECT_EQ(pictures[1].sample.key, "b/caf\xE9 ' ;.png");
    EXPECT_EQ(pictures[1].sample.other_captions, (std::vector<std::string>{"second", "drit\nte"}));
    EXPECT_TRUE(pictures[1].decoded);
    EXPECT_EQ(pictures[1].sample.content, content("b"));
    EXPECT_FALSE(pictures[0].sample.content);
    ASSERT_TRUE(pictures[1].pixel_fault);
    EXPECT_EQ(*pictures[1].pixel_fault, (PictureFault{SkipReason::unreadable, "cut off", true}));
    ASSERT_TRUE(pictures[2].size_fault);
    EXPECT_EQ(*pictures[2].size_fault, (PictureFault{SkipReason::unreadable, "empty", true}));
    ASSERT_TRUE(pictures[2].pixel_fault);
    EXPECT_EQ(*pictures[2].pixel_fault, (PictureFault{SkipReason::unsupported_format, "a GIF", false}));
}

TEST(SampleIndex, OfAnotherPlaceItIsBegunAnew) {
    const TemporaryFolder folder;
    (void)made(folder.path(), 3);
    EXPECT_TRUE((SampleIndex{folder.path(), "set", "/elsewhere"}.take_pictures().empty()));
    EXPECT_TRUE((SampleIndex{folder.path(), "set", "/place"}.take_pictures().empty()));
}

TEST(SampleIndex, ContentsAreAddedToPicturesOfTheirVersionAndToNoOthers) {
    const TemporaryFolder folder;
    const std::vector<KnownContent> contents{{"p10001.png", "v1", content("one")},
                                             {"p10002.png", "v0", content("of an earlier file")},
                                             {"gone.png", "v1", content("nobody's")}};
    SampleIndex::add_contents(folder.path(), "set", "/place", contents);
    EXPECT_EQ(folder.count_files(), 0) << "nothing is made";
    const fs::path file = made(folder.path(), 4);
    SampleIndex::add_contents(folder.path(), "set", "/elsewhere", contents);
    SampleIndex::add_contents(folder.path(), "set", "/place", contents);
    const auto pictures = SampleIndex{folder.path(), "set", "/place"}.take_pictures();
    ASSERT_EQ(pictures.size(), 4U);
    for (std::size_t i = 0; i < 4; ++i) {
        EXPECT_EQ(pictures[i].sample.content, i == 1 ? content("one") : strata::storage::ContentHash{}) << i;
        EXPECT_EQ(pictures[i].sample.caption, "a caption of " + pictures[i].sample.key);
        EXPECT_EQ(pictures[i].caption_source, 7U);
    }
    // What another program holds is an error that can be waited for; what is damaged is the next start's.
    const OtherProcess other{[&] { return std::make_unique<SampleIndex>(folder.path(), "set", "/place"); }};
    EXPECT_EQ(thrown_by([&] { SampleIndex::add_contents(folder.path(), "set", "/place", contents, 10ms); }).code,
              Errc::output_in_use);
    std::ofstream{folder.path() / "other.sqlite"} << "no database, whatever its name is, and rather long for its kind";
    SampleIndex::add_contents(folder.path(), "other", "/place", contents);
    EXPECT_TRUE(fs::exists(folder.path() / "other.sqlite"));
}

TEST(SampleIndex, OneOfAnEarlierVersionIsBegunAnew) {
    const TemporaryFolder folder;
    ::sqlite3* database = nullptr;  // as format 1 was
    ASSERT_EQ(::sqlite3_open((folder.path() / "set.sqlite").c_str(), &database), SQLITE_OK);
    EXPECT_EQ(::sqlite3_exec(database,
                             "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;"
                             "CREATE TABLE pictures (key TEXT PRIMARY KEY, version TEXT NOT NULL) WITHOUT ROWID;"
                             "INSERT INTO facts VALUES ('place', '/place'), ('listed', 'textfile');"
                             "INSERT INTO pictures VALUES ('a.png', 'v1');"
                             "PRAGMA application_id = 1937011297; PRAGMA user_version = 1;",
                             nullptr, nullptr, nullptr),
              SQLITE_OK)
        << ::sqlite3_errmsg(database);
    ::sqlite3_close(database);
    {
        SampleIndex index{folder.path(), "set", "/place"};
        EXPECT_EQ(index.notice(), "index '" + index.file().string() + "' was of an earlier version: it is begun anew");
        EXPECT_TRUE(index.take_pictures().empty());
        EXPECT_EQ(index.fact("listed"), "");
        write(index, picture("new"));
    }
    EXPECT_EQ(folder.count_files(), 1) << "nothing is set aside: nothing was damaged";
    SampleIndex again{folder.path(), "set", "/place"};
    EXPECT_EQ(again.notice(), "");
    EXPECT_EQ(again.take_pictures().size(), 1U);
}

TEST(SampleIndex, AnyIdIsAFileOfItsOwn) {
    const TemporaryFolder folder;
    const std::vector<std::string> ids{"a/b", "a%2Fb", "..", "", "a b", std::string(300, 'x'), std::string(301, 'x')};
    for (const std::string& id : ids) {
        SampleIndex index{folder.path(), id, "/place"};
        write(index, picture(id));
    }
    for (const std::string& id : ids) {
        const auto pictures = SampleIndex{folder.path(), id, "/place"}.take_pictures();
        ASSERT_EQ(pictures.size(), 1U) << id;
        EXPECT_EQ(pictures[0].sample.key, id);
    }
    EXPECT_EQ(folder.count_files(), static_cast<int>(ids.size()));
}

TEST(SampleIndex, ADamagedFileIsSetAsideAndBegunAnew) {
    struct Damage {
        const char* name;
        std::function<void(const fs::path&)> make;
    };
    const auto overwrite = [](const fs::path& file, std::int64_t at, std::string_view bytes) {
        std::fstream stream{file, std::ios::in | std::ios::out | std::ios::binary};
        stream.seekp(at);
        stream.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    };
    const auto in_shell = [](const fs::path& file, const char* text) {
        ::sqlite3* database = nullptr;
        ASSERT_EQ(::sqlite3_open(file.c_str(), &database), SQLITE_OK);
        EXPECT_EQ(::sqlite3_exec(database, text, nullptr, nullptr, nullptr), SQLITE_OK) << ::sqlite3_errmsg(database);
        ::sqlite3_close(database);
    };
    const std::vector<Damage> damages{
        {"cut in half", [](const fs::path& file) { fs::resize_file(file, fs::file_size(file) / 2); }},
        {"cut within its header", [](const fs::path& file) { fs::resize_file(file, 60); }},
        {"text",
         [](const fs::path& file) { std::ofstream{file} << "this is no database at all, whatever its name is"; }},
        {"a page of zeros", [&](const fs::path& file) { overwrite(file, 3 * 4096, std::string(4096, '\0')); }},
        {"a changed width",
         [&](const fs::path& file) { in_shell(file, "UPDATE pictures SET width = 7 WHERE width = 100"); }},
        {"a changed caption",
         [&](const fs::path& file) { in_shell(file, "UPDATE pictures SET caption = 'x' WHERE width = 5"); }},
        {"another database", [&](const fs::path& file) { in_shell(file, "PRAGMA application_id = 5"); }},
        {"a later format", [&](const fs::path& file) { in_shell(file, "PRAGMA user_version = 4"); }},
        {"without its table", [&](const fs::path& file) { in_shell(file, "DROP TABLE pictures"); }},
        {"without a column", [&](const fs::path& file) { in_shell(file, "ALTER TABLE pictures RENAME width TO w"); }},
    };
    for (const Damage& damage : damages) {
        SCOPED_TRACE(damage.name);
        const TemporaryFolder folder;
        const fs::path file = made(folder.path(), 400);
        damage.make(file);
        const auto bytes = fs::file_size(file);
        {
            SampleIndex index{folder.path(), "set", "/place"};
            EXPECT_TRUE(index.take_pictures().empty());
            EXPECT_NE(index.notice().find("'" + file.string() + ".damaged'"), std::string::npos) << index.notice();
            write(index, picture("new"));
        }
        EXPECT_EQ(fs::file_size(file.string() + ".damaged"), bytes);
        SampleIndex again{folder.path(), "set", "/place"};
        EXPECT_EQ(again.notice(), "");
        EXPECT_EQ(again.take_pictures().size(), 1U);
    }
}

/// Changes rows without an end, in a process that is then killed: half of it is in the file, and a journal beside it.
void change_and_die(const fs::path& file) {
    const pid_t child = ::fork();
    if (child == 0) {
        ::sqlite3* database = nullptr;
        ::sqlite3_open(file.c_str(), &database);
        ::sqlite3_exec(database, "PRAGMA cache_size = 1; BEGIN; UPDATE pictures SET width = 1, caption = 'half';",
                       nullptr, nullptr, nullptr);
        ::kill(::getpid(), SIGKILL);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status));
    ASSERT_TRUE(fs::exists(file.string() + "-journal")) << "nothing was half done";
}

TEST(SampleIndex, AKilledWriterLeavesWhatWasThereBefore) {
    const TemporaryFolder folder;
    const fs::path file = made(folder.path(), 2000);
    change_and_die(file);
    SampleIndex index{folder.path(), "set", "/place"};
    EXPECT_EQ(index.notice(), "");
    const auto pictures = index.take_pictures();
    ASSERT_EQ(pictures.size(), 2000U);
    for (std::size_t i = 0; i < pictures.size(); ++i) {
        EXPECT_EQ(pictures[i].sample.size.width, static_cast<std::int64_t>(i));
        EXPECT_EQ(pictures[i].sample.caption, "a caption of " + pictures[i].sample.key);
    }
}

TEST(SampleIndex, TheJournalOfADamagedFileIsNotPlayedIntoItsSuccessor) {
    const TemporaryFolder folder;
    const fs::path file = made(folder.path(), 2000);
    change_and_die(file);
    std::ofstream{file, std::ios::trunc} << std::string(5000, 'x');
    for (int start = 0; start < 2; ++start) {
        SampleIndex index{folder.path(), "set", "/place"};
        EXPECT_EQ(index.take_pictures().size(), start == 0 ? 0U : 1U);
        write(index, picture("new"));
    }
}

TEST(SampleIndex, OneProgramAtATimeHasIt) {
    const TemporaryFolder folder;
    const SampleIndex first{folder.path(), "set", "/place"};
    const auto error = thrown_by([&] { const SampleIndex second{folder.path(), "set", "/place", 10ms}; });
    EXPECT_EQ(error.code, Errc::output_in_use);
    EXPECT_TRUE(error.says(first.file().string())) << error.message;
    EXPECT_TRUE(error.says(", which is this one")) << error.message;
}

TEST(SampleIndex, AnotherProgramThatHasItIsNamed) {
    const TemporaryFolder folder;
    const OtherProcess other{[&] { return std::make_unique<SampleIndex>(folder.path(), "set", "/place"); }};
    const auto error = thrown_by([&] { const SampleIndex mine{folder.path(), "set", "/place", 10ms}; });
    EXPECT_EQ(error.code, Errc::output_in_use);
    EXPECT_TRUE(error.says("set.sqlite' is in use: " + other.name())) << error.message;
}

TEST(SampleIndex, AFolderThatCannotBeMadeIsAnError) {
    const TemporaryFolder folder;
    std::ofstream{folder.path() / "file"} << "x";
    const auto error = thrown_by([&] { const SampleIndex index{folder.path() / "file" / "index", "set", "/place"}; });
    EXPECT_EQ(error.code, Errc::output_not_writable);
    EXPECT_TRUE(error.says((folder.path() / "file").string())) << error.message;
}

}  // namespace
