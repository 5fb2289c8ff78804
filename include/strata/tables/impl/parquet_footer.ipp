#pragma once
// strata/tables/impl/parquet_footer.ipp - the schema, then row groups that must match it.
//
// Field numbers are those of parquet.thrift: FileMetaData, RowGroup, ColumnChunk, ColumnMetaData.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <strata/tables/detail/parquet_footer.hpp>
#include <strata/tables/detail/thrift_reader.hpp>

namespace strata::tables::detail::parquet {

class FooterParser {
public:
    FooterParser(std::span<const std::byte> bytes, const Place& place) : in_{bytes, place}, place_{place} {}

    Footer parse() {
        in_.record([&](Field field) {
            switch (field.id) {
                case 2:
                    if (seen_schema_) place_.damaged("its footer has two schemas");
                    seen_schema_ = true;
                    in_.list(field.type, Type::record, [&] { footer_.schema.add(in_); });
                    footer_.schema.finish(place_);
                    return true;
                case 4:
                    if (!seen_schema_ || seen_groups_) place_.damaged("its footer has row groups out of order");
                    seen_groups_ = true;
                    in_.list(field.type, Type::record, [&] { read_row_group(); });
                    return true;
                default:
                    return false;
            }
        });
        if (!seen_schema_ || !seen_groups_) place_.damaged("its footer has no schema or no row groups");
        return std::move(footer_);
    }

private:
    using Field = ThriftReader::Field;
    using Type = ThriftReader::Type;
    static constexpr std::size_t most_row_groups = 65536;

    void read_row_group() {
        if (footer_.groups.size() == most_row_groups)
            place_.unsupported("it has more than " + std::to_string(most_row_groups) + " row groups");
        RowGroup& group = footer_.groups.emplace_back();
        const std::size_t leaves = footer_.schema.leaves();
        group.chunks.reserve(leaves);
        std::int64_t rows = -1;
        in_.record([&](Field field) {
            switch (field.id) {
                case 1:
                    in_.list(field.type, Type::record, [&] {
                        if (group.chunks.size() == leaves) wrong_chunks();
                        read_chunk(group);
                    });
                    return true;
                case 3:
                    rows = in_.int64(field.type);
                    return true;
                default:
                    return false;
            }
        });
        if (group.chunks.size() != leaves) wrong_chunks();
        if (rows < 0) place_.damaged("a row group has no number of rows");
        group.rows = static_cast<std::uint64_t>(rows);
        if (__builtin_add_overflow(footer_.rows, group.rows, &footer_.rows)) place_.damaged("it has too many rows");
    }

    void read_chunk(RowGroup& group) {
        Chunk chunk;
        std::int64_t dictionary = 0;
        bool has_metadata = false;
        in_.record([&](Field field) {
            switch (field.id) {
                case 1:
                    chunk.elsewhere = !in_.text(field.type).empty();
                    return true;
                case 3:
                    has_metadata = true;
                    in_.record(field.type, [&](Field part) {
                        return read_chunk_part(part, chunk, dictionary, group.chunks.size());
                    });
                    return true;
                case 8:
                case 9:
                    chunk.encrypted = true;
                    return false;
                default:
                    return false;
            }
        });
        if (!has_metadata && !chunk.encrypted) place_.damaged("a column chunk is not described");
        // Some writers say 0 where there is no dictionary, some never say where it is: then it stands at the front.
        if (dictionary > 0 && dictionary < chunk.begin) chunk.begin = dictionary;
        group.chunks.push_back(chunk);
    }

    bool read_chunk_part(Field field, Chunk& chunk, std::int64_t& dictionary, std::size_t leaf) {
        switch (field.id) {
            case 1:
                chunk.type = in_.int32(field.type);
                return true;
            case 3:
                check_path(field.type, leaf);
                return true;
            case 4:
                chunk.codec = in_.int32(field.type);
                return true;
            case 5:
                chunk.values = in_.int64(field.type);
                return true;
            case 7:
                chunk.size = in_.int64(field.type);
                return true;
            case 9:
                chunk.begin = in_.int64(field.type);
                return true;
            case 11:
                dictionary = in_.int64(field.type);
                return true;
            default:
                return false;
        }
    }

    void check_path(Type type, std::size_t leaf) {
        path_.clear();
        in_.list(type, Type::binary, [&] {
            const std::string_view part = in_.text(Type::binary);
            if (path_.size() <= Schema::most_depth + 1) path_.push_back(part);
        });
        if (!footer_.schema.is_path(leaf, path_)) wrong_chunks();
    }

    [[noreturn]] void wrong_chunks() const { place_.damaged("a row group's columns are not those of the schema"); }

    ThriftReader in_;
    const Place& place_;
    Footer footer_;
    std::vector<std::string_view> path_;
    bool seen_schema_ = false;
    bool seen_groups_ = false;
};

STRATA_INLINE Footer parse_footer(std::span<const std::byte> bytes, const Place& place) {
    return FooterParser{bytes, place}.parse();
}

}  // namespace strata::tables::detail::parquet
