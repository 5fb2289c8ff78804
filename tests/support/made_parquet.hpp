#pragma once
// tests/support/made_parquet.hpp - a small Parquet writer: every encoding and codec, pages of any size, and room for
// lies.
//
// github.com/apache/parquet-format: Encodings.md, Compression.md; numbers of fields and enumerators from
// parquet.thrift.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <lz4.h>
#include <snappy-c.h>
#include <zlib.h>
#include <zstd.h>

#include <strata/storage/gzip.hpp>

#include "made_files.hpp"

namespace strata_test::parquet {

/// Thrift's compact protocol.
class ThriftWriter {
public:
    enum Type : unsigned { yes = 1, no = 2, i32 = 5, i64 = 6, binary = 8, list = 9, record = 12 };

    ThriftWriter& integer(int id, std::int64_t value, Type type = i32) {
        field(id, type);
        return zigzag(value);
    }
    ThriftWriter& text(int id, std::string_view value) {
        field(id, binary);
        return bare_text(value);
    }
    ThriftWriter& flag(int id, bool value) { return field(id, value ? yes : no); }
    /// A field that is a record; `fill` writes its fields.
    ThriftWriter& inner(int id, const std::function<void(ThriftWriter&)>& fill) {
        field(id, record);
        return bare_record(fill);
    }
    /// A field that is a list of `count`; the elements follow, bare.
    ThriftWriter& list_of(int id, Type element, std::size_t count) {
        field(id, list);
        bytes.push_back(static_cast<std::byte>((count < 15 ? count : 15) << 4 | element));
        if (count >= 15) varint(count);
        return *this;
    }
    ThriftWriter& bare_record(const std::function<void(ThriftWriter&)>& fill) {
        const int outer = std::exchange(last_, 0);
        fill(*this);
        stop();
        last_ = outer;
        return *this;
    }
    ThriftWriter& bare_text(std::string_view value) {
        varint(value.size());
        append(bytes, bytes_of(value));
        return *this;
    }
    ThriftWriter& stop() {
        bytes.push_back(std::byte{0});
        return *this;
    }
    ThriftWriter& field(int id, Type type) {
        bytes.push_back(static_cast<std::byte>((id > last_ && id - last_ < 16 ? id - last_ : 0) << 4 | int(type)));
        if (id <= last_ || id - last_ >= 16) zigzag(id);
        last_ = id;
        return *this;
    }
    ThriftWriter& zigzag(std::int64_t value) {
        return varint(static_cast<std::uint64_t>(value) << 1 ^ static_cast<std::uint64_t>(value >> 63));
    }
    ThriftWriter& varint(std::uint64_t value) {
        for (; value >= 0x80; value >>= 7) bytes.push_back(static_cast<std::byte>(value | 0x80));
        bytes.push_back(static_cast<std::byte>(value));
        return *this;
    }
    Bytes bytes;

private:
    int last_ = 0;
};

enum Type { boolean, int32, int64, int96, float32, float64, byte_array, fixed };
enum Codec { none, snappy, gzip, lzo, brotli, lz4_hadoop, zstd, lz4_raw };
enum Encoding { plain, plain_dictionary = 2, rle, bit_packed, delta, delta_length, delta_text, rle_dictionary, split };

constexpr const char* codec_names[] = {"none", "snappy", "gzip", "lzo", "brotli", "lz4_hadoop", "zstd", "lz4_raw"};

/// Bytes in `codec`; brotli's are one block that is not compressed (RFC 7932, 9.2), at most 65,536 bytes.
inline Bytes packed(Codec codec, const Bytes& bytes) {
    const auto* const from = reinterpret_cast<const char*>(bytes.data());
    const auto shrunk = [&](std::size_t most, const auto& pack) {
        Bytes result(most);
        result.resize(pack(reinterpret_cast<char*>(result.data()), result.size()));
        return result;
    };
    const auto lz4 = [&] {
        return shrunk(static_cast<std::size_t>(::LZ4_compressBound(static_cast<int>(bytes.size()))),
                      [&](char* to, std::size_t size) {
                          return static_cast<std::size_t>(
                              ::LZ4_compress_default(from, to, static_cast<int>(bytes.size()), static_cast<int>(size)));
                      });
    };
    switch (codec) {
        case snappy:
            return shrunk(::snappy_max_compressed_length(bytes.size()), [&](char* to, std::size_t size) {
                ::snappy_compress(from, bytes.size(), to, &size);
                return size;
            });
        case gzip:
            return strata::storage::gzip_compress(bytes);
        case brotli:
            if (bytes.empty()) return {std::byte{6}};
            return joined({little_endian_bytes((bytes.size() - 1) << 4 | 1U << 20, 3), bytes, {std::byte{3}}});
        case lz4_hadoop: {
            const Bytes block = lz4();
            return joined({big_endian_bytes(bytes.size(), 4), big_endian_bytes(block.size(), 4), block});
        }
        case lz4_raw:
            return lz4();
        case zstd:
            return shrunk(::ZSTD_compressBound(bytes.size()),
                          [&](char* to, std::size_t size) { return ::ZSTD_compress(to, size, from, bytes.size(), 3); });
        default:
            return bytes;
    }
}

/// A cell: the PLAIN bytes of its value, of byte_array without the length before them; nothing: null.
using Cell = std::optional<Bytes>;

template <class Number>
Cell cell(Number number) {
    Bytes bytes(sizeof number);
    std::memcpy(bytes.data(), &number, sizeof number);
    return bytes;
}
inline Cell cell(bool value) { return Bytes{static_cast<std::byte>(value ? 1 : 0)}; }
inline Cell cell(const char* text) { return bytes_of(text); }
inline Cell cell(const std::string& text) { return bytes_of(text); }

/// Numbers of `width` bits, one behind the other, the low bit of a byte first; filled up to whole bytes.
inline Bytes bit_packing(const std::vector<std::uint64_t>& numbers, unsigned width) {
    Bytes bytes((numbers.size() * width + 7) / 8);
    for (std::size_t i = 0; i < numbers.size() * width; ++i)
        if (numbers[i / width] >> (i % width) & 1) bytes[i / 8] |= static_cast<std::byte>(1U << (i % 8));
    return bytes;
}

/// Encoding RLE: the first half as packed groups of eight, equal neighbours behind them as runs.
inline Bytes run_bytes(const std::vector<std::uint64_t>& numbers, unsigned width) {
    ThriftWriter out;
    const std::size_t first = numbers.size() / 16 * 8;
    if (first > 0) {
        out.varint(first / 8 << 1 | 1);
        append(out.bytes, bit_packing({numbers.begin(), numbers.begin() + static_cast<std::ptrdiff_t>(first)}, width));
    }
    for (std::size_t at = first; at < numbers.size();) {
        std::size_t end = at;
        while (end < numbers.size() && numbers[end] == numbers[at]) ++end;
        out.varint((end - at) << 1);
        append(out.bytes, little_endian_bytes(numbers[at], static_cast<int>((width + 7) / 8)));
        at = end;
    }
    return out.bytes;
}

/// DELTA_BINARY_PACKED in blocks of 128 numbers and miniblocks of 32.
inline Bytes delta_bytes(const std::vector<std::int64_t>& numbers) {
    ThriftWriter out;
    out.varint(128).varint(4).varint(numbers.size()).zigzag(numbers.empty() ? 0 : numbers[0]);
    std::vector<std::int64_t> steps;
    for (std::size_t i = 1; i < numbers.size(); ++i)
        steps.push_back(static_cast<std::int64_t>(static_cast<std::uint64_t>(numbers[i]) -
                                                  static_cast<std::uint64_t>(numbers[i - 1])));
    for (std::size_t block = 0; block < steps.size(); block += 128) {
        const std::size_t end = std::min(block + 128, steps.size());
        const std::int64_t least = *std::min_element(steps.begin() + static_cast<std::ptrdiff_t>(block),
                                                     steps.begin() + static_cast<std::ptrdiff_t>(end));
        out.zigzag(least);
        Bytes widths;
        Bytes packs;
        for (std::size_t mini = block; mini < block + 128; mini += 32) {
            std::vector<std::uint64_t> above;
            for (std::size_t i = mini; i < std::min(mini + 32, end); ++i)
                above.push_back(static_cast<std::uint64_t>(steps[i]) - static_cast<std::uint64_t>(least));
            unsigned width = 0;
            for (const std::uint64_t number : above)
                width = std::max(width, static_cast<unsigned>(std::bit_width(number)));
            widths.push_back(static_cast<std::byte>(width));
            if (above.empty()) continue;
            above.resize(32);
            append(packs, bit_packing(above, width));
        }
        append(out.bytes, widths);
        append(out.bytes, packs);
    }
    return out.bytes;
}

/// A group that a column lies in.
struct MadeGroup {
    std::string name;
    int repetition = 1;  ///< 0 required, 1 optional, 2 repeated
    int converted = -1;  ///< ConvertedType; 1: MAP, 3: LIST
};

/// Repetition and definition level of a cell.
struct MadeLevels {
    int repetition = 0;
    int definition = 0;
};

/// A column of a file to be made.
struct MadeColumn {
    std::string name{};
    Type type = byte_array;
    std::vector<Cell> cells{};
    bool optional = true;
    Encoding encoding = plain;  ///< rle_dictionary and plain_dictionary write a dictionary page
    int converted = -1;         ///< ConvertedType; 0: UTF8
    int width = 0;              ///< of `fixed`
    int scale = 0;              ///< of a decimal
    int logical = -1;           ///< field of LogicalType without fields of its own; 14: UUID, 15: FLOAT16
    std::size_t page_rows = 1000;
    std::vector<MadeGroup> groups{};   ///< that it lies in, the outermost first; neighbours share those of equal names
    bool repeated = false;             ///< itself, whatever `optional` says
    std::vector<MadeLevels> levels{};  ///< one a cell, where there are groups or it is repeated; pages may cut rows

