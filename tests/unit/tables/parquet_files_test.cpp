// Parquet files of other writers in the reference material, against what two independent readers found in them.

#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <strata/storage/local.hpp>
#include <strata/tables/parquet.hpp>

namespace {

using namespace strata::tables;
using nlohmann::json;
using strata::Errc;

const std::filesystem::path folder = std::filesystem::path{STRATA_REFERENCE_DIR} / "data" / "parquet";

json read_json(const std::string& name) {
    std::ifstream stream{folder / name};
    return stream ? json::parse(stream) : json{};
}

const strata::Local store{folder};

#define SKIP_WITHOUT_FILES() \
    if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no Parquet files at " << folder

/// Bytes as DuckDB shows them.
std::string escaped(std::string_view bytes) {
    constexpr std::string_view digits = "0123456789ABCDEF";
    std::string text;
    for (const char letter : bytes) {
        const auto byte = static_cast<unsigned char>(letter);
        if (byte >= 0x20 && byte < 0x7F && byte != '\\') {
            text += letter;
        } else {
            text += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
        }
    }
    return text;
}

/// Microseconds since 1970 as DuckDB shows them: "2024-01-01 20:34:56.123456".
std::string shown_time(std::int64_t microseconds) {
    const std::int64_t day_us = 86'400'000'000;
    const std::int64_t day = microseconds / day_us - (microseconds % day_us < 0 ? 1 : 0);
    const std::int64_t of_day = microseconds - day * day_us;
    const std::chrono::year_month_day date{std::chrono::sys_days{std::chrono::days{day}}};
    char text[64];
    std::snprintf(text, sizeof text, "%04d-%02u-%02u %02d:%02d:%02d", static_cast<int>(date.year()),
                  static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                  static_cast<int>(of_day / 3'600'000'000), static_cast<int>(of_day / 60'000'000 % 60),
                  static_cast<int>(of_day / 1'000'000 % 60));
    std::string shown = text;
    if (of_day % 1'000'000 != 0) {
        std::snprintf(text, sizeof text, ".%06d", static_cast<int>(of_day % 1'000'000));
        shown += text;
        shown.erase(shown.find_last_not_of('0') + 1);
    }
    return shown;
}

bool is_value(const json& expected, const ParquetValues& column, std::size_t row, std::size_t entry);

/// True if the readers found what stands in the row. They write 64-bit numbers and decimals as text, and bytes as text
/// or as a list of numbers.
bool is_equal(const json& expected, const ParquetValues& column, std::size_t row) {
    if (expected.is_null() || column.is_null(row)) return expected.is_null() == column.is_null(row);
    if (!column.is_list()) return is_value(expected, column, row, 0);
    if (!expected.is_array() || expected.size() != column.entries(row)) return false;
    for (std::size_t entry = 0; entry < expected.size(); ++entry)
        if (!is_value(expected[entry], column, row, entry)) return false;
    return true;
}

bool is_value(const json& expected, const ParquetValues& column, std::size_t row, std::size_t entry) {
    if (expected.is_null()) {
        switch (column.kind()) {
            case ParquetKind::text:
                return !column.text(row, entry);
            case ParquetKind::integer:
                return !column.integer(row, entry);
            case ParquetKind::real:
                return !column.real(row, entry);
            case ParquetKind::boolean:
                return !column.boolean(row, entry);
        }
    }
    switch (column.kind()) {
        case ParquetKind::text: {
            if (expected.is_string()) {
                const auto shown = expected.get<std::string>();
                return shown == *column.text(row, entry) || shown == escaped(*column.text(row, entry));
            }
            std::string bytes;
            if (!expected.is_array()) return false;
            for (const json& byte : expected) bytes += static_cast<char>(byte.get<int>());
            return bytes == *column.text(row, entry);
        }
        case ParquetKind::integer:
            if (expected.is_string()) {
                const auto text = expected.get<std::string>();
                const std::int64_t number = *column.integer(row, entry);
                return text == std::to_string(number) || text == shown_time(number);
            }
            return expected.is_number() && expected.get<std::int64_t>() == *column.integer(row, entry);
        case ParquetKind::real: {
            const double number = *column.real(row, entry);
            if (expected.is_string()) {
                const auto shown = expected.get<std::string>();
                return shown == "NaN" ? std::isnan(number) : std::stod(shown) == number;
            }
            return expected.is_number() && expected.get<double>() == number;
        }
        case ParquetKind::boolean:
            return expected.is_boolean() && expected.get<bool>() == *column.boolean(row, entry);
    }
    return false;
}

/// Compares the columns that can be read with `expected`, one entry a row, of the first rows or of all: an object by
/// names, or a list in the order of the columns. Returns how many columns were compared.
int compare(const ParquetFile& file, const json& expected) {
    int compared = 0;
    for (std::size_t i = 0; i < file.columns().size(); ++i) {
        const ParquetColumn& column = file.columns()[i];
        if (!column.refusal.empty()) continue;
        std::size_t row = 0;
        int different = 0;
        for (auto batches = file.read({{column.name, {}, true}}); batches.next();)
            for (std::size_t at = 0; at < batches.rows(); ++at, ++row) {
                if (row >= expected.size()) continue;
                const json& entry = expected[row];
                const json& value = entry.is_object() ? entry.at(column.name) : entry.at(i);
                if (!is_equal(value, batches.column(0), at) && ++different < 4)
                    ADD_FAILURE() << "column " << column.name << ", row " << row << ": the readers found " << value;
            }
        EXPECT_EQ(row, file.rows()) << column.name;
        ++compared;
    }
    return compared;
}

/// The 113 rows, with gaps where `is_gap` says there is no caption.
template <class IsGap>
json flat_rows(const IsGap& is_gap, std::size_t times = 1) {
    const json flat = read_json("duckdb/flat_expected.json");
    json rows = json::array();
    for (std::size_t row = 0; row < flat.size() * times; ++row) {
        rows.push_back(flat[row % flat.size()]);
        if (is_gap(row)) rows.back()["caption"] = nullptr;
    }
    return rows;
}

TEST(ParquetFiles, EveryCodecGivesTheRowsOfTheList) {
    SKIP_WITHOUT_FILES();
    const json rows = flat_rows([](std::size_t) { return false; });
    ASSERT_EQ(rows.size(), 113U);
    for (const char* kind : {"uncompressed", "snappy", "gzip", "zstd", "brotli", "lz4_raw", "v2_snappy", "nodict"}) {
        SCOPED_TRACE(kind);
        EXPECT_EQ(compare(open_parquet(store, "duckdb/flat_" + std::string{kind} + ".parquet"), rows), 4);
    }
    EXPECT_EQ(compare(open_parquet(store, "duckdb/kv_metadata.parquet"), rows), 4);
    EXPECT_EQ(compare(open_parquet(store, "duckdb/no_width_height.parquet"), rows), 2);
}

TEST(ParquetFiles, SmallPagesGapsAndDictionariesGiveTheRowsOfTheList) {
    SKIP_WITHOUT_FILES();
    const json gaps = flat_rows([](std::size_t row) { return row % 9 == 4; });
    EXPECT_EQ(compare(open_parquet(store, "hyparquet_writer/nulls_small_pages_snappy.parquet"), gaps), 4);
    EXPECT_EQ(compare(open_parquet(store, "hyparquet_writer/delta_encodings_snappy.parquet"), gaps), 4);
    EXPECT_EQ(compare(open_parquet(store, "hyparquet_writer/required_small_pages_uncompressed.parquet"),
                      flat_rows([](std::size_t) { return false; })),
              4);
    EXPECT_EQ(
        compare(open_parquet(store, "duckdb/all_null_caption.parquet"), flat_rows([](std::size_t) { return true; })),
        4);
    EXPECT_EQ(compare(open_parquet(store, "duckdb/dict_2260_rows_snappy.parquet"),
                      flat_rows([](std::size_t row) { return row / 113 % 4 == 1; }, 20)),
              4);
    EXPECT_EQ(open_parquet(store, "duckdb/empty_0_rows.parquet").rows(), 0U);
}

TEST(ParquetFiles, FlatColumnsBesideNestedOnesGiveTheRowsOfTheList) {
    SKIP_WITHOUT_FILES();
    json rows = read_json("duckdb/rich_expected.json");
    for (std::size_t row = 0; row < rows.size(); ++row)  // an hour a row, in microseconds since 1970
        rows[row]["created"] = std::to_string((1'704'067'200 + 3600 * static_cast<std::int64_t>(row)) * 1'000'000);
    for (const char* codec : {"uncompressed", "snappy", "zstd"}) {
        SCOPED_TRACE(codec);
        const ParquetFile file = open_parquet(store, "duckdb/rich_" + std::string{codec} + ".parquet");
        EXPECT_EQ(compare(file, rows), 11);  // the list `captions` with them
        EXPECT_NE(file.find("origin")->refusal, "");
        std::size_t row = 0;
        for (auto batches = file.read({{"origin.repo"}, {"origin.stored.w"}}); batches.next();)
            for (std::size_t i = 0; i < batches.rows(); ++i, ++row) {
                EXPECT_TRUE(is_equal(rows[row]["origin"]["repo"], batches.column(0), i)) << row;
                EXPECT_TRUE(is_equal(rows[row]["origin"]["stored"]["w"], batches.column(1), i)) << row;
            }
        EXPECT_EQ(row, rows.size());
    }
}

TEST(ParquetFiles, LongTablesHaveTheirSums) {
    SKIP_WITHOUT_FILES();
    const json head = read_json("duckdb/long_expected_head_tail.json");
    const json sums =
        read_json("duckdb/duckdb_files.json").at("files").at("long_5_row_groups_snappy.parquet").at("aggregate");
    for (const char* kind : {"5_row_groups_snappy", "1_row_group_zstd", "v2_zstd"}) {
        SCOPED_TRACE(kind);
        const ParquetFile file = open_parquet(store, "duckdb/long_" + std::string{kind} + ".parquet");
        ASSERT_EQ(file.rows(), 10000U);
        EXPECT_EQ(compare(file, head), 4);
        std::int64_t widths = 0;
        std::int64_t heights = 0;
        std::size_t captions = 0;
        std::size_t letters = 0;
        for (auto batches = file.read({{"width"}, {"height"}, {"caption"}}); batches.next();)
            for (std::size_t row = 0; row < batches.rows(); ++row) {
                widths += batches.column(0).integer(row).value();
                heights += batches.column(1).integer(row).value();
                if (const auto caption = batches.column(2).text(row)) {
                    ++captions;
                    letters += caption->size();
                }
            }
        EXPECT_EQ(std::to_string(widths), sums.at("sw").get<std::string>());
        EXPECT_EQ(std::to_string(heights), sums.at("sh").get<std::string>());
        EXPECT_EQ(std::to_string(captions), sums.at("nc").get<std::string>());
        EXPECT_EQ(std::to_string(letters), sums.at("caption_utf8_bytes").get<std::string>());
    }
}

TEST(ParquetFiles, FilesOfManyWritersGiveWhatTwoReadersFound) {
    SKIP_WITHOUT_FILES();
    const json files = read_json("apache/readers.json").at("files");
    int compared = 0;
    for (const auto& [name, found] : files.items()) {
        SCOPED_TRACE(name);
        if (name == "datapage_v1-corrupt-checksum.parquet" || name == "int96_from_spark.parquet") continue;  // below
        try {
            const ParquetFile file = open_parquet(store, "apache/" + name);
            const json rows = read_json("apache/expected_hyparquet/" + name.substr(0, name.rfind('.')) + ".json");
            if (!rows.is_null()) compared += compare(file, rows);
            const char* const head = found.contains("duckdb_head") ? "duckdb_head" : "hyparquet_head";
            if (found.contains(head)) compared += compare(file, found.at(head));
        } catch (const strata::Error& error) {
            ADD_FAILURE() << error.what();
        }
    }
    EXPECT_EQ(compared, 154);  // columns, some of them against both readers
}

TEST(ParquetFiles, ATimeStampThatItsWriterWrappedAroundIsRefusedByItsRow) {
    SKIP_WITHOUT_FILES();
    // Spark wrote the year 290000 as a Julian day of -105,862,232, which is too far back for 64 bits.
    auto batches = open_parquet(store, "apache/int96_from_spark.parquet").read({{"a", ParquetKind::integer}});
    try {
        (void)batches.next();
        ADD_FAILURE() << "it was read";
    } catch (const strata::Error& error) {
        EXPECT_EQ(error.code(), Errc::wrong_column_type);
        EXPECT_NE(std::string{error.what()}.find("the time stamp of row 5"), std::string::npos) << error.what();
    }
}

TEST(ParquetFiles, DamagedFilesAreRefused) {
    SKIP_WITHOUT_FILES();
    const json cases = read_json("made_bad/cases.json").at("cases");
    EXPECT_GE(cases.size(), 13U);
    const auto refusal = [](const std::string& name) -> std::string {
        try {
            const ParquetFile file = open_parquet(store, name);
            for (const ParquetColumn& column : file.columns())
                if (column.refusal.empty())
                    for (auto batches = file.read({{column.name, {}, true}}); batches.next();) {
                    }
        } catch (const strata::Error& error) {
            EXPECT_NE(std::string{error.what()}.find(name), std::string::npos) << error.what();
            EXPECT_EQ(error.code(),
                      name.find("encrypted") == std::string::npos ? Errc::corrupt_parquet : Errc::unsupported_parquet)
                << error.what();
            return error.what();
        }
        return "";
    };
    for (const auto& [name, unused] : cases.items())  // the first four bytes are not looked at
        EXPECT_EQ(refusal("made_bad/" + name).empty(), name == "wrong_head_magic.parquet") << name;
    EXPECT_NE(refusal("apache/datapage_v1-corrupt-checksum.parquet").find("check sum"), std::string::npos);
    EXPECT_EQ(refusal("apache/datapage_v1-uncompressed-checksum.parquet"), "");
}

}  // namespace
