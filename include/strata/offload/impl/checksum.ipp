#pragma once
// strata/offload/impl/checksum.ipp - CRC32C by instruction and by table.

#include <strata/core/detail/crc32c_steps.hpp>
#include <strata/offload/checksum.hpp>

namespace strata::offload {

namespace detail {

#ifdef __x86_64__
#ifndef __clang__  // which has no such attribute
[[gnu::optimize("O2")]]
#endif
[[gnu::target("sse4.2")]] inline void
crc32c_lines(Checksum& sums, const std::byte* data, std::size_t end, std::size_t stride) noexcept {
    using core::detail::crc32c_word;
    std::uint64_t a = sums[0];
    std::uint64_t b = sums[1];
    std::uint64_t c = sums[2];
    std::uint64_t d = sums[3];
    for (std::size_t i = 0; i < end; i += stride) {
        const std::byte* const line = data + i;
        a = crc32c_word(crc32c_word(a, line), line + 32);
        b = crc32c_word(crc32c_word(b, line + 8), line + 40);
        c = crc32c_word(crc32c_word(c, line + 16), line + 48);
        d = crc32c_word(crc32c_word(d, line + 24), line + 56);
    }
    sums = {static_cast<std::uint32_t>(a), static_cast<std::uint32_t>(b), static_cast<std::uint32_t>(c),
            static_cast<std::uint32_t>(d)};
}
#else
inline void crc32c_lines(Checksum&, const std::byte*, std::size_t, std::size_t) noexcept {}
#endif

}  // namespace detail

STRATA_INLINE Checksum checksum(std::span<const std::byte> bytes, Coverage coverage, bool hardware) noexcept {
    if (coverage == Coverage::none) return {};
    Checksum sums{~0U, ~0U, ~0U, ~0U};
    const std::size_t stride = coverage == Coverage::sectors ? 512 : 64;
    const std::size_t end = bytes.size() / 64 * 64;  // of whole lines
    if (hardware && core::detail::has_crc32c()) {
        detail::crc32c_lines(sums, bytes.data(), end, stride);
    } else {
        for (std::size_t i = 0; i < end; i += stride) {
            for (std::size_t word = 0; word < 8; ++word) {
                sums[word % 4] = core::detail::crc32c_by_table(sums[word % 4], bytes.subspan(i + 8 * word, 8));
            }
        }
    }
    sums[3] = core::detail::crc32c_by_table(sums[3], bytes.subspan(end));
    for (std::uint32_t& sum : sums) sum = ~sum;
    return sums;
}

}  // namespace strata::offload
