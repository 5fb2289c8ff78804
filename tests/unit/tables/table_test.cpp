// Rows of tables in every format: CSV by RFC 4180 above all.

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <strata/tables/table.hpp>

#include "../../support/made_parquet.hpp"
#include "../../support/temporary_folder.hpp"

namespace {

using namespace strata::tables;
using namespace strata_test;
namespace made = strata_test::parquet;
using strata::Errc;

/// A table in memory, read in pieces of at most `piece` bytes.
TableFile file_of(const Bytes& bytes, std::size_t piece = 1 << 20) {
    return {[bytes, piece](std::uint64_t offset, std::uint64_t length) {
                const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(offset);
                return Bytes(begin, begin + static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(length, piece)));
            },
            bytes.size(), "it"};
}
TableFile file_of(const std::string& text, std::size_t piece = 1 << 20) { return file_of(bytes_of(text), piece); }

const std::vector<TableColumn> name_and_caption{{"file", CellUse::name}, {"text", CellUse::texts}};

/// "name:text,text|" for each row; numbers as they are.
std::string rows_of(const TableFile& file, TableFormat format,
                    const std::vector<TableColumn>& columns = name_and_caption) {
    std::string all;
    read_rows(file, format, columns, [&](std::span<const TableCell> cells) {
        for (const TableCell& cell : cells) {
            for (const std::string_view text : cell.texts) all += std::string{text} + ",";
            if (cell.number) all += "#" + std::to_string(*cell.number);
            all += ":";
        }
        all += "|";
    });
    return all;
}

TEST(Table, FormatsAreKnownByTheEndOfTheName) {
    EXPECT_EQ(table_format("a/b.csv"), TableFormat::csv);
    EXPECT_EQ(table_format("b.tsv"), TableFormat::tsv);
    EXPECT_EQ(table_format("b.jsonl"), TableFormat::json_lines);
    EXPECT_EQ(table_format("b.parquet"), TableFormat::parquet);
    EXPECT_EQ(table_format("b"), TableFormat::parquet);
}

TEST(Table, CsvIsReadAsItsRulesSay) {
    const struct {
        std::string text;
        std::string rows;
    } cases[] = {
        {"file,text\na.png,a cat\n", "a.png,:a cat,:|"},
        {"file,text\na.png,a cat", "a.png,:a cat,:|"},
        {"file,text\r\na.png,a cat\r\n", "a.png,:a cat,:|"},
        {"\xEF\xBB\xBF"
         "file,text\na.png,a cat\n",
         "a.png,:a cat,:|"},
        {"\xEF\xBB\xBF\"file\",\"text\"\na.png,a cat\n", "a.png,:a cat,:|"},
        {"text,other,file\na cat,7,a.png\n", "a.png,:a cat,:|"},
        {" file , text \na.png,a cat\n", "a.png,:a cat,:|"},
        {"file,text\na.png,\"a cat, black\"\n", "a.png,:a cat, black,:|"},
        {"file,text\na.png,\"a \"\"big\"\" cat\"\n", "a.png,:a \"big\" cat,:|"},
        {"file,text\na.png,\"two\r\nlines\"\nb.png,x\n", "a.png,:two\r\nlines,:|b.png,:x,:|"},
        {"file,text\na.png,\"\n\n\"\n", "a.png,:\n\n,:|"},
        {"file,text\na.png,\"\"\nb.png,\n", "a.png,::|b.png,::|"},  // empty is no value
        {"file,text\n\na.png,x\n\r\n\n", "a.png,:x,:|"},
        {"file,text\na.png,a \"cat\" here\n", "a.png,:a \"cat\" here,:|"},  // a quote inside of a field is one
        {"file,text\n,x\n", ":x,:|"},
        {"file,text\n", ""},
        {"", ""},
    };
    for (const auto& one : cases)
        for (const std::size_t piece : {1, 3, 1 << 20})
            EXPECT_EQ(rows_of(file_of(one.text, piece), TableFormat::csv), one.rows) << one.text << " by " << piece;
    EXPECT_EQ(rows_of(file_of("file\ttext\na.png\ta cat, black\nb.png\t\"a\ttab\"\n"), TableFormat::tsv),
              "a.png,:a cat, black,:|b.png,:a\ttab,:|");
}

