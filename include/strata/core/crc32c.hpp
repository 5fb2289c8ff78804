#pragma once
// strata/core/crc32c.hpp - CRC32C: a check sum against accidents that costs next to nothing.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <strata/core/inline.hpp>

namespace strata::core {

/// CRC32C of the bytes (Castagnoli et al. 1993; polynomial 0x1EDC6F41, reflected; RFC 3720, section 12.1). Any change
/// of up to 32 neighbouring bits changes it. Runs of 1.5 KiB are summed in three lanes with the CPU's crc32 instruction
/// where it has one, about 20 GB/s a core; the result is the same without it.
///
///   before    the sum of the bytes in front of these: a sum of parts is the sum of the whole
///   hardware  false: the table; for tests
[[nodiscard]] std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before = 0,
                                   bool hardware = true) noexcept;

/// CRC32Cs of four interleaved parts, twice as fast as one of the whole: one CRC is a chain of instructions that wait
/// for each other. Of each line of 64 bytes, part i has the 8-byte words i and i + 4; the last part also has the bytes
/// after the last whole line.
///
///   stride    bytes from a line that is looked at to the next, a multiple of 64
///   hardware  false: the table; for tests
[[nodiscard]] std::array<std::uint32_t, 4> crc32c_of_four(std::span<const std::byte> bytes, std::size_t stride = 64,
                                                          bool hardware = true) noexcept;

}  // namespace strata::core

#ifndef STRATA_COMPILED
#include <strata/core/impl/crc32c.ipp>
#endif
