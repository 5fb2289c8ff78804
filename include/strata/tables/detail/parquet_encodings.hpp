#pragma once
// strata/tables/detail/parquet_encodings.hpp - values and levels out of a page's bytes, some at a time (Encodings.md).
//
// Every reader takes its bytes and a Place, both of which outlive it, holds a fixed amount of memory whatever the bytes
// claim, and throws Errc::corrupt_parquet where they end early or make no sense. What a page has beyond the values that
// are asked for is not looked at.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <strata/tables/detail/parquet_bytes.hpp>
#include <strata/tables/detail/parquet_footer.hpp>

namespace strata::tables::detail::parquet {

/// Encoding of parquet.thrift.
enum class Encoding : std::int32_t {
    plain = 0,
    plain_dictionary = 2,
    rle = 3,
    bit_packed = 4,
    delta_binary_packed = 5,
    delta_length_byte_array = 6,
    delta_byte_array = 7,
    rle_dictionary = 8,
    byte_stream_split = 9,
};

/// `width` bits (0 to 64) from bit `at` on, the low bit of a byte first. at + width <= 8 * bytes.size().
[[nodiscard]] std::uint64_t bits_at(std::span<const std::byte> bytes, std::uint64_t at, unsigned width) noexcept;

/// Encoding RLE: runs of one number, and numbers packed in groups of eight.
class RunReader {
public:
    /// width  bits of a number, 0 to 32
    RunReader(std::span<const std::byte> bytes, unsigned width, const Place& place);

    template <class Number>
    void read(std::span<Number> out) {
        while (!out.empty()) {
            if (left_ == 0) next_run();
            const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(left_, out.size()));
            if (is_packed_) {
                require_packed(count);
                for (std::size_t i = 0; i < count; ++i, bit_ += width_)
                    out[i] = static_cast<Number>(bits_at(bytes_, bit_, width_));
            } else {
                std::fill_n(out.begin(), count, static_cast<Number>(value_));
            }
            left_ -= count;
            out = out.subspan(count);
        }
    }

private:
    void next_run();
    void require_packed(std::size_t count) const;
    std::span<const std::byte> bytes_;
    ByteCursor in_;
    unsigned width_;
    bool is_packed_ = false;
    std::uint64_t left_ = 0;  // numbers of the run
    std::uint32_t value_ = 0;
    std::uint64_t bit_ = 0;  // of the next packed number
    std::uint64_t bit_end_ = 0;
};

/// Encoding DELTA_BINARY_PACKED: the first number, then differences in blocks of miniblocks. Sums wrap around.
class DeltaReader {
public:
    DeltaReader(std::span<const std::byte> bytes, const Place& place);

    void read(std::span<std::uint64_t> out);
    [[nodiscard]] std::uint64_t count() const noexcept { return count_; }  ///< numbers in all
    [[nodiscard]] std::size_t end() const;  ///< first byte behind them; looks at the head of each block

private:
    void next_miniblock();
    std::span<const std::byte> bytes_;
    ByteCursor in_;
    std::uint64_t miniblocks_ = 0;  // in a block
    std::uint64_t numbers_ = 0;     // in a miniblock
    std::uint64_t count_ = 0;
    std::uint64_t left_ = 0;
    std::uint64_t last_ = 0;
    std::uint64_t least_ = 0;  // difference, of the block
    std::span<const std::byte> widths_;
    std::size_t miniblock_ = 0;
    std::uint64_t left_in_miniblock_ = 0;
    unsigned width_ = 0;
    std::uint64_t bit_ = 0;
    bool is_first_ = true;
};

/// Levels of a page's entries, 0 to `most`.
class LevelReader {
public:
    /// Encoding RLE without its length, or the older BIT_PACKED.
    ///
    ///   most  the highest level, 1 to 65
    LevelReader(std::span<const std::byte> bytes, unsigned most, bool is_bit_packed, const Place& place);
    /// Fills `levels`; returns how many are the highest.
    std::size_t read(std::span<std::uint8_t> levels);

private:
    std::span<const std::byte> bytes_;
    std::uint8_t most_;
    unsigned width_;
    bool is_bit_packed_;
    std::uint64_t at_ = 0;
    RunReader runs_;
    const Place* place_;
};

/// The values of a page that are there. Value: std::string_view, or std::uint64_t with the bits of an std::int64_t, of
/// a double (FLOAT is widened), or 0 and 1.
template <class Value>
class ValueReader {
public:
    virtual ~ValueReader() = default;
    /// Fills `out`. Texts live as long as the page's bytes and the dictionary; of DELTA_BYTE_ARRAY until the next call.
    virtual void read(std::span<Value> out) = 0;
};

/// What a ValueReader reads from.
template <class Value>
struct ValueBytes {
    std::span<const std::byte> bytes;
    const std::vector<Value>* dictionary = nullptr;  ///< nullptr: the column chunk has none
    std::uint64_t most = 0;                          ///< bytes that texts made anew may have in one call
};

/// Only for a page that has a value: one of nulls alone may lack what the encoding begins with. Throws
/// Errc::unsupported_parquet for an encoding that is unknown or not for the column's type.
[[nodiscard]] std::unique_ptr<ValueReader<std::uint64_t>> make_value_reader(Encoding encoding,
                                                                            const ColumnFormat& format,
                                                                            const ValueBytes<std::uint64_t>& from,
                                                                            const Place& place);
[[nodiscard]] std::unique_ptr<ValueReader<std::string_view>> make_value_reader(Encoding encoding,
                                                                               const ColumnFormat& format,
                                                                               const ValueBytes<std::string_view>& from,
                                                                               const Place& place);

}  // namespace strata::tables::detail::parquet

#ifndef STRATA_COMPILED
#include <strata/tables/impl/parquet_encodings.ipp>
#include <strata/tables/impl/parquet_values.ipp>
#endif
