#pragma once
// strata/storage/impl/gzip.ipp - zlib packs, libdeflate unpacks.

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <string>

#include <libdeflate.h>
#include <zlib.h>

#include <strata/core/error.hpp>
#include <strata/storage/gzip.hpp>

namespace strata::storage {

namespace detail {

inline constexpr int gzip_window = 15 + 16;  // zlib: 15 bits of window, +16 = gzip header and check sum

[[noreturn]] inline void throw_corrupt_gzip(const std::string& why) {
    throw Error{Errc::corrupt_gzip, "the bytes are no intact gzip stream: " + why,
                "delete the file and let it be made again"};
}

inline Bytef* as_zlib(const std::byte* bytes) noexcept {
    return const_cast<Bytef*>(reinterpret_cast<const Bytef*>(bytes));  // zlib 1.2 takes non-const input and leaves it
}

inline uInt chunk_of(std::size_t bytes) noexcept {
    return static_cast<uInt>(std::min<std::size_t>(bytes, std::numeric_limits<uInt>::max()));
}

struct FreeInflater {
    void operator()(libdeflate_decompressor* inflater) const noexcept { ::libdeflate_free_decompressor(inflater); }
};

/// How many bytes a stream says to hold: its last four bytes, which are right where it is one member below 4 GiB. Never
/// more than deflate can make of so many bytes (258 bytes of two bits), so that four bytes alone take no memory.
inline std::uint64_t stated_size(std::span<const std::byte> packed) noexcept {
    std::uint32_t stated = 0;
    if (packed.size() < sizeof stated) return 0;
    std::memcpy(&stated, packed.data() + packed.size() - sizeof stated, sizeof stated);
    return std::min<std::uint64_t>(stated, packed.size() * std::uint64_t{1032});
}

/// A z_stream whose end function always runs.
class DeflateStream {
public:
    explicit DeflateStream(int level) {
        if (::deflateInit2(&stream, level, Z_DEFLATED, gzip_window, 8, Z_DEFAULT_STRATEGY) != Z_OK)
            throw std::bad_alloc{};
    }
    DeflateStream(const DeflateStream&) = delete;
    DeflateStream& operator=(const DeflateStream&) = delete;
    ~DeflateStream() { ::deflateEnd(&stream); }
    z_stream stream{};
};

}  // namespace detail

STRATA_INLINE std::vector<std::byte> gzip_compress(std::span<const std::byte> plain, int level) {
    detail::DeflateStream deflater{std::clamp(level, 0, 9)};
    z_stream& z = deflater.stream;
    std::vector<std::byte> packed(plain.size() / 2 + 64);
    std::size_t read = 0;
    std::size_t written = 0;
    int status = Z_OK;
    while (status != Z_STREAM_END) {
        if (written == packed.size()) packed.resize(packed.size() * 2);
        const uInt input = detail::chunk_of(plain.size() - read);
        const uInt room = detail::chunk_of(packed.size() - written);
        z.next_in = detail::as_zlib(plain.data() + read);
        z.avail_in = input;
        z.next_out = detail::as_zlib(packed.data() + written);
        z.avail_out = room;
        status = ::deflate(&z, read + input == plain.size() ? Z_FINISH : Z_NO_FLUSH);
        read += input - z.avail_in;
        written += room - z.avail_out;
    }
    packed.resize(written);
    return packed;
}

STRATA_INLINE std::vector<std::byte> gzip_decompress(std::span<const std::byte> packed, std::uint64_t limit) {
    const std::unique_ptr<libdeflate_decompressor, detail::FreeInflater> inflater{::libdeflate_alloc_decompressor()};
    if (!inflater) throw std::bad_alloc{};
    std::vector<std::byte> plain(static_cast<std::size_t>(std::min(detail::stated_size(packed), limit)));
    std::size_t read = 0;
    std::size_t written = 0;
    do {
        std::size_t taken = 0;
        std::size_t made = 0;
        switch (::libdeflate_gzip_decompress_ex(inflater.get(), packed.data() + read, packed.size() - read,
                                                plain.data() + written, plain.size() - written, &taken, &made)) {
            case LIBDEFLATE_SUCCESS:
                read += taken;
                written += made;
                break;
            case LIBDEFLATE_INSUFFICIENT_SPACE:  // the same member again, with more room
                if (plain.size() >= limit)
                    detail::throw_corrupt_gzip("it grows beyond " + std::to_string(limit) + " bytes");
                plain.resize(static_cast<std::size_t>(
                    std::min(std::max<std::uint64_t>(4096, plain.size() * std::uint64_t{2}), limit)));
                break;
            default:
                detail::throw_corrupt_gzip("it is damaged or ends too early");
        }
    } while (read < packed.size());
    plain.resize(written);
    return plain;
}

}  // namespace strata::storage
