#pragma once
// strata/tables/impl/thrift_reader.ipp - fields, lists and what is stepped over.

#include <limits>
#include <string>

#include <strata/tables/detail/thrift_reader.hpp>

namespace strata::tables::detail::parquet {

STRATA_INLINE void ThriftReader::require(bool right) const {
    if (!right) place().damaged("its metadata is wrong before byte " + std::to_string(position()) + " of it");
}

STRATA_INLINE void ThriftReader::enter() {
    constexpr int deepest = 32;  // Parquet's own records are nested 7 deep
    require(++depth_ <= deepest);
}

STRATA_INLINE ThriftReader::Type ThriftReader::type_of(unsigned bits, const Place& place) {
    if (bits == 0 || bits > static_cast<unsigned>(Type::uuid))
        place.damaged("its metadata has a value of unknown type " + std::to_string(bits));
    return static_cast<Type>(bits);
}

STRATA_INLINE ThriftReader::Field ThriftReader::next_field(int& id) {
    const unsigned head = in_.byte();
    if (head == 0) return {};
    if (head >> 4 != 0) {
        id += static_cast<int>(head >> 4);
    } else {
        const std::int64_t number = in_.zigzag();
        require(number >= 0 && number <= std::numeric_limits<std::int16_t>::max());
        id = static_cast<int>(number);
    }
    require(id <= std::numeric_limits<std::int16_t>::max());
    return {id, type_of(head & 15, place())};
}

STRATA_INLINE std::uint64_t ThriftReader::count_of(std::uint64_t count) const {
    require(count <= in_.left());
    return count;
}

STRATA_INLINE std::uint64_t ThriftReader::list_of(Type type, Type element) {
    require(type == Type::list || type == Type::set);
    const unsigned head = in_.byte();
    const std::uint64_t count = count_of(head >> 4 == 15 ? in_.varint() : head >> 4);
    if (count > 0) require((head & 15) == static_cast<unsigned>(element));
    return count;
}

STRATA_INLINE std::int64_t ThriftReader::int64(Type type) {
    require(type == Type::i16 || type == Type::i32 || type == Type::i64);
    return in_.zigzag();
}

STRATA_INLINE std::int32_t ThriftReader::int32(Type type) {
    if (type == Type::i8) return static_cast<std::int8_t>(in_.byte());
    const std::int64_t number = int64(type);
    require(number >= std::numeric_limits<std::int32_t>::min() && number <= std::numeric_limits<std::int32_t>::max());
    return static_cast<std::int32_t>(number);
}

STRATA_INLINE std::string_view ThriftReader::text(Type type) {
    require(type == Type::binary);
    const auto bytes = in_.take(in_.varint());
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

STRATA_INLINE bool ThriftReader::boolean(Type type) {
    require(type == Type::yes || type == Type::no);
    return type == Type::yes;
}

STRATA_INLINE void ThriftReader::skip(Type type) {
    switch (type) {
        case Type::stop:
        case Type::yes:
        case Type::no:
            return;
        case Type::i8:
            in_.take(1);
            return;
        case Type::i16:
        case Type::i32:
        case Type::i64:
            in_.varint();
            return;
        case Type::real:
            in_.take(8);
            return;
        case Type::uuid:
            in_.take(16);
            return;
        case Type::binary:
            in_.take(in_.varint());
            return;
        case Type::record:
            record([](Field) { return false; });
            return;
        case Type::list:
        case Type::set: {
            enter();
            const unsigned head = in_.byte();
            const std::uint64_t count = count_of(head >> 4 == 15 ? in_.varint() : head >> 4);
            const Type element = count > 0 ? type_of(head & 15, place()) : Type::stop;
            const bool is_flag = element == Type::yes || element == Type::no;  // a byte each, inside lists
            for (std::uint64_t i = 0; i < count; ++i) skip(is_flag ? Type::i8 : element);
            --depth_;
            return;
        }
        case Type::map: {
            enter();
            const std::uint64_t count = count_of(in_.varint());
            if (count > 0) {
                const unsigned head = in_.byte();
                const auto of = [&](unsigned bits) {
                    const Type part = type_of(bits, place());
                    return part == Type::yes || part == Type::no ? Type::i8 : part;
                };
                const Type key = of(head >> 4);
                const Type value = of(head & 15);
                for (std::uint64_t i = 0; i < count; ++i) {
                    skip(key);
                    skip(value);
                }
            }
            --depth_;
            return;
        }
    }
}

}  // namespace strata::tables::detail::parquet
