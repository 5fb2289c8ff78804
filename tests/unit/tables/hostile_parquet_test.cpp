// Parquet files that somebody, or a disk, has changed, and files that lie: each gives its values or a named refusal,
// and none takes more memory than the limits allow. Deterministic; run it under -fsanitize=address,undefined as well.

#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <strata/tables/parquet.hpp>

#include "../../support/address_space.hpp"
#include "../../support/changed_bytes.hpp"
#include "../../support/made_parquet.hpp"

namespace {

using namespace strata::tables;
using namespace strata_test;
namespace made = strata_test::parquet;
using made::cell;
using made::MadeColumn;
using made::MadeFile;
using made::ThriftWriter;
using strata::Errc;

const ParquetLimits limits{
    .footer_bytes = 1 << 20, .page_bytes = 1 << 20, .read_bytes = 1 << 16, .batch_rows = 4096, .list_entries = 1 << 16};
constexpr std::uint64_t most_memory = std::uint64_t{64} << 20;
constexpr std::uint64_t most_rows = 20000;  // a page of a few bytes may rightly hold two billion nulls

/// A small table of every type, with gaps.
std::vector<MadeColumn> columns(std::size_t rows) {
    std::vector<MadeColumn> all{{.name = "name", .converted = 0},
                                {.name = "width", .type = made::int32},
                                {.name = "score", .type = made::float64},
                                {.name = "keep", .type = made::boolean, .optional = false},
                                {.name = "code", .type = made::fixed, .width = 3}};
    for (std::size_t row = 0; row < rows; ++row) {
        all[0].cells.push_back(row % 5 == 2 ? made::Cell{} : cell("picture " + std::to_string(row % 9)));
        all[1].cells.push_back(cell(static_cast<std::int32_t>(row * row)));
        all[2].cells.push_back(row % 4 == 1 ? made::Cell{} : cell(static_cast<double>(row) / 3));
        all[3].cells.push_back(cell(row % 2 == 0));
        all[4].cells.push_back(cell(std::string(3, static_cast<char>('a' + row % 26))));
    }
    for (MadeColumn& column : all) column.page_rows = 10;
    return all;
}

/// Values that are formed of bytes, a list in a struct, and a list of old writers.
std::vector<MadeColumn> nested_columns(std::size_t rows) {
    std::vector<MadeColumn> all{{.name = "id", .type = made::fixed, .width = 16, .logical = 14},
                                {.name = "when", .type = made::int96},
                                {.name = "price", .converted = 5, .scale = 2}};
    std::vector<made::MadeList> captions;
    for (std::size_t row = 0; row < rows; ++row) {
        made::MadeList& list = captions.emplace_back();
        if (row % 6 != 1) list.emplace();
        for (std::size_t entry = 0; list && entry < row % 4; ++entry)
            list->push_back(entry == 2 ? made::Cell{} : cell("cap " + std::to_string(row % 4)));
        all[0].cells.push_back(cell(std::string(16, static_cast<char>('a' + row % 3))));
        all[1].cells.push_back(cell(std::string(8, '\0') + std::string("\x8c\x3d\x25\0", 4)));
        all[2].cells.push_back(row % 4 == 2 ? made::Cell{} : cell(std::string(1 + row % 3, static_cast<char>(row))));
    }
    all.push_back(made::list_column("captions", made::ListForm::inside_a_struct, captions, {.converted = 0}));
    all.push_back(made::list_column("tags", made::ListForm::two_levels, captions));
    for (MadeColumn& column : all) column.page_rows = 7;
    return all;
}

struct Kind {
    std::string name;
    made::Parts parts;
};

/// Small files of every codec, encoding and page version, without check sums unless `crc`.
std::vector<Kind> kinds(bool crc) {
    std::vector<Kind> all;
    for (const made::Codec codec :
         {made::none, made::snappy, made::gzip, made::brotli, made::lz4_hadoop, made::zstd, made::lz4_raw})
        for (const bool v2 : {false, true}) {
            MadeFile file{.columns = columns(23), .group_rows = 15, .codec = codec, .v2 = v2, .crc = crc};
            const std::string name = std::string{made::codec_names[codec]} + (v2 ? " v2" : " v1");
            all.push_back({name, made::made_parts(file)});
            for (const std::size_t column : {0, 1, 2, 4}) file.columns[column].encoding = made::rle_dictionary;
            all.push_back({name + " dictionary", made::made_parts(file)});
            for (const std::size_t column : {0, 4}) file.columns[column].encoding = made::delta_text;
            file.columns[1].encoding = made::delta;
            file.columns[2].encoding = made::split;
            file.columns[3].encoding = made::rle;
            all.push_back({name + " delta", made::made_parts(file)});
            file.columns[0].encoding = made::delta_length;
            file.bit_packed_levels = true;
            all.push_back({name + " old levels", made::made_parts(file)});
        }
    for (const bool v2 : {false, true}) {
        MadeFile file{.columns = nested_columns(9), .group_rows = 6, .v2 = v2, .crc = crc};
        const std::string name = std::string{"nested"} + (v2 ? " v2" : " v1");
        all.push_back({name, made::made_parts(file)});
        for (MadeColumn& column : file.columns) column.encoding = made::rle_dictionary;
        all.push_back({name + " dictionary", made::made_parts(file)});
        file.columns[0].encoding = made::split;
        for (const std::size_t column : {2, 3}) file.columns[column].encoding = made::delta_text;
        file.columns[4].encoding = made::delta_length;
        file.bit_packed_levels = true;
        all.push_back({name + " delta, old levels", made::made_parts(file)});
    }
    return all;
}

std::string shown(const ParquetValues& column, std::size_t row, std::size_t entry) {
    switch (column.kind()) {
        case ParquetKind::text:
            return std::string{column.text(row, entry).value_or("null")};
        case ParquetKind::integer:
            return std::to_string(column.integer(row, entry).value_or(-1));
        case ParquetKind::real:
            return std::to_string(column.real(row, entry).value_or(-1));
        case ParquetKind::boolean:
            break;
    }
    return column.boolean(row, entry).value_or(false) ? "1" : "0";
}

/// All values of all columns that can be read, the list inside of a struct as well, as one text.
std::string all_values(const ParquetFile& file) {
    std::vector<ParquetRequest> requests;
    for (const ParquetColumn& column : file.columns())
        if (column.refusal.empty()) requests.push_back({column.name, {}, true});
    if (const auto inside = file.find("meta.captions"); inside && inside->refusal.empty())
        requests.push_back({"meta.captions", {}, true});
    std::string values;
    if (requests.empty()) return values;
    std::uint64_t rows = 0;
    for (auto batches = file.read(requests); rows < most_rows && batches.next(); rows += batches.rows()) {
        EXPECT_GT(batches.rows(), 0U);
        EXPECT_LE(batches.rows(), limits.batch_rows);
        for (std::size_t row = 0; row < batches.rows(); ++row)
            for (std::size_t i = 0; i < requests.size(); ++i) {
                const ParquetValues& column = batches.column(i);
                values += column.is_null(row) ? "|-" : "|";
                for (std::size_t entry = 0; entry < column.entries(row); ++entry)
                    values += shown(column, row, entry) + ",";
            }
    }
    return values;
}

bool is_parquet_refusal(Errc code) {
    return code == Errc::corrupt_parquet || code == Errc::unsupported_parquet || code == Errc::parquet_too_large ||
           code == Errc::wrong_column_type;
}

/// The values, or "refused"; any other exception fails the test.
std::string outcome(const Bytes& file) {
    try {
        return all_values(ParquetFile{file, "'it'", limits});
    } catch (const strata::Error& error) {
        EXPECT_TRUE(is_parquet_refusal(error.code())) << error.what();
        EXPECT_NE(std::string{error.what()}.find("'it'"), std::string::npos) << error.what();
        return "refused";
    }
}

Errc code_of(const Bytes& file) {
    try {
        (void)all_values(ParquetFile{file, "'it'", limits});
    } catch (const strata::Error& error) {
        return error.code();
    }
    return Errc::io_failed;
}

TEST(HostileParquet, EveryPrefixIsRefused) {
    for (const Kind& kind : kinds(false)) {
        const Bytes file = kind.parts.file();
        ASSERT_NE(outcome(file), "refused") << kind.name;
        for (std::size_t size = 0; size < file.size(); ++size)
            ASSERT_EQ(outcome(Bytes(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size))), "refused")
                << kind.name << ", " << size << " bytes";
    }
}

