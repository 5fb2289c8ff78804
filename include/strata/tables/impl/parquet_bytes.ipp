#pragma once
// strata/tables/impl/parquet_bytes.ipp - the sentences of damaged Parquet files.

#include <bit>
#include <cstring>

#include <strata/core/inline.hpp>
#include <strata/tables/detail/parquet_bytes.hpp>

namespace strata::tables::detail::parquet {

static_assert(std::endian::native == std::endian::little, "Parquet bytes are little-endian");

STRATA_INLINE std::string shown(std::string_view name) {
    constexpr std::size_t longest = 100;
    std::string text{name.substr(0, longest)};
    for (char& letter : text)
        if (static_cast<unsigned char>(letter) < 0x20 || letter == 0x7F) letter = '?';
    return name.size() > longest ? text + "..." : text;
}

STRATA_INLINE std::string Place::text() const {
    std::string text{source};
    if (row_group >= 0) text += ", row group " + std::to_string(row_group);
    if (!column.empty()) text += ", column '" + shown(column) + "'";
    if (page >= 0) text += ", page " + std::to_string(page);
    return text;
}

STRATA_INLINE void Place::damaged(const std::string& why) const {
    throw Error{Errc::corrupt_parquet, text() + ": no intact Parquet file: " + why,
                "copy the file again from where it came, or write it again with the program that made it"};
}

STRATA_INLINE void Place::unsupported(const std::string& why) const {
    throw Error{
        Errc::unsupported_parquet, text() + ": " + why,
        "write the table again without it: columns of text, numbers and lists of them, zstd or snappy, not encrypted"};
}

STRATA_INLINE void Place::too_large(const std::string& what, std::uint64_t bytes, std::uint64_t limit,
                                    std::string_view limit_name) const {
    throw Error{Errc::parquet_too_large,
                text() + ": " + what + " has " + std::to_string(bytes) + " bytes, more than the " +
                    std::to_string(limit) + " that ParquetLimits::" + std::string{limit_name} + " allows",
                "write the table with smaller pages and row groups, or raise the limit if the file is yours"};
}

STRATA_INLINE std::uint64_t ByteCursor::varint() {
    std::uint64_t number = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        const std::uint64_t bits = byte();
        if (shift == 63 && bits > 1) break;
        number |= (bits & 0x7F) << shift;
        if (bits < 0x80) return number;
    }
    place_->damaged("a number of variable length goes on beyond 64 bits");
}

STRATA_INLINE void ByteCursor::ends_early() const { place_->damaged("something in it ends too early"); }

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
