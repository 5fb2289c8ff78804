#pragma once
// strata/tables/detail/parquet_page.hpp - pages: their headers, and their bytes unpacked.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include <strata/tables/detail/parquet_bytes.hpp>

namespace strata::tables::detail::parquet {

enum class PageType : std::uint8_t { data = 0, index = 1, dictionary = 2, data_v2 = 3 };

/// The parts of a page's header (PageHeader) that reading columns needs. Sizes and counts are >= 0.
struct PageHeader {
    std::size_t header_bytes = 0;  ///< of the header itself
    PageType type = PageType::data;
    std::uint32_t unpacked = 0;  ///< bytes
    std::uint32_t packed = 0;    ///< bytes
    std::optional<std::uint32_t> crc;
    std::uint32_t values = 0;  ///< with nulls
    std::int32_t encoding = -1;
    std::int32_t level_encoding = -1;       ///< data: of the definition levels
    std::int32_t repetition_encoding = -1;  ///< data: of the repetition levels
    // data_v2:
    std::uint32_t nulls = 0;
    std::uint32_t definition_bytes = 0;
    std::uint32_t repetition_bytes = 0;
    bool is_packed = true;
};

/// Parses the header at the front of `bytes`. Throws Errc::corrupt_parquet.
[[nodiscard]] PageHeader parse_page_header(std::span<const std::byte> bytes, const Place& place);

/// Memory that is not cleared before it is written: a claimed size costs nothing until bytes come. Kept and used again.
class PageBuffer {
public:
    std::span<std::byte> resize(std::size_t size) {
        if (size > capacity_) {
            bytes_.reset();  // before the new one is taken, not after
            bytes_ = std::make_unique_for_overwrite<std::byte[]>(size);
            capacity_ = size;
        }
        size_ = size;
        return {bytes_.get(), size_};
    }
    [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return {bytes_.get(), size_}; }

private:
    std::unique_ptr<std::byte[]> bytes_;
    std::size_t size_ = 0;
    std::size_t capacity_ = 0;
};

/// Unpacks all of `packed` into all of `out`. No packed bytes for no bytes are right with every codec.
///
///   codec  its number in parquet.thrift, CompressionCodec
///
/// Throws Errc::corrupt_parquet when the bytes are damaged or give another number of bytes, unsupported_parquet for
/// LZO and unknown codecs.
void unpack(std::int32_t codec, std::span<const std::byte> packed, std::span<std::byte> out, const Place& place);

/// True if no stream of the codec that is `packed` bytes long can give `unpacked` bytes: asked before memory is taken.
[[nodiscard]] bool cannot_unpack_to(std::int32_t codec, std::span<const std::byte> packed, std::uint64_t unpacked);

/// CRC-32 as in gzip.
[[nodiscard]] std::uint32_t crc32_of(std::span<const std::byte> bytes) noexcept;

}  // namespace strata::tables::detail::parquet

#ifndef STRATA_COMPILED
#include <strata/tables/impl/parquet_page.ipp>
#endif