    [[nodiscard]] int repetition() const { return repeated ? 2 : optional ? 1 : 0; }
    [[nodiscard]] int most_definition() const {
        int most = repetition() == 0 ? 0 : 1;
        for (const MadeGroup& group : groups) most += group.repetition == 0 ? 0 : 1;
        return most;
    }
    [[nodiscard]] int most_repetition() const {
        int most = repeated ? 1 : 0;
        for (const MadeGroup& group : groups) most += group.repetition == 2 ? 1 : 0;
        return most;
    }
    /// Cells at which rows begin, and the number of cells.
    [[nodiscard]] std::vector<std::size_t> row_begins() const {
        std::vector<std::size_t> begins;
        for (std::size_t i = 0; i < cells.size(); ++i)
            if (levels.empty() || levels[i].repetition == 0) begins.push_back(i);
        begins.push_back(cells.size());
        return begins;
    }
};

/// How writers have made lists.
enum class ListForm {
    three_levels,     ///< optional group x (LIST) { repeated group list { optional element } }
    two_levels,       ///< optional group x (LIST) { repeated element }
    required,         ///< required group x (LIST) { repeated group list { required element } }
    repeated,         ///< repeated x
    inside_a_struct,  ///< optional group meta { optional group x (LIST) { repeated group list { optional element } } }
};
inline constexpr ListForm list_forms[] = {ListForm::three_levels, ListForm::two_levels, ListForm::required,
                                          ListForm::repeated, ListForm::inside_a_struct};

/// A row of lists: nothing, or cells.
using MadeList = std::optional<std::vector<Cell>>;

/// A column of lists. What a form cannot say, a null list or a null entry, is written as the next best: an empty list,
/// no entry.
inline MadeColumn list_column(const std::string& name, ListForm form, const std::vector<MadeList>& rows,
                              MadeColumn like = {}) {
    MadeColumn column = std::move(like);
    column.name = name;
    column.optional = false;
    int null_list = 0;
    switch (form) {
        case ListForm::three_levels:
            column.groups = {{name, 1, 3}, {"list", 2}};
            column.name = "element";
            column.optional = true;
            break;
        case ListForm::two_levels:
            column.groups = {{name, 1, 3}};
            column.name = "array";
            column.repeated = true;
            break;
        case ListForm::required:
            column.groups = {{name, 0, 3}, {"list", 2}};
            column.name = "element";
            break;
        case ListForm::repeated:
            column.repeated = true;
            break;
        case ListForm::inside_a_struct:
            column.groups = {{"meta", 1}, {name, 1, 3}, {"list", 2}};
            column.name = "element";
            column.optional = true;
            null_list = 1;
            break;
    }
    const int most = column.most_definition();
    const int entry = column.optional ? most - 1 : most;  // the definition level of an entry
    const auto add = [&](int repetition, int definition, Cell cell) {
        column.levels.push_back({repetition, definition});
        column.cells.push_back(std::move(cell));
    };
    for (const MadeList& row : rows) {
        int repetition = 0;
        if (row)
            for (const Cell& one : *row) {
                if (!one && !column.optional) continue;
                add(repetition, one ? most : entry, one);
                repetition = 1;
            }
        if (repetition == 0) add(0, row || entry == 1 ? entry - 1 : null_list, {});
    }
    return column;
}

/// How a file is made.
struct MadeFile {
    std::vector<MadeColumn> columns{};
    std::size_t group_rows = 1000;
    Codec codec = none;
    bool v2 = false;
    bool crc = false;
    bool bit_packed_levels = false;                    ///< the old encoding, of v1 pages
    std::function<void(ThriftWriter&)> more_schema{};  ///< bare elements behind the columns, `more_columns` at the top
    int more_columns = 0;
    std::size_t more_elements = 0;
    std::size_t more_chunks = 0;  ///< in every row group, of leaves in `more_schema`
};

inline bool has_dictionary(const MadeColumn& column) {
    return column.encoding == rle_dictionary || column.encoding == plain_dictionary;
}

/// PLAIN, of values that are there.
inline Bytes plain_bytes(const MadeColumn& column, const std::vector<Bytes>& values) {
    if (column.type == boolean) {
        std::vector<std::uint64_t> bits;
        for (const Bytes& value : values) bits.push_back(std::to_integer<std::uint64_t>(value[0]));
        return bit_packing(bits, 1);
    }
    Bytes bytes;
    for (const Bytes& value : values) {
        if (column.type == byte_array) append(bytes, little_endian_bytes(value.size(), 4));
        append(bytes, value);
    }
    return bytes;
}

inline std::int64_t number_in(const Bytes& value) {
    if (value.size() == 8) {
        std::int64_t number;
        std::memcpy(&number, value.data(), 8);
        return number;
    }
    std::int32_t number;
    std::memcpy(&number, value.data(), 4);
    return number;
}

inline Bytes length_and_texts(const std::vector<Bytes>& values) {
    std::vector<std::int64_t> lengths;
    for (const Bytes& value : values) lengths.push_back(static_cast<std::int64_t>(value.size()));
    Bytes bytes = delta_bytes(lengths);
    for (const Bytes& value : values) append(bytes, value);
    return bytes;
}

inline Bytes encoded(const MadeColumn& column, const std::vector<Bytes>& values, const std::vector<Bytes>& dictionary) {
    switch (column.encoding) {
        case plain_dictionary:
        case rle_dictionary: {
            std::vector<std::uint64_t> indices;
            for (const Bytes& value : values)
                indices.push_back(static_cast<std::uint64_t>(std::find(dictionary.begin(), dictionary.end(), value) -
                                                             dictionary.begin()));
            const auto width = static_cast<unsigned>(std::bit_width(dictionary.size()));
            return joined({{static_cast<std::byte>(width)}, run_bytes(indices, width)});
        }
        case rle: {
            std::vector<std::uint64_t> bits;
            for (const Bytes& value : values) bits.push_back(std::to_integer<std::uint64_t>(value[0]));
            const Bytes runs = run_bytes(bits, 1);
            return joined({little_endian_bytes(runs.size(), 4), runs});
        }
        case delta: {
            std::vector<std::int64_t> numbers;
            for (const Bytes& value : values) numbers.push_back(number_in(value));
            return delta_bytes(numbers);
        }
        case delta_length:
            return length_and_texts(values);
        case delta_text: {
            std::vector<std::int64_t> kept;
            std::vector<Bytes> rest;
            Bytes before;
            for (const Bytes& value : values) {
                const auto same = std::mismatch(before.begin(), before.end(), value.begin(), value.end()).second;
                kept.push_back(same - value.begin());
                rest.emplace_back(same, value.end());
                before = value;
            }
            return joined({delta_bytes(kept), length_and_texts(rest)});
        }
        case split: {
            Bytes bytes;
            for (std::size_t i = 0; !values.empty() && i < values[0].size(); ++i)
                for (const Bytes& value : values) bytes.push_back(value[i]);
            return bytes;
        }
        default:
            return plain_bytes(column, values);
    }
}

/// A page with its header; `fill` writes the part of the header that is of the page's type.
inline Bytes page_bytes(int type, std::size_t unpacked, const Bytes& body, bool crc,
                        const std::function<void(ThriftWriter&)>& fill) {
    ThriftWriter head;
    head.bare_record([&](ThriftWriter& out) {
        out.integer(1, type).integer(2, static_cast<std::int64_t>(unpacked));
        out.integer(3, static_cast<std::int64_t>(body.size()));
        const auto sum = ::crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()));
        if (crc) out.integer(4, static_cast<std::int32_t>(sum));
        fill(out);
    });
    return joined({head.bytes, body});
}