TEST(HostileParquet, PagesThatEndEarlyAreRefused) {
    for (const Kind& kind : kinds(false))
        for (std::size_t size = 0; size < kind.parts.body.size(); size += 3) {
            Bytes body = kind.parts.body;
            body.resize(size);
            ASSERT_EQ(outcome(made::closed(body, kind.parts.footer)), "refused")
                << kind.name << ", " << size << " bytes";
        }
}

TEST(HostileParquet, EveryChangedByteIsFoundWhereThereAreCheckSums) {
    std::size_t refused = 0;
    std::size_t changes = 0;
    for (const Kind& kind : kinds(true)) {
        const std::string right = outcome(kind.parts.file());
        for (std::size_t at = 0; at < kind.parts.body.size(); ++at)
            for (const unsigned flip : {0x01U, 0x80U, 0xFFU}) {
                Bytes body = kind.parts.body;
                body[at] ^= static_cast<std::byte>(flip);
                const std::string values = outcome(made::closed(body, kind.parts.footer));
                ++changes;
                refused += values == "refused" ? 1 : 0;
                // In a page's header a few bytes mean nothing here, or are another name for the same.
                ASSERT_TRUE(values == "refused" || values == right) << kind.name << ", byte " << at << ", " << flip;
            }
    }
    EXPECT_GT(refused, changes * 9 / 10);
}

