// Tables that the test writes itself: every codec, encoding and kind of page, and what is refused by name.

#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <strata/storage/local.hpp>
#include <strata/tables/parquet.hpp>

#include "../../support/made_parquet.hpp"
#include "../../support/temporary_folder.hpp"

namespace {

using namespace strata::tables;
using namespace strata_test;
namespace made = strata_test::parquet;
using made::cell;
using made::Cell;
using made::MadeColumn;
using made::MadeFile;
using strata::Errc;

/// `count` cells, of which `value(row)` is one unless the row is a gap.
template <class Value>
std::vector<Cell> cells(std::size_t count, bool gaps, const Value& value) {
    std::vector<Cell> all;
    for (std::size_t row = 0; row < count; ++row) all.push_back(gaps && row % 7 == 3 ? Cell{} : cell(value(row)));
    return all;
}

std::string name_at(std::size_t row) { return "shard/Größe " + std::to_string(row % 61) + ".jpg"; }
std::int64_t large_at(std::size_t row) {
    return row % 5 == 0 ? std::numeric_limits<std::int64_t>::min() + static_cast<std::int64_t>(row)
                        : static_cast<std::int64_t>(row * row * 1'000'003);
}

/// One column of each type, of the pages that `page_rows` says, and gaps in all of them if they are `optional`.
std::vector<MadeColumn> one_of_each(std::size_t rows, bool optional) {
    std::vector<MadeColumn> columns(8);
    columns[0] = {.name = "name", .cells = cells(rows, optional, name_at), .converted = 0};
    columns[1] = {.name = "width", .type = made::int32, .cells = cells(rows, optional, [](std::size_t row) {
                                                            return static_cast<std::int32_t>(row) - 500;
                                                        })};
    columns[2] = {.name = "bytes", .type = made::int64, .cells = cells(rows, optional, large_at)};
    columns[3] = {.name = "score", .type = made::float32, .cells = cells(rows, optional, [](std::size_t row) {
                                                              return static_cast<float>(row) * 0.25F;
                                                          })};
    columns[4] = {.name = "ratio", .type = made::float64, .cells = cells(rows, optional, [](std::size_t row) {
                                                              return 1.0 / (1.0 + static_cast<double>(row));
                                                          })};
    columns[5] = {.name = "keep", .type = made::boolean, .cells = cells(rows, optional, [](std::size_t row) {
                                                             return row % 3 == 0;
                                                         })};
    columns[6] = {.name = "code",
                  .type = made::fixed,
                  .cells = cells(rows, optional,
                                 [](std::size_t row) { return std::string(3, static_cast<char>('a' + row % 26)); }),
                  .width = 3};
    columns[7] = {
        .name = "hash",
        .type = made::int32,
        .cells = cells(rows, optional, [](std::size_t row) { return 0xFFFF'0000U + static_cast<std::uint32_t>(row); }),
        .converted = 13};  // UINT_32
    std::size_t page = 3;
    for (MadeColumn& column : columns) {
        column.optional = optional;
        column.page_rows = page += 40;
    }
    return columns;
}

/// Reads all of a file that one_of_each() made and compares every value. Returns the rows.
std::size_t expect_one_of_each(const ParquetFile& file, bool gaps) {
    auto batches = file.read({{"name"}, {"width"}, {"bytes"}, {"score"}, {"ratio"}, {"keep"}, {"code"}, {"hash"}});
    std::size_t row = 0;
    while (batches.next()) {
        EXPECT_EQ(batches.first_row(), row);
        EXPECT_GT(batches.rows(), 0U);
        for (std::size_t i = 0; i < batches.rows(); ++i, ++row) {
            const bool gap = gaps && row % 7 == 3;
            for (std::size_t column = 0; column < 8; ++column) EXPECT_EQ(batches.column(column).is_null(i), gap);
            if (gap) {
                EXPECT_EQ(batches.column(0).text(i), std::nullopt);
                EXPECT_EQ(batches.column(1).integer(i), std::nullopt);
                continue;
            }
            EXPECT_EQ(batches.column(0).text(i), name_at(row));
            EXPECT_EQ(batches.column(1).integer(i), static_cast<std::int64_t>(row) - 500);
            EXPECT_EQ(batches.column(2).integer(i), large_at(row));
            EXPECT_EQ(batches.column(3).real(i), static_cast<double>(row) * 0.25);
            EXPECT_EQ(batches.column(4).real(i), 1.0 / (1.0 + static_cast<double>(row)));
            EXPECT_EQ(batches.column(5).boolean(i), row % 3 == 0);
            EXPECT_EQ(batches.column(6).text(i), std::string(3, static_cast<char>('a' + row % 26)));
            EXPECT_EQ(batches.column(7).integer(i), 0xFFFF'0000LL + static_cast<std::int64_t>(row));
        }
    }
    return row;
}

void read_all(const ParquetFile& file, const std::vector<ParquetRequest>& columns) {
    for (auto batches = file.read(columns); batches.next();) {
    }
}

TEST(Parquet, EveryCodecAndPageVersionGivesWhatWasWritten) {
    for (const made::Codec codec :
         {made::none, made::snappy, made::gzip, made::brotli, made::lz4_hadoop, made::zstd, made::lz4_raw})
        for (const bool v2 : {false, true})
            for (const bool optional : {false, true}) {
                SCOPED_TRACE(std::string{made::codec_names[codec]} + (v2 ? " v2" : " v1") +
                             (optional ? " optional" : ""));
                const MadeFile file{
                    .columns = one_of_each(1234, optional), .group_rows = 500, .codec = codec, .v2 = v2, .crc = true};
                const ParquetFile table{made::made_file(file)};
                EXPECT_EQ(table.rows(), 1234U);
                EXPECT_EQ(table.row_groups(), 3U);
                EXPECT_EQ(table.rows_of(2), 234U);
                EXPECT_EQ(expect_one_of_each(table, optional), 1234U);
            }
}

TEST(Parquet, DictionariesGiveWhatWasWritten) {
    for (const made::Encoding encoding : {made::plain_dictionary, made::rle_dictionary})
        for (const bool optional : {false, true}) {
            MadeFile file{.columns = one_of_each(700, optional), .group_rows = 300, .codec = made::snappy};
            for (MadeColumn& column : file.columns)
                if (column.type != made::boolean) column.encoding = encoding;
            EXPECT_EQ(expect_one_of_each(ParquetFile{made::made_file(file)}, optional), 700U);
        }
}

TEST(Parquet, NewerEncodingsGiveWhatWasWritten) {
    for (const bool optional : {false, true})
        for (const made::Encoding texts : {made::delta_length, made::delta_text}) {
            MadeFile file{.columns = one_of_each(900, optional), .group_rows = 450, .codec = made::zstd, .v2 = true};
            file.columns[0].encoding = texts;
            for (const std::size_t column : {1, 2, 7}) file.columns[column].encoding = made::delta;
            for (const std::size_t column : {3, 4}) file.columns[column].encoding = made::split;
            file.columns[5].encoding = made::rle;
            file.columns[6].encoding = made::delta_text;
            EXPECT_EQ(expect_one_of_each(ParquetFile{made::made_file(file)}, optional), 900U);
            for (const std::size_t column : {1, 2, 7}) file.columns[column].encoding = made::split;
            EXPECT_EQ(expect_one_of_each(ParquetFile{made::made_file(file)}, optional), 900U);
        }
}

TEST(Parquet, LevelsOfOldWritersAreRead) {
    const MadeFile file{.columns = one_of_each(300, true), .bit_packed_levels = true};
    EXPECT_EQ(expect_one_of_each(ParquetFile{made::made_file(file)}, true), 300U);
}

TEST(Parquet, BatchesNeverCrossTheirLimit) {
    ParquetLimits limits;
    limits.batch_rows = 17;
    const MadeFile file{.columns = one_of_each(400, true)};
    const ParquetFile table{made::made_file(file), "it", limits};
    EXPECT_EQ(expect_one_of_each(table, true), 400U);
    for (auto batches = table.read({{"name"}}); batches.next();) EXPECT_LE(batches.rows(), 17U);
    limits.batch_rows = 0;  // still one row a batch, no standstill
    EXPECT_EQ(expect_one_of_each(ParquetFile(made::made_file(file), "it", limits), true), 400U);
}

TEST(Parquet, RowGroupsCanBeShared) {
    const MadeFile file{.columns = one_of_each(100, false), .group_rows = 30};
    const ParquetFile table{made::made_file(file)};
    std::vector<std::int64_t> rows;
    for (const auto& [first, last] : {std::pair{2U, 4U}, std::pair{0U, 2U}, std::pair{4U, 9U}})
        for (auto batches = table.read({{"width"}}, first, last); batches.next();)
            for (std::size_t i = 0; i < batches.rows(); ++i) {
                EXPECT_EQ(batches.column(0).integer(i), static_cast<std::int64_t>(batches.first_row() + i) - 500);
                rows.push_back(*batches.column(0).integer(i) + 500);
            }
    ASSERT_EQ(rows.size(), 100U);
    EXPECT_EQ(rows.front(), 60);
    EXPECT_EQ(rows[40], 0);
    EXPECT_THROW((void)table.rows_of(4), std::out_of_range);
}

TEST(Parquet, ATableWithoutRowsHasColumns) {
    const ParquetFile table{made::made_file({.columns = one_of_each(0, true)})};
    EXPECT_EQ(table.rows(), 0U);
    ASSERT_EQ(table.columns().size(), 8U);
    EXPECT_EQ(table.columns()[0].name, "name");
    EXPECT_EQ(table.find("keep")->kind, ParquetKind::boolean);
    EXPECT_TRUE(table.find("keep")->nullable);
    EXPECT_FALSE(table.find("Keep"));
    EXPECT_FALSE(table.read({{"name"}}).next());
}

TEST(Parquet, OnlyTheChosenColumnsAreRead) {
    MadeFile file{
        .columns = {{.name = "big", .cells = cells(2000, false, [](std::size_t) { return std::string(1000, 'x'); })},
                    {.name = "small",
                     .type = made::int32,
                     .cells = cells(2000, false, [](std::size_t row) { return static_cast<std::int32_t>(row); })}},
        .group_rows = 500};
    const Bytes bytes = made::made_file(file);
    std::uint64_t read = 0;
    int reads = 0;
    const ParquetFile table{[&](std::uint64_t offset, std::uint64_t length) {
                                read += length;
                                ++reads;
                                EXPECT_LE(offset + length, bytes.size());
                                const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(offset);
                                return Bytes(begin, begin + static_cast<std::ptrdiff_t>(length));
                            },
                            bytes.size(), "it"};
    EXPECT_EQ(reads, 1);
    EXPECT_EQ(read, 65536U);
    read_all(table, {{"small"}});
    EXPECT_EQ(reads, 1 + 4);                    // one a row group
    EXPECT_LT(read, 65536U + 2000 * 4 + 1000);  // of 2 MB
}

TEST(Parquet, AFooterLargerThanTheFirstReadIsFetchedWhole) {
    MadeFile file;
    for (int i = 0; i < 1500; ++i)
        file.columns.push_back({.name = "column " + std::to_string(i), .cells = {cell("x"), cell(std::to_string(i))}});
    const made::Parts parts = made::made_parts(file);
    ASSERT_GT(parts.footer.size(), 65536U);
    const ParquetFile table{parts.file()};
    ASSERT_EQ(table.columns().size(), 1500U);
    auto batches = table.read({{"column 1234"}});
    ASSERT_TRUE(batches.next());
    EXPECT_EQ(batches.column(0).text(1), "1234");
}

TEST(Parquet, ATableIsReadBatchByBatch) {
    const TemporaryFolder folder;
    const strata::Local store{folder.path()};
    store.put("tables/photos.parquet", made::made_file({.columns = one_of_each(9, false)}));
    std::map<std::string, std::int64_t> widths;
    //! [parquet]
    const ParquetFile file = open_parquet(store, "tables/photos.parquet");
    for (auto batches = file.read({{"name"}, {"width", ParquetKind::integer}}); batches.next();)
        for (std::size_t row = 0; row < batches.rows(); ++row)
            widths[std::string{batches.column(0).text(row).value()}] = batches.column(1).integer(row).value_or(0);
    //! [parquet]
    EXPECT_EQ(widths.size(), 9U);
    EXPECT_EQ(widths[name_at(4)], -496);
}

TEST(Parquet, AStoreGivesRanges) {
    const TemporaryFolder folder;
    const strata::Local store{folder.path()};
    store.put("tables/it.parquet", made::made_file({.columns = one_of_each(50, true)}));
    EXPECT_EQ(expect_one_of_each(open_parquet(store, "tables/it.parquet"), true), 50U);
    const auto missing = thrown_by([&] { (void)open_parquet(store, "tables/other.parquet"); });
    EXPECT_EQ(missing.code, Errc::not_found);
    EXPECT_NE(missing.message.find("tables/other.parquet"), std::string::npos) << missing.message;
    const auto short_read = thrown_by([] {
        ParquetFile{[](auto, auto length) { return Bytes(length / 2); }, 1000, "it"};
    });
    EXPECT_EQ(short_read.code, Errc::io_failed);
    EXPECT_NE(short_read.message.find("it: of 1000 bytes at offset 0 came 500"), std::string::npos)
        << short_read.message;
}

TEST(Parquet, ColumnsThatCannotBeReadDoNotHinderOthers) {
    MadeFile file{.columns = {{.name = "id", .type = made::int64, .cells = {cell(std::int64_t{7})}},
                              {.name = "time", .type = made::fixed, .cells = {Bytes(12)}, .converted = 21, .width = 12},
                              {.name = "price", .cells = {cell("1")}, .converted = 5, .scale = 39},
                              {.name = "twice", .cells = {cell("a")}},
                              {.name = "twice", .cells = {cell("b")}}}};
    const ParquetFile table{made::made_file(file)};
    auto batches = table.read({{"id"}});
    ASSERT_TRUE(batches.next());
    EXPECT_EQ(batches.column(0).integer(0), 7);
    for (const auto& [name, why] :
         {std::pair{"time", "intervals"}, std::pair{"price", "decimal is 39"}, std::pair{"twice", "twice"}}) {
        EXPECT_NE(table.find(name)->refusal.find(why), std::string::npos) << table.find(name)->refusal;
        const auto refused = thrown_by([&, asked = name] { (void)table.read({{asked}}); });
        EXPECT_EQ(refused.code, Errc::unsupported_parquet);
        EXPECT_NE(refused.message.find(why), std::string::npos) << refused.message;
    }
}

TEST(Parquet, StructsAreListedAndRefused) {
    // list<struct<a, b>> behind a flat column: its two leaves have chunks in the row group.
    MadeFile file{
        .columns = {{.name = "flat", .cells = {cell("x")}}}, .more_columns = 1, .more_elements = 4, .more_chunks = 2};
    file.more_schema = [](made::ThriftWriter& out) {
        for (const auto& [name, children] : {std::pair{"captions", 1}, std::pair{"list", 2}})
            out.bare_record([&, label = name, count = children](made::ThriftWriter& group) {
                group.integer(3, 2).text(4, label).integer(5, count);
            });
        for (const char* name : {"a", "b"})
            out.bare_record(
                [&](made::ThriftWriter& leaf) { leaf.integer(1, made::byte_array).integer(3, 1).text(4, name); });
    };
    const ParquetFile table{made::made_file(file)};
    ASSERT_EQ(table.columns().size(), 2U);
    EXPECT_EQ(table.columns()[1].name, "captions");
    EXPECT_NE(table.columns()[1].refusal.find("nested"), std::string::npos);
    EXPECT_NE(table.columns()[1].refusal.find("as in 'captions.list.a'"), std::string::npos)
        << table.columns()[1].refusal;
    auto batches = table.read({{"flat"}});
    ASSERT_TRUE(batches.next());
    EXPECT_EQ(batches.column(0).text(0), "x");
    EXPECT_EQ(thrown_by([&] { (void)table.read({{"captions"}}); }).code, Errc::unsupported_parquet);

    file.more_chunks = 1;
    EXPECT_EQ(thrown_by([&] { ParquetFile{made::made_file(file)}; }).code, Errc::corrupt_parquet);
}

TEST(Parquet, NamesOfColumnsAreSaid) {
    const ParquetFile table{made::made_file({.columns = one_of_each(3, true)}), "photos.parquet"};
    const auto missing = thrown_by([&] { (void)table.read({{"Width"}}); });
    EXPECT_EQ(missing.code, Errc::no_such_column);
    EXPECT_NE(missing.message.find("photos.parquet has no column 'Width'"), std::string::npos) << missing.message;
    EXPECT_NE(missing.message.find("name, width, bytes"), std::string::npos) << missing.message;
    EXPECT_EQ(thrown_by([&] { (void)table.read({}); }).code, Errc::no_such_column);

    const ParquetFile odd{made::made_file({.columns = {{.name = "a\nb\x1b[2J" + std::string(5000, 'x')}}})};
    const std::string message = thrown_by([&] { (void)odd.read({{"c"}}); }).message;
    EXPECT_NE(message.find("a?b?[2J"), std::string::npos) << message;
    EXPECT_LT(message.size(), 400U);
}

TEST(Parquet, NumbersAreTakenAsTheKindThatIsAskedFor) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const MadeFile file{
        .columns = {{.name = "whole", .type = made::float64, .cells = {cell(640.0), cell(nan), {}, cell(-2.0)}},
                    {.name = "part", .type = made::float64, .cells = {cell(1.0), cell(2.5), cell(3.0), cell(4.0)}},
                    {.name = "huge", .type = made::float64, .cells = {cell(1e300), cell(1.0), cell(1.0), cell(1.0)}},
                    {.name = "count", .type = made::int32, .cells = {cell(3), cell(-4), {}, cell(5)}},
                    {.name = "cents",
                     .type = made::int64,
                     .cells = {cell(std::int64_t{1250}), {}, {}, {}},
                     .converted = 5,
                     .scale = 2}}};
    const ParquetFile table{made::made_file(file), "it"};
    auto batches = table.read({{"whole", ParquetKind::integer}, {"count", ParquetKind::real}, {"whole"}, {"cents"}});
    ASSERT_TRUE(batches.next());
    EXPECT_EQ(batches.column(0).integer(0), 640);
    EXPECT_TRUE(batches.column(0).is_null(1));  // a gap of a table library
    EXPECT_TRUE(batches.column(0).is_null(2));
    EXPECT_EQ(batches.column(0).integer(3), -2);
    EXPECT_EQ(batches.column(1).real(1), -4.0);
    EXPECT_TRUE(batches.column(1).is_null(2));
    EXPECT_TRUE(std::isnan(*batches.column(2).real(1)));
    EXPECT_EQ(batches.column(3).real(0), 12.5);
    EXPECT_EQ(table.find("cents")->kind, ParquetKind::real);

    const auto fraction = thrown_by([&] { read_all(table, {{"part", ParquetKind::integer}}); });
    EXPECT_EQ(fraction.code, Errc::wrong_column_type);
    EXPECT_NE(fraction.message.find("it, column 'part': row 1 holds 2.5"), std::string::npos) << fraction.message;
    EXPECT_EQ(thrown_by([&] { read_all(table, {{"huge", ParquetKind::integer}}); }).code, Errc::wrong_column_type);
    EXPECT_EQ(thrown_by([&] { (void)table.read({{"whole", ParquetKind::text}}); }).code, Errc::wrong_column_type);
    EXPECT_EQ(thrown_by([&] { (void)batches.column(0).real(0); }).code, Errc::wrong_column_type);
}

TEST(Parquet, UnsignedNumbersBeyond63BitsAreRefused) {
    const MadeFile file{.columns = {{.name = "id",
                                     .type = made::int64,
                                     .cells = {cell(std::int64_t{5}), cell(std::int64_t{-1})},
                                     .converted = 14}}};
    const auto refused = thrown_by([&] { read_all(ParquetFile{made::made_file(file)}, {{"id"}}); });
    EXPECT_EQ(refused.code, Errc::wrong_column_type);
    EXPECT_NE(refused.message.find("row 1"), std::string::npos) << refused.message;
}

TEST(Parquet, TextIsUtf8WhereTheSchemaSaysSo) {
    for (const char* bad : {"\xC3", "\xC0\xAF", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xFF", "\xE2\x82", "abcdefgh\x80"})
        for (const made::Encoding encoding : {made::plain, made::rle_dictionary, made::delta_length}) {
            MadeFile file{
                .columns = {
                    {.name = "text", .cells = {cell("fine"), cell(bad)}, .encoding = encoding, .converted = 0}}};
            const ParquetFile table{made::made_file(file)};
            EXPECT_EQ(thrown_by([&] { read_all(table, {{"text"}}); }).code, Errc::corrupt_parquet) << bad;
            file.columns[0].converted = -1;  // bytes of any kind
            auto batches = ParquetFile{made::made_file(file)}.read({{"text"}});
            ASSERT_TRUE(batches.next());
            EXPECT_EQ(batches.column(0).text(1), bad);
        }
    const std::string fine =
        "\xC2\x80 \xDF\xBF \xE0\xA0\x80 \xED\x9F\xBF \xEF\xBF\xBF \xF0\x90\x80\x80 \xF4\x8F\xBF\xBF";
    auto batches =
        ParquetFile{made::made_file({.columns = {{.name = "text", .cells = {cell(fine)}, .converted = 0}}})}.read(
            {{"text"}});
    ASSERT_TRUE(batches.next());
    EXPECT_EQ(batches.column(0).text(0), fine);
}

TEST(Parquet, CodecsAndEncodingsThatAreNotReadAreNamed) {
    MadeFile file{.columns = {{.name = "text", .cells = {cell("a")}}}};
    file.codec = made::lzo;
    const auto codec = thrown_by([&] { read_all(ParquetFile{made::made_file(file)}, {{"text"}}); });
    EXPECT_EQ(codec.code, Errc::unsupported_parquet);
    EXPECT_NE(codec.message.find("LZO"), std::string::npos) << codec.message;
    file.codec = made::none;
    for (const made::Encoding encoding : {made::delta, made::bit_packed, made::rle, made::split}) {
        file.columns[0] = {.name = "text", .cells = {cell("abcd")}, .encoding = encoding};
        EXPECT_EQ(thrown_by([&] { read_all(ParquetFile{made::made_file(file)}, {{"text"}}); }).code,
                  Errc::unsupported_parquet)
            << encoding;
    }
}

TEST(Parquet, WhatIsNoParquetFileIsSaid) {
    for (const std::string text : {"", "PAR1", "PAR1PAR1", "filename,width\na.jpg,100\n"}) {
        const auto refused = thrown_by([&] { ParquetFile(bytes_of(text), "table.csv"); });
        EXPECT_EQ(refused.code, Errc::corrupt_parquet) << text;
        EXPECT_NE(refused.message.find("table.csv"), std::string::npos) << refused.message;
    }
    Bytes encrypted = made::made_file({.columns = one_of_each(3, true)});
    encrypted[encrypted.size() - 1] = std::byte{'E'};
    EXPECT_EQ(thrown_by([&] { ParquetFile{encrypted}; }).code, Errc::unsupported_parquet);
}

}  // namespace