TEST(Table, NumbersInCsvAreWhole) {
    const std::vector<TableColumn> columns{{"file", CellUse::name}, {"w", CellUse::number}};
    EXPECT_EQ(rows_of(file_of("file,w\n7,640\n8,640.0\n9,\n10, -3 \n"), TableFormat::csv, columns),
              "7,:640,#640:|8,:640.0,#640:|9,::|10,: -3 ,#-3:|");
    for (const char* wrong : {"640.5", "wide", "64O", "1e300", "nan"}) {
        const auto refused = thrown_by(
            [&] { (void)rows_of(file_of("file,w\n7,1\n8," + std::string{wrong} + "\n"), TableFormat::csv, columns); });
        EXPECT_EQ(refused.code, Errc::wrong_column_type) << wrong;
        EXPECT_TRUE(refused.says("line 3 of table 'it' has no whole number in 'w'")) << refused.message;
    }
}

TEST(Table, CsvThatBreaksItsRulesIsRefusedByItsLine) {
    const struct {
        std::string text;
        std::string message;
    } cases[] = {
        {"file,text\na.png,x\nb.png,y,z\n", "line 3 of table 'it' has 3 fields, and the first line has 2"},
        {"file,text\na.png\n", "line 2 of table 'it' has 1 fields"},
        {"file,text\na.png,\"x\ny\nz\n", "line 2 of table 'it' begins a quoted field that does not end"},
        {"file,text\na.png,\"x\"y\n", "line 2 of table 'it' goes on behind the end of a quoted field"},
        {"file,text\na.png,\"1\n2\"\nb.png,x,\n", "line 4 of table 'it' has 3 fields"},
        {std::string{"file,text\na.png,x\0y\n", 20}, "line 2 of table 'it' holds a NUL byte"},
        {"file,text\na.png,\xFF\n", "line 2 of table 'it' is not UTF-8"},
        {"file,text\na.png,\"" + std::string(17 << 20, '\n'), "line 2 of table 'it' is longer than 16 MiB"},
    };
    for (const auto& one : cases) {
        const auto refused = thrown_by([&] { (void)rows_of(file_of(one.text), TableFormat::csv); });
        EXPECT_EQ(refused.code, Errc::bad_csv_line) << refused.message;
        EXPECT_TRUE(refused.says(one.message)) << refused.message;
    }
    const auto missing = thrown_by([] { (void)rows_of(file_of("name,text\n"), TableFormat::csv); });
    EXPECT_EQ(missing.code, Errc::no_such_column);
    EXPECT_TRUE(missing.says("no column 'file'; its first line has name, text")) << missing.message;
    EXPECT_EQ(thrown_by([] { (void)rows_of(file_of("file,text,text\n"), TableFormat::csv); }).code,
              Errc::no_such_column);
}

TEST(Table, ListsGiveAllTheirTexts) {
    EXPECT_EQ(rows_of(file_of("{\"file\": \"a\", \"text\": [\"one\", null, \"two\"]}\n{\"file\": 7, \"text\": \"x\"}\n"
                              "{\"file\": \"b\", \"text\": []}\n"),
                      TableFormat::json_lines),
              "a,:one,two,:|7,:x,:|b,::|");
    const auto refused = thrown_by(
        [] { (void)rows_of(file_of("{\"file\": \"a\", \"text\": [\"one\", 2]}\n"), TableFormat::json_lines); });
    EXPECT_EQ(refused.code, Errc::wrong_column_type);
    EXPECT_TRUE(refused.says("line 1 of table 'it' has no list of texts in 'text'")) << refused.message;
    const std::vector<made::MadeList> lists{made::MadeList{{made::cell("one"), {}, made::cell("two")}}, {}};
    const made::MadeFile file{
        .columns = {{.name = "file", .type = made::int32, .cells = {made::cell(7), made::cell(8)}},
                    made::list_column("text", made::ListForm::three_levels, lists)}};
    EXPECT_EQ(rows_of(file_of(made::made_file(file)), TableFormat::parquet), "7,:one,two,:|8,::|");
}

TEST(Table, AFileThatEndsBeforeItsSizeIsSaid) {
    TableFile file = file_of(std::string{"file,text\n"});
    file.read = [](std::uint64_t, std::uint64_t) { return Bytes{}; };
    EXPECT_EQ(thrown_by([&] { (void)rows_of(file, TableFormat::csv); }).code, Errc::io_failed);
}

}  // namespace