/// BIT_PACKED, as levels of old writers are: here the high bit of a byte is first.
inline Bytes old_level_bytes(const std::vector<std::uint64_t>& levels, unsigned width) {
    Bytes bytes((levels.size() * width + 7) / 8, std::byte{0});
    for (std::size_t i = 0; i < levels.size() * width; ++i)
        if (levels[i / width] >> (width - 1 - i % width) & 1) bytes[i / 8] |= static_cast<std::byte>(0x80U >> (i % 8));
    return bytes;
}

/// Cells [first, first + count) of a column.
inline Bytes data_page(const MadeFile& file, const MadeColumn& column, std::size_t first, std::size_t count,
                       const std::vector<Bytes>& dictionary) {
    std::vector<Bytes> values;
    std::vector<std::uint64_t> definition;
    std::vector<std::uint64_t> repetition;
    std::int64_t rows = 0;
    for (std::size_t i = first; i < first + count; ++i) {
        const Cell& one = column.cells[i];
        const MadeLevels levels = column.levels.empty() ? MadeLevels{0, one ? 1 : 0} : column.levels[i];
        definition.push_back(static_cast<std::uint64_t>(levels.definition));
        repetition.push_back(static_cast<std::uint64_t>(levels.repetition));
        rows += levels.repetition == 0 ? 1 : 0;
        if (one) values.push_back(*one);
    }
    const auto entries = static_cast<std::int64_t>(count);
    const Bytes body = encoded(column, values, dictionary);
    const auto level_bytes = [&](const std::vector<std::uint64_t>& levels, int most, bool old) {
        if (most == 0) return Bytes{};
        const auto width = static_cast<unsigned>(std::bit_width(static_cast<unsigned>(most)));
        return old ? old_level_bytes(levels, width) : run_bytes(levels, width);
    };
    const bool old = file.bit_packed_levels && !file.v2;
    const Bytes repetitions = level_bytes(repetition, column.most_repetition(), old);
    const Bytes definitions = level_bytes(definition, column.most_definition(), old);
    const Bytes levels = joined({repetitions, definitions});
    if (file.v2)
        return page_bytes(3, levels.size() + body.size(), joined({levels, packed(file.codec, body)}), file.crc,
                          [&](ThriftWriter& out) {
                              out.inner(8, [&](ThriftWriter& v2) {
                                  v2.integer(1, entries)
                                      .integer(2, entries - static_cast<std::int64_t>(values.size()))
                                      .integer(3, rows);
                                  v2.integer(4, column.encoding)
                                      .integer(5, static_cast<std::int64_t>(definitions.size()))
                                      .integer(6, static_cast<std::int64_t>(repetitions.size()));
                                  v2.flag(7, file.codec != none);
                              });
                          });
    const auto behind_length = [&](const Bytes& bytes) {
        return old || bytes.empty() ? bytes : joined({little_endian_bytes(bytes.size(), 4), bytes});
    };
    const Bytes whole = joined({behind_length(repetitions), behind_length(definitions), body});
    return page_bytes(0, whole.size(), packed(file.codec, whole), file.crc, [&](ThriftWriter& out) {
        out.inner(5, [&](ThriftWriter& v1) {
            v1.integer(1, entries)
                .integer(2, column.encoding)
                .integer(3, file.bit_packed_levels ? bit_packed : rle)
                .integer(4, file.bit_packed_levels ? bit_packed : rle);
        });
    });
}