TEST(HostileParquet, EveryChangedByteOfAFooterGivesValuesOrARefusal) {
    const std::vector<Kind> all = kinds(false);
    const AddressSpaceLimit limit{most_memory};
    // Of the nested one, whose footer is larger, every fifth value.
    for (const auto& [kind, step] : {std::pair{&all[1], 1U}, std::pair{&all.back(), 5U}})
        for (std::size_t at = 0; at < kind->parts.footer.size(); ++at)
            for (unsigned value = 0; value < 256; value += step) {
                Bytes footer = kind->parts.footer;
                footer[at] = static_cast<std::byte>(value);
                (void)outcome(made::closed(kind->parts.body, footer));
            }
}

TEST(HostileParquet, EveryChangeGivesValuesOrARefusal) {
    const std::vector<Kind> all = kinds(false);
    const AddressSpaceLimit limit{most_memory};
    int read = 0;
    int refused = 0;
    Numbers numbers{2026};
    for (const Kind& kind : all)
        for (int i = 0; i < 400; ++i) {
            SCOPED_TRACE(kind.name + ", change " + std::to_string(i));
            const bool in_footer = i % 3 == 0;
            const Bytes body = in_footer ? kind.parts.body : changed(kind.parts.body, numbers);
            const Bytes footer = in_footer ? changed(kind.parts.footer, numbers) : kind.parts.footer;
            ++(outcome(made::closed(body, footer)) == "refused" ? refused : read);
        }
    EXPECT_GT(read, 500);  // both ends are reached
    EXPECT_GT(refused, 500);
}

/// A file of one column of INT32 whose only page holds what `page` says, for `rows` rows.
Bytes file_of_page(const Bytes& page, std::int64_t rows, made::Type type = made::int32,
                   made::Codec codec = made::none) {
    ThriftWriter footer;
    footer.bare_record([&](ThriftWriter& out) {
        made::write_schema(out, {.columns = {{.name = "x", .type = type}}});
        out.list_of(4, ThriftWriter::record, 1).bare_record([&](ThriftWriter& group) {
            group.list_of(1, ThriftWriter::record, 1).bare_record([&](ThriftWriter& chunk) {
                chunk.inner(3, [&](ThriftWriter& data) {
                    data.integer(1, type).integer(4, codec).integer(5, rows, ThriftWriter::i64);
                    data.integer(7, static_cast<std::int64_t>(page.size()), ThriftWriter::i64)
                        .integer(9, 4, ThriftWriter::i64);
                });
            });
            group.integer(3, rows, ThriftWriter::i64);
        });
    });
    return made::closed(page, footer.bytes);
}

