#pragma once
// strata/offload/checksum.hpp - CRC32C of a window, four lanes at a time.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <strata/core/inline.hpp>
#include <strata/options/pipeline_options.hpp>

namespace strata::offload {

/// CRC32C (Castagnoli et al. 1993; polynomial 0x1EDC6F41, reflected, as in iSCSI) of four interleaved parts.
///
/// One CRC is a chain of dependent instructions; four of them side by side are three times as fast. Of each line of 64
/// bytes, part i has the 8-byte words i and i + 4; the last part also has the bytes after the last whole line.
using Checksum = std::array<std::uint32_t, 4>;

/// The check sum. Uses the CPU's crc32 instruction where it has one; the result is the same without.
///
///   hardware  false: the table; for tests
[[nodiscard]] Checksum checksum(std::span<const std::byte> bytes, Coverage coverage, bool hardware = true) noexcept;

}  // namespace strata::offload

#ifndef STRATA_COMPILED
#include <strata/offload/impl/checksum.ipp>
#endif
