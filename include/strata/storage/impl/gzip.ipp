#pragma once
// strata/storage/impl/gzip.ipp - zlib's streaming calls behind two functions.

#include <algorithm>
#include <limits>
#include <new>
#include <string>

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

/// A z_stream whose end function always runs.
class InflateStream {
public:
    InflateStream() {
        if (::inflateInit2(&stream, gzip_window) != Z_OK) throw std::bad_alloc{};
    }
    InflateStream(const InflateStream&) = delete;
    InflateStream& operator=(const InflateStream&) = delete;
    ~InflateStream() { ::inflateEnd(&stream); }
    z_stream stream{};
};

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
    detail::DeflateStream deflater{std::clamp(level, 1, 9)};
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
    detail::InflateStream inflater;
    z_stream& z = inflater.stream;
    std::vector<std::byte> plain;
    std::size_t read = 0;
    std::size_t written = 0;
    while (true) {
        if (written == plain.size()) {
            // One byte of room beyond the limit: a stream of exactly `limit` bytes still reaches its check sum.
            if (written > limit) detail::throw_corrupt_gzip("it grows beyond " + std::to_string(limit) + " bytes");
            const std::uint64_t wanted = std::max<std::uint64_t>({4096, packed.size() * 2, written * 2});
            plain.resize(static_cast<std::size_t>(std::min(wanted, limit + 1)));
        }
        const uInt input = detail::chunk_of(packed.size() - read);
        const uInt room = detail::chunk_of(plain.size() - written);
        z.next_in = detail::as_zlib(packed.data() + read);
        z.avail_in = input;
        z.next_out = detail::as_zlib(plain.data() + written);
        z.avail_out = room;
        const int status = ::inflate(&z, Z_NO_FLUSH);
        read += input - z.avail_in;
        written += room - z.avail_out;
        if (status == Z_STREAM_END) {
            if (read == packed.size()) break;
            if (::inflateReset(&z) != Z_OK) throw std::bad_alloc{};
        } else if (read == packed.size() && (status == Z_BUF_ERROR || (status == Z_OK && z.avail_out != 0))) {
            detail::throw_corrupt_gzip("it ends too early");
        } else if (status == Z_MEM_ERROR) {
            throw std::bad_alloc{};
        } else if (status != Z_OK) {
            detail::throw_corrupt_gzip(z.msg != nullptr ? z.msg : "wrong data");
        }
    }
    if (written > limit) detail::throw_corrupt_gzip("it grows beyond " + std::to_string(limit) + " bytes");
    plain.resize(written);
    return plain;
}

}  // namespace strata::storage