/// The pages of a column chunk: cells [first, end).
inline Bytes chunk_bytes(const MadeFile& file, const MadeColumn& column, std::size_t first, std::size_t end) {
    Bytes pages;
    std::vector<Bytes> dictionary;
    if (has_dictionary(column)) {
        for (std::size_t i = first; i < end; ++i)
            if (const Cell& one = column.cells[i];
                one && std::find(dictionary.begin(), dictionary.end(), *one) == dictionary.end())
                dictionary.push_back(*one);
        const Bytes body = plain_bytes(column, dictionary);
        append(pages, page_bytes(2, body.size(), packed(file.codec, body), file.crc, [&](ThriftWriter& out) {
                   out.inner(7, [&](ThriftWriter& page) {
                       page.integer(1, static_cast<std::int64_t>(dictionary.size())).integer(2, plain);
                   });
               }));
    }
    for (std::size_t at = first; at < end; at += column.page_rows)
        append(pages, data_page(file, column, at, std::min(column.page_rows, end - at), dictionary));
    return pages;
}

/// Columns [first, end) that share `depth` groups, each below what the others share with it. Returns how many elements
/// stand beside each other.
inline std::int64_t write_elements(ThriftWriter& out, const std::vector<MadeColumn>& columns, std::size_t first,
                                   std::size_t end, std::size_t depth, std::size_t& written) {
    std::int64_t count = 0;
    for (std::size_t at = first; at < end; ++count, ++written) {
        const MadeColumn& column = columns[at];
        if (column.groups.size() == depth) {
            out.bare_record([&](ThriftWriter& element) {
                element.integer(1, column.type);
                if (column.width > 0) element.integer(2, column.width);
                element.integer(3, column.repetition()).text(4, column.name);
                if (column.converted >= 0) element.integer(6, column.converted);
                if (column.scale > 0) element.integer(7, column.scale);
                if (column.logical >= 0)
                    element.inner(10, [&](ThriftWriter& type) { type.inner(column.logical, [](ThriftWriter&) {}); });
            });
            ++at;
            continue;
        }
        const MadeGroup& group = column.groups[depth];
        std::size_t behind = at;
        while (behind < end && columns[behind].groups.size() > depth &&
               columns[behind].groups[depth].name == group.name)
            ++behind;
        ThriftWriter inside;
        const std::int64_t children = write_elements(inside, columns, at, behind, depth + 1, written);
        out.bare_record([&](ThriftWriter& element) {
            element.integer(3, group.repetition).text(4, group.name).integer(5, children);
            if (group.converted >= 0) element.integer(6, group.converted);
        });
        append(out.bytes, inside.bytes);
        at = behind;
    }
    return count;
}