/// A v1 page, with the number of values and the encoding that it claims.
Bytes claiming_page(std::int64_t values, int encoding, std::size_t unpacked, const Bytes& body) {
    return made::page_bytes(0, unpacked, body, false, [&](ThriftWriter& out) {
        out.inner(5, [&](ThriftWriter& v1) {
            v1.integer(1, values).integer(2, encoding).integer(3, made::rle).integer(4, made::rle);
        });
    });
}

TEST(HostileParquet, TwoBillionNullsComeInBatches) {
    ThriftWriter run;
    run.varint(std::uint64_t{0x7FFF'FFFF} << 1).varint(0);
    const Bytes levels = joined({little_endian_bytes(run.bytes.size(), 4), run.bytes});
    const std::int64_t rows = std::numeric_limits<std::int32_t>::max();
    const Bytes file = file_of_page(claiming_page(rows, made::plain, levels.size(), levels), rows);
    const AddressSpaceLimit limit{most_memory};
    auto batches = ParquetFile(file, "'it'", limits).read({{"x"}});
    for (std::uint64_t first : {0, 4096, 8192}) {
        ASSERT_TRUE(batches.next());
        EXPECT_EQ(batches.first_row(), first);
        EXPECT_EQ(batches.rows(), 4096U);
        EXPECT_TRUE(batches.column(0).is_null(4095));
    }
}

/// A file of one column, `repeated int32 x`, whose only page has the levels.
Bytes file_of_lists(std::int64_t rows, std::int64_t entries, const Bytes& repetition, const Bytes& definition,
                    const Bytes& values) {
    const Bytes page = joined({little_endian_bytes(repetition.size(), 4), repetition,
                               little_endian_bytes(definition.size(), 4), definition, values});
    const Bytes body = claiming_page(entries, made::plain, page.size(), page);
    ThriftWriter footer;
    footer.bare_record([&](ThriftWriter& out) {
        made::write_schema(out, {.columns = {{.name = "x", .type = made::int32, .repeated = true}}});
        out.list_of(4, ThriftWriter::record, 1).bare_record([&](ThriftWriter& group) {
            group.list_of(1, ThriftWriter::record, 1).bare_record([&](ThriftWriter& chunk) {
                chunk.inner(3, [&](ThriftWriter& data) {
                    data.integer(1, made::int32).integer(4, made::none).integer(5, entries, ThriftWriter::i64);
                    data.integer(7, static_cast<std::int64_t>(body.size()), ThriftWriter::i64)
                        .integer(9, 4, ThriftWriter::i64);
                });
            });
            group.integer(3, rows, ThriftWriter::i64);
        });
    });
    return made::closed(body, footer.bytes);
}

/// Encoding RLE: `count` times `level`, of one bit.
Bytes level_run(std::uint64_t count, int level) {
    ThriftWriter run;
    run.varint(count << 1).bytes.push_back(static_cast<std::byte>(level));
    return run.bytes;
}

TEST(HostileParquet, ListsThatLieAreRefused) {
    const AddressSpaceLimit limit{most_memory};
    const Bytes three(12);
    const auto rising = joined({level_run(1, 0), level_run(2, 1)});  // one row of three entries
    EXPECT_EQ(outcome(file_of_lists(1, 3, rising, level_run(3, 1), three)), "|0,0,0,");
    EXPECT_EQ(outcome(file_of_lists(3, 3, level_run(3, 0), level_run(3, 0), {})), "|||");  // three empty lists
    // More rows than the row group has, fewer, and an entry before the first row.
    EXPECT_EQ(code_of(file_of_lists(1, 3, level_run(3, 0), level_run(3, 1), three)), Errc::corrupt_parquet);
    EXPECT_EQ(code_of(file_of_lists(2, 3, rising, level_run(3, 1), three)), Errc::corrupt_parquet);
    EXPECT_EQ(code_of(file_of_lists(1, 3, level_run(3, 1), level_run(3, 1), three)), Errc::corrupt_parquet);
    EXPECT_EQ(code_of(file_of_lists(4, 3, level_run(3, 0), level_run(3, 1), three)), Errc::corrupt_parquet);
    // An empty list that goes on, and an entry that is none.
    const auto none_first = joined({level_run(1, 0), level_run(2, 1)});
    EXPECT_EQ(code_of(file_of_lists(1, 3, rising, none_first, Bytes(8))), Errc::corrupt_parquet);
    EXPECT_EQ(code_of(file_of_lists(1, 3, rising, joined({level_run(2, 1), level_run(1, 0)}), Bytes(8))),
              Errc::corrupt_parquet);
    // Levels that end early.
    EXPECT_EQ(code_of(file_of_lists(3, 3, level_run(2, 0), level_run(3, 0), {})), Errc::corrupt_parquet);
    // A row, and an empty page, of two billion entries in a few bytes.
    const std::int64_t most = std::numeric_limits<std::int32_t>::max();
    const auto many = static_cast<std::uint64_t>(most);
    EXPECT_EQ(
        code_of(file_of_lists(1, most, joined({level_run(1, 0), level_run(many - 1, 1)}), level_run(many, 1), {})),
        Errc::corrupt_parquet);
    EXPECT_EQ(code_of(file_of_lists(1, 70'000, joined({level_run(1, 0), level_run(69'999, 1)}), level_run(70'000, 1),
                                    Bytes(280'000))),
              Errc::parquet_too_large);
    auto batches = ParquetFile(file_of_lists(most, most, level_run(many, 0), level_run(many, 0), {}), "'it'", limits)
                       .read({{"x", {}, true}});
    for (int i = 0; i < 3; ++i) {
        ASSERT_TRUE(batches.next());
        EXPECT_GT(batches.rows(), 4000U);
        EXPECT_EQ(batches.column(0).entries(0), 0U);
    }
}

TEST(HostileParquet, NestingDeeperThanAnyColumnIsNoHarm) {
    const auto with_depth = [](std::size_t depth) {
        ThriftWriter footer;
        footer.bare_record([&](ThriftWriter& out) {
            out.list_of(2, ThriftWriter::record, depth + 2);
            out.bare_record([](ThriftWriter& root) { root.text(4, "table").integer(5, 1); });
            for (std::size_t i = 0; i < depth; ++i)
                out.bare_record([](ThriftWriter& group) { group.integer(3, 1).text(4, "g").integer(5, 1); });
            out.bare_record([](ThriftWriter& leaf) { leaf.integer(1, made::int32).integer(3, 1).text(4, "x"); });
            out.list_of(4, ThriftWriter::record, 0);
        });
        return made::closed({}, footer.bytes);
    };
    const AddressSpaceLimit limit{most_memory};
    std::string path;
    for (int i = 0; i < 60; ++i) path += "g.";
    EXPECT_EQ(ParquetFile(with_depth(60), "'it'", limits).find(path + "x")->refusal, "");
    for (int i = 0; i < 40; ++i) path += "g.";
    EXPECT_FALSE(ParquetFile(with_depth(100), "'it'", limits).find(path + "x"));
    EXPECT_EQ(ParquetFile(with_depth(60'000), "'it'", limits).columns().size(), 1U);
}

TEST(HostileParquet, ClaimsOfSizeAreRefusedBeforeMemoryIsTaken) {
    const AddressSpaceLimit limit{most_memory};
    const Bytes body = joined({little_endian_bytes(2, 4), {std::byte{2}, std::byte{1}}, little_endian_bytes(7, 4)});
    const std::size_t huge = 0x7FFF'FFFF;
    for (const made::Codec codec : {made::none, made::snappy, made::gzip, made::zstd, made::lz4_raw, made::brotli}) {
        EXPECT_EQ(code_of(file_of_page(claiming_page(1, made::plain, huge, made::packed(codec, body)), 1, made::int32,
                                       codec)),
                  Errc::parquet_too_large);
        EXPECT_EQ(code_of(file_of_page(claiming_page(1, made::plain, body.size() + 1000, made::packed(codec, body)), 1,
                                       made::int32, codec)),
                  Errc::corrupt_parquet)
            << made::codec_names[codec];
        EXPECT_EQ(code_of(file_of_page(claiming_page(1, made::plain, body.size() - 1, made::packed(codec, body)), 1,
                                       made::int32, codec)),
                  Errc::corrupt_parquet)
            << made::codec_names[codec];
    }
    EXPECT_EQ(code_of(file_of_page(claiming_page(1, made::plain, body.size(), body), 1)),
              Errc::io_failed);  // it is fine
}

TEST(HostileParquet, DictionariesAreChargedForTheMemoryOfTheirEntries) {
    // 65,537 empty texts: 256 KiB of bytes, 1 MiB and 16 bytes of entries.
    const std::int64_t entries = 65537;
    const Bytes body(static_cast<std::size_t>(entries) * 4);
    const Bytes page = made::page_bytes(2, body.size(), made::packed(made::zstd, body), false, [&](ThriftWriter& out) {
        out.inner(7, [&](ThriftWriter& dictionary) { dictionary.integer(1, entries).integer(2, made::plain); });
    });
    EXPECT_EQ(code_of(file_of_page(page, 1, made::byte_array, made::zstd)), Errc::parquet_too_large);
}

TEST(HostileParquet, TextsThatRepeatTheOneBeforeThemHaveALimit) {
    // 10,000 letters, then 499 texts that keep all of them: 5 MB in a page of 11 KB.
    const std::vector<made::Cell> cells(500, cell(std::string(10'000, 'x')));
    const Bytes bytes = made::made_file({.columns = {{.name = "x", .cells = cells, .encoding = made::delta_text}}});
    ASSERT_LT(bytes.size(), 15'000U);
    EXPECT_EQ(code_of(bytes), Errc::parquet_too_large);
}

TEST(HostileParquet, IndicesBeyondTheDictionaryAreRefused) {
    MadeFile file{.columns = {{.name = "x",
                               .cells = {cell("a"), cell("b"), cell("c")},
                               .optional = false,
                               .encoding = made::rle_dictionary}}};
    made::Parts parts = made::made_parts(file);
    parts.body.back() = std::byte{3};  // the index of the last run; there are 0, 1 and 2
    EXPECT_EQ(code_of(parts.file()), Errc::corrupt_parquet);
    file.columns[0].encoding = made::plain;
    const Bytes indices = joined({{std::byte{1}, std::byte{2}, std::byte{0}}});
    EXPECT_EQ(
        code_of(file_of_page(claiming_page(1, made::rle_dictionary, 9,
                                           joined({little_endian_bytes(2, 4), {std::byte{2}, std::byte{1}}, indices})),
                             1)),
        Errc::corrupt_parquet);  // no dictionary at all
}

TEST(HostileParquet, FootersThatLieAreRefused) {
    const AddressSpaceLimit limit{most_memory};
    const auto code_of_footer = [](const Bytes& footer) { return code_of(made::closed({}, footer)); };
    const std::size_t deep = 200'000;

    // Lists in lists, records in records, maps in maps, deeper than any stack.
    EXPECT_EQ(code_of_footer(joined({{std::byte{0x19}}, Bytes(deep, std::byte{0x19})})), Errc::corrupt_parquet);
    EXPECT_EQ(code_of_footer(Bytes(deep, std::byte{0x1C})), Errc::corrupt_parquet);
    Bytes maps{std::byte{0x1B}};
    for (std::size_t i = 0; i < deep; ++i) append(maps, {std::byte{1}, std::byte{0xBB}});
    EXPECT_EQ(code_of_footer(maps), Errc::corrupt_parquet);

    // A list that counts more than there are bytes.
    EXPECT_EQ(code_of_footer(ThriftWriter{}.list_of(2, ThriftWriter::record, 1ULL << 40).stop().bytes),
              Errc::corrupt_parquet);
    EXPECT_EQ(code_of_footer(ThriftWriter{}.list_of(9, ThriftWriter::i32, 1ULL << 40).stop().bytes),
              Errc::corrupt_parquet);
    // A text longer than what is there, a number of more than 64 bits.
    EXPECT_EQ(code_of_footer(ThriftWriter{}.field(6, ThriftWriter::binary).varint(~0ULL).stop().bytes),
              Errc::corrupt_parquet);
    EXPECT_EQ(code_of_footer(joined({{std::byte{0x16}}, Bytes(11, std::byte{0xFF}), Bytes(2)})), Errc::corrupt_parquet);

    const auto with_groups = [](const MadeFile& schema, std::size_t count,
                                const std::function<void(ThriftWriter&)>& fill) {
        ThriftWriter footer;
        footer.bare_record([&](ThriftWriter& out) {
            made::write_schema(out, schema);
            out.list_of(4, ThriftWriter::record, count);
            for (std::size_t i = 0; i < count; ++i) out.bare_record(fill);
        });
        return footer.bytes;
    };
    const auto rows = [](std::int64_t number) {
        return [number](ThriftWriter& group) { group.integer(3, number, ThriftWriter::i64); };
    };
    EXPECT_EQ(code_of_footer(with_groups({}, 3, rows(std::numeric_limits<std::int64_t>::max()))),
              Errc::corrupt_parquet);
    EXPECT_EQ(code_of_footer(with_groups({}, 1, rows(-1))), Errc::corrupt_parquet);
    EXPECT_EQ(code_of_footer(with_groups({}, 1, [](ThriftWriter&) {})), Errc::corrupt_parquet);
    EXPECT_EQ(code_of_footer(with_groups({.columns = {{.name = "x"}}}, 1, rows(1))), Errc::corrupt_parquet);
    EXPECT_EQ(code_of_footer(with_groups({}, 70000, rows(1))), Errc::unsupported_parquet);
    EXPECT_EQ(code_of_footer(with_groups({.more_columns = 5}, 0, rows(1))),
              Errc::corrupt_parquet);  // fewer elements than said
    EXPECT_EQ(code_of_footer(with_groups({.more_columns = -1}, 0, rows(1))), Errc::corrupt_parquet);
    MadeFile wide{.columns = std::vector<MadeColumn>(66000, MadeColumn{.name = "x"})};
    EXPECT_EQ(code_of_footer(with_groups(wide, 0, rows(1))), Errc::unsupported_parquet);
    EXPECT_EQ(code_of_footer(Bytes((1 << 20) + 1)), Errc::parquet_too_large);
}

TEST(HostileParquet, ChunksOutsideOfTheFileAreRefused) {
    const auto with_chunk = [](std::int64_t begin, std::int64_t size, std::int64_t values) {
        ThriftWriter footer;
        footer.bare_record([&](ThriftWriter& out) {
            made::write_schema(out, {.columns = {{.name = "x", .type = made::int32}}});
            out.list_of(4, ThriftWriter::record, 1).bare_record([&](ThriftWriter& group) {
                group.list_of(1, ThriftWriter::record, 1).bare_record([&](ThriftWriter& chunk) {
                    chunk.inner(3, [&](ThriftWriter& data) {
                        data.integer(1, made::int32).integer(4, made::none).integer(5, values, ThriftWriter::i64);
                        data.integer(7, size, ThriftWriter::i64).integer(9, begin, ThriftWriter::i64);
                    });
                });
                group.integer(3, 1, ThriftWriter::i64);
            });
        });
        return code_of(made::closed(Bytes(100), footer.bytes));
    };
    const std::int64_t most = std::numeric_limits<std::int64_t>::max();
    for (const auto& [begin, size] : {std::pair<std::int64_t, std::int64_t>{0, 10},
                                      {4, 101},
                                      {105, 0},
                                      {4, most},
                                      {most, 1},
                                      {most, most},
                                      {-1, 1},
                                      {4, -1}})
        EXPECT_EQ(with_chunk(begin, size, 1), Errc::corrupt_parquet) << begin << ' ' << size;
    EXPECT_EQ(with_chunk(4, 100, 2), Errc::corrupt_parquet);
    EXPECT_EQ(with_chunk(4, 100, most), Errc::corrupt_parquet);
}

}  // namespace
