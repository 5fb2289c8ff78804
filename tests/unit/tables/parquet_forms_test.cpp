// Values that are stored as bytes and mean numbers or names: decimals, float16, INT96, UUIDs.

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
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
using made::Cell;
using made::MadeColumn;
using made::MadeFile;
using strata::Errc;

/// `width` bytes of a number, the high one first.
Cell big_endian(std::int64_t number, std::size_t width) {
    Bytes bytes(width);
    for (std::size_t i = width; i-- > 0; number >>= 8) bytes[i] = static_cast<std::byte>(number & 0xFF);
    return bytes;
}

Cell time96(std::int64_t nanoseconds, std::int32_t day) {
    Bytes bytes(12);
    std::memcpy(bytes.data(), &nanoseconds, 8);
    std::memcpy(bytes.data() + 8, &day, 4);
    return bytes;
}

Cell half(unsigned bits) { return Bytes{static_cast<std::byte>(bits & 0xFF), static_cast<std::byte>(bits >> 8)}; }

const Cell uuid =
    Bytes{std::byte{0x12}, std::byte{0x3e}, std::byte{0x45}, std::byte{0x67}, std::byte{0xe8}, std::byte{0x9b},
          std::byte{0x12}, std::byte{0xd3}, std::byte{0xa4}, std::byte{0x56}, std::byte{0x42}, std::byte{0x66},
          std::byte{0x14}, std::byte{0x17}, std::byte{0x40}, std::byte{0x0f}};

void read_all(const ParquetFile& file, const std::string& name) {
    for (auto batches = file.read({{name}}); batches.next();) {
    }
}

TEST(ParquetForms, DecimalsAreRealNumbersHoweverTheyAreStored) {
    for (const made::Encoding encoding : {made::plain, made::rle_dictionary, made::delta_text}) {
        std::vector<MadeColumn> columns{
            {.name = "bytes",
             .cells = {big_endian(1234, 2), {}, big_endian(-5, 1), big_endian(-987654321, 9), big_endian(0, 16)},
             .encoding = encoding,
             .converted = 5,
             .scale = 2},
            {.name = "fixed",
             .type = made::fixed,
             .cells = {big_endian(1234, 5), {}, big_endian(-5, 5), big_endian(-987654321, 5), big_endian(0, 5)},
             .encoding = encoding,
             .converted = 5,
             .width = 5,
             .scale = 2}};
        const ParquetFile table{made::made_file({.columns = columns})};
        auto batches = table.read({{"bytes"}, {"fixed"}});
        ASSERT_TRUE(batches.next());
        for (const std::size_t column : {0, 1}) {
            EXPECT_EQ(batches.column(column).real(0), 12.34);
            EXPECT_TRUE(batches.column(column).is_null(1));
            EXPECT_EQ(batches.column(column).real(2), -0.05);
            EXPECT_EQ(batches.column(column).real(3), -9876543.21);
            EXPECT_EQ(batches.column(column).real(4), 0.0);
        }
        EXPECT_EQ(table.find("bytes")->kind, ParquetKind::real);
    }
    const MadeFile whole{.columns = {{.name = "width", .cells = {big_endian(64000, 3)}, .converted = 5, .scale = 2},
                                     {.name = "long", .cells = {big_endian(1, 17)}, .converted = 5},
                                     {.name = "none", .cells = {Bytes{}}, .converted = 5}}};
    const ParquetFile table{made::made_file(whole)};
    auto batches = table.read({{"width", ParquetKind::integer}});
    ASSERT_TRUE(batches.next());
    EXPECT_EQ(batches.column(0).integer(0), 640);
    for (const char* name : {"long", "none"})
        EXPECT_EQ(thrown_by([&] { read_all(table, name); }).code, Errc::unsupported_parquet) << name;
}

TEST(ParquetForms, Float16IsRead) {
    for (const made::Encoding encoding : {made::plain, made::rle_dictionary, made::split, made::delta_text}) {
        const MadeFile file{
            .columns = {{.name = "score",
                         .type = made::fixed,
                         .cells = {half(0x3C00), half(0xC000), {}, half(0x0001), half(0x7C00), half(0x7E00)},
                         .encoding = encoding,
                         .width = 2,
                         .logical = 15}}};
        auto batches = ParquetFile{made::made_file(file)}.read({{"score", ParquetKind::real}});
        ASSERT_TRUE(batches.next());
        const ParquetValues& column = batches.column(0);
        EXPECT_EQ(column.real(0), 1.0);
        EXPECT_EQ(column.real(1), -2.0);
        EXPECT_TRUE(column.is_null(2));
        EXPECT_EQ(column.real(3), 0x1p-24);
        EXPECT_EQ(column.real(4), std::numeric_limits<double>::infinity());
        EXPECT_TRUE(std::isnan(*column.real(5)));
    }
}

