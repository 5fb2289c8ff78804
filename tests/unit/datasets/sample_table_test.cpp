// Captions and sizes from tables: the rows themselves, and data sets that use them.

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <strata/comm/self_comm.hpp>
#include <strata/datasets/discovery.hpp>
#include <strata/datasets/sample_table.hpp>
#include <strata/storage/atomic_file.hpp>

#include "../../support/counting_store.hpp"
#include "../../support/made_parquet.hpp"
#include "../../support/pictures.hpp"
#include "../../support/temporary_folder.hpp"

namespace {

using namespace strata::datasets;
using namespace strata::pictures;
using strata::Errc;
using strata::storage::write_file;
using strata_test::CountingStore;
using strata_test::plain_png;
using strata_test::thrown_by;
using strata_test::parquet::Cell;
using strata_test::parquet::cell;
using strata_test::parquet::MadeColumn;
namespace made = strata_test::parquet;

/// A row as a test writes it; nullptr is a gap, 0 as well.
struct Row {
    const char* file;
    std::int32_t width;
    std::int32_t height;
    const char* caption;
    const char* other;
    const char* fallback;
};

strata_test::Bytes parquet_file(const std::vector<Row>& rows) {
    std::vector<MadeColumn> columns(6);
    const char* const names[] = {"file", "w", "h", "text", "text2", "title"};
    for (std::size_t c = 0; c < 6; ++c) {
        columns[c].name = names[c];
        columns[c].type = c == 1 || c == 2 ? made::int32 : made::byte_array;
    }
    const auto text = [](const char* value) { return value == nullptr ? Cell{} : cell(value); };
    for (const Row& row : rows) {
        columns[0].cells.push_back(text(row.file));
        columns[1].cells.push_back(row.width == 0 ? Cell{} : cell(row.width));
        columns[2].cells.push_back(row.height == 0 ? Cell{} : cell(row.height));
        columns[3].cells.push_back(text(row.caption));
        columns[4].cells.push_back(text(row.other));
        columns[5].cells.push_back(text(row.fallback));
    }
    return made::made_file({.columns = columns, .codec = made::snappy});
}

std::string json_lines(const std::vector<Row>& rows) {
    std::string lines = "\xEF\xBB\xBF";
    const auto text = [](const char* value) { return value == nullptr ? "null" : '"' + std::string{value} + '"'; };
    for (const Row& row : rows) {
        lines += "{\"file\": " + text(row.file) + ", \"w\": " + std::to_string(row.width) +
                 ".0, \"text\": " + text(row.caption);
        if (row.height != 0) lines += ", \"h\": " + std::to_string(row.height);
        lines += ", \"text2\": " + text(row.other) + ", \"title\": " + text(row.fallback) + "}\r\n\n";
    }
    lines.resize(lines.size() - 3);  // the last line has no end
    return lines;
}

strata::config::ParquetColumns columns_of(const std::string& path) {
    strata::config::ParquetColumns columns;
    columns.path = path;
    columns.filename_column = "file";
    columns.caption_column = {"text", "text2"};
    columns.fallback_caption_column = {"title"};
    columns.width_column = "w";
    columns.height_column = "h";
    columns.identifier_includes_extension = true;
    return columns;
}

const std::vector<Row> some_rows{{"a.png", 64, 48, " first ", "second", "unused"},
                                 {"b.png", 100, 50, nullptr, "only", nullptr},
                                 {"c.png", 0, 48, "  ", nullptr, "the title"},
                                 {nullptr, 1, 1, "nameless", nullptr, nullptr},
                                 {"d.png", 32, 32, nullptr, nullptr, nullptr}};

std::vector<TableRow> rows_in(const strata::Local& store, const std::string& key,
                              const strata::config::ParquetColumns& columns) {
    std::vector<TableRow> rows;
    read_table(table_file(store, key), columns, true, true, [&](TableRow&& row) { rows.push_back(std::move(row)); });
    return rows;
}

TEST(SampleTable, ParquetAndJsonLinesSayTheSame) {
    const strata_test::TemporaryFolder folder;
    const strata::Local store{folder.path()};
    write_file(folder.path() / "t.parquet", parquet_file(some_rows));
    write_file(folder.path() / "t.jsonl", json_lines(some_rows));
    for (const char* key : {"t.parquet", "t.jsonl"}) {
        SCOPED_TRACE(key);
        const auto rows = rows_in(store, key, columns_of(key));
        ASSERT_EQ(rows.size(), 4U);
        EXPECT_EQ(rows[0].key, "a.png");
        EXPECT_EQ(rows[0].size, (PictureSize{64, 48}));
        EXPECT_EQ(rows[0].captions, (std::vector<std::string>{"first", "second"}));
        EXPECT_EQ(rows[1].captions, (std::vector<std::string>{"only"}));
        EXPECT_EQ(rows[2].size, PictureSize{});
        EXPECT_EQ(rows[2].captions, (std::vector<std::string>{"the title"}));
        EXPECT_EQ(rows[3].captions, std::vector<std::string>{});
    }
}

TEST(SampleTable, NamesMayBeNumbersAndLackTheirExtension) {
    const strata_test::TemporaryFolder folder;
    const strata::Local store{folder.path()};
    MadeColumn numbers{.name = "id", .type = made::int64, .cells = {cell(std::int64_t{7}), cell(std::int64_t{-8})}};
    write_file(folder.path() / "t.parquet", made::made_file({.columns = {numbers}}));
    write_file(folder.path() / "t.jsonl", std::string_view{"{\"id\": 7}\n{\"id\": \"-8\"}"});
    for (const char* key : {"t.parquet", "t.jsonl"}) {
        strata::config::ParquetColumns columns = columns_of(key);
        columns.filename_column = "id";
        columns.identifier_includes_extension = false;
        std::vector<std::string> keys;
        read_table(table_file(store, key), columns, false, false, [&](TableRow&& row) { keys.push_back(row.key); });
        EXPECT_EQ(keys, (std::vector<std::string>{"7.png", "-8.png"}));
    }
}

TEST(SampleTable, LongAndManyLinesAreRead) {
    const strata_test::TemporaryFolder folder;
    const strata::Local store{folder.path()};
    std::string lines;
    for (int i = 0; i < 20'000; ++i)
        lines += R"({"file": ")" + std::to_string(i) + R"(", "w": 1, "h": 1, "text2": null, "title": null, "text": ")" +
                 std::string(static_cast<std::size_t>(i % 300), 'x') + "\"}\n";
    lines += R"({"file": "last", "text": ")" + std::string(3 << 20, 'y') + "\"}";
    write_file(folder.path() / "t.jsonl", lines);
    const auto rows = rows_in(store, "t.jsonl", columns_of("t.jsonl"));
    ASSERT_EQ(rows.size(), 20'001U);
    EXPECT_EQ(rows[12'345].key, "12345");
    EXPECT_EQ(rows[12'345].captions.at(0).size(), 45U);
    EXPECT_EQ(rows.back().captions.at(0).size(), std::size_t{3} << 20);
}

TEST(SampleTable, MistakesAreNamed) {
    const strata_test::TemporaryFolder folder;
    const strata::Local store{folder.path()};
    write_file(folder.path() / "t.parquet", parquet_file(some_rows));
    struct Mistake {
        std::string text;
        Errc code;
        std::string says;
    };
    const std::string good = R"({"file": "a", "w": 1, "h": 1, "text": "x", "text2": "y", "title": "z"})";
    const std::vector<Mistake> mistakes{
        {good + "\n[1]\n", Errc::bad_json_line, "line 2 of table"},
        {good + "\n\n{\"file\": \n", Errc::bad_json_line, "line 3 of table"},
        {good + "\n" + good + std::string(1, '\0') + "\n", Errc::bad_json_line, "line 2 of table"},
        {std::string(17 << 20, '{'), Errc::bad_json_line, "is longer than 16 MiB"},
        {R"({"file": "a", "w": "wide"})", Errc::wrong_column_type, "no whole number in 'w'"},
        {R"({"file": "a", "w": 1.5})", Errc::wrong_column_type, "no whole number in 'w'"},
        {R"({"file": {}})", Errc::wrong_column_type, "no text in 'file'"},
        {R"({"file": "a", "w": 1, "h": 1, "text": ["x", 2]})", Errc::wrong_column_type, "no list of texts in 'text'"},
        {R"({"file": "a", "w": 1, "h": 1, "Text": "x", "text2": "y", "title": "z"})", Errc::no_such_column,
         "has no column 'text'; its first line has Text, file, h, text2, title, w"},
    };
    for (const Mistake& mistake : mistakes) {
        write_file(folder.path() / "t.jsonl", mistake.text);
        const auto error = thrown_by([&] { (void)rows_in(store, "t.jsonl", columns_of("t.jsonl")); });
        EXPECT_EQ(error.code, mistake.code) << error.message;
        EXPECT_TRUE(error.says(mistake.says)) << error.message;
        EXPECT_TRUE(error.says("t.jsonl")) << error.message;
    }
    strata::config::ParquetColumns columns = columns_of("t.parquet");
    columns.caption_column = {"caption"};
    auto error = thrown_by([&] { (void)rows_in(store, "t.parquet", columns); });
    EXPECT_EQ(error.code, Errc::no_such_column);
    EXPECT_TRUE(error.says("has no column 'caption'") && error.says("file, w, h, text, text2, title")) << error.message;
    columns.caption_column = {"w"};
    EXPECT_EQ(thrown_by([&] { (void)rows_in(store, "t.parquet", columns); }).code, Errc::wrong_column_type);
    columns = columns_of("t.parquet");
    columns.width_column = "title";
    EXPECT_EQ(thrown_by([&] { (void)rows_in(store, "t.parquet", columns); }).code, Errc::wrong_column_type);
    error = thrown_by([&] { (void)table_file(store, "none.parquet"); });
    EXPECT_EQ(error.code, Errc::bad_reference);
    EXPECT_TRUE(error.says("none.parquet")) << error.message;
}

/// A data set whose table lies beside its pictures, in one store that counts.
struct TableSet {
    strata_test::TemporaryFolder folder;
    strata::config::ImageDataset dataset;
    CountingStore store{folder.path() / "data"};
    DiscoverOptions options;

    TableSet() {
        dataset.id = "set";
        dataset.type = strata::config::StoreType::aws;  // the table is an object of the same store
        dataset.caption_strategy = strata::config::CaptionStrategy::parquet;
        dataset.metadata_backend = strata::config::MetadataBackend::parquet;
        dataset.parquet = columns_of("tables/t.parquet");
        options.index_folder = folder.path() / "index";
        for (const char* name : {"a.png", "b.png", "c.png", "d.png", "e.png"}) picture(name, 40, 40);
        table({{"a.png", 64, 48, "first", "second", nullptr},
               {"x.png", 64, 48, "nothing", nullptr, nullptr},
               {"b.png", 100, 50, nullptr, nullptr, "title of b"},
               {"c.png", 0, 48, "without a width", nullptr, nullptr},
               {"d.png", 64, 64, nullptr, nullptr, nullptr},
               {"a.png", 10, 10, "again", nullptr, nullptr}});
    }
    void picture(const std::string& name, int width, int height) const {
        write_file(store.root() / name, plain_png(width, height, 1, 2, 3));
    }
    void table(const std::vector<Row>& rows) const {
        write_file(store.root() / "tables" / "t.parquet", parquet_file(rows));
    }
    [[nodiscard]] Discovered discover() const {
        strata::comm::SelfComm comm;
        store.forget();
        return strata::datasets::discover(comm, store, dataset, options);
    }
};

std::map<std::string, std::string> reasons(const Discovered& found) {
    std::map<std::string, std::string> all;
    for (const Skipped& one : found.skipped)
        all[std::filesystem::path{one.place}.filename()] = std::string{name_of(one.reason)} + ": " + one.detail;
    return all;
}

TEST(SampleTable, SizesAndCaptionsComeWithoutAPictureBeingTouched) {
    const TableSet set;
    const std::string place = set.store.where("tables/t.parquet");
    for (int start = 0; start < 2; ++start) {
        const Discovered found = set.discover();
        EXPECT_EQ(set.store.reads() > 0, start == 0) << "an unchanged table is not read again";
        EXPECT_EQ(set.store.reads(), set.store.reads("tables/t.parquet"));
        EXPECT_EQ(found.found, 5);
        EXPECT_EQ(found.examined, 0);
        ASSERT_EQ(found.samples.size(), 2U);
        EXPECT_EQ(found.samples[0].key, "a.png");
        EXPECT_EQ(found.samples[0].size, (PictureSize{64, 48}));
        EXPECT_EQ(found.samples[0].caption, "first");
        EXPECT_EQ(found.samples[0].other_captions, std::vector<std::string>{"second"});
        EXPECT_EQ(found.samples[1].caption, "title of b");
        EXPECT_EQ(reasons(found), (std::map<std::string, std::string>{
                                      {"c.png", "not in the table: no width and height in '" + place + "'"},
                                      {"d.png", "no caption: no text in '" + place + "'"},
                                      {"e.png", "not in the table: no row in '" + place + "'"}}));
        EXPECT_EQ(found.notes,
                  (std::vector<std::string>{"table '" + place +
                                            "': 6 rows, 1 pictures have no row, 1 rows name a picture a second "
                                            "time and are left out, 1 rows name no picture of data set 'set': x.png"}));
    }
}

TEST(SampleTable, AnotherTableOrOtherColumnsAreRead) {
    TableSet set;
    (void)set.discover();
    set.table({{"a.png", 80, 60, "new", nullptr, nullptr}, {"e.png", 64, 48, "now here", nullptr, nullptr}});
    Discovered found = set.discover();
    ASSERT_EQ(found.samples.size(), 2U);
    EXPECT_EQ(found.samples[0].caption, "new");
    EXPECT_EQ(found.samples[0].size, (PictureSize{80, 60}));
    EXPECT_TRUE(found.samples[0].other_captions.empty());
    EXPECT_EQ(found.samples[1].key, "e.png");
    set.dataset.parquet->caption_column = {"file"};
    EXPECT_EQ(set.discover().samples.at(0).caption, "a.png");
    // A picture that comes has its row read, and one that was replaced as well.
    set.picture("f.png", 40, 40);
    set.picture("a.png", 50, 40);
    found = set.discover();
    EXPECT_GT(set.store.reads("tables/t.parquet"), 0);
    EXPECT_EQ(found.samples.size(), 2U);
    (void)set.discover();
    EXPECT_EQ(set.store.reads(), 0);
}

TEST(SampleTable, CaptionsAndSizesWorkWithoutEachOther) {
    TableSet set;
    set.dataset.metadata_backend = strata::config::MetadataBackend::discovery;
    Discovered found = set.discover();
    EXPECT_EQ(found.examined, 5);
    ASSERT_EQ(found.samples.size(), 3U);
    EXPECT_EQ(found.samples[0].size, (PictureSize{40, 40}));
    EXPECT_EQ(found.samples[2].caption, "without a width");

    set.dataset.metadata_backend = strata::config::MetadataBackend::parquet;
    set.dataset.caption_strategy = strata::config::CaptionStrategy::filename;
    found = set.discover();
    ASSERT_EQ(found.samples.size(), 3U);
    EXPECT_EQ(found.samples[0].caption, "a");
    EXPECT_EQ(found.samples[1].size, (PictureSize{100, 50}));
}

TEST(SampleTable, OfALocalDataSetItIsAFileOfItsOwn) {
    TableSet set;
    set.dataset.type = strata::config::StoreType::local;
    set.dataset.parquet->path = (set.folder.path() / "elsewhere.jsonl").string();
    write_file(set.folder.path() / "elsewhere.jsonl",
               json_lines({{"b.png", 64, 48, "from outside", nullptr, nullptr}}));
    const Discovered found = set.discover();
    ASSERT_EQ(found.samples.size(), 1U);
    EXPECT_EQ(found.samples[0].caption, "from outside");
    std::filesystem::remove(set.folder.path() / "elsewhere.jsonl");
    const auto error = thrown_by([&] { (void)set.discover(); });
    EXPECT_EQ(error.code, Errc::bad_reference);
    EXPECT_TRUE(error.says("elsewhere.jsonl")) << error.message;
}

}  // namespace
