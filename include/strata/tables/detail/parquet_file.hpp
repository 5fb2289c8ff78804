#pragma once
// strata/tables/detail/parquet_file.hpp - an open Parquet file, and the bytes of a column chunk a part at a time.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <strata/tables/detail/parquet_footer.hpp>
#include <strata/tables/parquet_values.hpp>

namespace strata::tables::detail::parquet {

/// An open file: what its footer says, and how to read on.
struct File {
    ReadRange read;
    std::uint64_t size = 0;
    std::string source;
    ParquetLimits limits;
    Footer footer;
    std::uint64_t footer_begin = 0;  ///< pages lie before it

    /// Bytes [offset, offset + length), all of them, or Errc::io_failed.
    [[nodiscard]] std::vector<std::byte> fetch(std::uint64_t offset, std::uint64_t length) const;
};

/// The bytes of a column chunk from front to back, fetched limits.read_bytes at a time.
class ChunkBytes {
public:
    /// Chunks of some old writers are said to end 15 bytes too early (PARQUET-816): the head of the dictionary is not
    /// counted. So the last page may go on behind `size` by as much as a page's head has; none begins there.
    ChunkBytes(const File& file, std::uint64_t begin, std::uint64_t size);

    [[nodiscard]] bool at_end() const noexcept { return at_ >= end_ || at_ >= hard_end_; }  ///< no page begins here
    [[nodiscard]] std::uint64_t left() const noexcept { return hard_end_ - at_; }
    /// The next `count` bytes, count <= left(); valid until the next call.
    std::span<const std::byte> peek(std::uint64_t count);
    /// Those that begin with a page's head: `count`, or fewer where the chunk ends.
    std::span<const std::byte> peek_head(std::uint64_t count);
    void step(std::uint64_t count) noexcept { at_ += count; }

private:
    static constexpr std::uint64_t slack = 100;
    const File& file_;
    std::uint64_t at_;
    std::uint64_t end_;
    std::uint64_t hard_end_;
    std::vector<std::byte> held_;
    std::uint64_t held_begin_;  // offset in the file
};

}  // namespace strata::tables::detail::parquet

#ifndef STRATA_COMPILED
#include <strata/tables/impl/parquet_file.ipp>
#endif
