#pragma once
// strata/tables/impl/parquet_column_reader.ipp - pages become entries.

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>

#include <strata/core/error.hpp>
#include <strata/core/inline.hpp>
#include <strata/tables/detail/parquet_column_reader.hpp>
#include <strata/tables/detail/parquet_forms.hpp>

namespace strata::tables::detail::parquet {

/// The chunk of a column, checked against the schema and the file.
inline const Chunk& checked_chunk(const File& file, std::size_t row_group, const ColumnFormat& format,
                                  const Place& place) {
    const RowGroup& group = file.footer.groups[row_group];
    const Chunk& chunk = group.chunks[format.chunk];
    if (chunk.encrypted) place.unsupported("it is encrypted");
    if (chunk.elsewhere) place.unsupported("its pages lie in another file");
    if (chunk.codec < 0 || chunk.values < 0 || chunk.begin < 0 || chunk.size < 0)
        place.damaged("its column chunk is not described as a whole");
    if (chunk.type != static_cast<std::int32_t>(format.type)) place.damaged("its type is not that of the schema");
    const auto values = static_cast<std::uint64_t>(chunk.values);
    if (format.is_list ? values < group.rows : values != group.rows)  // an empty list has an entry, too
        place.damaged("it has " + std::to_string(values) + " values for " + std::to_string(group.rows) + " rows");
    const auto begin = static_cast<std::uint64_t>(chunk.begin);
    const auto size = static_cast<std::uint64_t>(chunk.size);
    if (begin < 4 || begin > file.footer_begin || size > file.footer_begin - begin)
        place.damaged("its pages would lie outside the file");
    return chunk;
}

STRATA_INLINE ColumnReader::ColumnReader(const File& file, std::size_t row_group, const Leaf& leaf,
                                         std::uint64_t first_row)
    : format_{leaf.format},
      limits_{file.limits},
      place_{file.source, leaf.column.name, static_cast<std::int64_t>(row_group), -1},
      codec_{checked_chunk(file, row_group, format_, place_).codec},
      bytes_{file, static_cast<std::uint64_t>(file.footer.groups[row_group].chunks[format_.chunk].begin),
             static_cast<std::uint64_t>(file.footer.groups[row_group].chunks[format_.chunk].size)},
      first_row_{first_row},
      entries_left_{static_cast<std::uint64_t>(file.footer.groups[row_group].chunks[format_.chunk].values)} {
    if (format_.is_read_as_text()) values_.emplace<Values<std::string_view>>();
}

STRATA_INLINE std::uint64_t ColumnReader::entries_in_page() {
    while (page_left_ == 0 && entries_left_ > 0) next_page();
    return page_left_;
}

STRATA_INLINE void ColumnReader::next_page() {
    constexpr std::uint64_t longest_header = 1 << 20;  // they may hold the smallest and the largest text
    ++place_.page;
    if (bytes_.at_end())
        place_.damaged("its pages end " + std::to_string(entries_left_) + " values before the row group does");
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
    if (header.values > entries_left_)
        place_.damaged("it has " + std::to_string(header.values) + " values, the row group only " +
                       std::to_string(entries_left_) + " more");
    entries_left_ -= header.values;
    page_left_ = header.values;
    encoding_ = static_cast<Encoding>(header.encoding);
    std::visit([](auto& values) { values.reader.reset(); }, values_);
    repetition_.reset();
    definition_.reset();
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

STRATA_INLINE void ColumnReader::begin_levels(std::optional<LevelReader>& levels, ByteCursor& in, std::int32_t encoding,
                                              unsigned most, std::uint32_t values) {
    const auto known = static_cast<Encoding>(encoding);
    if (known != Encoding::rle && known != Encoding::bit_packed)
        place_.unsupported("its levels have the encoding " + std::to_string(encoding));
    const bool is_bit_packed = known == Encoding::bit_packed;
    const std::uint64_t length = is_bit_packed
                                     ? (std::uint64_t{values} * static_cast<unsigned>(std::bit_width(most)) + 7) / 8
                                     : in.little<std::uint32_t>();
    levels.emplace(in.take(length), most, is_bit_packed, place_);
}

STRATA_INLINE void ColumnReader::begin_page(const PageHeader& header, std::span<const std::byte> packed) {
    value_bytes_ = unpack_into(page_, packed, header.unpacked);
    ByteCursor in{value_bytes_, place_};
    if (format_.is_list) begin_levels(repetition_, in, header.repetition_encoding, 1, header.values);
    if (format_.has_levels())
        begin_levels(definition_, in, header.level_encoding, format_.definition_levels, header.values);
    value_bytes_ = in.take(in.left());
}

STRATA_INLINE void ColumnReader::begin_page_v2(const PageHeader& header, std::span<const std::byte> packed) {
    const std::uint64_t levels = std::uint64_t{header.definition_bytes} + header.repetition_bytes;
    if (levels > packed.size() || levels > header.unpacked) place_.damaged("its levels are larger than the page");
    if (header.nulls > header.values) place_.damaged("it has more nulls than rows");
    if (format_.has_levels()) {
        const auto both = packed.first(static_cast<std::size_t>(levels));
        level_bytes_.assign(both.begin(), both.end());
        const std::span<const std::byte> bytes{level_bytes_};
        if (format_.is_list) repetition_.emplace(bytes.first(header.repetition_bytes), 1U, false, place_);
        definition_.emplace(bytes.subspan(header.repetition_bytes), format_.definition_levels, false, place_);
        if (!format_.is_list) nulls_left_ = header.nulls;  // of lists, writers count different things
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

/// Values packed to the front first, then each to its entry, from the back so that none is lost.
template <class Value>
void ColumnReader::spread(Values<Value>& values, const std::vector<std::uint8_t>& present, std::size_t there,
                          std::vector<Value>& slots) {
    slots.assign(present.size(), Value{});
    read_present(values, std::span{slots}.first(there));
    for (std::size_t slot = present.size(), from = there; from < slot && slot-- > 0;)
        slots[slot] = present[slot] != 0 ? slots[--from] : Value{};
}

STRATA_INLINE void ColumnReader::read(std::size_t count, ParquetValues& out, EntryLevels* levels) {
    page_left_ -= count;
    first_row_ += rows_read_;
    levels_read_ = levels;
    if (levels != nullptr) {
        levels->repetition.resize(count);
        (void)repetition_->read(levels->repetition);
        rows_read_ = static_cast<std::uint64_t>(
            std::count(levels->repetition.begin(), levels->repetition.end(), std::uint8_t{0}));
    } else {
        rows_read_ = count;
    }
    std::vector<std::uint8_t>& present = out.present();
    present.assign(count, 1);
    const std::size_t there = definition_ ? definition_->read(present) : count;
    if (levels != nullptr) levels->definition = present;
    if (format_.definition_levels > 1)
        for (std::uint8_t& level : present) level = level == format_.definition_levels ? 1 : 0;
    if (nulls_left_) {
        if (count - there > *nulls_left_) place_.damaged("it has more nulls than it says");
        *nulls_left_ -= count - there;
        if (page_left_ == 0 && *nulls_left_ != 0) place_.damaged("it has fewer nulls than it says");
    }
    if (auto* const texts = std::get_if<Values<std::string_view>>(&values_)) {
        spread(*texts, present, there, format_.form == Form::as_stored ? out.texts() : stored_);
        if (format_.is_utf8) check_texts(out);
        if (format_.form != Form::as_stored) form_texts(out);
    } else {
        spread(std::get<Values<std::uint64_t>>(values_), present, there, out.numbers());
        finish_numbers(out);
    }
}

STRATA_INLINE std::string ColumnReader::row_name(std::size_t slot) const {
    std::uint64_t row = first_row_ + slot;
    if (levels_read_ != nullptr) {
        const auto begin = levels_read_->repetition.begin();
        const auto begun = std::count(begin, begin + static_cast<std::ptrdiff_t>(slot) + 1, std::uint8_t{0});
        row = first_row_ + static_cast<std::uint64_t>(begun) - 1;  // a row before the first began in an earlier page
    }
    return "row " + std::to_string(row);
}

STRATA_INLINE void ColumnReader::check_texts(const ParquetValues& values) const {
    if (encoding_ == Encoding::plain_dictionary || encoding_ == Encoding::rle_dictionary) return;  // checked as a whole
    for (std::size_t slot = 0; slot < values.rows(); ++slot)
        if (const auto text = values.text(slot); text && !is_utf8(*text))
            place_.damaged("the text of " + row_name(slot) + " is not UTF-8");
}

STRATA_INLINE void ColumnReader::finish_numbers(ParquetValues& values) const {
    if (format_.scale >= 0) {
        const double scale = std::pow(10.0, format_.scale);
        for (std::uint64_t& number : values.numbers())
            number = std::bit_cast<std::uint64_t>(static_cast<double>(std::bit_cast<std::int64_t>(number)) / scale);
    } else if (format_.is_unsigned && format_.type == PhysicalType::int64) {
        constexpr auto largest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
        for (std::size_t slot = 0; slot < values.numbers().size(); ++slot)
            if (values.numbers()[slot] > largest)
                throw Error{Errc::wrong_column_type,
                            place_.text() + ": the number of " + row_name(slot) + " does not fit into 63 bits",
                            "write the column as text or as real numbers"};
    }
}

/// Makes of `stored_` what the values mean.
STRATA_INLINE void ColumnReader::form_texts(ParquetValues& values) {
    const std::vector<std::uint8_t>& present = values.present();
    const bool is_uuid = format_.form == Form::uuid;
    if (is_uuid) {
        formed_.resize(present.size() * uuid_letters);
        values.texts().assign(present.size(), std::string_view{});
    } else {
        values.numbers().assign(present.size(), 0);
    }
    for (std::size_t slot = 0; slot < present.size(); ++slot) {
        if (present[slot] == 0) continue;
        const std::string_view bytes = stored_[slot];
        if (format_.width > 0 && bytes.size() != format_.width)
            place_.damaged("the value of " + row_name(slot) + " has " + std::to_string(bytes.size()) + " bytes, not " +
                           std::to_string(format_.width));
        if (is_uuid) {
            char* const begin = formed_.data() + slot * uuid_letters;
            write_uuid(bytes, begin);
            values.texts()[slot] = {begin, uuid_letters};
        } else if (format_.form == Form::time96) {
            const std::optional<std::int64_t> time = time96_of(bytes);
            if (!time)
                throw Error{Errc::wrong_column_type,
                            place_.text() + ": the time stamp of " + row_name(slot) + " does not fit into 64 bits",
                            "write the column as TIMESTAMP"};
            values.numbers()[slot] = std::bit_cast<std::uint64_t>(*time);
        } else if (format_.form == Form::float16) {
            values.numbers()[slot] = std::bit_cast<std::uint64_t>(float16_of(bytes));
        } else {
            const std::optional<double> number = decimal_of(bytes, format_.scale);
            if (!number)
                place_.unsupported("the decimal number of " + row_name(slot) + " has " + std::to_string(bytes.size()) +
                                   " bytes, and 1 to 16 can be read");
            values.numbers()[slot] = std::bit_cast<std::uint64_t>(*number);
        }
    }
}

}  // namespace strata::tables::detail::parquet