TEST(ParquetForms, TimeStampsOfOldWritersAreMicrosecondsSince1970) {
    for (const made::Encoding encoding : {made::plain, made::rle_dictionary}) {
        const MadeFile file{.columns = {{.name = "when",
                                         .type = made::int96,
                                         .cells = {time96(0, 2'440'588),
                                                   time96(1'999, 2'440'588),
                                                   {},
                                                   time96(86'399'999'999'999, 2'440'587),
                                                   time96(-1, 2'440'588),
                                                   time96(0, 2'460'311)},
                                         .encoding = encoding}}};
        const ParquetFile table{made::made_file(file)};
        EXPECT_EQ(table.find("when")->kind, ParquetKind::integer);
        auto batches = table.read({{"when"}});
        ASSERT_TRUE(batches.next());
        const ParquetValues& column = batches.column(0);
        EXPECT_EQ(column.integer(0), 0);
        EXPECT_EQ(column.integer(1), 1);
        EXPECT_TRUE(column.is_null(2));
        EXPECT_EQ(column.integer(3), -1);  // rounded down
        EXPECT_EQ(column.integer(4), -1);
        EXPECT_EQ(column.integer(5), 1'704'067'200'000'000);  // 2024-01-01
    }
    const MadeFile far{.columns = {{.name = "when", .type = made::int96, .cells = {time96(0, 2'147'483'647)}}}};
    const auto refused = thrown_by([&] { read_all(ParquetFile{made::made_file(far)}, "when"); });
    EXPECT_EQ(refused.code, Errc::wrong_column_type);
    EXPECT_TRUE(refused.says("the time stamp of row 0 does not fit into 64 bits")) << refused.message;
}

TEST(ParquetForms, UuidsAreTextInTheirUsualForm) {
    for (const made::Encoding encoding : {made::plain, made::rle_dictionary, made::split})
        for (const std::size_t page_rows : {1, 1000}) {
            const MadeFile file{.columns = {{.name = "id",
                                             .type = made::fixed,
                                             .cells = {uuid, {}, Bytes(16, std::byte{0xFF}), uuid},
                                             .encoding = encoding,
                                             .width = 16,
                                             .logical = 14,
                                             .page_rows = page_rows}}};
            std::vector<std::string> names;
            for (auto batches = ParquetFile{made::made_file(file)}.read({{"id", ParquetKind::text}}); batches.next();)
                for (std::size_t row = 0; row < batches.rows(); ++row)
                    names.emplace_back(batches.column(0).text(row).value_or("none"));
            EXPECT_EQ(names, (std::vector<std::string>{"123e4567-e89b-12d3-a456-42661417400f", "none",
                                                       "ffffffff-ffff-ffff-ffff-ffffffffffff",
                                                       "123e4567-e89b-12d3-a456-42661417400f"}));
        }
}

TEST(ParquetForms, ListsOfThemAreReadAcrossPages) {
    MadeColumn like{.type = made::fixed, .width = 16, .logical = 14, .page_rows = 2};
    const MadeFile file{.columns = {made::list_column("ids", made::ListForm::three_levels,
                                                      {made::MadeList{{uuid, uuid, uuid, uuid, uuid}}}, like)}};
    auto batches = ParquetFile{made::made_file(file)}.read({{"ids", ParquetKind::text, true}});
    ASSERT_TRUE(batches.next());
    ASSERT_EQ(batches.column(0).entries(0), 5U);
    for (std::size_t entry = 0; entry < 5; ++entry)
        EXPECT_EQ(batches.column(0).text(0, entry), "123e4567-e89b-12d3-a456-42661417400f");
}

TEST(ParquetForms, AFixedValueOfAnotherLengthIsDamage) {
    // Shared beginnings may make values of any length, whatever the schema says.
    const MadeFile file{.columns = {{.name = "id",
                                     .type = made::fixed,
                                     .cells = {uuid, Bytes(15)},
                                     .encoding = made::delta_text,
                                     .width = 16,
                                     .logical = 14}}};
    EXPECT_EQ(thrown_by([&] { read_all(ParquetFile{made::made_file(file)}, "id"); }).code, Errc::corrupt_parquet);
}

TEST(ParquetForms, WrongWidthsAreRefusedAndHinderNoOthers) {
    const MadeFile file{
        .columns = {{.name = "half", .type = made::fixed, .cells = {Bytes(3)}, .width = 3, .logical = 15},
                    {.name = "uuid", .type = made::fixed, .cells = {Bytes(3)}, .width = 3, .logical = 14},
                    {.name = "long", .type = made::fixed, .cells = {Bytes(17)}, .converted = 5, .width = 17},
                    {.name = "fine", .cells = {made::cell("x")}}}};
    const ParquetFile table{made::made_file(file)};
    for (const char* name : {"half", "uuid", "long"})
        EXPECT_EQ(thrown_by([&] { (void)table.read({{name}}); }).code, Errc::unsupported_parquet) << name;
    read_all(table, "fine");
}

}  // namespace
