#pragma once
// strata/storage/gzip.hpp - gzip streams in memory (RFC 1952): zlib packs, libdeflate unpacks.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace strata::storage {

/// One gzip member without a time stamp, so equal input gives equal bytes.
///
///   level  0 as it is, 1 fast .. 9 small
[[nodiscard]] std::vector<std::byte> gzip_compress(std::span<const std::byte> plain, int level = 6);

/// The bytes of one or several gzip members in sequence.
///
///   limit  most bytes the result may have, so that a small hostile file cannot fill the memory
///
/// Cost: one pass where the last four bytes say how much there is, as they do for one member below 4 GiB; otherwise
/// fewer than three.
///
/// Throws Errc::corrupt_gzip when the stream is damaged, cut short, followed by other bytes or beyond the limit.
[[nodiscard]] std::vector<std::byte> gzip_decompress(std::span<const std::byte> packed,
                                                     std::uint64_t limit = std::uint64_t{4} << 30);

}  // namespace strata::storage

#ifndef STRATA_COMPILED
#include <strata/storage/impl/gzip.ipp>
#endif
