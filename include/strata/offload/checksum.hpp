#pragma once
// strata/offload/checksum.hpp - the check sum of a window: CRC32C of four interleaved parts, of all its bytes or of
// some.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <strata/core/crc32c.hpp>
#include <strata/options/pipeline_options.hpp>

namespace strata::offload {

/// As core::crc32c_of_four() has them.
using Checksum = std::array<std::uint32_t, 4>;

/// The check sum; zeros for Coverage::none.
///
///   hardware  false: without the CPU's crc32 instruction; for tests
[[nodiscard]] inline Checksum checksum(std::span<const std::byte> bytes, Coverage coverage,
                                       bool hardware = true) noexcept {
    if (coverage == Coverage::none) return {};
    return core::crc32c_of_four(bytes, coverage == Coverage::sectors ? 512 : 64, hardware);
}

}  // namespace strata::offload
