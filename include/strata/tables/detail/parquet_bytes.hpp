#pragma once
// strata/tables/detail/parquet_bytes.hpp - where in a Parquet file something is wrong, and a cursor that never leaves it.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include <strata/core/error.hpp>

namespace strata::tables::detail::parquet {

/// What is being read, for messages. Views outlive it.
struct Place {
    std::string_view source;
    std::string_view column{};
    std::int64_t row_group = -1;
    std::int64_t page = -1;

    [[noreturn]] void damaged(const std::string& why) const;      ///< Errc::corrupt_parquet
    [[noreturn]] void unsupported(const std::string& why) const;  ///< Errc::unsupported_parquet
    [[noreturn]] void too_large(const std::string& what, std::uint64_t bytes, std::uint64_t limit,
                                std::string_view limit_name) const;  ///< Errc::parquet_too_large
    [[nodiscard]] std::string text() const;  ///< "photos.parquet, row group 0, column 'caption', page 2"
};

/// A name out of the file as messages show it: its first 100 bytes, control characters as '?'.
[[nodiscard]] std::string shown(std::string_view name);

/// True if the bytes are UTF-8 (RFC 3629).
[[nodiscard]] bool is_utf8(std::string_view text) noexcept;

/// Little-endian bytes, read from front to back; beyond their end is Errc::corrupt_parquet. `place` outlives it.
class ByteCursor {
public:
    ByteCursor(std::span<const std::byte> bytes, const Place& place) noexcept : bytes_{bytes}, place_{&place} {}

    [[nodiscard]] std::size_t position() const noexcept { return at_; }
    [[nodiscard]] std::size_t left() const noexcept { return bytes_.size() - at_; }
    [[nodiscard]] const Place& place() const noexcept { return *place_; }

    std::span<const std::byte> take(std::uint64_t count) {
        if (count > left()) ends_early();
        const auto taken = bytes_.subspan(at_, static_cast<std::size_t>(count));
        at_ += taken.size();
        return taken;
    }
    std::uint8_t byte() {
        if (at_ == bytes_.size()) ends_early();
        return static_cast<std::uint8_t>(bytes_[at_++]);
    }
    template <class Number>
    Number little() {
        Number number;
        std::memcpy(&number, take(sizeof number).data(), sizeof number);
        return number;
    }
    /// ULEB128, at most 64 bits.
    std::uint64_t varint();
    /// A zigzag number: 0, -1, 1, -2, ...
    std::int64_t zigzag() {
        const std::uint64_t number = varint();
        return static_cast<std::int64_t>((number >> 1) ^ (0 - (number & 1)));
    }

private:
    [[noreturn]] void ends_early() const;
    std::span<const std::byte> bytes_;
    const Place* place_;
    std::size_t at_ = 0;
};

}  // namespace strata::tables::detail::parquet

#ifndef STRATA_COMPILED
#include <strata/tables/impl/parquet_bytes.ipp>
#endif