inline void write_schema(ThriftWriter& out, const MadeFile& file) {
    ThriftWriter inside;
    std::size_t written = 0;
    const std::int64_t top = write_elements(inside, file.columns, 0, file.columns.size(), 0, written);
    out.list_of(2, ThriftWriter::record, 1 + written + file.more_elements);
    out.bare_record([&](ThriftWriter& root) { root.text(4, "table").integer(5, top + file.more_columns); });
    append(out.bytes, inside.bytes);
    if (file.more_schema) file.more_schema(out);
}

/// `body` behind the first magic number, then a footer, its length and the last magic number.
inline Bytes closed(const Bytes& body, const Bytes& footer) {
    return joined({bytes_of("PAR1"), body, footer, little_endian_bytes(footer.size(), 4), bytes_of("PAR1")});
}

/// A file in its two parts.
struct Parts {
    Bytes body;
    Bytes footer;
    [[nodiscard]] Bytes file() const { return closed(body, footer); }
};

inline Parts made_parts(const MadeFile& file) {
    Parts parts;
    const std::size_t rows = file.columns.empty() ? 0 : file.columns[0].row_begins().size() - 1;
    const std::size_t groups = (rows + file.group_rows - 1) / file.group_rows;
    ThriftWriter footer;
    footer.bare_record([&](ThriftWriter& out) {
        out.integer(1, 1);
        write_schema(out, file);
        out.integer(3, static_cast<std::int64_t>(rows), ThriftWriter::i64);
        out.list_of(4, ThriftWriter::record, groups);
        for (std::size_t first = 0; first < rows; first += file.group_rows) {
            const std::size_t count = std::min(file.group_rows, rows - first);
            out.bare_record([&](ThriftWriter& group) {
                group.list_of(1, ThriftWriter::record, file.columns.size() + file.more_chunks);
                for (const MadeColumn& column : file.columns) {
                    const std::size_t begin = 4 + parts.body.size();
                    const std::vector<std::size_t> begins = column.row_begins();
                    const std::size_t entries = begins[first + count] - begins[first];
                    append(parts.body, chunk_bytes(file, column, begins[first], begins[first + count]));
                    group.bare_record([&](ThriftWriter& chunk) {
                        chunk.integer(2, 0, ThriftWriter::i64).inner(3, [&](ThriftWriter& data) {
                            data.integer(1, column.type).list_of(2, ThriftWriter::i32, 1).zigzag(column.encoding);
                            data.list_of(3, ThriftWriter::binary, column.groups.size() + 1);
                            for (const MadeGroup& outer : column.groups) data.bare_text(outer.name);
                            data.bare_text(column.name);
                            data.integer(4, file.codec)
                                .integer(5, static_cast<std::int64_t>(entries), ThriftWriter::i64);
                            const auto size = static_cast<std::int64_t>(4 + parts.body.size() - begin);
                            data.integer(6, size, ThriftWriter::i64).integer(7, size, ThriftWriter::i64);
                            data.integer(9, static_cast<std::int64_t>(begin), ThriftWriter::i64);
                        });
                    });
                }
                for (std::size_t i = 0; i < file.more_chunks; ++i)
                    group.bare_record([](ThriftWriter& chunk) { chunk.inner(3, [](ThriftWriter&) {}); });
                group.integer(2, 1, ThriftWriter::i64).integer(3, static_cast<std::int64_t>(count), ThriftWriter::i64);
            });
        }
        out.text(6, "made for a test");
    });
    parts.footer = footer.bytes;
    return parts;
}

inline Bytes made_file(const MadeFile& file) { return made_parts(file).file(); }

}  // namespace strata_test::parquet
