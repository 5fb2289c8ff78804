// Columns of lists and columns inside of structs, in every form that writers have, with pages that cut rows.

#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <strata/tables/parquet.hpp>

#include "../../support/made_parquet.hpp"
#include "../../support/temporary_folder.hpp"

namespace {

using namespace strata::tables;
using namespace strata_test;
namespace made = strata_test::parquet;
using made::cell;
using made::Cell;
using made::list_column;
using made::ListForm;
using made::MadeColumn;
using made::MadeFile;
using made::MadeList;
using strata::Errc;

/// What a row of lists is to a reader: nothing, or entries that are nothing or a text.
using Row = std::optional<std::vector<std::optional<std::string>>>;

std::string caption(std::size_t row, std::size_t entry) {
    return "caption " + std::to_string(entry) + " of " + std::to_string(row % 7) + std::string(row % 5, '!');
}

/// Null lists, empty ones, ones with null entries, and one that is longer than most pages.
std::vector<Row> rows_of(std::size_t count) {
    std::vector<Row> rows(count);
    for (std::size_t row = 0; row < count; ++row) {
        if (row % 11 == 4) continue;
        rows[row].emplace();
        const std::size_t entries = row == 17 ? 100 : row % 4;
        for (std::size_t entry = 0; entry < entries; ++entry)
            rows[row]->push_back(row % 3 == 1 && entry == 1 ? std::nullopt : std::optional{caption(row, entry)});
    }
    return rows;
}

std::vector<MadeList> cells_of(const std::vector<Row>& rows) {
    std::vector<MadeList> lists;
    for (const Row& row : rows) {
        MadeList& list = lists.emplace_back();
        if (!row) continue;
        list.emplace();
        for (const auto& entry : *row) list->push_back(entry ? cell(*entry) : Cell{});
    }
    return lists;
}

/// What is left of the rows in a form that has no null entries, or no null lists.
std::vector<Row> as_form_says(std::vector<Row> rows, ListForm form) {
    const bool has_null_entries = form == ListForm::three_levels || form == ListForm::inside_a_struct;
    const bool has_null_lists = form != ListForm::required && form != ListForm::repeated;
    for (Row& row : rows) {
        if (row && !has_null_entries) std::erase(*row, std::nullopt);
        if (!row && !has_null_lists) row.emplace();
    }
    return rows;
}

std::vector<Row> read_lists(const ParquetFile& file, const std::string& name, std::size_t most_rows = 1'000'000) {
    std::vector<Row> rows;
    for (auto batches = file.read({{name, ParquetKind::text, true}}); batches.next();) {
        EXPECT_EQ(batches.first_row(), rows.size());
        EXPECT_LE(batches.rows(), most_rows);
        const ParquetValues& column = batches.column(0);
        for (std::size_t row = 0; row < batches.rows(); ++row) {
            Row& read = rows.emplace_back();
            if (column.is_null(row)) {
                EXPECT_EQ(column.entries(row), 0U);
                continue;
            }
            read.emplace();
            for (std::size_t entry = 0; entry < column.entries(row); ++entry) {
                const auto text = column.text(row, entry);
                read->push_back(text ? std::optional{std::string{*text}} : std::nullopt);
            }
        }
    }
    return rows;
}

std::string name_in(ListForm form) { return form == ListForm::inside_a_struct ? "meta.captions" : "captions"; }

TEST(ParquetLists, EveryFormGivesWhatWasWritten) {
    const std::vector<Row> rows = rows_of(200);
    for (const ListForm form : made::list_forms)
        for (const bool v2 : {false, true})
            for (const std::size_t page_rows : {1, 7, 64, 1000})
                for (const made::Encoding encoding : {made::plain, made::rle_dictionary, made::delta_text}) {
                    SCOPED_TRACE(std::to_string(static_cast<int>(form)) + (v2 ? " v2 " : " v1 ") +
                                 std::to_string(page_rows) + " " + std::to_string(encoding));
                    MadeColumn like{.encoding = encoding, .converted = 0, .page_rows = page_rows};
                    const MadeFile file{.columns = {list_column("captions", form, cells_of(rows), like)},
                                        .group_rows = 90,
                                        .codec = made::zstd,
                                        .v2 = v2,
                                        .crc = true};
                    const ParquetFile table{made::made_file(file)};
                    EXPECT_EQ(table.rows(), 200U);
                    EXPECT_EQ(read_lists(table, name_in(form)), as_form_says(rows, form));
                    const auto found = table.find(name_in(form));
                    ASSERT_TRUE(found);
                    EXPECT_TRUE(found->is_list);
                    EXPECT_EQ(found->refusal, "");
                }
}

TEST(ParquetLists, BatchesOfAnySizeGiveTheSameRows) {
    const std::vector<Row> rows = rows_of(120);
    MadeColumn like{.page_rows = 31};
    const MadeFile file{.columns = {list_column("captions", ListForm::three_levels, cells_of(rows), like)},
                        .group_rows = 50};
    for (const std::size_t most : {0, 1, 2, 5, 33}) {
        ParquetLimits limits;
        limits.batch_rows = most;
        EXPECT_EQ(
            read_lists(ParquetFile(made::made_file(file), "it", limits), "captions", std::max<std::size_t>(most, 1)),
            rows)
            << most;
    }
}

TEST(ParquetLists, LevelsOfOldWritersAreRead) {
    const std::vector<Row> rows = rows_of(80);
    for (const ListForm form : made::list_forms) {
        MadeColumn like{.page_rows = 50};
        const MadeFile file{.columns = {list_column("captions", form, cells_of(rows), like)},
                            .bit_packed_levels = true};
        EXPECT_EQ(read_lists(ParquetFile{made::made_file(file)}, name_in(form)), as_form_says(rows, form));
    }
}

TEST(ParquetLists, ListsStayInStepWithTheColumnsBesideThem) {
    const std::vector<Row> rows = rows_of(150);
    MadeColumn names{.name = "name", .page_rows = 13};
    for (std::size_t row = 0; row < rows.size(); ++row) names.cells.push_back(cell(std::to_string(row)));
    MadeColumn like{.page_rows = 17};
    const MadeFile file{.columns = {names, list_column("captions", ListForm::three_levels, cells_of(rows), like)},
                        .group_rows = 70};
    const ParquetFile table{made::made_file(file)};
    std::size_t row = 0;
    for (auto batches = table.read({{"captions", ParquetKind::text, true}, {"name", {}, true}}); batches.next();)
        for (std::size_t i = 0; i < batches.rows(); ++i, ++row) {
            EXPECT_EQ(batches.column(1).text(i), std::to_string(row));
            EXPECT_EQ(batches.column(1).text(i, 0), std::to_string(row));  // a value is a list of one
            EXPECT_EQ(batches.column(1).entries(i), 1U);
            EXPECT_EQ(batches.column(0).entries(i), rows[row] ? rows[row]->size() : 0);
        }
    EXPECT_EQ(row, rows.size());
}

TEST(ParquetLists, NumbersInListsAreConvertedAndCheckedByRow) {
    const auto numbers = [](double number) { return MadeList{{cell(1.0), cell(number)}}; };
    MadeColumn like{.type = made::float64};
    const MadeFile file{
        .columns = {list_column("ids", ListForm::three_levels, {numbers(2), MadeList{}, numbers(3)}, like),
                    list_column("parts", ListForm::three_levels, {numbers(2), MadeList{}, numbers(2.5)}, like)}};
    const ParquetFile table{made::made_file(file), "it"};
    auto batches = table.read({{"ids", ParquetKind::integer, true}});
    ASSERT_TRUE(batches.next());
    EXPECT_EQ(batches.column(0).integer(2, 1), 3);
    EXPECT_TRUE(batches.column(0).is_null(1));
    EXPECT_THROW((void)batches.column(0).integer(1, 0), std::out_of_range);
    EXPECT_EQ(thrown_by([&] { (void)batches.column(0).integer(2); }).code, Errc::wrong_column_type);
    const auto fraction = thrown_by([&] { (void)table.read({{"parts", ParquetKind::integer, true}}).next(); });
    EXPECT_EQ(fraction.code, Errc::wrong_column_type);
    EXPECT_TRUE(fraction.says("row 2 holds 2.5")) << fraction.message;
}

TEST(ParquetLists, AListIsNoValue) {
    const MadeFile file{.columns = {list_column("captions", ListForm::three_levels, {MadeList{{cell("a")}}})}};
    const ParquetFile table{made::made_file(file), "it"};
    for (const std::optional<ParquetKind> kind : {std::optional<ParquetKind>{}, std::optional{ParquetKind::text}}) {
        const auto refused = thrown_by([&] { (void)table.read({{"captions", kind}}); });
        EXPECT_EQ(refused.code, Errc::wrong_column_type);
        EXPECT_TRUE(refused.says("holds lists of text where text are needed")) << refused.message;
    }
    EXPECT_EQ(thrown_by([&] {
                  (void)table.read({{"captions", ParquetKind::integer, true}});
              }).code,
              Errc::wrong_column_type);
}

/// A struct with a caption, its size, and a list of structs, as data sets of the field have them.
MadeFile structs() {
    const Cell none;
    return {.columns = {
                {.name = "id", .type = made::int32, .cells = {cell(1), cell(2), cell(3)}},
                {.name = "caption",
                 .cells = {cell("a cat"), none, none},
                 .groups = {{"meta", 1}},
                 .levels = {{0, 2}, {0, 1}, {0, 0}}},
                {.name = "width",
                 .type = made::int32,
                 .cells = {cell(640), cell(320), none},
                 .optional = false,
                 .groups = {{"meta", 1}},
                 .levels = {{0, 1}, {0, 1}, {0, 0}}},
                {.name = "text",
                 .cells = {cell("one"), none, cell("three"), none, none},
                 .groups = {{"meta", 1}, {"said", 1, 3}, {"list", 2}, {"element", 1}},
                 .levels = {{0, 5}, {1, 4}, {1, 5}, {0, 2}, {0, 0}}},
                {.name = "score",
                 .type = made::float32,
                 .cells = {cell(0.5F), cell(0.25F), cell(1.0F), none, none},
                 .groups = {{"meta", 1}, {"said", 1, 3}, {"list", 2}, {"element", 1}},
                 .levels = {{0, 5}, {1, 5}, {1, 5}, {0, 2}, {0, 0}}},
                {.name = "inner",
                 .cells = {cell("x"), none, none},
                 .optional = false,
                 .groups = {{"outer", 1, 3}, {"array", 2, 3}},
                 .repeated = true,
                 .levels = {{0, 3}, {0, 0}, {0, 0}}},
                {.name = "key",
                 .cells = {cell("k"), none, none},
                 .optional = false,
                 .groups = {{"map", 1, 1}, {"key_value", 2}},
                 .levels = {{0, 2}, {0, 0}, {0, 0}}},
            }};
}

TEST(ParquetLists, ColumnsInsideOfStructsHaveTheirPathAsAName) {
    const ParquetFile table{made::made_file(structs()), "it"};
    ASSERT_EQ(table.columns().size(), 4U);  // id, meta, outer, map
    auto flat = table.read({{"meta.caption"}, {"meta.width", ParquetKind::integer}, {"id"}});
    ASSERT_TRUE(flat.next());
    ASSERT_EQ(flat.rows(), 3U);
    EXPECT_EQ(flat.column(0).text(0), "a cat");
    EXPECT_TRUE(flat.column(0).is_null(1));
    EXPECT_EQ(flat.column(1).integer(1), 320);
    EXPECT_TRUE(flat.column(1).is_null(2));
    EXPECT_EQ(flat.column(2).integer(2), 3);
    for (const char* name : {"meta.said.list.element.text", "meta.said.text"}) {
        const Row first{{"one", std::nullopt, "three"}};
        EXPECT_EQ(read_lists(table, name),
                  (std::vector<Row>{first, Row{std::vector<std::optional<std::string>>{}}, Row{}}))
            << name;
    }
    EXPECT_EQ(read_lists(table, "map.key_value.key")[0], (Row{{"k"}}));
    EXPECT_EQ(table.find("meta.width")->kind, ParquetKind::integer);
    EXPECT_FALSE(table.find("meta.height"));
    EXPECT_FALSE(table.find("meta."));
    EXPECT_FALSE(table.find("caption"));
}

TEST(ParquetLists, WhatIsNoColumnIsRefusedAndSaysWhichThereAre) {
    const ParquetFile table{made::made_file(structs()), "it"};
    const auto meta = thrown_by([&] { (void)table.read({{"meta"}}); });
    EXPECT_EQ(meta.code, Errc::unsupported_parquet);
    EXPECT_TRUE(meta.says("name a column in it, as in 'meta.caption'")) << meta.message;
    EXPECT_TRUE(thrown_by([&] {
                    (void)table.read({{"meta.said", {}, true}});
                }).says("as in 'meta.said.list.element.text'"));
    const auto lists = thrown_by([&] { (void)table.read({{"outer", {}, true}}); });
    EXPECT_EQ(lists.code, Errc::unsupported_parquet);
    EXPECT_TRUE(lists.says("a list of lists")) << lists.message;
    EXPECT_EQ(thrown_by([&] { (void)table.read({{"map", {}, true}}); }).code, Errc::unsupported_parquet);
    EXPECT_EQ(thrown_by([&] { (void)table.read({{"meta.none"}}); }).code, Errc::no_such_column);
}

TEST(ParquetLists, ANameWithADotIsAName) {
    MadeFile file = structs();
    file.columns.push_back({.name = "meta.caption", .cells = {cell("flat"), cell("flat"), cell("flat")}});
    auto batches = ParquetFile{made::made_file(file)}.read({{"meta.caption"}});
    ASSERT_TRUE(batches.next());
    EXPECT_EQ(batches.column(0).text(0), "flat");
}

TEST(ParquetLists, ARowHasALimit) {
    const std::vector<MadeList> rows{MadeList{std::vector<Cell>(50, cell("x"))}};
    MadeColumn like{.page_rows = 8};
    const Bytes bytes = made::made_file({.columns = {list_column("captions", ListForm::three_levels, rows, like)}});
    ParquetLimits limits;
    limits.list_entries = 50;
    EXPECT_EQ(read_lists(ParquetFile(bytes, "it", limits), "captions")[0]->size(), 50U);
    limits.list_entries = 49;
    const auto refused = thrown_by([&] { (void)read_lists(ParquetFile(bytes, "it", limits), "captions"); });
    EXPECT_EQ(refused.code, Errc::parquet_too_large);
    EXPECT_TRUE(refused.says("more than the 49 entries")) << refused.message;
}

}  // namespace
