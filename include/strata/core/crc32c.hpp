#pragma once
// strata/core/crc32c.hpp - CRC32C: a check sum against accidents that costs next to nothing.

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

}  // namespace strata::core

#ifndef STRATA_COMPILED
#include <strata/core/impl/crc32c.ipp>
#endif
