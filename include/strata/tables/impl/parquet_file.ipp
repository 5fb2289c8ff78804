#pragma once
// strata/tables/impl/parquet_file.ipp - reads of a file, each checked for its length.

#include <algorithm>
#include <string>
#include <utility>

#include <strata/core/error.hpp>
#include <strata/core/inline.hpp>
#include <strata/tables/detail/parquet_file.hpp>

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

}  // namespace strata::tables::detail::parquet
