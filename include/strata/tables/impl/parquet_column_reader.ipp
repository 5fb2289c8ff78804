#pragma once
// strata/tables/impl/parquet_column_reader.ipp - pages become rows.

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>

#include <strata/core/error.hpp>
#include <strata/tables/detail/parquet_column_reader.hpp>

namespace strata::tables::detail::parquet {

STRATA_INLINE std::vector<std::byte> File::fetch(std::uint64_t offset, std::uint64_t length) const {
    std::vector<std::byte> bytes = read(offset, length);
    if (bytes.size() != length)
        throw Error{Errc::io_failed,
                    source + ": of " + std::to_string(length) + " bytes at offset " + std::to_string(offset) +
                        " came " + std::to_string(bytes.size()),
                    "leave the file alone while it is read, and try again"};
    return bytes;
}

STRATA_INLINE ChunkBytes::ChunkBytes(const File& file, std::uint64_t begin, std::uint64_t size)
    : file_{file},
      at_{begin},
      end_{begin + size},
      hard_end_{std::min(end_ + slack, file.footer_begin)},
      held_begin_{begin} {}

STRATA_INLINE std::span<const std::byte> ChunkBytes::peek(std::uint64_t count) {
    const std::uint64_t held_end = held_begin_ + held_.size();
    if (at_ + count > held_end) {
        // What is held and not yet read moves to the front, new bytes come behind it.
        const std::uint64_t more = at_ + count - held_end;
        const std::uint64_t planned = end_ > held_end ? end_ - held_end : 0;
        const std::uint64_t wanted = std::max(more, std::min(planned, file_.limits.read_bytes));
        held_.erase(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(at_ - held_begin_));
        held_begin_ = at_;
        std::vector<std::byte> fetched = file_.fetch(held_end, wanted);
        if (held_.empty()) {
            held_ = std::move(fetched);
        } else {
            held_.insert(held_.end(), fetched.begin(), fetched.end());
        }
    }
    return std::span{held_}.subspan(static_cast<std::size_t>(at_ - held_begin_), static_cast<std::size_t>(count));
}

STRATA_INLINE std::span<const std::byte> ChunkBytes::peek_head(std::uint64_t count) {
    const std::uint64_t said = end_ > at_ ? end_ - at_ : 0;
    return peek(std::min({count, left(), std::max(said, slack)}));
}

/// The chunk of a column, checked against the schema and the file.
inline const Chunk& checked_chunk(const File& file, std::size_t row_group, std::size_t column, const Place& place) {
    const RowGroup& group = file.footer.groups[row_group];
    const ColumnFormat& format = file.footer.formats[column];
    const Chunk& chunk = group.chunks[format.chunk];
    if (chunk.encrypted) place.unsupported("it is encrypted");
    if (chunk.elsewhere) place.unsupported("its pages lie in another file");
    if (chunk.type != static_cast<std::int32_t>(format.type)) place.damaged("its type is not that of the schema");
    if (static_cast<std::uint64_t>(chunk.values) != group.rows)
        place.damaged("it has " + std::to_string(chunk.values) + " values for " + std::to_string(group.rows) + " rows");
    const auto begin = static_cast<std::uint64_t>(chunk.begin);
    const auto size = static_cast<std::uint64_t>(chunk.size);
    if (begin < 4 || begin > file.footer_begin || size > file.footer_begin - begin)
        place.damaged("its pages would lie outside the file");
    return chunk;
}

STRATA_INLINE ColumnReader::ColumnReader(const File& file, std::size_t row_group, std::size_t column)
    : format_{file.footer.formats[column]},
      limits_{file.limits},
      place_{file.source, file.footer.columns[column].name, static_cast<std::int64_t>(row_group), -1},
      codec_{checked_chunk(file, row_group, column, place_).codec},
      bytes_{file, static_cast<std::uint64_t>(file.footer.groups[row_group].chunks[format_.chunk].begin),
             static_cast<std::uint64_t>(file.footer.groups[row_group].chunks[format_.chunk].size)},
      rows_left_{file.footer.groups[row_group].rows} {
    if (file.footer.columns[column].kind == ParquetKind::text) values_.emplace<Values<std::string_view>>();
}

STRATA_INLINE std::uint64_t ColumnReader::rows_in_page() {
    while (page_left_ == 0 && rows_left_ > 0) next_page();
    return page_left_;
}

STRATA_INLINE void ColumnReader::next_page() {
    constexpr std::uint64_t longest_header = 1 << 20;  // they may hold the smallest and the largest text
    ++place_.page;
    if (bytes_.at_end())
        place_.damaged("its pages end " + std::to_string(rows_left_) + " rows before the row group does");
    const PageHeader header = parse_page_header(bytes_.peek_head(longest_header), place_);
    bytes_.step(header.header_bytes);
    if (header.packed > bytes_.left()) place_.damaged("it would go on beyond the pages of its column");
    const std::uint64_t larger = std::max(header.packed, header.unpacked);
    if (larger > limits_.page_bytes) place_.too_large("it", larger, limits_.page_bytes, "page_bytes");
    const std::span<const std::byte> packed = bytes_.peek(header.packed);
    bytes_.step(header.packed);
    if (header.crc && crc32_of(packed) != *header.crc) place_.damaged("its check sum is wrong");
    switch (header.type) {
        case PageType::index:
            return;
        case PageType::dictionary:
            return read_dictionary(header, packed);
        case PageType::data:
        case PageType::data_v2:
            break;
    }
    if (header.values > rows_left_)
        place_.damaged("it has " + std::to_string(header.values) + " rows, the row group only " +
                       std::to_string(rows_left_) + " more");
    rows_left_ -= header.values;
    page_left_ = header.values;
    encoding_ = static_cast<Encoding>(header.encoding);
    std::visit([](auto& values) { values.reader.reset(); }, values_);
    levels_.reset();
    nulls_left_.reset();
    header.type == PageType::data ? begin_page(header, packed) : begin_page_v2(header, packed);
}

STRATA_INLINE std::span<const std::byte> ColumnReader::unpack_into(PageBuffer& buffer,
                                                                   std::span<const std::byte> packed,
                                                                   std::uint64_t size, bool is_packed) {
    const std::int32_t codec = is_packed ? codec_ : 0;
    if (cannot_unpack_to(codec, packed, size))
        place_.damaged("its " + std::to_string(packed.size()) + " bytes cannot unpack to " + std::to_string(size));
    unpack(codec, packed, buffer.resize(static_cast<std::size_t>(size)), place_);
    return buffer.bytes();
}

STRATA_INLINE void ColumnReader::read_dictionary(const PageHeader& header, std::span<const std::byte> packed) {
    if (has_dictionary_ || place_.page > 0) place_.damaged("a dictionary is not the first page of its column");
    has_dictionary_ = true;
    const auto encoding = static_cast<Encoding>(header.encoding);
    if (encoding != Encoding::plain && encoding != Encoding::plain_dictionary)
        place_.unsupported("its dictionary has the encoding " + std::to_string(header.encoding));
    const std::span<const std::byte> bytes = unpack_into(dictionary_page_, packed, header.unpacked);
    const std::uint64_t bits = format_.type == PhysicalType::boolean ? 1 : 8 * (format_.width > 0 ? format_.width : 4);
    if (header.values * bits > bytes.size() * 8)
        place_.damaged("its dictionary of " + std::to_string(header.values) + " values has only " +
                       std::to_string(bytes.size()) + " bytes");
    if (header.values == 0) return;
    std::visit(
        [&]<class Value>(Values<Value>& values) {
            const std::uint64_t entries = header.values * sizeof(Value);
            if (entries > limits_.page_bytes)
                place_.too_large("its dictionary in memory", entries, limits_.page_bytes, "page_bytes");
            values.dictionary.resize(header.values);
            make_value_reader(Encoding::plain, format_, ValueBytes<Value>{bytes}, place_)->read(values.dictionary);
            if constexpr (std::is_same_v<Value, std::string_view>)
                if (format_.is_utf8 && !std::all_of(values.dictionary.begin(), values.dictionary.end(), is_utf8))
                    place_.damaged("its dictionary has a text that is not UTF-8");
        },
        values_);
}

STRATA_INLINE void ColumnReader::begin_page(const PageHeader& header, std::span<const std::byte> packed) {
    value_bytes_ = unpack_into(page_, packed, header.unpacked);
    if (!format_.optional) return;
    ByteCursor in{value_bytes_, place_};
    const auto encoding = static_cast<Encoding>(header.level_encoding);
    if (encoding != Encoding::rle && encoding != Encoding::bit_packed)
        place_.unsupported("its levels have the encoding " + std::to_string(header.level_encoding));
    const bool is_bit_packed = encoding == Encoding::bit_packed;
    const std::uint64_t length = is_bit_packed ? (std::uint64_t{header.values} + 7) / 8 : in.little<std::uint32_t>();
    levels_.emplace(in.take(length), is_bit_packed, place_);
    value_bytes_ = in.take(in.left());
}

STRATA_INLINE void ColumnReader::begin_page_v2(const PageHeader& header, std::span<const std::byte> packed) {
    const std::uint64_t levels = std::uint64_t{header.definition_bytes} + header.repetition_bytes;
    if (levels > packed.size() || levels > header.unpacked) place_.damaged("its levels are larger than the page");
    if (header.nulls > header.values) place_.damaged("it has more nulls than rows");
    if (format_.optional) {
        const auto definition = packed.subspan(header.repetition_bytes, header.definition_bytes);
        level_bytes_.assign(definition.begin(), definition.end());
        levels_.emplace(level_bytes_, false, place_);
        nulls_left_ = header.nulls;
    }
    packed = packed.subspan(static_cast<std::size_t>(levels));
    // Without values there may be nothing to unpack, and no bytes are not a stream of every codec.
    value_bytes_ = packed.empty() ? packed : unpack_into(page_, packed, header.unpacked - levels, header.is_packed);
}

template <class Value>
void ColumnReader::read_present(Values<Value>& values, std::span<Value> out) {
    if (out.empty()) return;
    if (!values.reader)
        values.reader = make_value_reader(
            encoding_, format_, {value_bytes_, has_dictionary_ ? &values.dictionary : nullptr, limits_.page_bytes},
            place_);
    values.reader->read(out);
}

STRATA_INLINE void ColumnReader::read(std::size_t rows, std::uint64_t first_row, ParquetValues& out) {
    page_left_ -= rows;
    out.present().assign(rows, 1);
    const std::size_t there = levels_ ? levels_->read(out.present()) : rows;
    if (nulls_left_) {
        if (rows - there > *nulls_left_) place_.damaged("it has more nulls than it says");
        *nulls_left_ -= rows - there;
        if (page_left_ == 0 && *nulls_left_ != 0) place_.damaged("it has fewer nulls than it says");
    }
    // Packed to the front first, then each to its row, from the back so that none is lost.
    const auto fill = [&]<class Value>(Values<Value>& values, std::vector<Value>& slots) {
        slots.assign(rows, Value{});
        read_present(values, std::span{slots}.first(there));
        for (std::size_t row = rows, from = there; from < row && row-- > 0;)
            slots[row] = out.present()[row] != 0 ? slots[--from] : Value{};
    };
    if (auto* const texts = std::get_if<Values<std::string_view>>(&values_)) {
        fill(*texts, out.texts());
        if (format_.is_utf8) check_texts(out, first_row);
    } else {
        fill(std::get<Values<std::uint64_t>>(values_), out.numbers());
        finish_numbers(out, first_row);
    }
}

STRATA_INLINE void ColumnReader::check_texts(const ParquetValues& values, std::uint64_t first_row) const {
    if (encoding_ == Encoding::plain_dictionary || encoding_ == Encoding::rle_dictionary) return;  // checked as a whole
    for (std::size_t row = 0; row < values.rows(); ++row)
        if (const auto text = values.text(row); text && !is_utf8(*text))
            place_.damaged("the text of row " + std::to_string(first_row + row) + " is not UTF-8");
}

STRATA_INLINE void ColumnReader::finish_numbers(ParquetValues& values, std::uint64_t first_row) const {
    if (format_.scale >= 0) {
        const double scale = std::pow(10.0, format_.scale);
        for (std::uint64_t& number : values.numbers())
            number = std::bit_cast<std::uint64_t>(static_cast<double>(std::bit_cast<std::int64_t>(number)) / scale);
    } else if (format_.is_unsigned && format_.type == PhysicalType::int64) {
        constexpr auto largest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
        for (std::size_t row = 0; row < values.rows(); ++row)
            if (values.numbers()[row] > largest)
                throw Error{Errc::wrong_column_type,
                            place_.text() + ": the number of row " + std::to_string(first_row + row) +
                                " does not fit into 63 bits",
                            "write the column as text or as real numbers"};
    }
}

STRATA_INLINE bool is_utf8(std::string_view text) noexcept {
    const auto* next = reinterpret_cast<const unsigned char*>(text.data());
    const auto* const end = next + text.size();
    while (next != end) {
        std::uint64_t eight;
        if (end - next >= 8 && (std::memcpy(&eight, next, 8), (eight & 0x8080808080808080) == 0)) {
            next += 8;
            continue;
        }
        const unsigned head = *next++;
        if (head < 0x80) continue;
        const int more = head >= 0xF0 ? 3 : head >= 0xE0 ? 2 : 1;
        if (head < 0xC2 || head > 0xF4 || end - next < more) return false;
        // The second byte alone rules out what is longer than needed, surrogates, and numbers beyond 0x10FFFF.
        const unsigned least = head == 0xE0 ? 0xA0 : head == 0xF0 ? 0x90 : 0x80;
        const unsigned most = head == 0xED ? 0x9F : head == 0xF4 ? 0x8F : 0xBF;
        if (*next < least || *next > most) return false;
        for (int i = 1; i < more; ++i)
            if ((next[i] & 0xC0) != 0x80) return false;
        next += more;
    }
    return true;
}

}  // namespace strata::tables::detail::parquet
