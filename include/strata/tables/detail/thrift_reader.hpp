#pragma once
// strata/tables/detail/thrift_reader.hpp - Thrift's compact protocol, as far as Parquet's metadata needs it.
//
// The protocol: github.com/apache/thrift, doc/specs/thrift-compact-protocol.md. Nothing is kept and nothing is
// allocated: a visitor takes the fields it knows, the others are stepped over. Every element of a list has at least
// one byte, so a count beyond the bytes that are left is refused before anything is made of it.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <strata/tables/detail/parquet_bytes.hpp>

namespace strata::tables::detail::parquet {

class ThriftReader {
public:
    enum class Type : std::uint8_t { stop, yes, no, i8, i16, i32, i64, real, binary, list, set, map, record, uuid };
    struct Field {
        int id = 0;
        Type type = Type::stop;
    };

    /// Reads from the first of `bytes`; what follows the outermost record is left alone.
    ThriftReader(std::span<const std::byte> bytes, const Place& place) noexcept : in_{bytes, place} {}

    /// A record: visit(Field) for each field; one it returns false for is stepped over.
    template <class Visit>
    void record(Visit&& visit) {
        enter();
        int id = 0;
        for (Field field = next_field(id); field.type != Type::stop; field = next_field(id))
            if (!visit(field)) skip(field.type);
        --depth_;
    }
    /// The record that is a field's value.
    template <class Visit>
    void record(Type type, Visit&& visit) {
        require(type == Type::record);
        record(visit);
    }
    /// The list that is a field's value: visit() for each element, which must be read.
    template <class Visit>
    void list(Type type, Type element, Visit&& visit) {
        const std::uint64_t count = list_of(type, element);
        for (std::uint64_t i = 0; i < count; ++i) visit();
    }

    std::int64_t int64(Type type);
    std::int32_t int32(Type type);
    std::string_view text(Type type);
    bool boolean(Type type);
    void skip(Type type);

    [[nodiscard]] std::size_t position() const noexcept { return in_.position(); }
    [[nodiscard]] const Place& place() const noexcept { return in_.place(); }

private:
    Field next_field(int& id);
    std::uint64_t list_of(Type type, Type element);
    std::uint64_t count_of(std::uint64_t count) const;
    static Type type_of(unsigned bits, const Place& place);
    void require(bool right) const;
    void enter();

    ByteCursor in_;
    int depth_ = 0;
};

}  // namespace strata::tables::detail::parquet

#ifndef STRATA_COMPILED
#include <strata/tables/impl/thrift_reader.ipp>
#endif
